// tests/style_test.cpp -- Reads the tree and fails on what a reviewer should not have to look for.
//
// Checked: who may include whom, where headers of vendors may appear, the size of files, the form
// of headers, `#pragma omp` in one place, ops in families, no path of somebody's machine.

#include "tests/includes.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string, std::less<>>;

// Folder -> the folders it may include, itself aside. "nitinol.h" is the public header.
const std::map<std::string, Names, std::less<>> may_include = {
    {"core", {}},
    {"dist", {"core"}},
    {"backends", {"core", "dist"}},
    {"fusion", {"core"}},
    {"program", {"core", "fusion"}},
    {"tracer", {"core"}},
    {"eager", {"core", "dist", "fusion", "program", "tracer"}},
    {"autograd", {"core", "tracer", "eager"}},
    {"jit", {"core", "fusion", "program", "tracer", "eager", "autograd", "io"}},
    {"io", {"core", "eager"}},
    {"nn", {"core", "dist", "eager", "autograd", "jit", "io"}},  // jit: fit() compiles its step
    {"nitinol.h", {"core", "dist", "tracer", "eager", "autograd", "jit", "io", "nn"}},
    {"bindings",
     {"core", "dist", "tracer", "eager", "autograd", "jit", "io", "nn", "backends", "nitinol.h"}},
    {"examples", {}},  // includes <nitinol/nitinol.h>, as a user would
    {"tools", {"examples"}},
    {"tests",
     {"core", "dist", "fusion", "program", "tracer", "eager", "autograd", "jit", "io", "nn",
      "backends", "bindings", "nitinol.h", "examples", "bench"}},
    {"bench",
     {"core", "fusion", "tracer", "eager", "autograd", "jit", "nn", "backends", "bindings",
      "nitinol.h", "examples"}},
};

// Folders within them that know less than the folder around them: what they may include, by
// beginning, beside themselves.
const std::map<std::string, std::vector<std::string_view>, std::less<>> folder_may_include = {
    {"backends/host/", {"core/"}},
    {"backends/mpi/", {"core/", "dist/"}},
    {"backends/disk/", {"core/"}},
    {"backends/reference/", {"core/", "dist/", "backends/host/"}},
    {"backends/cpu/code/", {"core/", "backends/host/"}},
    {"backends/cpu/onednn/", {"core/", "backends/host/"}},
    {"backends/cuda/text/", {"core/"}},  // runs without a GPU
};

// Beginning of a library's headers -> where they may be included, by beginning of the path.
// Not listed: the standard library, POSIX, fmt.
struct LibraryRule {
  std::string_view header;
  std::vector<std::string_view> allowed;
  bool only_sources;
};
const std::vector<LibraryRule> library_rules = {
    {"nitinol/", {"examples/", "tools/", "tests/gdb/"}, false},
    {"llvm/", {"backends/cpu/jit/"}, true},
    {"llvm-c/", {"backends/cpu/jit/"}, true},
    {"clang", {}, true},
    {"mpi.h", {"backends/mpi/", "bench/dist.cpp", "tests/dist/own_mpi.cpp"}, true},
    {"dnnl", {"backends/cpu/onednn/"}, true},
    {"oneapi/", {"backends/cpu/onednn/"}, true},
    {"cuda", {}, true},  // the backend declares what it calls, and opens it
    {"cublas", {}, true},
    {"cudnn", {}, true},
    {"nvrtc", {}, true},
    {"nanobind/", {"bindings/"}, false},
    {"boost/context/", {"tests/replay/"}, true},
    {"boost/pfr", {"core/fields.h"}, false},
    {"boost/smart_ptr", {"core/handle.h"}, false},
    {"omp.h", {"core/parallel.cpp", "tests/", "bench/"}, true},
    {"backtrace.h", {"core/error.cpp"}, true},
    {"zip.h", {"io/zip.cpp"}, true},
    {"png", {"io/png.cpp"}, true},
    {"turbojpeg.h", {"io/jpeg.cpp"}, true},
    {"catch2/", {"tests/"}, false},
    {"benchmark/", {"bench/micro/"}, false},
    {"CLI/", {"examples/", "tools/", "bench/", "tests/"}, false},
    {"nlohmann/",
     {"jit/explain.cpp", "jit/profile_text.cpp", "jit/memory_snapshot.cpp", "nn/metric_log.cpp",
      "io/safetensors", "examples/", "bench/", "tests/"},
     false},
};

