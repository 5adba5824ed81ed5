#include "core/tensor.h"

#include "core/error.h"
#include "core/pending.h"
#include "core/per_thread.h"

#include <fmt/format.h>

#include <new>

namespace nitinol {

void destroy(TensorData* data) {
  data->~TensorData();
  BlockPool<TensorData>::give(data);
}

void destroy(TensorSlot* slot) {
  slot->end();
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
  auto* data =
      new (BlockPool<TensorData>::take()) TensorData(spec, strides, offset, std::move(storage));
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
