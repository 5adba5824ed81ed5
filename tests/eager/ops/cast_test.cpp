// Casts round once.
#include "eager/ops/cast.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
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

template <class T>
Tensor of(const std::vector<T>& x) {
  return borrow<T>(x.data(), {static_cast<int64_t>(x.size())}, [] {});
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// f16 or bf16, as their definitions say.
struct Format {
  DType dtype;
  int fraction, exponent;  ///< bits
  [[nodiscard]] int bias() const { return (1 << (exponent - 1)) - 1; }
  /// Of the positive numbers, that of these bits; 2^16 or 2^128 in place of infinity.
  [[nodiscard]] double number(int bits) const {
    const int scale = bits >> fraction, rest = bits & ((1 << fraction) - 1);
    if (scale == 0) return std::ldexp(rest, 1 - bias() - fraction);
    return std::ldexp(rest + (1 << fraction), scale - bias() - fraction);
  }
  [[nodiscard]] int infinite() const { return ((1 << exponent) - 1) << fraction; }
};
const Format half = {.dtype = f16, .fraction = 10, .exponent = 5};
const Format bfloat = {.dtype = bf16, .fraction = 7, .exponent = 8};

/// Numbers and what they round to.
template <class T>
struct Rounded {
  std::vector<T> x;
  std::vector<double> wanted;
  void add(T value, double result) {
    x.push_back(value);
    wanted.push_back(result);
    if constexpr (!std::is_unsigned_v<T>) {
      x.push_back(-value);
      wanted.push_back(-result);
    }
  }
};

/// Each number of the format, the middle between it and the next, and those beside both.
Rounded<double> around_all(const Format& format) {
  Rounded<double> all;
  for (int bits = 0; bits < format.infinite(); ++bits) {
    const double low = format.number(bits), next = format.number(bits + 1);
    const double high = bits + 1 == format.infinite() ? infinity : next;
    const double middle = low + (next - low) / 2;
    all.add(low, low);
    all.add(middle, bits % 2 == 0 ? low : high);
    all.add(std::nextafter(low, infinity), low);
    all.add(std::nextafter(middle, 0), low);
    all.add(std::nextafter(middle, infinity), high);
    all.add(std::nextafter(next, 0), high);
  }
  for (const double large : {1e300, std::numeric_limits<double>::max(), infinity})
    all.add(large, infinity);
  return all;
}

/// Integers half-way between two numbers of the format, and those beside them.
template <class T>
Rounded<T> around_halves(const Format& format) {
  Rounded<T> all;
  const int digits = format.fraction + 1, most = std::numeric_limits<T>::digits;
  const double limit = format.number(format.infinite());
  const auto add = [&](uint64_t value, double result) {
    all.add(static_cast<T>(value), result < limit ? result : infinity);
  };
  for (int shift = 0; shift + digits <= most; ++shift) {
    for (uint64_t m = uint64_t{1} << (digits - 1); m >> digits == 0; ++m) {
      const auto low = std::ldexp(static_cast<double>(m), shift);
      const auto high = std::ldexp(static_cast<double>(m + 1), shift);
      add(m << shift, low);
      if (shift == 0) continue;
      const uint64_t middle = (2 * m + 1) << (shift - 1);
      add(middle, m % 2 == 0 ? low : high);
      if (shift == 1) continue;
      add(middle - 1, low);
      add(middle + 1, high);
    }
  }
  add(static_cast<uint64_t>(std::numeric_limits<T>::max()), std::ldexp(1.0, most));
  return all;
}

/// Checks the bits, as far as they are no NaN's, alone and in a kernel.
template <class T>
void check_rounded(const Rounded<T>& all, DType dtype) {
  const Tensor x = of(all.x), wanted = of(all.wanted);
  CHECK(same_bits(cast(x, dtype).to(f64), wanted));
  const auto fused = compile([dtype](const Tensor& v) { return cast(v * 1, dtype).to(f64); });
  CHECK(same_bits(test::settle(fused, x), wanted));
}

/// `x` without its fraction, limited to what T holds.
template <class T>
T saturated(double x) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

/// Numbers around the limits of T, of either sign, and others.
template <class T>
std::vector<double> near_limits() {
  std::vector<double> x = {0,     0.5,      1,           1.5,   2.999,
                           3e9,   1e19,     1e30,        1e300, std::numeric_limits<double>::min(),
                           1e-40, infinity, std::nan("")};
  for (const T limit : {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()}) {
    const auto number = static_cast<double>(limit);
    for (const double off : {0.0, 0.25, 0.5, 1.0, 1.5, 2.0}) {
      x.insert(x.end(), {number - off, number + off});
    }
    x.insert(x.end(), {std::nextafter(number, infinity), std::nextafter(number, -infinity)});
    const auto narrow = static_cast<float>(limit);
    const float above = std::numeric_limits<float>::infinity();
    x.insert(x.end(), {std::nextafter(narrow, above), std::nextafter(narrow, -above)});
  }
  const std::size_t count = x.size();
  for (std::size_t i = 0; i < count; ++i) x.push_back(-x[i]);
  return x;
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

TEST_CASE("float64 rounds at every number of 16 bits as it should", "[eager][cast]") {
  for (const Format& format : {half, bfloat}) {
    check_rounded(around_all(format), format.dtype);
    for (const uint64_t bits : {0x7ff0000000000001U, 0xfff0000000000001U, 0x7ff8000000000000U,
                                0xffffffffffffffffU, 0x7ff0000020000000U}) {
      const std::vector<double> nans(300, std::bit_cast<double>(bits));
      for (const double x : cast(of(nans), format.dtype).to(f64).to_vector<double>())
        CHECK(std::isnan(x));
    }
  }
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

TEMPLATE_TEST_CASE("integers round at every half-way as they should", "[eager][cast]", int32_t,
                   uint32_t, int64_t, uint64_t) {
  for (const Format& format : {half, bfloat})
    check_rounded(around_halves<TestType>(format), format.dtype);
  const std::vector<TestType> least(70, std::numeric_limits<TestType>::min());
  const Tensor x = of(least);
  CHECK(cast(x, bf16).to(f64).to_vector<double>() ==
        std::vector(70, static_cast<double>(least[0])));
}

TEMPLATE_TEST_CASE("floats are cut to integers, and limited to those there are", "[eager][cast]",
                   int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t) {
  const DType to = dtype_of<TestType>();
  const std::vector<double> numbers = near_limits<TestType>();
  for (const DType from : {f64, f32, f16, bf16}) {
    const Tensor x = of(numbers).to(from);
    std::vector<TestType> wanted;
    for (const double value : x.to(f64).to_vector<double>())
      wanted.push_back(saturated<TestType>(value));
    CAPTURE(name_of(from), name_of(to));
    CHECK(cast(x, to).to_vector<TestType>() == wanted);
    const auto fused = compile([to](const Tensor& v) { return cast(v * 1, to); });
    CHECK(test::settle(fused, x).template to_vector<TestType>() == wanted);
  }
}

TEST_CASE("numbers made as float16 are rounded once", "[eager][cast]") {
  const double stop = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  CHECK(linspace(0, stop, 2, f16)[1].item<double>() == 1 + std::ldexp(1.0, -10));
  CHECK(arange(269484033, 269484034).to(bf16)[0].item<double>() == 270532608);
}
