#include "backends/cuda/text/routine_text.h"

#include "backends/cuda/runtime/compiler.h"
#include "backends/cuda/runtime/libraries.h"
#include "backends/cuda/text/prelude.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::cuda;

namespace {

using Kind = LibraryCall::Kind;

OperandLayout dense(DType dtype, const Shape& shape) {
  return {.dtype = dtype, .shape = shape, .strides = strides_of(shape)};
}

/// One of each kind that has a text.
std::vector<LibraryCall> calls(DType dtype) {
  const auto x = [&](const Shape& shape) { return dense(dtype, shape); };
  const OperandLayout image = x({2, 5, 5, 4}), pooled = x({2, 3, 3, 4}), weight = x({6, 2, 3, 3}),
                      convolved = x({2, 3, 3, 6});
  const Windows pool = {.kernel = {3, 3}};
  const Windows conv = {.kernel = {3, 3}, .groups = 2};
  return {
      {.kind = Kind::matmul, .operands = {x({3, 2, 4}), x({3, 4, 5}), x({3, 2, 5})}},
      {.kind = Kind::scatter_add, .operands = {x({7, 3}), dense(i64, {7}), x({300, 3})}},
      {.kind = Kind::scatter,
       .operands = {x({300, 3}), x({7, 3}), dense(i64, {7}), x({300, 3})},
       .combine = Combine::minimum},
      {.kind = Kind::scatter,
       .operands = {x({300, 3}), x({7, 3}), dense(i64, {7}), x({300, 3})},
       .replaces = true},
      {.kind = Kind::scatter_add_along,
       .operands = {x({7, 3}), dense(i64, {7, 3}), x({300, 3})},
       .axis = 0},
      {.kind = Kind::scan, .operands = {x({3, 300}), x({3, 300})}, .axis = 1},
      {.kind = Kind::scan,
       .operands = {x({3, 300}), x({3, 300})},
       .axis = 1,
       .combine = Combine::maximum},
      {.kind = Kind::scan,
       .operands = {x({3, 300}), x({3, 300})},
       .axis = 1,
       .combine = Combine::multiply},
      {.kind = Kind::scan,
       .operands = {x({3, 300}), x({3, 300})},
       .axis = 1,
       .combine = is_floating(dtype) ? Combine::log_add_exp : Combine::minimum},
      {.kind = Kind::scan, .operands = {x({300, 3}), x({300, 3})}, .axis = 0},
      {.kind = Kind::scan, .operands = {x({2, 100000}), x({2, 100000})}, .axis = 1},
      {.kind = Kind::sort, .operands = {x({3, 30}), x({3, 30})}, .axis = 1},
      {.kind = Kind::sort, .operands = {x({3, 3000}), x({3, 3000})}, .axis = 1},
      {.kind = Kind::sort, .operands = {x({3, 30000}), x({3, 30000})}, .axis = 1},
      {.kind = Kind::argsort,
       .operands = {x({3, 30}), dense(i64, {3, 5})},
       .axis = 1,
       .is_descending = true},
      {.kind = Kind::argsort, .operands = {x({3, 3000}), dense(i64, {3, 3000})}, .axis = 1},
      {.kind = Kind::argsort,
       .operands = {x({3, 30000}), dense(i64, {3, 5})},
       .axis = 1,
       .is_descending = true},
      {.kind = Kind::search, .operands = {x({30}), x({3, 5}), dense(i64, {3, 5})}},
      {.kind = Kind::compress, .operands = {x({30, 2}), dense(boolean, {30}), x({7, 2})}},
      {.kind = Kind::positions, .operands = {dense(boolean, {30}), dense(i64, {7})}},
      {.kind = Kind::permutation, .operands = {dense(i64, {2}), dense(i64, {300})}},
      {.kind = Kind::permutation, .operands = {dense(i64, {2}), dense(i64, {3000})}},
      {.kind = Kind::permutation, .operands = {dense(i64, {2}), dense(i64, {300000})}},
      {.kind = Kind::conv2d, .operands = {image, weight, convolved}, .windows = conv},
      {.kind = Kind::conv2d_input, .operands = {convolved, weight, image}, .windows = conv},
      {.kind = Kind::conv2d_weight, .operands = {image, convolved, weight}, .windows = conv},
      {.kind = Kind::window_max, .operands = {image, image, pooled}, .windows = pool},
      {.kind = Kind::window_max_input, .operands = {image, pooled, image}, .windows = pool},
  };
}

}  // namespace

TEST_CASE("NVRTC compiles the texts of library calls", "[cuda][nvrtc][no-isa]") {
  if (!has_nvrtc()) {
    std::puts("NOT RUN: NVRTC was not found");
    return;
  }
  constexpr int architectures[] = {80, 90, 100};
  std::size_t turn = 0, first = 0;
  std::set<std::string> texts;
  for (const DType dtype : {u8, u32, i64, bf16, f32, f64}) {
    const std::vector<LibraryCall> all = calls(dtype);
    for (std::size_t i = first++ % 2; i < all.size(); i += 2) {  // each of three of the dtypes
      const LibraryCall& call = all[i];
      INFO(name_of(call.kind) << " of " << name_of(dtype));
      const RoutineText made = routine_text(call);
      if (!texts.insert(made.text).second) continue;  // some do not depend on the dtype
      const std::string text =
          std::string(device_words()) + std::string(common_words()) + made.text;
      const Cubin cubin = compile_text(text, architectures[turn++ % 3]);
      const std::vector<Resources> functions = resources_of(cubin);
      CHECK(functions.size() == made.entries.size());
      for (const Resources& used : functions) {
        INFO(used.function << ", " << used.registers << " registers");
        CHECK(used.registers <= (size_of(dtype) == 8 ? 192 : 160));  // two each
        CHECK(used.stack_bytes <= 32);  // some registers: arrays in memory would be more
      }
    }
  }
}

TEST_CASE("the text of a library call does not depend on sizes", "[cuda][no-isa]") {
  for (const LibraryCall& call : calls(f32)) {
    // But for how many levels of runs there are, and whether a line is sorted in one tile.
    if (call.kind == Kind::scan || call.kind == Kind::permutation) continue;
    LibraryCall larger = call;
    for (OperandLayout& operand : larger.operands) operand.shape[0] *= 2;
    CHECK(routine_text(call).text == routine_text(larger).text);
  }
}
