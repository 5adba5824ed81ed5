// The map file for perf, which lies where everybody may write: each case runs in a process of its
// own, which finds at the place of its file what somebody else has put there. Their names begin
// with a dot, and without NITINOL_PERF, as when a whole file is asked for, they do nothing.
#include "nitinol.h"
#include "tests/run_self.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace nitinol;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_child() {
  return std::getenv("NITINOL_PERF") != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

// The place of this process's map and of a file that must stay as it is; removes both.
struct Place {
  fs::path map = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  fs::path other = map.string() + ".other";
  Place() {
    remove();
    std::ofstream(other) << "precious";
  }
  ~Place() { remove(); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  void remove() const {
    fs::remove(map);
    fs::remove(other);
  }
};

// Generates code; returns what was warned of.
std::vector<std::string> warnings_of_compiling() {
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel, std::string_view text) { warnings.emplace_back(text); });
  const auto f = compile([](const Tensor& x) { return exp(x) * 2.0 + x; });
  for (int call = 0; call < 3; ++call) (void)f(ones({5}));
  set_log_sink({});
  CHECK(f.explain().plan_calls == 1);
  return warnings;
}

void check_untouched(const Place& place, const std::string& reason) {
  const std::vector<std::string> warnings = warnings_of_compiling();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "NITINOL_PERF=1, but " + place.map.string() + " cannot be written: " + reason);
  CHECK(text_of(place.other) == "precious");
}

}  // namespace

TEST_CASE("a new map", "[.perf-new][no-isa]") {
  if (!is_child()) return;
  const Place place;
  CHECK(warnings_of_compiling().empty());
  CHECK(text_of(place.map).find(" nitinol::kernel::exp_mul_add\n") != std::string::npos);
  struct stat status = {};
  REQUIRE(stat(place.map.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("a map that another compiler began", "[.perf-begun][no-isa]") {
  if (!is_child()) return;
  const Place place;
  std::ofstream(place.map) << "1 2 another\n";
  CHECK(warnings_of_compiling().empty());
  CHECK(text_of(place.map).starts_with("1 2 another\n"));
  CHECK(text_of(place.map).find(" nitinol::kernel::exp_mul_add\n") != std::string::npos);
}

TEST_CASE("a link", "[.perf-link][no-isa]") {
  if (!is_child()) return;
  const Place place;
  fs::create_symlink(place.other, place.map);
  check_untouched(place, "it is a link");
}

TEST_CASE("another name of a file", "[.perf-hard-link][no-isa]") {
  if (!is_child()) return;
  const Place place;
  fs::create_hard_link(place.other, place.map);
  check_untouched(place, "it is not a plain file of this user's with one name");
}

TEST_CASE("a pipe that nobody reads", "[.perf-pipe][no-isa]") {
  if (!is_child()) return;
  const Place place;
  REQUIRE(mkfifo(place.map.c_str(), 0600) == 0);
  check_untouched(place, "No such device or address");
}

TEST_CASE("no map", "[.perf-off][no-isa]") {
  if (!is_child()) return;
  const Place place;
  CHECK(warnings_of_compiling().empty());
  CHECK_FALSE(fs::exists(place.map));
}

TEST_CASE("perf's map is written to a file of ours, or not at all", "[cpu][jit][perf][no-isa]") {
  const test::TemporaryFolder folder;  // for what jit_dump_test.cpp looks at
  for (const char* name : {"new", "begun", "link", "hard-link", "pipe"}) {
    const Run run = run_self("NITINOL_PERF=1 JITDUMPDIR='" + (folder / ".").string() + "'",
                             std::string("[.perf-") + name + "]");
    INFO(run.output);
    CHECK(run.status == 0);
  }
  const Run run = run_self("NITINOL_PERF=0", "[.perf-off]");
  INFO(run.output);
  CHECK(run.status == 0);
}
