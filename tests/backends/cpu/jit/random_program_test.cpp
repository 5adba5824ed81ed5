// Random scalar programs, and many threads compiling them.

#include "core/math.h"
#include "tests/backends/cpu/jit/kernel_case.h"

#include <catch2/catch.hpp>

#include <string>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::testing;

namespace {

/// Grows a program by random instructions over values of all types.
class RandomProgram {
 public:
  RandomProgram(std::mt19937& random, std::vector<Expr> start)
      : random_(random), values_(std::move(start)) {}

  Expr grow(int instructions, ScalarType result) {
    for (int i = 0; i < instructions; ++i) values_.push_back(next());
    return cast(values_.back(), result);
  }

 private:
  Expr any() { return values_[random_() % values_.size()]; }

  /// Without the payload of NaN, on which implementations may differ.
  static Expr cast(Expr x, ScalarType type) { return x.type == type ? x : convert(x, type); }

  Expr of(ScalarType type) { return cast(any(), type); }

  Expr next() {
    constexpr ScalarType types[] = {ScalarType::u8,  ScalarType::i8,  ScalarType::u16,
                                    ScalarType::i16, ScalarType::u32, ScalarType::i32,
                                    ScalarType::u64, ScalarType::i64, ScalarType::f32,
                                    ScalarType::f64, ScalarType::f32, ScalarType::f32};
    const ScalarType type = types[random_() % std::size(types)];
    const Expr a = of(type), b = of(type);
    switch (random_() % 12) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return select(any_condition(), a, b);
      case 4:
        return -a;
      case 5:
        return abs(a);
      case 6:
        return a < b;
      case 7:
        return branch(a, b);
      default:
        return is_float(type) ? float_next(a, b) : int_next(a, b);
    }
  }

  Expr any_condition() {
    const Expr x = any();
    return x.type == ScalarType::pred ? x : x < constant(x, x.type, 3);
  }

  Expr branch(Expr a, Expr b) {
    const std::vector<Expr> outside = values_;
    const Expr result = if_any(any_condition(), a, [&] {
      for (int i = 0; i < 3; ++i) values_.push_back(next());
      return cast(values_.back(), a.type) + b;
    });
    values_ = outside;
    return result;
  }

  Expr float_next(Expr a, Expr b) {
    switch (random_() % 8) {
      case 0:
        return a / b;
      case 1:
        return fma(a, b, of(a.type));
      case 2:
        return sqrt(a);
      case 3:
        return floor(a);
      case 4:
        return round_even(a);
      case 5:
        return a.type == ScalarType::f32 ? round_f16(a) : a - b;
      case 6:
        return a.type == ScalarType::f32 ? round_bf16(a) : a * b;
      default:
        return tanh(a);
    }
  }

  Expr int_next(Expr a, Expr b) {
    switch (random_() % 8) {
      case 0:
        return binary(ScalarOp::int_div, a, b | 1);
      case 1:
        return binary(ScalarOp::int_rem, a, b | 1);
      case 2:
        return mul_high(a, b);
      case 3:
        return a << b;
      case 4:
        return a >> b;
      case 5:
        return (a & b) ^ ~a;
      case 6:
        return a.type == ScalarType::u32 ? table<TableId::inverse_pi>(a & 31) : a | b;
      default:
        return a == b;
    }
  }

  std::mt19937& random_;
  std::vector<Expr> values_;
};

Kernel random_kernel(std::mt19937& random) {
  std::vector<DType> inputs;
  for (int k = 0; k < 3; ++k) inputs.push_back(static_cast<DType>(random() % dtype_count));
  const auto output = static_cast<DType>(random() % dtype_count);
  Kernel kernel = elementwise(inputs, output, [&](const std::vector<Expr>& arguments) {
    const auto size = static_cast<int>(1 + random() % (random() % 16 == 0 ? 200 : 40));
    return RandomProgram(random, arguments).grow(size, compute_type(output));
  });
  for (Operand& operand : kernel.operands) {
    const auto c = static_cast<StrideClass>(random() % 3);
    if (operand.role == Role::input || c != StrideClass::zero) operand.inner = c;
    if (operand.role == Role::input && random() % 5 == 0) operand.role = Role::scalar;
  }
  return kernel;
}

Domain random_domain(std::mt19937& random) {
  Domain domain;
  if (random() % 2 == 0) domain.sizes.push_back(1 + static_cast<int64_t>(random() % 3));
  domain.sizes.push_back(1 + static_cast<int64_t>(random() % (random() % 4 == 0 ? 700 : 140)));
  domain.misalignment = static_cast<int64_t>(random() % 4);
  return domain;
}

}  // namespace

TEST_CASE("random programs", "[no-isa]") {
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const Kernel kernel = random_kernel(random);
    const Domain domain = random_domain(random);
    for (const Isa isa : isa_levels()) {
      INFO("seed " << seed);
      CHECK(difference(kernel, isa, domain, random) == "");
    }
  }
}

TEST_CASE("sixteen threads compile and run at once, and give their memory back", "[no-isa]") {
  const std::size_t in_use = cpu::code_arena().in_use();
  const uint64_t compilations = plugin().compilations();
  constexpr int threads = 16, kernels = 6;
  std::vector<std::string> found(threads);
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&found, t] {
      std::mt19937 random(1000 + static_cast<unsigned>(t));
      for (int i = 0; i < kernels; ++i) {
        const Kernel kernel = random_kernel(random);
        found[static_cast<std::size_t>(t)] +=
            difference(kernel, isa_levels().back(), random_domain(random), random);
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  for (const std::string& text : found) CHECK(text == "");
  CHECK(plugin().compilations() == compilations + uint64_t{threads} * kernels);
  CHECK(cpu::code_arena().in_use() == in_use);
}

TEST_CASE("code, text and reports", "[no-isa]") {
  const Kernel kernel =
      elementwise({f32}, f32, [](const std::vector<Expr>& in) { return exp(in[0]) + 1; });
  const cpu::StageCodes code = code_for(kernel, current_isa());
  REQUIRE(code.stages.size() == 1);
  CHECK(code.report.origin == CodeOrigin::generated);
  CHECK(code.report.code_bytes > 50);
  CHECK(code.report.codegen_s > 0);
  CHECK(code.report.link_s > 0);
  CHECK(plugin().intermediate_code(kernel).find("define void @stage0") != std::string::npos);
  CHECK(plugin().assembly(kernel).find("stage0:") != std::string::npos);
}
