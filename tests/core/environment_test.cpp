#include "core/environment.h"

#include "core/isa.h"
#include "core/log.h"
#include "core/parallel.h"
#include "jit/passes/pipeline.h"
#include "jit/stance.h"
#include "tests/run_self.h"

#include <catch2/catch.hpp>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

constexpr const char* variable = "NITINOL_OF_THIS_TEST";

// No other thread runs while these cases do.
void set(const char* value) {
  setenv(variable, value, 1);  // NOLINT(concurrency-mt-unsafe)
}

// What is warned of when a process with `environment` reads all of its variables.
std::vector<std::string> warnings(const std::string& environment) {
  const std::string output = run_self(environment, "[.environment]").output;
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    const std::string line = output.substr(at, end - at);
    if (line.starts_with("nitinol warning: NITINOL_")) lines.push_back(line.substr(17));
    at = end + 1;
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a choice is one of the values, or nothing", "[core][environment]") {
  constexpr std::array<std::string_view, 2> values = {"left", "right"};
  unsetenv(variable);  // NOLINT(concurrency-mt-unsafe)
  CHECK_FALSE(environment_choice(variable, values));
  for (const auto& [value, index] :
       {std::pair<const char*, std::optional<std::size_t>>{"left", 0}, {"right", 1}, {"", {}}}) {
    set(value);
    CHECK(environment_choice(variable, values) == index);
  }
}

TEST_CASE("a list is what is known of the items", "[core][environment]") {
  constexpr std::array<std::string_view, 2> values = {"a", "b"};
  for (const auto& [text, items] :
       {std::pair<const char*, Lines>{"", {}}, {"b", {"b"}}, {",a,,b,", {"a", "b"}}}) {
    set(text);
    CHECK(environment_list(variable, values) == items);
  }
}

TEST_CASE("a count is a whole number within its limit", "[core][environment]") {
  for (const auto& [text, count] :
       {std::pair<const char*, std::optional<int>>{"1", 1}, {"64", 64}, {"", {}}}) {
    set(text);
    CHECK(environment_count(variable, 64) == count);
  }
}

// The process that others run: reads every variable that this library has, but NITINOL_PERF.
TEST_CASE("every variable is read", "[.environment]") {
  std::printf("%d %d %d %d %zu\n", static_cast<int>(current_isa()), num_threads(),
              static_cast<int>(current_stance()), static_cast<int>(log_level()),
              jit::pass_options().disabled.size());
}

TEST_CASE("values that mean nothing are warned of, with those that mean something",
          "[core][environment]") {
  CHECK(warnings("NITINOL_ISA=avx3") ==
        Lines{"NITINOL_ISA=avx3 is ignored: expected baseline, avx2 or avx512"});
  CHECK(warnings("NITINOL_LOG=loud") ==
        Lines{"NITINOL_LOG=loud is ignored: expected debug, info, warning or off"});
  CHECK(warnings("NITINOL_COMPILE=no") == Lines{"NITINOL_COMPILE=no is ignored: expected 0 or 1"});
  for (const std::string value : {"0", "-1", "4x", "four", "4097", "99999999999"}) {
    CHECK(warnings("NITINOL_NUM_THREADS=" + value) ==
          Lines{"NITINOL_NUM_THREADS=" + value + " is ignored: expected a number from 1 to 4096"});
  }
  const Lines passes = warnings("NITINOL_DISABLE_PASSES=simplify,simplfy");
  REQUIRE(passes.size() == 1);
  CHECK(passes[0].starts_with("NITINOL_DISABLE_PASSES=simplfy is ignored: expected trim_images, "));
  CHECK(passes[0].find("simplify") != std::string::npos);
  // A pass that cannot be left out is not among them.
  CHECK(passes[0].find("materialise_views") == std::string::npos);
  const Lines dumps = warnings("NITINOL_DUMP=graphs,llvm");
  REQUIRE(dumps.size() == 1);
  CHECK(dumps[0].starts_with("NITINOL_DUMP=graphs is ignored: expected graph, all, llvm, asm, "));
  CHECK(dumps[0].find("materialise_views") != std::string::npos);
}

TEST_CASE("values that mean something are not warned of", "[core][environment]") {
  CHECK(warnings("NITINOL_ISA=avx2 NITINOL_NUM_THREADS=3 NITINOL_COMPILE=1 NITINOL_LOG=info "
                 "NITINOL_DISABLE_PASSES=fuse,simplify NITINOL_DUMP=graph,llvm,asm,all,simplify")
            .empty());
  CHECK(warnings("NITINOL_ISA= NITINOL_NUM_THREADS= NITINOL_COMPILE= NITINOL_LOG= "
                 "NITINOL_DISABLE_PASSES= NITINOL_DUMP= OMP_NUM_THREADS=4,2")
            .empty());
}

TEST_CASE("a log that is off does not warn of values either", "[core][environment]") {
  CHECK(warnings("NITINOL_LOG=off NITINOL_ISA=avx3").empty());
}
