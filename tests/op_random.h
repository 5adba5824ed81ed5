// What the random ops give, written anew.
#pragma once

#include "tests/op_reference.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace nitinol::test {

/// Element `counter` of the op of that name, whose generator has this key.
[[nodiscard]] long double random_value(std::string_view op, uint64_t counter, uint64_t key,
                                       std::span<const Elements> inputs);

}  // namespace nitinol::test
