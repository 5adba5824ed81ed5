#include "tests/same_bits.h"

#include "tests/bit_difference.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace nitinol {
namespace {

/// Whether tensors are on a GPU that is none of the fake driver's.
bool is_on_gpu() {
  if (default_device().kind != Device::Kind::cuda) return false;
  for (const DeviceInfo& info : devices()) {
    if (info.device == default_device()) return info.description.find("fake") == std::string::npos;
  }
  return false;
}

double ulp_of(DType dtype) {
  return dtype == bf16 ? 0x1p-7 : dtype == f16 ? 0x1p-10 : dtype == f32 ? 0x1p-23 : 0x1p-52;
}

}  // namespace

bool same_bits(const Tensor& a, const Tensor& b) {
  const std::optional<std::string> difference = bit_difference(a, b);
  // Shown if the assertion that follows fails.
  if (difference) UNSCOPED_INFO("first difference: " << *difference);
  return !difference;
}

double ulps_apart(const Tensor& a, const Tensor& b) {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (a.shape() != b.shape() || a.dtype() != b.dtype() || !is_floating(a.dtype())) return never;
  const std::vector<double> x = a.to(f64).to_vector<double>(), y = b.to(f64).to_vector<double>();
  double apart = 0, largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) {
      if (std::isfinite(y[i])) largest = std::max(largest, std::abs(y[i]));
      continue;
    }
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return never;
    apart = std::max(apart, std::abs(x[i] - y[i]));
    largest = std::max(largest, std::abs(y[i]));
  }
  if (apart == 0) return 0;
  return largest == 0 ? never
                      : apart / std::exp2(std::floor(std::log2(largest))) / ulp_of(b.dtype());
}

double most_ulps_apart(DType dtype) {
  // 16 bits are rounded once, of sums in f32.
  return size_of(dtype) == 2 ? 2 : 64;
}

bool same_library_bits(const Tensor& a, const Tensor& b) {
  if (!is_on_gpu()) return same_bits(a, b);
  if (!bit_difference(a, b)) return true;
  const double apart = ulps_apart(a, b), most = most_ulps_apart(b.dtype());
  UNSCOPED_INFO("they are " << apart << " ulp apart, where " << most << " are allowed");
  if (!std::isinf(apart)) {
    std::printf("{\"ulp\": %.3f, \"limit\": %.0f, \"of\": \"%s in %s\"}\n", apart, most,
                describe(b).c_str(), Catch::getResultCapture().getCurrentTestName().c_str());
  }
  return apart <= most;
}

}  // namespace nitinol
