#include "core/kernel.h"

#include "core/fields.h"
#include "tests/backends/kernels.h"
#include "tests/run_self.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

/// Has something in every field.
Kernel example() {
  Kernel kernel = test::reduction(Combine::add, f32, f32, Order::lanes);
  kernel.row_values = {ScalarType::f32};
  kernel.stages[1].sinks.push_back({Sink::Kind::row_value, 0, 0});
  kernel.stages[0].program.instrs.push_back(
      {.op = ScalarOp::add, .type = ScalarType::f32, .a = 0, .b = 0});
  return kernel;
}

/// canonical_bytes as a line of text.
std::string text_of_bytes(const Kernel& kernel) {
  std::string text;
  for (const std::byte byte : canonical_bytes(kernel))
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// Whoever adds a field adds changes of it below.
using reflection::field_count;
static_assert(field_count<Kernel> == 9 && field_count<Operand> == 4 && field_count<Stage> == 4 &&
              field_count<Source> == 2 && field_count<Sink> == 3 && field_count<Reduction> == 2 &&
              field_count<ScalarProgram> == 1 && field_count<ScalarInstr> == 6);

}  // namespace

TEST_CASE("every field of a kernel is part of its identity", "[kernel]") {
  const std::vector<std::function<void(Kernel&)>> changes = {
      [](Kernel& k) { k.operands[0].role = Role::output; },
      [](Kernel& k) { k.operands[0].role = Role::scratch; },
      [](Kernel& k) { k.operands[0].dtype = f64; },
      [](Kernel& k) { k.operands[0].inner = StrideClass::any; },
      [](Kernel& k) { k.operands[1].alias = 0; },
      [](Kernel& k) { k.operands.push_back(k.operands[0]); },
      [](Kernel& k) { std::swap(k.operands[0], k.operands[1]); },
      [](Kernel& k) { k.stages[0].level = Stage::Level::row; },
      [](Kernel& k) { k.stages[0].program.instrs[1].op = ScalarOp::mul; },
      [](Kernel& k) { k.stages[0].program.instrs[1].type = ScalarType::f64; },
      [](Kernel& k) { k.stages[0].program.instrs[1].a = 1; },
      [](Kernel& k) { k.stages[0].program.instrs[1].b = 1; },
      [](Kernel& k) { k.stages[0].program.instrs[1].c = 1; },
      [](Kernel& k) { k.stages[0].program.instrs[0].imm = 1; },
      [](Kernel& k) { k.stages[0].sources[0].kind = Source::Kind::row_value; },
      [](Kernel& k) { k.stages[0].sources[0].index = 1; },
      [](Kernel& k) { k.stages[0].sources.push_back({}); },
      [](Kernel& k) { k.stages[0].sinks[0].kind = Sink::Kind::store; },
      [](Kernel& k) { k.stages[0].sinks[0].index = 1; },
      [](Kernel& k) { k.stages[0].sinks[0].value = 1; },
      [](Kernel& k) { k.stages[0].sinks.push_back({}); },
      [](Kernel& k) { std::swap(k.stages[0], k.stages[1]); },
      [](Kernel& k) { k.stages.pop_back(); },
      [](Kernel& k) { k.reductions[0].combine = Combine::maximum; },
      [](Kernel& k) { k.reductions[0].type = ScalarType::f64; },
      [](Kernel& k) { k.reductions.push_back({}); },
      [](Kernel& k) { k.row_values[0] = ScalarType::f64; },
      [](Kernel& k) { k.row_values.clear(); },
      [](Kernel& k) { k.order = Order::sequential; },
      [](Kernel& k) { k.reduced_loops = 2; },
      [](Kernel& k) { k.stores = Stores::non_temporal; },
  };
  const Kernel original = example();
  std::set<std::size_t> hashes = {hash_of(original)};
  std::set<std::string> bytes = {text_of_bytes(original)};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    Kernel changed = example();
    CHECK(changed == original);
    CHECK(hash_of(changed) == hash_of(original));
    CHECK(canonical_bytes(changed) == canonical_bytes(original));
    changes[i](changed);
    CHECK_FALSE(changed == original);
    CHECK(hashes.insert(hash_of(changed)).second);
    CHECK(bytes.insert(text_of_bytes(changed)).second);
  }
}

TEST_CASE("the loops a kernel carries, and how it is made, are not part of its identity",
          "[kernel]") {
  Kernel changed = example();
  changed.prebuilt.loops.baseline = [](const void* const*, void*, int64_t) {};
  changed.making = {.is_quick = true, .name = "add", .place = "model.cpp:42"};
  CHECK(changed == example());
  CHECK(hash_of(changed) == hash_of(example()));
  CHECK(canonical_bytes(changed) == canonical_bytes(example()));
}

TEST_CASE("what stands in one list is not taken for what stands in the next", "[kernel]") {
  Kernel a, b;
  a.stages.resize(2);
  a.stages[0].sources.resize(2);
  b.stages.resize(2);
  b.stages[1].sources.resize(2);
  CHECK(canonical_bytes(a) != canonical_bytes(b));
  CHECK(canonical_bytes(a).size() == canonical_bytes(b).size());
}

TEST_CASE("numbers are told apart whatever stands behind them", "[kernel]") {
  // Seven bits a byte, the lowest first; all but the last have the eighth.
  const auto bytes_of = [](uint64_t number) {
    Kernel kernel = example();
    kernel.stages[0].program.instrs[0].imm = number;
    return text_of_bytes(kernel);
  };
  const std::string one = bytes_of(1), two = bytes_of(2);
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(one, two).in1 - one.begin()) - 1;
  REQUIRE(one.substr(at, 2) == "01");
  const std::pair<uint64_t, std::string> known[] = {{127, "7f"},
                                                    {128, "8001"},
                                                    {300, "ac02"},
                                                    {16384, "808001"},
                                                    {uint64_t{1} << 63, "80808080808080808001"}};
  for (const auto& [number, expected] : known) {
    CAPTURE(number);
    CHECK(bytes_of(number) == one.substr(0, at) + expected + one.substr(at + 2));
  }
}

TEST_CASE("a kernel's bytes", "[.kernel-bytes]") {
  if (std::getenv("KERNEL_BYTES") == nullptr) return;  // NOLINT(concurrency-mt-unsafe)
  std::printf("%s\n", text_of_bytes(example()).c_str());
}

TEST_CASE("a kernel has the same bytes in another process", "[kernel]") {
  const Run run = run_self("KERNEL_BYTES=1 NITINOL_ISA=baseline", "[.kernel-bytes]");
  CHECK(run.status == 0);
  CHECK_THAT(run.output, Catch::Contains(text_of_bytes(example()) + "\n"));
}

TEST_CASE("a kernel prints as text", "[kernel]") {
  const std::string expected =
      "kernel sequential\n"
      "  operand 0: input f16, inner stride 1\n"
      "  operand 1: output f16, inner stride 1\n"
      "  reduction 0: f32 maximum\n"
      "  stage 0 per element\n"
      "    argument 0: operand 0\n"
      "    %0 = f32 argument 0\n"
      "    accumulate into reduction 0: %0\n";
  const std::string text =
      to_string(test::reduction(Combine::maximum, f16, f16, Order::sequential));
  CHECK(text.substr(0, expected.size()) == expected);
}

TEST_CASE("types of 8 bytes have half the lanes", "[kernel]") {
  CHECK(lanes_of(ScalarType::f32) == 64);
  CHECK(lanes_of(ScalarType::pred) == 64);
  CHECK(lanes_of(ScalarType::i64) == 32);
}
