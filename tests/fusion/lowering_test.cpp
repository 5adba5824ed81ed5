// How groups become kernels: what is kept from stage to stage.
#include "fusion/lowering.h"

#include "eager/all_ops.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// The kernel of a graph that is one group.
Kernel kernel_of(const std::string& text, const DeviceLimits& limits = {}) {
  const Graph graph = parse(text, all_ops());
  const fusion::Fusion fusion = fusion::fuse(graph);
  const auto has_members = [](const fusion::Group& group) { return !group.members.empty(); };
  REQUIRE(std::ranges::count_if(fusion.groups, has_members) == 1);
  return fusion::lower(graph, fusion, *std::ranges::find_if(fusion.groups, has_members), limits)
      .kernel;
}

std::vector<Operand> scratch_of(const Kernel& kernel) {
  std::vector<Operand> scratch;
  std::ranges::copy_if(kernel.operands, std::back_inserter(scratch),
                       [](const Operand& operand) { return operand.role == Role::scratch; });
  return scratch;
}

/// True if what is computed inside an if_any is read there alone, or by its end.
bool reads_what_is_there(const ScalarProgram& program) {
  std::vector<bool> is_there;
  std::vector<std::size_t> begins;
  for (const ScalarInstr& instr : program.instrs) {
    const std::array<uint32_t, 3> operands = {instr.a, instr.b, instr.c};
    const auto count = static_cast<std::size_t>(operand_count(instr.op));
    for (const uint32_t operand : std::span(operands).first(count)) {
      if (!is_there[operand]) return false;
    }
    if (instr.op == ScalarOp::end_if) {
      for (std::size_t i = begins.back(); i < is_there.size(); ++i) is_there[i] = false;
      begins.pop_back();
    }
    is_there.push_back(true);
    if (instr.op == ScalarOp::begin_if) begins.push_back(is_there.size());
  }
  return true;
}

std::string softmax_of(int64_t rows, int64_t columns) {
  return fmt::format(
      "x: f32[{0}, {1}] = input; m = max x axes=[1] keepdims=true; d = sub x m; e = exp d; "
      "s = sum e axes=[1] keepdims=true; y = div e s; ",
      rows, columns);
}

}  // namespace

TEST_CASE("what takes long to compute again is kept where the output will be", "[jit][lowering]") {
  const Kernel kernel = kernel_of(softmax_of(8, 100) + "return y");
  const std::vector<Operand> scratch = scratch_of(kernel);
  REQUIRE(scratch.size() == 1);
  CHECK(scratch[0].dtype == f32);
  CHECK(kernel.operands[static_cast<std::size_t>(scratch[0].alias)].role == Role::output);
}

TEST_CASE("what is kept has its own memory if no output fits", "[jit][lowering]") {
  const Kernel narrow = kernel_of(softmax_of(8, 100) + "h = cast y dtype=f16 weak=false; return h");
  REQUIRE(scratch_of(narrow).size() == 1);
  CHECK(scratch_of(narrow)[0].alias == -1);
  // The difference is stored before the powers are read.
  const Kernel early =
      kernel_of(softmax_of(8, 100) + "h = cast y dtype=f16 weak=false; return h d");
  REQUIRE(scratch_of(early).size() == 1);
  CHECK(scratch_of(early)[0].alias == -1);
}

TEST_CASE("short programs and long rows are computed again", "[jit][lowering]") {
  CHECK(scratch_of(kernel_of("x: f32[8, 100] = input; m = max x axes=[1] keepdims=true; "
                             "d = sub x m; q = square d; s = sum q axes=[1] keepdims=true; "
                             "y = div d s; return y"))
            .empty());
  CHECK(scratch_of(kernel_of(softmax_of(8, 65536) + "return y")).size() == 1);
  CHECK(scratch_of(kernel_of(softmax_of(8, 65537) + "return y")).empty());
}

TEST_CASE("vectors run across rows that lie side by side", "[jit][lowering]") {
  const DeviceLimits host = {.rows_of_vectors = 16};
  const auto order = [&](const std::string& text) { return kernel_of(text, host).order; };
  const std::string last = "x: f32[2, 64, 7, 7] strides=[3136, 1, 448, 64] = input; ";
  CHECK(order(last + "s = sum x axes=[2, 3] keepdims=false; return s") == Order::across);
  CHECK(order(last + "y = exp x; s = sum y axes=[2, 3] keepdims=false; return s") == Order::across);
  CHECK(kernel_of(last + "s = sum x axes=[2, 3] keepdims=false; return s").order == Order::lanes);
  CHECK(order("x: f32[2, 64, 7, 7] = input; s = sum x axes=[2, 3] keepdims=false; return s") ==
        Order::lanes);
  // One number of each row beside it, and one that lies otherwise.
  CHECK(order(last + "m: f32[64, 1, 1] = input; y = mul x m; "
                     "s = sum y axes=[2, 3] keepdims=false; return s") == Order::across);
  CHECK(order(last + "z: f32[2, 64, 7, 7] = input; y = mul x z; "
                     "s = sum y axes=[2, 3] keepdims=false; return s") == Order::lanes);
  // Few rows, and short ones.
  CHECK(order("x: f32[15, 49] strides=[1, 15] = input; s = sum x axes=[1] keepdims=false; "
              "return s") == Order::lanes);
  CHECK(order("x: f32[16, 31] strides=[1, 16] = input; y = exp x; "
              "s = sum y axes=[1] keepdims=false; return s") == Order::turned);
  // Rows that lie apart, whose elements lie side by side, are turned.
  const std::string classes = last + "s = sum x axes=[1] keepdims=false; return s";
  CHECK(kernel_of(classes, host).operands[0].inner == StrideClass::one);
  CHECK(kernel_of(classes).operands[0].inner == StrideClass::any);
  // Where it came from is asked for; lanes of two lengths.
  CHECK(order("x: f32[64, 49] strides=[1, 64] = input; s = argmax x axes=[1] keepdims=false; "
              "return s") == Order::lanes);
  CHECK(order("x: f32[64, 49] strides=[1, 64] = input; y = cast x dtype=f64 weak=false; "
              "s = sum x axes=[1] keepdims=false; t = sum y axes=[1] keepdims=false; "
              "u = cast s dtype=f64 weak=false; v = add t u; return v") == Order::lanes);
}

