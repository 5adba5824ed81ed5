// tests/docs_test.cpp -- Holds the pages that list things against what there is.
//
// docs/ops.md is written by this test from the public headers and the table of ops: when it is
// stale, the case fails and says which file to copy over it. Of environment variables and passes
// only the names are compared. C++ on the pages, and in the names of docs/coming-from.md, is
// compiled; Python runs in bindings/python/tests/test_docs.py.

#include "core/op.h"
#include "eager/all_ops.h"
#include "jit/passes/pipeline.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
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

using namespace nitinol;
namespace fs = std::filesystem;

namespace {

const fs::path root = NITINOL_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::set<std::string> all_matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

// ---- docs/ops.md

struct Function {
  std::string name;
  std::string sentence;  ///< the first of its comment
};

struct Family {
  std::string header;
  std::string title;
  std::vector<Function> functions;
  std::vector<std::string> operators;
};

// Up to the first full stop that ends a sentence. A bar would end the cell of a table.
std::string first_sentence(const std::string& comment) {
  static const std::regex end("[.:;](?= [A-Z]|$)|:$");
  std::smatch found;
  std::string sentence = comment;
  if (std::regex_search(comment, found, end)) {
    sentence = comment.substr(0, static_cast<std::size_t>(found.position()));
  }
  return std::regex_replace(sentence, std::regex("\\|"), "\\|");
}

void add_function(Family& family, const std::string& name, const std::string& comment) {
  const auto same = std::ranges::find(family.functions, name, &Function::name);
  if (same == family.functions.end()) family.functions.push_back({name, first_sentence(comment)});
}

// The functions that a header declares and that give tensors; overloads once, by their first.
Family family_of(const std::string& header) {
  static const std::regex declaration(
      R"(^(?:\[\[[^\]]*\]\] )?(?:Tensor|std::(?:vector|pair|array)<[^>]*Tensor[^>]*>) (\w+)\()");
  static const std::regex operation(R"(^\[\[nodiscard\]\] Tensor operator(\W+)\()");
  Family family;
  family.header = header;
  std::string comment;
  std::smatch found;
  for (const std::string& line : lines_of(read(root / header))) {
    if (family.title.empty()) family.title = line.substr(3, line.find_first_of(".:", 3) - 3);
    if (line.starts_with("/// ")) {
      if (!comment.empty()) comment += ' ';
      comment += line.substr(4);
    } else if (std::regex_search(line, found, declaration)) {
      add_function(family, found[1], comment);
      comment.clear();
    } else if (std::regex_search(line, found, operation)) {
      family.operators.push_back(fmt::format("`{}`", std::string(found[1])));
      comment.clear();
    } else if (!line.starts_with("template") && !line.starts_with("///")) {
      comment.clear();
    }
  }
  return family;
}

std::string page_of_ops() {
  std::string page =
      "# Ops\n\n"
      "Every function of `nitinol.h` that makes tensors of tensors or numbers, with the first "
      "sentence of its\n"
      "declaration; the header has the rest. The last column says which op of a graph it becomes, "
      "by name and kind;\n"
      "without one it is composed of others. `tests/docs_test.cpp` writes this page.\n";
  std::set<std::string_view> shown;
  const std::set<std::string> headers = all_matches(
      read(root / "eager/ops/ops.h"), std::regex("#include \"(eager/ops/[a-z_]+\\.h)\""));
  for (const std::string& header : headers) {
    const Family family = family_of(header);
    if (family.functions.empty() && family.operators.empty()) continue;
    page += fmt::format("\n## {}\n\n`{}`\n", family.title, header);
    if (!family.operators.empty()) {
      std::vector<std::string> operators = family.operators;
      operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
      page += fmt::format("\nOperators: {}\n", fmt::join(operators, " "));
    }
    if (family.functions.empty()) continue;
    page += "\n| function | | op |\n|---|---|---|\n";
    // Names of dist:: are others than those of ops.
    const bool is_apart = header.ends_with("/collectives.h");
    for (const Function& function : family.functions) {
      const Op* const op = is_apart ? nullptr : find_op(function.name);
      if (op != nullptr) shown.insert(op->name);
      page += fmt::format("| `{}` | {} | {} |\n", function.name, function.sentence,
                          op != nullptr ? name_of(op->kind) : "");
    }
  }
  page +=
      "\n## Other ops of graphs\n\nWhat functions of other names become.\n\n"
      "| op | kind |\n|---|---|\n";
  for (const Op* op : all_ops()) {
    if (!shown.contains(op->name))
      page += fmt::format("| `{}` | {} |\n", op->name, name_of(op->kind));
  }
  return page;
}

// ---- C++ on the pages

/// What the words around a page's examples say there is.
constexpr std::string_view context = R"(
#include <fmt/format.h>
#include <iostream>
#include "nitinol.h"
using namespace nitinol;
namespace {
const Tensor x, y, images, labels, loss;
const nn::Linear layer = nn::linear(4, 4), model = layer;
const nn::Adam optimizer(nn::parameters(model));
const nn::DataLoader loader({images, labels}, {.batch = 64});
const auto step = [](const auto&...) {};
constexpr int64_t epochs = 1;
}
)";

