// Single elements between memory and C++ numbers, for creation and reading.
#pragma once

#include "core/dtype.h"
#include "core/scalar_value.h"

#include <cstddef>
#include <cstdint>

namespace nitinol {

/// Keeps the compiler from computing x elsewhere: it knows nothing of rounding modes, and moves
/// arithmetic into a DefaultFloatMode's life or out of it.
template <class T>
[[nodiscard]] T computed_here(T x) {
  asm volatile("" : "+m"(x) : : "memory");
  return x;
}

/// The stored bits, zero-extended, of `number` as an element of `dtype`: integers wrap, floating
/// numbers round or saturate as cast does.
[[nodiscard]] uint64_t element_of(DType dtype, const Scalar& number);
/// Whether an integer dtype holds the number, if that is an integer. True for all others, which are
/// rounded.
[[nodiscard]] bool fits(DType dtype, const Scalar& number);
/// What an integer that an integer dtype does not hold was to be: an operand beside tensors of
/// that dtype, or an element of a result for which the dtype was asked.
enum class Misfit : uint8_t { operand, element };
/// Throws the Error of `where` that says which integers `dtype` holds.
[[noreturn]] void throw_does_not_fit(std::string_view where, DType dtype, const Scalar& number,
                                     Misfit misfit = Misfit::operand);
/// The number that the element at `address` is.
[[nodiscard]] Scalar number_at(DType dtype, const void* address);

}  // namespace nitinol
