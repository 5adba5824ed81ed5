// Scalar: the run-time number; passing a different one to a compiled function never recompiles.
#pragma once

#include "core/tensor.h"

#include <concepts>
#include <cstdint>
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
  /// Throws Error(value) for an unsigned number beyond int64.
  template <Arithmetic T>
  Scalar(T value)  // NOLINT(google-explicit-constructor): numbers are Scalars
      : kind_(std::same_as<T, bool> ? Kind::boolean
              : std::integral<T>    ? Kind::integer
                                    : Kind::real),
        floating_(static_cast<double>(value)),
        integer_(std::integral<T> ? static_cast<int64_t>(value) : 0) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) >= sizeof(int64_t)) {
      if (integer_ < 0) throw_beyond_int64(value);
    }
  }

  [[nodiscard]] Kind kind() const { return kind_; }
  /// The number as double; integers beyond 2^53 round.
  [[nodiscard]] double to_double() const { return floating_; }
  /// The number as an integer; 0 for a real Scalar.
  [[nodiscard]] int64_t to_integer() const { return integer_; }
  /// The dtype a 0-d tensor of it has when nothing else decides: bool, i64 or f64.
  [[nodiscard]] DType dtype() const {
    return kind_ == Kind::boolean ? boolean : kind_ == Kind::integer ? i64 : f64;
  }

  /// Inside a recording: the 0-d weak tensor that stands for this argument; undefined elsewhere.
  [[nodiscard]] const Tensor& traced() const { return traced_; }
  void set_traced(Tensor tensor) { traced_ = std::move(tensor); }

 private:
  [[noreturn]] static void throw_beyond_int64(uint64_t value);

  Kind kind_;
  double floating_;
  int64_t integer_;
  Tensor traced_;
};

}  // namespace nitinol

#pragma GCC visibility pop
