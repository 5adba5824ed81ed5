// Leaves: the tensors, Variables, Scalars and fixed bits of one call, and what is made of them:
// the key of its signature, stand-ins for recording.
#pragma once

#include "core/result_check.h"
#include "core/scalar_value.h"
#include "core/small_list.h"
#include "core/tensor.h"
#include "core/variable.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::jit {

/// Whether a Variable tracks gradients, and has one.
enum class GradientState : uint8_t { untracked, absent, present };
[[nodiscard]] GradientState gradient_state(const Variable& variable);

/// The leaves of one call's arguments, or of its result.
struct Leaves {
  SmallList<const Tensor*, 8> tensors;
  SmallList<const Variable*, 8> variables;
  SmallList<GradientState, 8> gradients;  ///< of the Variables, when the leaves were collected
  SmallList<const Scalar*, 4> scalars;
  SmallList<uint64_t, 16> fixed;
  SmallList<uint64_t, 2> undefined;  ///< per undefined tensor: how many defined ones came before it

  /// What a function returned beside tensors: numbers, and which tensors are undefined.
  [[nodiscard]] std::vector<uint64_t> fixed_parts() const;
};

/// Everything a Plan depends on, packed into words.
using Key = SmallList<uint64_t, 64>;
void make_key(const Leaves& leaves, Key& key);
/// Whether make_key() would make this key.
[[nodiscard]] bool has_key(const Leaves& leaves, std::span<const uint64_t> key);
[[nodiscard]] uint64_t hash_of(std::span<const uint64_t> key);
/// The number of threads that the call with this key runs on.
[[nodiscard]] int threads_of(std::span<const uint64_t> key);
/// Where it makes tensors of nothing but numbers.
[[nodiscard]] Device default_device_of(std::span<const uint64_t> key);
[[nodiscard]] DType autocast_dtype_of(std::span<const uint64_t> key);
[[nodiscard]] ResultCheck result_check_of(std::span<const uint64_t> key);
/// A key without its sizes and strides: what must agree for one recorded call to be enough.
[[nodiscard]] std::vector<uint64_t> without_sizes(const Leaves& leaves);

/// Tensors that stand for the tensor arguments while a call is recorded: handles of their own, so
/// that a captured tensor that is also an argument is told from it. One tensor given twice has one
/// stand-in.
[[nodiscard]] std::vector<Tensor> stand_ins(const Leaves& leaves);
/// 0-d weak tensors that stand for the Scalars.
[[nodiscard]] std::vector<Tensor> scalar_tensors(const Leaves& leaves);

}  // namespace nitinol::jit

#pragma GCC visibility pop
