#include "core/host_access.h"

#include "core/backend.h"
#include "core/error.h"
#include "core/pending.h"
#include "core/strided.h"

#include <fmt/format.h>

#include <cstring>

namespace nitinol {
namespace {

[[noreturn]] void throw_without_elements(const TensorData& data) {
  if (is_pending(data)) {
    throw Error(
        ErrorKind::value,
        {.where = "Tensor",
         .what = fmt::format("a tensor {} whose computation failed is used", describe(data.spec)),
         .expected = "a tensor that has been computed",
         .got = "a result of a call of a compiled function that ended by an error",
         .fix = "Look at the first error; what the call has left behind is lost."});
  }
  throw Error(ErrorKind::unsupported,
              {.where = "Tensor",
               .what = fmt::format("a tensor {} that has no elements is used", describe(data.spec)),
               .expected = "a tensor that a call has computed",
               .got = "one that stood for a gradient while compile() noted what a rule "
                      "(custom_gradient) does, and that the rule has kept",
               .fix = "Return it from the rule, or call the compiled function by eager()."});
}

}  // namespace

void* TensorData::settled_address() const {
  void* const address = unsettled_address();
  if (storage) settle(*storage);
  return address;
}

void* TensorData::other_address() const {
  if (is_number()) return const_cast<uint64_t*>(&number);  // NOLINT: never written
  materialise(*this);
  if (memory.load(std::memory_order_acquire) != Memory::here) throw_without_elements(*this);
  return memory_address();
}

HostElements::HostElements(const TensorData& data) : data_(data), first_(nullptr) {
  if (element_count(data.spec.shape) == 0) return;
  first_ = static_cast<const std::byte*>(data.address());
  Backend* const backend = data.storage ? data.storage->backend : nullptr;
  if (backend == nullptr) return;
  const auto size = static_cast<int64_t>(size_of(data.spec.dtype));
  const Extent extent = extent_of(data.spec.shape, data.strides);
  const auto bytes = static_cast<std::size_t>(extent.count() * size);
  copy_.reset(new std::byte[bytes]);  // not initialised
  backend->download(first_ - extent.before * size, copy_.get(), bytes);
  first_ = copy_.get() + extent.before * size;
}

const std::byte* HostElements::at(const Dims& indices) const {
  int64_t offset = 0;
  for (int i = 0; i < indices.size(); ++i) offset += indices[i] * data_.strides[i];
  return first_ + offset * static_cast<int64_t>(size_of(data_.spec.dtype));
}

void HostElements::copy_to(std::byte* to) const {
  copy_elements(data_.spec.shape, data_.strides, size_of(data_.spec.dtype), first_, to);
}

uint64_t first_element(const Tensor& tensor) {
  const HostElements elements(tensor.internals());
  uint64_t bits = 0;
  std::memcpy(&bits, elements.first(), size_of(tensor.dtype()));
  return bits;
}

}  // namespace nitinol
