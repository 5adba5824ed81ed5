// tests/includes_test.cpp -- How much a source reads, and how much is built anew after a change.
//
// Of the project's own headers. A source's reach is the number of headers that it includes, in the
// end; its depth, the longest chain of them. The bounds are on medians and counts, so that one
// source may need much, but not each a little of everything.

#include "tests/includes.h"

#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

namespace fs = std::filesystem;
using test::Includes;
using test::Paths;
using test::TemporaryFolder;

std::vector<std::string> sources(const fs::path& root, const std::vector<std::string>& folders) {
  std::vector<std::string> found;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".cpp")
        found.push_back(entry.path().lexically_relative(root).generic_string());
    }
  }
  return found;
}

/// Without nn, which reads all ops as a user's program does.
const std::vector<std::string> library = {"core", "fusion", "program",  "eager",   "tracer",
                                          "jit",  "io",     "autograd", "backends"};

/// The five with the most, of pairs of a number and a path.
std::string worst(std::vector<std::pair<int, std::string>> list) {
  std::ranges::sort(list, std::greater());
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(list.size(), 5); ++i)
    text += fmt::format("  {} {}\n", list[i].first, list[i].second);
  return text;
}

int median(std::vector<std::pair<int, std::string>> list) {
  std::ranges::sort(list);
  return list[list.size() / 2].first;
}

}  // namespace

TEST_CASE("sources read little of the project", "[tree]") {
  const fs::path root = NITINOL_SOURCE_DIR;
  Includes includes(root);
  std::vector<std::pair<int, std::string>> reach, depth;
  for (const std::string& path : sources(root, library)) {
    reach.emplace_back(static_cast<int>(includes.reached(path).size()), path);
    depth.emplace_back(includes.depth(path), path);
  }
  INFO("headers reached, most:\n" << worst(reach) << "depth, most:\n" << worst(depth));
  CHECK(reach.size() > 100);
  CHECK(median(reach) <= 17);
  CHECK(median(depth) <= 7);
}

TEST_CASE("a change to a header builds few objects anew", "[tree]") {
  const fs::path root = NITINOL_SOURCE_DIR;
  Includes includes(root);
  std::vector<std::string> folders = library;
  folders.insert(folders.end(), {"nn", "tests", "bench", "examples", "tools"});
  std::map<std::string, int> objects;
  for (const std::string& path : sources(root, folders)) {
    for (const std::string& header : includes.reached(path)) ++objects[header];
  }
  CHECK(objects["core/scalar.h"] > 100);  // that this can fail
  CHECK(objects["core/num.h"] <= 45);
  CHECK(objects["core/kernel.h"] <= 122);
}

TEST_CASE("what a file reaches is counted once, however it gets there", "[tree]") {
  const TemporaryFolder folder;
  const fs::path root = folder / "";
  fs::create_directory(root / "core");
  const auto write = [&](const char* name, std::string_view text) {
    std::ofstream(root / "core" / name) << text;
  };
  write("a.h", "#include <vector>\n");
  write("b.h", "#include \"core/a.h\"\n");
  write("c.cpp", "#include \"core/a.h\"\n#include \"core/b.h\"\n#include \"core/none.h\"\n");
  Includes includes(root);
  CHECK(includes.reached("core/c.cpp") == Paths{"core/a.h", "core/b.h"});
  CHECK(includes.depth("core/c.cpp") == 2);
  CHECK(sources(root, {"core"}) == std::vector<std::string>{"core/c.cpp"});
}
