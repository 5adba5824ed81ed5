// Generated elementwise code against the interpreter, bit for bit.

#include "core/math.h"
#include "tests/backends/cpu/jit/kernel_case.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::testing;

namespace {

using Arguments = std::vector<Expr>;

Expr fused_chain(const Arguments& in) {
  const Expr x = in[0];
  return exp(-(x * x)) * sin(x) + log(1 + abs(x)) / sqrt(1 + x * x) + tanh(x);
}

Expr short_chain(const Arguments& in) {
  return in[0] * in[0] - in[0];
}

/// Checks at all levels and many lengths around whole vectors.
void check_lengths(const Kernel& kernel, std::mt19937& random) {
  for (const Isa isa : isa_levels()) {
    const auto code = code_for(kernel, isa);
    for (const int64_t n : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 130}) {
      for (const int64_t misalignment : {0, 1}) {
        INFO(name_of(isa) << " n=" << n << " misalignment " << misalignment);
        CHECK(difference(kernel, code, {.sizes = {n}, .misalignment = misalignment}, random) == "");
      }
    }
  }
}

}  // namespace

TEST_CASE("every length, short and long programs, every dtype", "[no-isa]") {
  std::mt19937 random(1);
  for (const DType dtype : {f16, bf16, f32, f64}) {
    check_lengths(elementwise({dtype}, dtype, fused_chain), random);
    check_lengths(elementwise({dtype}, dtype, short_chain), random);
  }
  for (const DType dtype : {u8, i8, u16, i16, u32, i32, u64, i64}) {
    check_lengths(elementwise({dtype}, dtype, short_chain), random);
  }
  check_lengths(
      elementwise({boolean, boolean}, boolean, [](const Arguments& in) { return in[0] ^ in[1]; }),
      random);
}

TEST_CASE("conversions between all dtypes", "[no-isa]") {
  std::mt19937 random(2);
  for (int from = 0; from < dtype_count; ++from) {
    for (int to = 0; to < dtype_count; ++to) {
      const auto a = static_cast<DType>(from), b = static_cast<DType>(to);
      const Kernel kernel =
          elementwise({a}, b, [&](const Arguments& in) { return convert(in[0], compute_type(b)); });
      for (const Isa isa : isa_levels()) {
        INFO(name_of(a) << " to " << name_of(b));
        CHECK(difference(kernel, isa, {.sizes = {1000}}, random) == "");
      }
    }
  }
}

TEST_CASE("instructions of numbers", "[no-isa]") {
  std::mt19937 random(3);
  const auto check = [&](DType dtype, DType result, auto formula) {
    const Kernel kernel = elementwise({dtype, dtype, dtype}, result, formula);
    for (const Isa isa : isa_levels()) {
      INFO(name_of(dtype) << " to " << name_of(result));
      CHECK(difference(kernel, isa, {.sizes = {517}, .no_zero = true}, random) == "");
    }
  };
  for (const DType t : {u8, i8, u16, i16, u32, i32, u64, i64, f32, f64}) {
    check(t, t, [](const Arguments& in) { return in[0] + in[1]; });
    check(t, t, [](const Arguments& in) { return in[0] - in[1]; });
    check(t, t, [](const Arguments& in) { return in[0] * in[1]; });
    check(t, t, [](const Arguments& in) { return -in[0]; });
    check(t, t, [](const Arguments& in) { return abs(in[0]); });
    check(t, t, [](const Arguments& in) { return select(in[0] < in[1], in[2], in[0]); });
    check(t, boolean, [](const Arguments& in) { return in[0] == in[1]; });
    check(t, boolean, [](const Arguments& in) { return in[0] != in[1]; });
    check(t, boolean, [](const Arguments& in) { return in[0] <= in[1]; });
    check(t, boolean, [](const Arguments& in) { return (in[0] < in[1]) & !(in[1] < in[2]); });
  }
  for (const DType t : {u8, i8, u16, i16, u32, i32, u64, i64}) {
    check(t, t, [](const Arguments& in) { return binary(ScalarOp::int_div, in[0], in[1]); });
    check(t, t, [](const Arguments& in) { return binary(ScalarOp::int_rem, in[0], in[1]); });
    check(t, t, [](const Arguments& in) { return mul_high(in[0], in[1]); });
    check(t, t, [](const Arguments& in) { return in[0] << in[1]; });
    check(t, t, [](const Arguments& in) { return in[0] >> in[1]; });
    check(t, t, [](const Arguments& in) { return in[0] >> 3; });
    check(t, t, [](const Arguments& in) { return (in[0] & in[1]) | (~in[2] ^ in[0]); });
  }
  for (const DType t : {f32, f64}) {
    check(t, t, [](const Arguments& in) { return in[0] / in[1]; });
    check(t, t, [](const Arguments& in) { return fma(in[0], in[1], in[2]); });
    check(t, t, [](const Arguments& in) { return fma(in[0], in[0], -(in[0] * in[0])); });
    check(t, t, [](const Arguments& in) { return sqrt(in[0]); });
    check(t, t, [](const Arguments& in) { return floor(in[0]); });
    check(t, t, [](const Arguments& in) { return ceil(in[0]); });
    check(t, t, [](const Arguments& in) { return trunc(in[0]); });
    check(t, t, [](const Arguments& in) { return round_even(in[0]); });
  }
  for (const DType t : {f32, f16, bf16}) {
    check(t, t, [](const Arguments& in) { return round_f16(in[0] * in[1]); });
    check(t, t, [](const Arguments& in) { return round_bf16(in[0] * in[1]); });
    check(t, t, [](const Arguments& in) { return round_bf16(round_f16(in[0] + in[1])) * in[2]; });
  }
  check(f32, i32, [](const Arguments& in) {
    return bitcast<int32_t>(abs(select(in[0] == in[0], in[0], 1)));
  });
}

