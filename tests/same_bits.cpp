#include "tests/same_bits.h"

#include "tests/bit_difference.h"

#include <catch2/catch.hpp>

namespace nitinol {

bool same_bits(const Tensor& a, const Tensor& b) {
  const std::optional<std::string> difference = bit_difference(a, b);
  // Shown if the assertion that follows fails.
  if (difference) UNSCOPED_INFO("first difference: " << *difference);
  return !difference;
}

}  // namespace nitinol