// Who may ask a tensor for its memory's address: what launches device work, and the two functions
// through which the host sees elements.
const std::vector<std::string_view> may_address = {"core/tensor.h",
                                                   "core/host_access.cpp",
                                                   "backends/",
                                                   "eager/launch.cpp",
                                                   "eager/composite.cpp",
                                                   "jit/plan.cpp",
                                                   "program/program.cpp",
                                                   "program/running.h",
                                                   "program/running.cpp",
                                                   "tests/",
                                                   "bench/"};

constexpr int max_source_lines = 600;
constexpr int max_header_lines = 250;

// In pieces, so that this file does not contain them.
const std::vector<std::string> machine_paths = {
    std::string("/ho") + "me/", std::string("/wo") + "rk/", std::string("/ro") + "ot/",
    std::string("/Us") + "ers/"};

std::string top_of(std::string_view path) {
  return std::string(path.substr(0, path.find('/')));
}

std::string check_project_include(std::string_view path, std::string_view header) {
  const std::string from = top_of(path);
  const std::string to = top_of(header);
  if (!may_include.contains(to)) return fmt::format("\"{}\" is not a path from the root", header);
  for (const auto& [folder, allowed] : folder_may_include) {
    if (!path.starts_with(folder) || header.starts_with(folder)) continue;
    const bool is_allowed = std::ranges::any_of(
        allowed, [&](std::string_view place) { return header.starts_with(place); });
    if (!is_allowed) return fmt::format("{} may not include \"{}\"", folder, header);
  }
  if (from == to || may_include.at(from).contains(to)) return {};
  return fmt::format("{} may not include {}: \"{}\"", from, to, header);
}

std::string check_library_include(std::string_view path, std::string_view header) {
  for (const LibraryRule& rule : library_rules) {
    if (!header.starts_with(rule.header)) continue;
    const bool is_here = std::ranges::any_of(
        rule.allowed, [&](std::string_view place) { return path.starts_with(place); });
    if (!is_here) return fmt::format("<{}> may not be included here", header);
    if (rule.only_sources && path.ends_with(".h")) {
      return fmt::format("<{}> may be included by sources only", header);
    }
  }
  return {};
}

// Whether an Op is defined here. Those of a Family are listed by all_ops(); another one could be
// applied too, but would be in no table, no test and no documentation.
bool defines_op(std::string_view path, std::string_view line) {
  static const std::regex definition(R"((^|\W)Op \w+( = |;|\[| ?\{))");
  const std::string folder = top_of(path);
  const bool is_ours = folder != "tests" && folder != "bench" && folder != "examples";
  return is_ours && line.find("Op ") != std::string_view::npos &&
         std::regex_search(line.begin(), line.end(), definition);
}

std::string check_line(std::string_view path, std::string_view line) {
  constexpr std::string_view directive = "#include ";
  if (line.starts_with(directive)) {
    const std::string_view rest = line.substr(directive.size());
    const std::size_t end = rest.find_first_of("\">", 1);
    if (end == std::string_view::npos) return "an include that this test cannot read";
    const std::string_view header = rest.substr(1, end - 1);
    return rest[0] == '"' ? check_project_include(path, header)
                          : check_library_include(path, header);
  }
  const std::size_t start = line.find_first_not_of(" \t");
  if (start != std::string_view::npos && line.substr(start).starts_with("#pragma omp") &&
      path != "core/parallel.cpp") {
    return "threads are started in core/parallel.cpp only";
  }
  const auto begins = [&](std::string_view place) { return path.starts_with(place); };
  if (line.find("address()") != std::string_view::npos && !std::ranges::any_of(may_address, begins))
    return "a tensor's memory is the device's: read by HostElements, write by filled_tensor";
  if (defines_op(path, line)) return "an op is an entry of a Family (eager/ops/family.h)";
  for (const std::string& machine_path : machine_paths) {
    if (line.find("\"" + machine_path) != std::string_view::npos) return "a path of one machine";
  }
  return {};
}