TEST_CASE("unsigned types that no dtype stores", "[no-isa]") {
  std::mt19937 random(4);
  const Kernel narrow = elementwise({i32, i32}, i32, [](const Arguments& in) {
    const Expr a = bitcast<uint32_t>(in[0]), b = bitcast<uint32_t>(in[1]);
    return bitcast<int32_t>((mul_high(a, b) ^ binary(ScalarOp::int_div, a, b)) + (a >> b));
  });
  const Kernel wide = elementwise({i64, f64}, f32, [](const Arguments& in) {
    const Expr a = bitcast<uint64_t>(in[0]), b = convert<uint64_t>(in[1]);
    return convert<float>(mul_high(a, b | 1) ^ (a << b)) + convert<float>(convert<uint16_t>(in[1]));
  });
  for (const Isa isa : isa_levels()) {
    CHECK(difference(narrow, isa, {.sizes = {300}, .no_zero = true}, random) == "");
    CHECK(difference(wide, isa, {.sizes = {300}}, random) == "");
  }
}

TEST_CASE("every math function, f32 and f64", "[no-isa]") {
  std::mt19937 random(5);
  const auto check = [&](const char* name, auto formula) {
    for (const DType dtype : {f32, f64}) {
      const Kernel kernel = elementwise({dtype, dtype}, dtype, formula);
      for (const Isa isa : isa_levels()) {
        INFO(name);
        CHECK(difference(kernel, isa, {.sizes = {3001}}, random) == "");
      }
    }
  };
  check("exp", [](const Arguments& in) { return exp(in[0]); });
  check("expm1", [](const Arguments& in) { return expm1(in[0]); });
  check("exp2", [](const Arguments& in) { return exp2(in[0]); });
  check("log", [](const Arguments& in) { return log(in[0]); });
  check("log1p", [](const Arguments& in) { return log1p(in[0]); });
  check("log2", [](const Arguments& in) { return log2(in[0]); });
  check("log10", [](const Arguments& in) { return log10(in[0]); });
  check("sin", [](const Arguments& in) { return sin(in[0]); });
  check("cos", [](const Arguments& in) { return cos(in[0]); });
  check("tan", [](const Arguments& in) { return tan(in[0]); });
  check("tanh", [](const Arguments& in) { return tanh(in[0]); });
  check("erf", [](const Arguments& in) { return erf(in[0]); });
  check("pow", [](const Arguments& in) { return pow(in[0], in[1]); });
}

TEST_CASE("strides, scalars, positions and outer loops", "[no-isa]") {
  std::mt19937 random(6);
  for (const StrideClass a : {StrideClass::zero, StrideClass::one, StrideClass::any}) {
    for (const StrideClass b : {StrideClass::one, StrideClass::any}) {
      Kernel kernel = elementwise({f32, f32, f64, i64}, f32, [](const Arguments& in) {
        const Expr narrow = convert<float>(in[2]) * sin(in[1]);
        return fma(in[0], exp(in[1]), narrow + convert<float>(in[3]));
      });
      kernel.operands[0].inner = a;
      kernel.operands[1].role = Role::scalar;
      kernel.operands[2].inner = b;
      kernel.operands[3].role = Role::position;
      kernel.operands[3].inner = a;
      kernel.operands[4].inner = b;
      for (const Isa isa : isa_levels()) {
        const auto code = code_for(kernel, isa);
        for (const int64_t n : {1, 5, 16, 35}) {
          CHECK(difference(kernel, code, {.sizes = {n}}, random) == "");
          CHECK(difference(kernel, code, {.sizes = {3, n}}, random) == "");
          CHECK(difference(kernel, code, {.sizes = {2, 3, n}, .any_stride = 2}, random) == "");
        }
      }
    }
  }
}

