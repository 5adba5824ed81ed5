#include "eager/ops/elementary.h"

#include "eager/ops/ops.h"
#include "jit/compile.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

using namespace nitinol;

TEST_CASE("nextafter steps through all 16-bit numbers", "[ops][elementary]") {
  const DType dtype = GENERATE(f16, bf16);
  const uint16_t infinite = dtype == f16 ? 0x7c00 : 0x7f80;
  std::vector<uint16_t> all, above, below;  // bits
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const auto x = static_cast<uint16_t>(bits);
    const auto size = static_cast<uint16_t>(x & 0x7fff);
    const bool is_negative = (x & 0x8000) != 0, is_nan = size > infinite;
    const auto larger = static_cast<uint16_t>(size == infinite ? x : x + 1);
    const auto smaller = static_cast<uint16_t>(x - 1);
    all.push_back(x);
    above.push_back(is_nan ? x : size == 0 ? uint16_t{0x0001} : is_negative ? smaller : larger);
    below.push_back(is_nan ? x : size == 0 ? uint16_t{0x8001} : is_negative ? larger : smaller);
  }
  const auto tensor_of = [dtype](const std::vector<uint16_t>& bits) {
    const Spec spec = {.dtype = dtype, .shape = {1 << 16}, .is_weak = false, .device = {}};
    return from_bytes(std::as_bytes(std::span(bits)), spec);
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = tensor_of(all);
  CHECK(same_bits(nextafter(x, infinity), tensor_of(above)));
  CHECK(same_bits(nextafter(x, -infinity), tensor_of(below)));
  CHECK(same_bits(nextafter(x, x), x));
  CHECK(bool(nitinol::all(isnan(nextafter(x, std::numeric_limits<double>::quiet_NaN())))));
  const Tensor towards_zero = where(x > 0, tensor_of(below), tensor_of(above));
  CHECK(same_bits(nextafter(x, 0), where(x == 0, 0, towards_zero)));
  const auto compiled = compile([](const Tensor& v) { return nextafter(v, 1) + 1; });
  for (int i = 0; i < 3; ++i) CHECK(same_bits(compiled(x), nextafter(x, 1) + 1));
}