// What is wrong with a file, each as "path:line: reason".
std::vector<std::string> violations(const std::string& path, const std::string& text) {
  std::vector<std::string> found;
  if (!may_include.contains(top_of(path))) return {path + ": not in a folder of the layout"};
  std::istringstream stream(text);
  std::string line;
  int number = 0;
  bool has_pragma_once = false;
  while (std::getline(stream, line)) {
    ++number;
    if (line == "#pragma once") has_pragma_once = true;
    const std::string reason = check_line(path, line);
    if (!reason.empty()) found.push_back(fmt::format("{}:{}: {}", path, number, reason));
  }
  const bool is_header = path.ends_with(".h");
  const int limit = is_header ? max_header_lines : max_source_lines;
  if (number > limit) found.push_back(fmt::format("{}: {} lines, limit {}", path, number, limit));
  if (is_header && !has_pragma_once) found.push_back(path + ": no #pragma once");
  if (is_header && !text.starts_with("// ")) {
    found.push_back(path + ":1: a header's first line says what it is");
  }
  return found;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Paths of all sources and headers, from the root. Hidden folders, builds and the consumer project,
// which stands for somebody else's, are left out.
std::vector<std::string> all_files(const fs::path& root) {
  std::vector<std::string> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
       ++it) {
    const std::string path = it->path().lexically_relative(root).generic_string();
    const std::string name = it->path().filename().string();
    if (it->is_directory() &&
        (name.starts_with(".") || path == "build" || path == "tests/package")) {
      it.disable_recursion_pending();
    }
    if (it->is_regular_file() && (name.ends_with(".h") || name.ends_with(".cpp"))) {
      files.push_back(path);
    }
  }
  std::ranges::sort(files);
  return files;
}

// What is wrong with the `#pragma GCC visibility` of a header; nothing is if it should export what
// it declares and begins to after its includes, or should not and does not.
std::string check_visibility(const std::string& text, bool is_exported) {
  const std::string begin = "\n\n#pragma GCC visibility push(default)\n\n";
  const std::string end = "\n\n#pragma GCC visibility pop\n";
  if (!is_exported) {
    return text.find("GCC visibility") == std::string::npos ? "" : "exports what is internal";
  }
  const std::size_t space = text.find("\nnamespace ");
  if (space == std::string::npos) return {};
  const std::size_t pushed = text.find(begin);
  if (pushed == std::string::npos || !text.ends_with(end)) {
    return "does not export what it declares: write" + begin + "after the includes and" + end;
  }
  const std::size_t included = text.rfind("\n#include ");
  if (pushed > space) return "declares before it exports";
  return included != std::string::npos && included > pushed ? "exports what it includes" : "";
}

// The folders of the library whose sources include each other in a circle, or one that is.
// core/math/ is a part of core: its formulas are written in core's types, and these hold them.
Names folders_in_circles(const std::map<std::string, std::string, std::less<>>& text_of) {
  const auto folder_of = [](std::string_view path) {
    const std::string folder(path.substr(0, path.rfind('/')));
    return folder == "core/math" ? std::string("core") : folder;
  };
  std::map<std::string, Names, std::less<>> includes;
  for (const auto& [path, text] : text_of) {
    Names& from = includes[folder_of(path)];
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      if (!line.starts_with("#include \"")) continue;
      const std::string header = line.substr(10, line.find('"', 10) - 10);
      if (folder_of(header) != folder_of(path)) from.insert(folder_of(header));
    }
  }
  Names left;
  for (const auto& [folder, _] : includes) left.insert(folder);
  const auto is_above_all = [&](const std::string& folder) {
    return std::ranges::none_of(includes.at(folder),
                                [&](const std::string& other) { return left.contains(other); });
  };
  while (std::erase_if(left, is_above_all) > 0) {
  }
  return left;
}

std::string first_violation(const std::string& path, const std::string& text) {
  const std::vector<std::string> found = violations(path, text);
  return found.empty() ? "" : found.front();
}

}  // namespace

TEST_CASE("the tree keeps to its layout", "[tree]") {
  const fs::path root = NITINOL_SOURCE_DIR;
  const std::vector<std::string> files = all_files(root);
  CHECK(files.size() > 3);
  for (const std::string& path : files) {
    for (const std::string& violation : violations(path, read(root / path))) {
      FAIL_CHECK(violation);
    }
  }
}

