// The caller's rounding mode changes no result, neither of eager code nor of a Plan that was made
// under another.
#include "core/host_access.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cfenv>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// While it lives, this thread rounds so.
class Rounding {
 public:
  explicit Rounding(int mode) : before_(std::fegetround()) { std::fesetround(mode); }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;
  ~Rounding() { std::fesetround(before_); }

 private:
  int before_;
};

struct Case {
  std::string name;
  std::function<Tensor(const Tensor&)> f;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"numbers", [](const Tensor& x) { return x * 0.7 + 0.1 - 1.0 / 3; }},
      {"numbers in f16", [](const Tensor& x) { return x.to(f16) * 0.7 + 1e-7; }},
      {"numbers in bf16", [](const Tensor& x) { return x.to(bf16) * 0.7 + 0.1; }},
      {"large integers", [](const Tensor& x) { return x + int64_t{16777217}; }},
      {"full", [](const Tensor& x) { return x + full(x.shape(), 0.7, f32); }},
      {"arange", [](const Tensor& x) { return sum(x) + arange(0, 0.9, 0.1); }},
      {"linspace", [](const Tensor& x) { return sum(x) + linspace(0, 0.7, 11); }},
      {"functions", [](const Tensor& x) { return exp(x) * sin(x) + pow(abs(x), 2.7); }},
      {"clamp", [](const Tensor& x) { return clamp(x, -0.7, 0.7); }},
      {"mean", [](const Tensor& x) { return mean(x, {0}); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {.eps = 0.7e-5}); }},
      {"softmax", [](const Tensor& x) { return softmax(x, -1); }},
      {"matmul", [](const Tensor& x) { return matmul(x, transpose(x)); }},
      {"running sums", [](const Tensor& x) { return cumsum(x, 0); }},
      {"bins",
       [](const Tensor& x) {
         return scatter_add(reshape(x, {x.size()}), arange(x.size()) % 7, 7);
       }},
      {"gradient",
       [](const Tensor& x) {
         return grad([](const Tensor& v) -> Tensor { return sum(gelu(v * 0.7)); })(x);
       }},
  };
  return list;
}

}  // namespace

TEST_CASE("the caller's rounding mode changes nothing", "[ops][rounding]") {
  const Threads threads(GENERATE(1, 2));
  manual_seed(1);
  const Tensor x = randn({200, 70});
  for (const Case& c : cases()) {
    const Tensor expected = c.f(x);
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      CAPTURE(c.name, mode);
      const auto f = [&c](const Tensor& v) -> Tensor { return c.f(v); };
      const auto compiled = compile(f), made_before = compile(f);
      Tensor eager, recorded, planned, run_only;
      static_cast<void>(settle(made_before, x));
      {
        const Rounding other(mode);
        eager = c.f(x);
        recorded = compiled(x);
        planned = settle(compiled, x);
        run_only = made_before(x);
      }
      CHECK(same_bits(eager, expected));
      CHECK(same_bits(recorded, expected));
      CHECK(same_bits(planned, expected));
      CHECK(same_bits(run_only, expected));
      CHECK(same_bits(settle(compiled, x), expected));
    }
  }
}

TEST_CASE("a NaN in bfloat16 is the same bits eagerly and compiled", "[ops][rounding]") {
  const auto bits = [](const Tensor& x) {
    std::vector<uint16_t> out(static_cast<std::size_t>(x.size()));
    HostElements(x.internals()).copy_to(reinterpret_cast<std::byte*>(out.data()));
    return out;
  };
  const Tensor zeros_in_bf16 = zeros({40}, bf16);
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& z) { return z / z; }, [](const Tensor& z) { return -(z / z) + 1; },
           [](const Tensor& z) { return sqrt(z - 1) * 2; },
           [](const Tensor& z) { return (z.to(f32) / z.to(f32)).to(bf16); }}) {
    const auto compiled = compile([&f](const Tensor& z) -> Tensor { return f(z); });
    CHECK(bits(settle(compiled, zeros_in_bf16)) == bits(f(zeros_in_bf16)));
    CHECK(bits(f(zeros_in_bf16)) == std::vector<uint16_t>(40, 0x7fc0));
  }
}
