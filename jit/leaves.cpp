#include "jit/leaves.h"

#include "autograd/node.h"
#include "core/autocast.h"
#include "core/hash.h"
#include "core/parallel.h"

#include <bit>
#include <mutex>

namespace nitinol::jit {
namespace {

/// Position of the first element equal to element `i`.
template <class List, class Same>
uint64_t first_equal(const List& list, std::size_t i, Same same) {
  for (std::size_t k = 0; k < i; ++k) {
    if (same(list[k], list[i])) return k;
  }
  return i;
}

bool is_same_tensor(const Tensor* a, const Tensor* b) {
  return a->handle() == b->handle();
}

enum class Sizes : uint8_t { kept, dropped };

template <class List>
void append_spec(List& key, const Spec& spec, const Strides& strides, Sizes sizes) {
  const bool contiguous = is_contiguous(spec.shape, strides);
  key.push_back(static_cast<uint64_t>(spec.dtype) | static_cast<uint64_t>(spec.shape.size()) << 8U |
                static_cast<uint64_t>(contiguous) << 16U |
                static_cast<uint64_t>(spec.is_weak) << 17U |
                static_cast<uint64_t>(std::bit_cast<uint16_t>(spec.device)) << 24U);
  if (sizes == Sizes::dropped) return;
  for (const int64_t size : spec.shape) key.push_back(static_cast<uint64_t>(size));
  if (contiguous) return;
  for (const int64_t stride : strides) key.push_back(static_cast<uint64_t>(stride));
}

template <class List>
void append_key(const Leaves& leaves, List& key, Sizes sizes) {
  const bool is_differentiated = autograd::is_enabled();  // brings settings up to date
  key.push_back(static_cast<uint64_t>(num_threads()) |
                static_cast<uint64_t>(is_differentiated) << 15U |
                static_cast<uint64_t>(leaves.tensors.size()) << 16U |
                static_cast<uint64_t>(leaves.variables.size()) << 32U |
                static_cast<uint64_t>(leaves.scalars.size()) << 48U);
  key.push_back(std::bit_cast<uint16_t>(default_device()) |
                static_cast<uint64_t>(thread_autocast::dtype) << 16U |
                static_cast<uint64_t>(thread_result_check::check) << 24U);
  for (std::size_t i = 0; i < leaves.tensors.size(); ++i) {
    const TensorData& data = leaves.tensors[i]->internals();
    append_spec(key, data.spec, data.strides, sizes);
    const bool is_tracked = is_differentiated && data.gradient;
    key.push_back(first_equal(leaves.tensors, i, is_same_tensor) << 1U |
                  static_cast<uint64_t>(is_tracked));
  }
  for (std::size_t i = 0; i < leaves.variables.size(); ++i) {
    const Spec& spec = leaves.variables[i]->spec();
    append_spec(key, spec, strides_of(spec.shape), sizes);
    key.push_back(first_equal(leaves.variables, i,
                              [](const Variable* a, const Variable* b) { return *a == *b; })
                      << 2U |
                  static_cast<uint64_t>(leaves.gradients[i]));
  }
  for (const Scalar* scalar : leaves.scalars) key.push_back(static_cast<uint64_t>(scalar->kind()));
  for (const uint64_t word : leaves.fixed) key.push_back(word);
  for (const uint64_t position : leaves.undefined) key.push_back(position);
}

/// Compares the words of a key, as they come, with those of another.
class KeyComparison {
 public:
  explicit KeyComparison(std::span<const uint64_t> other)
      : at_(other.data()), end_(at_ + other.size()) {}
  void push_back(uint64_t word) { difference_ |= at_ != end_ ? *at_++ ^ word : 1; }
  [[nodiscard]] bool is_same() const { return difference_ == 0 && at_ == end_; }

 private:
  const uint64_t* at_;
  const uint64_t* end_;
  uint64_t difference_ = 0;
};

}  // namespace

GradientState gradient_state(const Variable& variable) {
  if (!variable.tracks_gradient()) return GradientState::untracked;
  const VariableCell& cell = variable.cell().gradient->cell();
  return cell.has_value.load(std::memory_order_acquire) ? GradientState::present
                                                        : GradientState::absent;
}

std::vector<uint64_t> Leaves::fixed_parts() const {
  std::vector<uint64_t> parts(fixed.begin(), fixed.end());
  parts.push_back(undefined.size());
  parts.insert(parts.end(), undefined.begin(), undefined.end());
  return parts;
}

void make_key(const Leaves& leaves, Key& key) {
  append_key(leaves, key, Sizes::kept);
}

bool has_key(const Leaves& leaves, std::span<const uint64_t> key) {
  KeyComparison comparison(key);
  append_key(leaves, comparison, Sizes::kept);
  return comparison.is_same();
}

std::vector<uint64_t> without_sizes(const Leaves& leaves) {
  std::vector<uint64_t> words;
  append_key(leaves, words, Sizes::dropped);
  return words;
}

int threads_of(std::span<const uint64_t> key) {
  return static_cast<int>(key[0] & 0x7fffU);
}

Device default_device_of(std::span<const uint64_t> key) {
  return std::bit_cast<Device>(static_cast<uint16_t>(key[1]));
}

DType autocast_dtype_of(std::span<const uint64_t> key) {
  return static_cast<DType>(key[1] >> 16U & 0xffU);
}

ResultCheck result_check_of(std::span<const uint64_t> key) {
  const auto check = static_cast<ResultCheck>(key[1] >> 24U);
  return check == ResultCheck::as_process ? thread_result_check::of_process
                                          : check;  // always the same
}

uint64_t hash_of(std::span<const uint64_t> words) {
  Hash hash;
  hash.add_all(words);
  return hash.result();
}

std::vector<Tensor> scalar_tensors(const Leaves& leaves) {
  std::vector<Tensor> tensors;
  for (const Scalar* scalar : leaves.scalars) {
    const Spec spec = {
        .dtype = scalar->dtype(), .shape = {}, .is_weak = true, .device = default_device()};
    tensors.push_back(make_number(spec, scalar->bits()));
  }
  return tensors;
}

std::vector<Tensor> stand_ins(const Leaves& leaves) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < leaves.tensors.size(); ++i) {
    const uint64_t first = first_equal(leaves.tensors, i, is_same_tensor);
    if (first < i) {
      tensors.push_back(tensors[first]);
      continue;
    }
    const TensorData& data = leaves.tensors[i]->internals();
    tensors.push_back(bare_copy(*leaves.tensors[i]));
    tensors.back().internals().gradient = data.gradient;
  }
  return tensors;
}

}  // namespace nitinol::jit
