// tests/examples_test.cpp -- Runs the C++ of the reference's examples (docs/site/examples.toml) as
// one program, and compares what they print with what the site shows, which is what Python prints
// (bindings/python/tests/test_site.py).

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#ifdef NITINOL_LIBRARY_FILE

namespace {

namespace fs = std::filesystem;

struct Example {
  std::string name;  ///< page/entry
  std::string cpp;
  std::string prints;
};

/// Python's ways to write what C++ writes in others.
constexpr std::string_view head = R"program(
#include "nitinol.h"
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <sstream>
using namespace nitinol;
namespace {
std::string show(bool value) { return value ? "True" : "False"; }
std::string show(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}
std::string show(float value) { return show(double(value)); }
std::string show(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "(" + text + (shape.size() == 1 ? ",)" : ")");
}
std::string show(const auto& value) {
  std::ostringstream stream;
  stream << value;
  std::string text;
  for (const char c : stream.str()) text += c == '\n' ? " | " : std::string(1, c);
  if (text.ends_with(" | ")) text.resize(text.size() - 3);  // Python's print() adds one anyway
  return text;
}
void run(const char* name, std::string (*example)()) {
  manual_seed(0);
  try {
    std::cout << name << '\t' << example() << '\n';
  } catch (const Error& error) {
    std::cout << name << "\tError: " << error.message() << '\n';
  }
}
)program";

/// At each "; " outside of brackets.
std::vector<std::string> statements_of(const std::string& code) {
  std::vector<std::string> parts = {""};
  int depth = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (std::string_view("([{").find(code[i]) != std::string::npos) ++depth;
    if (std::string_view(")]}").find(code[i]) != std::string::npos) --depth;
    if (depth == 0 && code.compare(i, 2, "; ") == 0) {
      parts.emplace_back();
      ++i;
    } else {
      parts.back() += code[i];
    }
  }
  return parts;
}

struct Page {
  std::vector<Example> inputs, examples;
};

Page read_examples() {
  static const std::regex row(R"-(([\w-]+) = \['([^']*)', '([^']*)'(?:, '([^']*)')?\])-");
  Page page;
  std::ifstream file(fs::path(NITINOL_SOURCE_DIR) / "docs/site/examples.toml");
  std::string table;
  std::smatch found;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("[")) {
      table = line.substr(1, line.size() - 2);
    } else if (std::regex_match(line, found, row)) {
      auto& list = table == "inputs" ? page.inputs : page.examples;
      const std::string name = table == "inputs" ? found[1].str() : table + "/" + found[1].str();
      if (!found[3].str().empty()) list.push_back({name, found[3], found[4]});
    } else if (!line.empty() && !line.starts_with("#")) {
      FAIL_CHECK("docs/site/examples.toml: cannot read " + line);
    }
  }
  return page;
}

std::string program_of(const Page& page) {
  std::string text(head);
  for (const Example& input : page.inputs)
    text += fmt::format("const Tensor {} = {};\n", input.name, input.cpp);
  std::string calls;
  for (std::size_t i = 0; i < page.examples.size(); ++i) {
    const Example& one = page.examples[i];
    std::vector<std::string> statements = statements_of(one.cpp);
    statements.back() = "return show(" + statements.back() + ")";
    text += fmt::format("#line 1 \"{}\"\nstd::string example_{}() {{ {}; }}\n", one.name, i,
                        fmt::join(statements, "; "));
    calls += fmt::format("  run(\"{}\", example_{});\n", one.name, i);
  }
  return text + "}\nint main() {\n" + calls + "}\n";
}

}  // namespace

TEST_CASE("C++ examples of the reference print what their pages show", "[tree][docs]") {
  const Page page = read_examples();
  CHECK(page.examples.size() > 300);
  const fs::path folder = fs::temp_directory_path() / "nitinol-examples";
  fs::create_directories(folder);
  std::ofstream(folder / "examples.cpp") << program_of(page);
  const std::string library = NITINOL_LIBRARY_FILE;
  const std::string command = fmt::format(
      "{} -std=c++20 -O0 -w -I '{}' '{}/examples.cpp' '{}' -lfmt -Wl,-rpath,'{}' -o '{}/examples' "
      "&& cd '{}' && ./examples > printed",
      NITINOL_TEST_COMPILER, NITINOL_SOURCE_DIR, folder.string(), library,
      fs::path(library).parent_path().string(), folder.string(), folder.string());
  INFO(command);
  REQUIRE(std::system(command.c_str()) == 0);  // NOLINT(concurrency-mt-unsafe)
  std::map<std::string, std::string> printed;
  std::ifstream file(folder / "printed");
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t');
    printed[line.substr(0, tab)] = line.substr(tab + 1);
  }
  for (const Example& one : page.examples) {
    INFO(one.name << ": " << one.cpp);
    const std::string& found = printed[one.name];
    if (found.starts_with("Error") && found.find("without") != std::string::npos) continue;
    CHECK(found == one.prints);  // else a library without zip files or images
  }
  fs::remove_all(folder);
}

#endif