TEST_CASE("elementwise inputs that lie across the rows are turned on a host", "[jit][lowering]") {
  const DeviceLimits host = {.rows_of_vectors = 16};
  const auto inner = [&](const std::string& input, const DeviceLimits& limits) {
    return kernel_of(input + " = input; y = exp x; z = sin y; return z", limits).operands[0].inner;
  };
  const std::string across = "x: f32[20, 40] strides=[1, 20]";
  CHECK(inner(across, host) == StrideClass::one);
  CHECK(inner(across, {}) == StrideClass::any);
  CHECK(inner("x: f32[20, 7] strides=[1, 20]", host) == StrideClass::any);
  CHECK(inner("x: f32[20, 40] strides=[2, 40]", host) == StrideClass::any);
  // One op alone has native loops.
  CHECK(kernel_of(across + " = input; y = exp x; return y", host).operands[0].inner ==
        StrideClass::any);
}

TEST_CASE("a power by a known number takes the instructions for that number", "[jit][lowering]") {
  const auto power = [](const std::string& exponent, int times = 1) {
    std::string text = "x: f32[8] = input; e: f32[] = constant " + exponent + "; y0 = neg x; ";
    for (int i = 0; i < times; ++i) text += fmt::format("y{} = pow y{} e; ", i + 1, i);
    return kernel_of(text + fmt::format("return y{}", times));
  };
  const auto count = [](const Kernel& kernel) { return kernel.stages[0].program.instrs.size(); };
  // x, -x, its square; and no number that comes with each launch.
  CHECK(count(power("2")) == 3);
  CHECK(power("2").operands.size() == 2);
  CHECK(count(power("-1")) == 4);
  CHECK(count(power("2", 40)) == 42);  // all of them in one kernel
  CHECK(count(power("2.5")) > 100);
  CHECK(power("2.5").operands.size() == 3);
}

TEST_CASE("what ops of one kernel have in common is computed once", "[jit][lowering]") {
  const auto count = [](const std::string& ops) {
    const Kernel kernel = kernel_of("a: f32[8] = input; x = neg a; " + ops);
    CHECK(reads_what_is_there(kernel.stages[0].program));
    return kernel.stages[0].program.instrs.size();
  };
  const std::size_t one = count("y = gelu x; z = neg y; return z");
  CHECK(count("y = gelu x; s = gelu_slope x; return y s") < one + 10);
  // The same op twice, and one that adds nothing.
  CHECK(count("y = gelu x; t = gelu x; z = add y t; return z") == one);
  // What sin computes of numbers far out is not there for cos.
  const std::size_t sine = count("y = sin x; z = neg y; return z");
  const std::size_t both = count("y = sin x; z = cos x; return y z");
  CHECK(both < 2 * sine - 10);
  Tensor x = randn({3000}) * 10;
  x = where(arange(3000) % 700 == 0, x * 1e7, x);
  const auto f =
      compile([](const Tensor& t) { return std::pair(sin(t) * gelu(t), cos(t) + gelu(t)); });
  const auto [a, b] = settle(f, x);
  CHECK(same_bits(a, sin(x) * gelu(x)));
  CHECK(same_bits(b, cos(x) + gelu(x)));
}

TEST_CASE("kept values give eager's bits", "[jit][lowering]") {
  for (const DType dtype : {f16, bf16, f32, f64}) {
    for (const Shape& shape : {Shape{7, 1}, Shape{70, 17}, Shape{3, 1000}, Shape{2, 9001}}) {
      CAPTURE(to_string(shape), dtype);
      manual_seed(1);
      const Tensor x = cast(randn(shape), dtype);
      const auto two = [](const Tensor& t) {
        const Tensor power = exp(t - max(t, {-1}, keepdims));
        return std::pair(power / sum(power, {-1}, keepdims),
                         tanh(t) * max(tanh(t), {-1}, keepdims));
      };
      for (const int threads : {1, 3}) {
        const Threads count(threads);
        const auto f = compile(two);
        const auto g = compile([](const Tensor& t) { return softmax(t); });
        const auto [a, b] = settle(f, x);
        CHECK(same_bits(a, two(x).first));
        CHECK(same_bits(b, two(x).second));
        CHECK(same_bits(settle(g, x), softmax(x)));
      }
    }
  }
}
