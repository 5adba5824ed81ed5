// Collectives that go on beside other steps: before which step each is waited for, and how long
// what they send and receive keeps its place.
#include "eager/all_ops.h"
#include "program/program.h"

#include <catch2/catch.hpp>

#include <string>

namespace nitinol::going_on_test {
namespace {

using program::Place;

std::shared_ptr<const program::Program> program_of(const std::string& text, bool overlaps = true) {
  program::Report report;
  auto made = program::make_program(parse(text, all_ops()), backend(Device{}),
                                    {.overlaps = overlaps}, report);
  REQUIRE(made);
  return made;
}

const std::string gather = " group=0 ranks=2 partner=0 call=0 shape=[200, 200]; ";

/// The step whose operation the value is.
std::size_t step_of(const program::Program& program, Value v) {
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const std::vector<Value>& writes = program.steps[s].writes;
    if (std::ranges::find(writes, v) != writes.end()) return s;
  }
  return SIZE_MAX;
}

}  // namespace

TEST_CASE("a collective is waited for where it is needed", "[jit][plan]") {
  // 1 g, 2 a = gather g, 3 and 4 products beside it, 5 reads it.
  const std::string text = "x: f32[200, 200] = input; g = matmul x x; a = rank_gather g" + gather +
                           "p = matmul x g; q = matmul p x; s = sum a axes=[0] keepdims=false; "
                           "t = add q s; return t";
  const auto with = program_of(text);
  const std::size_t sending = step_of(*with, 2);
  CHECK(with->steps[sending].until > step_of(*with, 4));
  CHECK(with->steps[sending].until <= step_of(*with, 6));
  CHECK(program_of(text, false)->steps[sending].until == 0);
}

TEST_CASE("what is sent keeps its place until it has been sent", "[jit][plan]") {
  // p is as large as g, and would lie where g has lain, which nobody reads after the gather.
  const std::string text = "x: f32[200, 200] = input; g = matmul x x; a = rank_gather g" + gather +
                           "p = matmul x x; q = matmul p x; r = matmul q q; "
                           "s = sum a axes=[0] keepdims=false; t = add r s; return t";
  const auto overlapping = [](const program::Program& program, Value a, Value b) {
    const Place &one = program.places[a], &other = program.places[b];
    REQUIRE(one.kind == Place::Kind::arena);
    REQUIRE(other.kind == Place::Kind::arena);
    return one.offset == other.offset;
  };
  const auto with = program_of(text);
  CHECK(with->steps[step_of(*with, 2)].until > step_of(*with, 4));
  for (const Value later : {3U, 4U}) CHECK_FALSE(overlapping(*with, 1, later));
  // Else it is: this test would see a place that is given away.
  const auto without = program_of(text, false);
  CHECK((overlapping(*without, 1, 3) || overlapping(*without, 1, 4)));
}

TEST_CASE("beside little a collective is launched", "[jit][plan]") {
  const auto made =
      program_of("x: f32[200, 200] = input; y: f32[8, 8] = input; a = rank_gather x" + gather +
                 "p = matmul y y; s = sum a axes=[0] keepdims=false; return s p");
  for (const program::ProgramStep& step : made->steps) CHECK(step.until == 0);
}

TEST_CASE("little is sent at once", "[jit][plan]") {
  const auto made = program_of(
      "x: f32[8, 8] = input; g = matmul x x; "
      "a = rank_gather g group=0 ranks=2 partner=0 call=0 shape=[8, 8]; "
      "p = matmul x g; s = sum a axes=[0] keepdims=false; t = add p s; return t");
  for (const program::ProgramStep& step : made->steps) CHECK(step.until == 0);
}

}  // namespace nitinol::going_on_test
