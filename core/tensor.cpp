#include "core/tensor.h"

#include "core/error.h"
#include "core/pending.h"
#include "core/per_thread.h"

#include <fmt/format.h>

#include <array>
#include <new>

namespace nitinol {
namespace {

// TensorData blocks are recycled per thread: making one costs a few nanoseconds. A block freed by
// another thread than the one that made it joins that thread's list; both are bounded.
class TensorDataPool {
 public:
  TensorDataPool() = default;
  TensorDataPool(const TensorDataPool&) = delete;
  TensorDataPool& operator=(const TensorDataPool&) = delete;
  ~TensorDataPool() {
    for (std::size_t i = 0; i < count_; ++i) ::operator delete(blocks_[i]);
  }

  void* take() { return count_ > 0 ? blocks_[--count_] : ::operator new(sizeof(TensorData)); }
  void give(void* block) {
    if (count_ < blocks_.size()) {
      blocks_[count_++] = block;
    } else {
      ::operator delete(block);
    }
  }

 private:
  std::array<void*, 256> blocks_;
  std::size_t count_ = 0;
};

void* take_block() {
  TensorDataPool* const pool = PerThread<TensorDataPool>::get();
  return pool != nullptr ? pool->take() : ::operator new(sizeof(TensorData));
}

void give_block(void* block) {
  TensorDataPool* const pool = PerThread<TensorDataPool>::get();
  pool != nullptr ? pool->give(block) : ::operator delete(block);
}

}  // namespace

void destroy(TensorData* data) {
  data->~TensorData();
  give_block(data);
}

void destroy(TensorSlot* slot) {
  delete slot;
}

void Tensor::throw_undefined() {
  throw Error(ErrorKind::value, {.where = "Tensor",
                                 .what = "use of an undefined tensor",
                                 .expected = "a tensor with a value",
                                 .got = "a default-constructed one",
                                 .fix = undefined_tensor_fix()});
}

std::string describe(const Spec& spec) {
  return fmt::format("{}{}", name_of(spec.dtype), to_string(spec.shape));
}

std::string describe(const Tensor& tensor) {
  return tensor.is_defined() ? describe(tensor.spec()) : "undefined tensor";
}

std::string undefined_tensor_fix() {
  return "Initialise it first, for example with zeros({2, 3}). If it is the grad() of a "
         "parameter, no backward() has reached that since it was made or cleared.";
}

Tensor make_tensor(const Spec& spec, const Strides& strides, int64_t offset,
                   StorageHandle storage) {
  auto* data = new (take_block()) TensorData(spec, strides, offset, std::move(storage));
  data->birth = current_epoch();
  return Tensor(adopt<TensorData>(data));
}

Tensor make_number(const Spec& spec, uint64_t bits) {
  Tensor number = make_tensor(spec, {}, 0, {});
  number.internals().number = bits;
  number.internals().memory.store(TensorData::Memory::number, std::memory_order_relaxed);
  return number;
}

Tensor bare_copy(const Tensor& tensor) {
  const TensorData& data = tensor.internals();
  if (is_pending(data)) {
    if (PendingCall* const call = pending_call(); call != nullptr && call->owns(data))
      return call->copy(tensor);
    materialise(data);
  }
  Tensor copy = make_tensor(data.spec, data.strides, data.offset, data.storage);
  TensorData& to = copy.internals();
  to.number = data.number;
  to.memory.store(data.memory.load(std::memory_order_relaxed), std::memory_order_relaxed);
  to.birth = data.birth;
  to.trace = data.trace;
  to.value = data.value;
  to.segment = data.segment;
  to.shape_only = data.shape_only;
  return copy;
}

bool is_donatable(const Tensor& tensor) {
  return is_unique(tensor.handle()) && is_unique(tensor.internals().storage) &&
         !tensor.internals().storage->is_borrowed;
}

}  // namespace nitinol