TEST_CASE("no folders of the library include each other in a circle", "[tree]") {
  CHECK(folders_in_circles({{"a/x.h", "#include \"b/y.h\"\n"},
                            {"b/y.h", "#include \"c/z.h\"\n#include \"b/w.h\"\n"},
                            {"c/z.h", "#include <vector>\n"}})
            .empty());
  CHECK(folders_in_circles({{"a/x.h", "#include \"b/y.h\"\n"},
                            {"b/y.h", "#include \"c/z.h\"\n"},
                            {"c/z.h", "#include \"b/y.h\"\n"}}) == Names{"a", "b", "c"});
  const fs::path root = NITINOL_SOURCE_DIR;
  std::map<std::string, std::string, std::less<>> text_of;
  for (const std::string& path : all_files(root)) {
    const std::string top = top_of(path);
    const bool is_of_library = may_include.contains(top) && top != "tests" && top != "bench" &&
                               top != "tools" && top != "examples" && top != "nitinol.h";
    if (is_of_library) text_of[path] = read(root / path);
  }
  CHECK(text_of.size() > 300);
  CHECK(folders_in_circles(text_of) == Names{});
}

TEST_CASE("all_ops() goes through each family", "[tree]") {
  const fs::path root = NITINOL_SOURCE_DIR;
  const std::string list = read(root / "eager/ops/all_ops.cpp");
  int families = 0;
  for (const std::string& path : all_files(root)) {
    const bool is_source = path.ends_with(".cpp") && !path.starts_with("tests/");
    if (!is_source || read(root / path).find(" = family({") == std::string::npos) continue;
    ++families;
    CHECK_THAT(list, Catch::Contains(fs::path(path).stem().string() + "_ops()"));
  }
  CHECK(families > 10);
}

TEST_CASE("each folder says what it is for", "[tree]") {
  const fs::path root = NITINOL_SOURCE_DIR;
  for (const auto& [folder, others] : may_include) {
    if (fs::is_directory(root / folder) && folder != "examples") {
      INFO(folder);
      CHECK(fs::exists(root / folder / "README.md"));
    }
  }
}

// Internal headers whose functions the plugin calls.
const Names exported_for_plugin = {"core/isa.h", "core/tables.h"};

TEST_CASE("public headers export what they declare, and no others do", "[tree]") {
  const fs::path root = NITINOL_SOURCE_DIR;
  Names exported = nitinol::test::Includes(root).reached("nitinol.h");
  exported.insert("nitinol.h");
  exported.insert(exported_for_plugin.begin(), exported_for_plugin.end());
  CHECK(exported.size() > 50);
  for (const std::string& path : all_files(root)) {
    if (!path.ends_with(".h")) continue;
    const std::string reason = check_visibility(read(root / path), exported.contains(path));
    if (!reason.empty()) FAIL_CHECK(path + " " + reason);
  }
}

TEST_CASE("the check of what headers export sees each mistake", "[tree]") {
  const std::string includes = "// A.\n#pragma once\n\n#include <span>\n";
  const std::string push = "\n#pragma GCC visibility push(default)\n";
  const std::string body = "\nnamespace nitinol {}\n";
  const std::string pop = "\n#pragma GCC visibility pop\n";
  CHECK(check_visibility(includes + push + body + pop, true).empty());
  CHECK(check_visibility(includes + body, false).empty());
  CHECK_FALSE(check_visibility(includes + push + body + pop, false).empty());
  CHECK_FALSE(check_visibility(includes + body, true).empty());
  CHECK_FALSE(check_visibility(includes + push + body, true).empty());
  CHECK_FALSE(check_visibility(includes + body + push + body + pop, true).empty());
  CHECK_FALSE(check_visibility("// A.\n" + push + includes + body + pop, true).empty());
}

