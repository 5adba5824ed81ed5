// Scalar: the run-time number; passing a different one to a compiled function never recompiles.
#pragma once

#include "core/integer.h"
#include "core/tensor.h"

#include <bit>
#include <concepts>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace nitinol {

template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;

/// A weak number: beside a tensor it takes the tensor's dtype, except that a floating Scalar beside
/// an integer tensor gives f32 and a number beside a boolean tensor gives i64 or f32 (as PyTorch).
class Scalar {
 public:
  enum class Kind : uint8_t { boolean, integer, real };

  Scalar() : Scalar(0.0) {}
  template <Arithmetic T>
  Scalar(T value)  // NOLINT(google-explicit-constructor): numbers are Scalars
      : kind_(std::same_as<T, bool> ? Kind::boolean
              : std::integral<T>    ? Kind::integer
                                    : Kind::real),
        floating_(static_cast<double>(value)),
        integer_(std::integral<T> ? static_cast<int64_t>(value) : 0) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(int64_t))
      is_beyond_int64_ = integer_ < 0;
  }

  [[nodiscard]] Kind kind() const { return kind_; }
  /// The number as double; integers beyond 2^53 round. Of an argument of a compiled function this
  /// is a look by host code: what was recorded then holds for calls with this very number, and each
  /// other number is a signature of its own.
  [[nodiscard]] double to_double(
      std::source_location place = std::source_location::current()) const {
    if (traced_.is_defined()) note_look("to_double()", place);
    return floating_;
  }
  /// The number as an integer; 0 for a real Scalar. A look by host code, as to_double(). Throws
  /// Error(value) for a number that is_beyond_int64().
  [[nodiscard]] int64_t to_integer(
      std::source_location place = std::source_location::current()) const {
    if (traced_.is_defined()) note_look("to_integer()", place);
    if (is_beyond_int64_)
      throw_beyond_int64("Scalar", static_cast<uint64_t>(integer_), "Read it as a uint64_t.");
    return integer_;
  }
  /// True for an integer from 2^63 on, which u64 alone holds; bits() is the number.
  [[nodiscard]] bool is_beyond_int64() const { return is_beyond_int64_; }
  /// The dtype a 0-d tensor of it has when nothing else decides: bool, i64 (beyond it u64) or f64.
  [[nodiscard]] DType dtype() const {
    if (kind_ == Kind::integer) return is_beyond_int64_ ? u64 : i64;
    return kind_ == Kind::boolean ? boolean : f64;
  }

  /// The number itself: of a double its bit pattern, of others the integer. With dtype(), numbers
  /// of equal bits are equal.
  [[nodiscard]] uint64_t bits() const {
    return kind_ == Kind::real ? std::bit_cast<uint64_t>(floating_)
                               : static_cast<uint64_t>(integer_);
  }
  /// A 0-d weak tensor, so that -s and exp(s) are what they are for tensors: inside a recording the
  /// one that stands for this argument, never a constant. (eager/promotion.cpp)
  operator Tensor() const;  // NOLINT(google-explicit-constructor): reads like one in formulas

  /// Inside a recording: the 0-d weak tensor that stands for this argument; undefined elsewhere.
  [[nodiscard]] const Tensor& traced() const { return traced_; }
  void set_traced(Tensor tensor) { traced_ = std::move(tensor); }

 private:
  void note_look(const char* what,
                 const std::source_location& place) const;  // (eager/promotion.cpp)

  Kind kind_;
  bool is_beyond_int64_ = false;
  double floating_;
  int64_t integer_;
  Tensor traced_;
};

}  // namespace nitinol

#pragma GCC visibility pop