TEST_CASE("strided stores and narrow types", "[no-isa]") {
  std::mt19937 random(7);
  for (const DType dtype : {boolean, i8, i16, f16, i64}) {
    Kernel kernel = elementwise({dtype, f32}, dtype, [](const Arguments& in) {
      return select(in[1] < 0, in[0], convert(in[1], in[0].type));
    });
    for (const StrideClass c : {StrideClass::zero, StrideClass::one, StrideClass::any}) {
      kernel.operands[0].inner = c;
      kernel.operands[2].inner = c == StrideClass::any ? c : StrideClass::one;
      for (const Isa isa : isa_levels()) {
        INFO(name_of(dtype));
        CHECK(difference(kernel, isa, {.sizes = {4, 77}}, random) == "");
      }
    }
  }
}

TEST_CASE("in place, several outputs, stores around the caches", "[no-isa]") {
  std::mt19937 random(8);
  Kernel kernel = elementwise({f32, f32}, f32, short_chain);
  kernel.operands.push_back({.role = Role::output, .dtype = i8});
  Stage& stage = kernel.stages[0];
  const Expr sum{&stage.program, stage.sinks[0].value, ScalarType::f32};
  stage.sinks.push_back({Sink::Kind::store, 3, convert<int8_t>(sum).id});
  for (const Stores stores : {Stores::cached, Stores::non_temporal}) {
    kernel.stores = stores;
    for (const int16_t alias : {int16_t{-1}, int16_t{0}}) {
      kernel.operands[2].alias = alias;
      for (const Isa isa : isa_levels()) {
        const auto code = code_for(kernel, isa);
        for (const int64_t n : {1, 15, 64, 100, 201}) {
          for (const int64_t misalignment : {0, 1, 3, 8}) {
            CHECK(difference(kernel, code, {.sizes = {n}, .misalignment = misalignment}, random) ==
                  "");
            CHECK(difference(kernel, code, {.sizes = {3, n}, .misalignment = misalignment},
                             random) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("stores around the caches to outputs that are misaligned differently", "[no-isa]") {
  std::mt19937 random(10);
  Kernel kernel = elementwise({f32, f32}, f32, short_chain);
  kernel.operands.push_back({.role = Role::output, .dtype = i8});
  kernel.operands.push_back({.role = Role::output, .dtype = f32});
  Stage& stage = kernel.stages[0];
  const Expr sum{&stage.program, stage.sinks[0].value, ScalarType::f32};
  stage.sinks.push_back({Sink::Kind::store, 3, convert<int8_t>(sum).id});
  stage.sinks.push_back({Sink::Kind::store, 4, (sum * sum).id});
  kernel.stores = Stores::non_temporal;
  for (const Isa isa : isa_levels()) {
    const auto code = code_for(kernel, isa);
    for (const int64_t n : {16, 100, 333}) {
      for (const int64_t misalignment : {0, 1, 5}) {
        for (const int64_t step : {0, 1, 2, 4}) {
          INFO(n << " elements, misaligned by " << misalignment << " and " << step << " more each");
          CHECK(
              difference(kernel, code,
                         {.sizes = {2, n}, .misalignment = misalignment, .misalignment_step = step},
                         random) == "");
        }
      }
    }
  }
}

TEST_CASE("branches nest, and whole branches leave the loop when they are uniform", "[no-isa]") {
  std::mt19937 random(9);
  Kernel kernel = elementwise({f32, f32}, f32, [](const Arguments& in) {
    const Expr x = in[0], s = in[1];
    const Expr nested = if_any(x > 5, x, [&] {
      const Expr y = x * s;
      return y + if_any(y < 0, y, [&] { return exp(y) * s; });
    });
    return nested + if_any(s < 1, s, [&] { return sin(s) + 1; });
  });
  for (const Role role : {Role::input, Role::scalar}) {
    kernel.operands[1].role = role;
    for (const Isa isa : isa_levels()) {
      CHECK(difference(kernel, isa, {.sizes = {3, 100}}, random) == "");
    }
  }
}

TEST_CASE("sides that some vectors need, all, or none", "[no-isa]") {
  std::mt19937 random(10);
  Kernel kernel = elementwise({f32, f32}, f32, [](const Arguments& in) {
    const Expr x = in[0], s = in[1];
    const Expr side = either(
        x, both(s < 2, [&] { return s > -2; }),
        [&] { return unless_all(x > 0, x * s, [&] { return x - s; }); },
        [&] { return if_any(!(x < 3), exp(x), [&] { return x + s; }); });
    const Expr nested =
        unless_all(s < 1, x, [&] { return unless_all(s < 4, x * 2, [&] { return -s; }); });
    return side + nested;
  });
  for (const Role role : {Role::input, Role::scalar}) {
    kernel.operands[1].role = role;
    for (const Isa isa : isa_levels()) {
      for (int round = 0; round < 5; ++round)
        CHECK(difference(kernel, isa, {.sizes = {3, 100}}, random) == "");
    }
  }
}