/// The examples of `page`, each in a scope of its own, at the page's own lines.
std::string program_of(const fs::path& page) {
  std::string text;
  const std::vector<std::string> lines = lines_of(read(root / page));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != "```cpp") continue;
    std::string block = fmt::format("#line {} \"{}\"\n", i + 2, page.string());
    bool is_function = true;  // what is written for a function, or for a file
    const std::size_t first = i + 1;
    for (++i; lines.at(i) != "```"; ++i) {
      const bool includes = lines[i].starts_with("#include");
      is_function &= !includes && lines[i].find("template <") == std::string::npos;
      block += (includes ? "" : lines[i]) + '\n';
    }
    const std::string name =
        std::regex_replace(page.string(), std::regex("\\W"), "_") + '_' + std::to_string(first);
    text += is_function ? fmt::format("void {}() {{\n{}}}\n", name, block)
                        : fmt::format("namespace {} {{\n{}}}\n", name, block);
  }
  return text;
}

/// The cells of a row of a table.
std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells = {""};
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i] == '|' && row[i - 1] != '\\') {
      cells.emplace_back();
    } else if (row[i] != '\\' || row[i + 1] != '|') {
      cells.back() += row[i];
    }
  }
  return cells;
}

/// The C++ beside names of others, which coming_from.py writes into a column of `page`'s tables,
/// each in a scope of its own, at the page's own lines.
std::string program_of_names(const fs::path& page, std::size_t column) {
  std::string text =
      "void names_" + std::to_string(column) +
      "(Tensor x, Tensor y, Tensor w, Tensor matrix, Tensor v, Tensor u, Tensor edges, "
      "Tensor gaps, Tensor n, Tensor k, Tensor i, Tensor j, Tensor mask, Tensor images, "
      "Tensor kernel) {\n";
  const std::vector<std::string> lines = lines_of(read(root / page));
  bool is_written = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("<!--")) is_written = !is_written;
    if (!is_written || !lines[i].starts_with("| ")) continue;
    const std::string cell = cells_of(lines[i]).at(column);
    if (!cell.starts_with(" `")) continue;
    text += fmt::format("#line {} \"{}\"\n{{ {}; }}\n", i + 1, page.string(),
                        cell.substr(2, cell.size() - 4));
  }
  return text + "}\n";
}

}  // namespace

TEST_CASE("C++ on the pages compiles", "[tree][docs]") {
  std::string program(context);
  int pages = 0;
  std::vector<fs::path> all = {"README.md", "bench/README.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") all.push_back("docs" / entry.path().filename());
  }
  for (const fs::path& page : all) {
    const std::string examples = program_of(page);
    pages += examples.empty() ? 0 : 1;
    program += examples;
  }
  CHECK(pages >= 8);  // README, gpu, install, training, and four by task
  const std::string names = program_of_names("docs/coming-from.md", 3) +
                            program_of_names("docs/coming-from-libtorch.md", 1);
  CHECK(std::ranges::count(names, '#') >= 190);
  program += names;
  const fs::path file = fs::temp_directory_path() / "nitinol-pages.cpp";
  std::ofstream(file) << program;
  const std::string command = fmt::format("{} -std=c++20 -fsyntax-only -w -I '{}' '{}'",
                                          NITINOL_TEST_COMPILER, root.string(), file.string());
  INFO(command);
  CHECK(std::system(command.c_str()) == 0);  // NOLINT(concurrency-mt-unsafe)
}

TEST_CASE("docs/ops.md lists the functions and ops that there are", "[tree][docs]") {
  const std::string page = page_of_ops();
  // The parser must not have lost them.
  for (const char* name : {"`add`", "`matmul`", "`softmax`", "`split`", "`randn`", "`from_span`"}) {
    CHECK(page.find(name) != std::string::npos);
  }
  for (const Op* op : all_ops())
    CHECK(page.find(fmt::format("`{}`", op->name)) != std::string::npos);
  const fs::path written = root / "docs/ops.md";
  if (fs::exists(written) && read(written) == page) return;
  const fs::path fresh = fs::temp_directory_path() / "nitinol-ops.md";
  std::ofstream(fresh) << page;
  FAIL_CHECK("docs/ops.md is stale: cp " + fresh.string() + " docs/ops.md");
}

TEST_CASE("docs/training.md tells what autocast does with each op", "[tree][docs]") {
  const std::string page = read(root / "docs/training.md");
  const auto documented = [&](const char* end) {
    const std::size_t stop = page.find(end);
    REQUIRE(stop != std::string::npos);
    const std::size_t start = page.rfind('\n', stop);
    return all_matches(page.substr(start, stop - start), std::regex("`([a-z0-9_]+)`"));
  };
  std::set<std::string> low = {"einsum"}, full = {"vector_norm"};  // made of others
  for (const Op* op : all_ops()) {
    if (op->precision == Precision::low) low.emplace(op->name);
    if (op->precision == Precision::full) full.emplace(op->name);
  }
  CHECK(documented("| in bfloat16, with sums") == low);
  CHECK(documented("| in float32, which the result") == full);
}

TEST_CASE("docs/environment.md names every environment variable and pass", "[tree][docs]") {
  std::set<std::string> read_by_code;
  for (const char* folder : {"core", "dist", "fusion", "program", "eager", "tracer", "autograd",
                             "jit", "io", "nn", "backends", "bindings"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".cpp") continue;
      read_by_code.merge(all_matches(read(entry.path()), std::regex("\"(NITINOL_[A-Z_]+)\"")));
    }
  }
  CHECK(read_by_code.size() >= 7);
  const std::string page = read(root / "docs/environment.md");
  CHECK(all_matches(page, std::regex("`(NITINOL_[A-Z_]+)`")) == read_by_code);

  std::set<std::string> passes = {"trim_images",       "fuse",    "pack_operands",
                                  "horizontal_fusion", "overlap", "cuda_graph"};
  for (const jit::Pass& pass : jit::all_passes()) passes.emplace(pass.name);
  CHECK(all_matches(page, std::regex("\n\\| `([a-z_]+)` \\|")) == passes);
}
