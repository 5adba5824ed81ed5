// The numbers that make_models.py and make_training.py compute with, too.
#pragma once

#include "nitinol.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <fstream>
#include <string>

namespace nitinol::test {

/// Numbers from -0.5 to 0.5 in float64, others for each k.
[[nodiscard]] inline Tensor number(int64_t k, const Shape& shape) {
  const Tensor i = arange(element_count(shape));
  return reshape(cast((i * 7919 + k * 104729) % 1009, f64) / 1009 - 0.5, shape);
}

[[nodiscard]] inline Tensor classes(const Shape& shape, int64_t limit) {
  const Tensor i = arange(element_count(shape));
  return reshape((i * 7 + floor_divide(i, 3)) % limit, shape);
}

/// A file of tests/reference.
[[nodiscard]] inline nlohmann::json recorded_in(const std::string& file) {
  return nlohmann::json::parse(
      std::ifstream(std::string(NITINOL_SOURCE_DIR) + "/tests/reference/" + file));
}

}  // namespace nitinol::test
