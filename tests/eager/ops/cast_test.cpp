// Casts round once.
#include "eager/ops/cast.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace nitinol;

namespace {

/// `x` rounded to `digits` binary digits, ties to even; for numbers in the normal range.
double rounded(double x, int digits) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::ldexp(1.0, std::ilogb(x) + 1 - digits);
  return std::nearbyint(x / unit) * unit;
}

/// Numbers beside those half-way between two of `digits` digits.
std::vector<double> near_ties(int digits) {
  std::vector<double> x;
  for (const double start : {1.0, 1.5, 3.0, 1000.0}) {
    const double unit = std::ldexp(1.0, std::ilogb(start) + 1 - digits);
    for (int k = 0; k < 6; ++k) {
      const double tie = start + (k + 0.5) * unit;
      for (const double off : {0.0, std::ldexp(1.0, -40), std::ldexp(1.0, -26)}) {
        for (const double sign : {1.0, -1.0})
          x.insert(x.end(), {sign * (tie + off), sign * (tie - off)});
      }
    }
  }
  return x;
}

Tensor of(const std::vector<double>& x) {
  return borrow<double>(x.data(), {static_cast<int64_t>(x.size())}, [] {});
}

}  // namespace

TEST_CASE("float64 is rounded to 16 bits once", "[eager][cast]") {
  for (const auto& [dtype, digits] : {std::pair(f16, 11), std::pair(bf16, 8)}) {
    const std::vector<double> x = near_ties(digits);
    const auto narrow = [dtype = dtype](const Tensor& t) { return cast(t, dtype); };
    const Tensor got = narrow(of(x));
    const auto compiled = compile(narrow);
    for (int i = 0; i < 3; ++i) CHECK(same_bits(compiled(of(x)), got));
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(name_of(dtype), x[i]);
      CHECK(got[static_cast<int64_t>(i)].item<double>() == rounded(x[i], digits));
      CHECK(tensor(x[i]).to(dtype).item<double>() == rounded(x[i], digits));
      CHECK(full({}, x[i], dtype).item<double>() == rounded(x[i], digits));
    }
  }
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor odd = tensor({0.0, -0.0, inf, -inf, std::nan(""), 1e300, -1e300, 65520.0,
                             std::nextafter(65520.0, 0), 0x1p-25, std::nextafter(0x1p-25, 1)});
  const std::vector<double> halves = cast(odd, f16).to(f64).to_vector<double>();
  CHECK(std::signbit(halves[1]));
  CHECK(std::isnan(halves[4]));
  CHECK(std::vector(halves.begin() + 5, halves.end()) ==
        std::vector{inf, -inf, inf, 65504.0, 0.0, 0x1p-24});
}

TEST_CASE("integers are rounded to 16 bits once", "[eager][cast]") {
  const auto narrow = [](const Tensor& t) { return cast(t, bf16); };
  const Tensor wide = tensor({269484033, -269484033, 269484032, 269484031, int64_t{1} << 62});
  const std::vector<double> expected = {270532608, -270532608, 268435456, 268435456, 0x1p62};
  CHECK(narrow(wide).to(f64).to_vector<double>() == expected);
  CHECK(same_bits(compile(narrow)(wide), narrow(wide)));
  CHECK(narrow(tensor({269484033}, i32)).item<double>() == 270532608);
  const int64_t limit = std::numeric_limits<int64_t>::max();
  CHECK(narrow(tensor({limit, -limit})).to(f64).to_vector<double>() ==
        std::vector{0x1p63, -0x1p63});
}

TEST_CASE("numbers made as float16 are rounded once", "[eager][cast]") {
  const double stop = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  CHECK(linspace(0, stop, 2, f16)[1].item<double>() == 1 + std::ldexp(1.0, -10));
  CHECK(arange(269484033, 269484034).to(bf16)[0].item<double>() == 270532608);
}