TEST_CASE("the layout check sees wrong includes", "[tree]") {
  const auto include = [](const std::string& path, const std::string& header) {
    return first_violation(path, "#include " + header + "\n");
  };
  CHECK(include("eager/a.cpp", "\"core/shape.h\"").empty());
  CHECK(include("eager/a.cpp", "\"jit/plan.h\"") ==
        "eager/a.cpp:1: eager may not include jit: \"jit/plan.h\"");
  CHECK_FALSE(include("core/a.cpp", "\"eager/apply.h\"").empty());
  CHECK(include("backends/cpu/a.cpp", "\"backends/host/stage.h\"").empty());
  CHECK_FALSE(include("backends/cpu/a.cpp", "\"tracer/trace.h\"").empty());
  CHECK(include("backends/cuda/text/a.cpp", "\"backends/cuda/text/body.h\"").empty());
  CHECK(include("backends/cuda/text/a.cpp", "\"backends/cuda/runtime/libraries.h\"") ==
        "backends/cuda/text/a.cpp:1: backends/cuda/text/ may not include "
        "\"backends/cuda/runtime/libraries.h\"");
  CHECK_FALSE(include("examples/a/a.cpp", "\"core/shape.h\"").empty());
  CHECK(include("examples/a/a.cpp", "<nitinol/nitinol.h>").empty());
  CHECK_FALSE(include("examples/a/a.cpp", "\"nitinol.h\"").empty());
  CHECK_FALSE(include("core/a.cpp", "<nitinol/core/shape.h>").empty());
  CHECK_FALSE(include("core/a.cpp", "\"shape.h\"").empty());
  CHECK_FALSE(include("core/a.cpp", "<dnnl.hpp>").empty());
  CHECK(include("backends/cpu/onednn/a.cpp", "<dnnl.hpp>").empty());
  CHECK_FALSE(include("backends/cpu/a.cpp", "<dnnl.hpp>").empty());
  CHECK(include("backends/cpu/jit/a.cpp", "<llvm/IR/Module.h>").empty());
  CHECK_FALSE(include("jit/a.cpp", "<boost/pfr.hpp>").empty());
  CHECK_FALSE(include("jit/a.cpp", "<omp.h>").empty());
  CHECK(include("elsewhere/a.cpp", "<vector>") == "elsewhere/a.cpp: not in a folder of the layout");
}

TEST_CASE("the layout check sees an op outside a family", "[tree]") {
  const auto line = [](const std::string& path, const std::string& text) {
    return first_violation(path, text + "\n");
  };
  CHECK(line("eager/a.cpp", "constinit const Op exp_op = unary_op(") ==
        "eager/a.cpp:1: an op is an entry of a Family (eager/ops/family.h)");
  CHECK_FALSE(line("jit/a.cpp", "  static const Op op{};").empty());
  CHECK_FALSE(line("jit/a.cpp", "const Op ops[] = {").empty());
  CHECK(line("tests/a.cpp", "constinit const Op exp_op = {").empty());
  CHECK(line("eager/a.cpp", "consteval Op unary_op(std::string_view name) {").empty());
  CHECK(line("eager/a.cpp", "const Op& op = views[\"reshape\"];").empty());
}

TEST_CASE("the layout check sees the form of headers and what sources may not hold", "[tree]") {
  const std::string good = "// A header.\n#pragma once\n";
  CHECK(first_violation("core/a.h", good).empty());
  CHECK(first_violation("core/a.h", "// A header.\n") == "core/a.h: no #pragma once");
  CHECK_FALSE(first_violation("core/a.h", "#pragma once\n").empty());
  CHECK_FALSE(first_violation("backends/cpu/a.h", good + "#include <dnnl.hpp>\n").empty());
  CHECK(first_violation("core/a.h", good + std::string(249, '\n')) ==
        "core/a.h: 251 lines, limit 250");
  CHECK(first_violation("core/a.cpp", std::string(600, '\n')).empty());
  CHECK_FALSE(first_violation("core/a.cpp", std::string(601, '\n')).empty());
  CHECK_FALSE(first_violation("core/a.cpp", "  #pragma omp parallel\n").empty());
  CHECK_FALSE(first_violation("eager/read.cpp", "  use(data.address());\n").empty());
  CHECK(first_violation("eager/launch.cpp", "  use(data.address());\n").empty());
  CHECK_FALSE(first_violation("core/a.cpp", "f(\"" + machine_paths[0] + "x\");\n").empty());
}
