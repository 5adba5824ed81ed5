// Programs that run piece by piece on strips of vectors (backends/cpu/jit/pieces.h).

#include "core/math.h"
#include "tests/backends/cpu/jit/kernel_case.h"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace nitinol;
using namespace nitinol::testing;

namespace {

using Arguments = std::vector<Expr>;

/// Around vectors and strips of them, at all levels and of 2 to 8 bytes an element.
constexpr int64_t strip_lengths[] = {0, 1, 15, 17, 63, 65, 129, 255, 256, 257, 513, 1030};

Expr tanh_chain(const Arguments& in) {
  Expr x = in[0];
  for (int i = 0; i < 6; ++i) x = tanh(x * 1.5 + in[1]);
  return x;
}

/// Conditions, another width and what an early piece computed, used by the last.
Expr mixed_chain(const Arguments& in) {
  const Expr x = in[0];
  const Expr is_small = abs(x) < 2, is_large = !(abs(x) < 5), first = tanh(x);
  const Expr wide = log(convert<double>(abs(first)) + 0.25);
  const Expr branched = pow(abs(x) + 1, convert<float>(wide));
  const Expr usual = sin(tanh(branched) * in[1]);
  const Expr last = if_any(is_large, usual, [&] { return usual * first + x; });
  return select(is_small, last - first, exp(last) + x);
}

int occurrences(std::string_view text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

int loops_of(const Kernel& kernel) {
  return occurrences(plugin().intermediate_code(kernel), " = phi i64 ");
}

void check_strips(const Kernel& kernel, std::mt19937& random) {
  for (const Isa isa : isa_levels()) {
    const auto code = code_for(kernel, isa);
    for (const int64_t n : strip_lengths) {
      INFO(name_of(isa) << " n=" << n);
      CHECK(difference(kernel, code, {.sizes = {n}}, random) == "");
      CHECK(difference(kernel, code, {.sizes = {3, n}, .misalignment = 1}, random) == "");
    }
  }
}

}  // namespace

TEST_CASE("a long chain is split, and what is short or wide is not", "[no-isa]") {
  const Kernel chain = elementwise({f32, f32}, f32, tanh_chain);
  const Kernel one = elementwise({f32}, f32, [](const Arguments& in) { return tanh(in[0]); });
  const Kernel wide = elementwise({f32}, f32, [](const Arguments& in) {
    Expr sum = in[0];
    for (int i = 1; i < 7; ++i) sum = sum + tanh(in[0] * i);
    return sum;
  });
  CHECK(loops_of(wide) == loops_of(one));
  CHECK(loops_of(chain) >= loops_of(one) + 6);
}

TEST_CASE("pieces at every length around strips", "[no-isa]") {
  std::mt19937 random(1);
  for (const DType dtype : {f32, f64, f16, bf16})
    check_strips(elementwise({dtype, dtype}, dtype, tanh_chain), random);
  check_strips(elementwise({f32, f32}, f32, mixed_chain), random);
  check_strips(elementwise({f32, f32}, i8,
                           [](const Arguments& in) { return convert<int8_t>(mixed_chain(in)); }),
               random);
}

TEST_CASE("pieces whose outputs are in place, several, and stored around the caches", "[no-isa]") {
  std::mt19937 random(2);
  Kernel kernel = elementwise({f32, f32}, f32, mixed_chain);
  kernel.operands.push_back({.role = Role::output, .dtype = f32});
  kernel.operands.push_back({.role = Role::output, .dtype = boolean});
  Stage& stage = kernel.stages[0];
  const Expr x{&stage.program, 0, ScalarType::f32};  // the first argument, read by the last piece
  stage.sinks.push_back({Sink::Kind::store, 3, (x * 2).id});
  stage.sinks.push_back({Sink::Kind::store, 4, (x < 0).id});
  for (const Stores stores : {Stores::cached, Stores::non_temporal}) {
    kernel.stores = stores;
    for (const int16_t alias : {int16_t{-1}, int16_t{0}}) {
      kernel.operands[2].alias = alias;
      check_strips(kernel, random);
    }
  }
}

TEST_CASE("pieces of operands with strides, numbers and rows", "[no-isa]") {
  std::mt19937 random(3);
  for (const StrideClass a : {StrideClass::zero, StrideClass::any}) {
    Kernel kernel = elementwise({f32, f32}, f32, mixed_chain);
    kernel.operands[0].inner = a;
    kernel.operands[1].role = a == StrideClass::zero ? Role::input : Role::scalar;
    check_strips(kernel, random);
  }
  Kernel kernel = elementwise({f32, i64}, f32, [](const Arguments& in) {
    return mixed_chain({in[0], convert<float>(in[1])});
  });
  kernel.operands[1].role = Role::position;
  check_strips(kernel, random);
}

TEST_CASE("accumulators of what early and late pieces compute", "[no-isa]") {
  std::mt19937 random(4);
  Kernel kernel;
  kernel.order = Order::lanes;
  kernel.reductions = {{Combine::add, ScalarType::f32}, {Combine::arg_maximum, ScalarType::f32}};
  Stage element, row;
  element.sources = {{Source::Kind::operand, 0}};
  const Expr x = argument(element.program, ScalarType::f32, 0);
  const Expr early = tanh(x);
  element.sinks = {{Sink::Kind::accumulate, 0, early.id},
                   {Sink::Kind::accumulate, 1, tanh_chain({early, x}).id}};
  row.level = Stage::Level::row;
  row.sources = {{Source::Kind::reduction, 0}, {Source::Kind::reduction, 1}};
  row.sinks = {{Sink::Kind::store, 1, argument(row.program, ScalarType::f32, 0).id},
               {Sink::Kind::store, 2, argument(row.program, ScalarType::i64, 1).id}};
  kernel.operands = {{.role = Role::input, .dtype = f32},
                     {.role = Role::output, .dtype = f32},
                     {.role = Role::output, .dtype = i64}};
  kernel.stages = {element, row};
  for (const Isa isa : isa_levels()) {
    for (const int64_t n : {1, 31, 64, 255, 257, 1030, 9000})
      CHECK(difference(kernel, isa, {.sizes = {2, n}}, random) == "");
  }
}
