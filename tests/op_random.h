// What the random ops give, written anew.
#pragma once

#include "tests/op_reference.h"
#include "tests/op_samples.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace nitinol::test {

/// Element `counter` of the op of that name, whose generator has this key.
[[nodiscard]] long double random_value(std::string_view op, uint64_t counter, uint64_t key,
                                       std::span<const Elements> inputs);

/// The permutation of `count` numbers.
[[nodiscard]] Elements random_order(const Elements& state, int64_t count);
[[nodiscard]] std::vector<Sample> permutation_samples(const Op&);

}  // namespace nitinol::test
