#include "core/host_access.h"

#include "core/backend.h"
#include "core/error.h"
#include "core/pending.h"

#include <fmt/format.h>

#include <cstring>

namespace nitinol {
namespace {

/// A run of `count` elements, `step` bytes apart.
template <std::size_t size>
void copy_run(const std::byte* from, int64_t step, std::byte* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to, from, size);
    from += step;
    to += size;
  }
}

void copy_run(std::size_t size, const std::byte* from, int64_t step, std::byte* to, int64_t count) {
  if (step == static_cast<int64_t>(size)) {
    std::memcpy(to, from, size * static_cast<std::size_t>(count));
    return;
  }
  switch (size) {
    case 1:
      return copy_run<1>(from, step, to, count);
    case 2:
      return copy_run<2>(from, step, to, count);
    case 4:
      return copy_run<4>(from, step, to, count);
    default:
      return copy_run<8>(from, step, to, count);
  }
}

/// Elements before and after the first one that a view looks at.
struct Extent {
  int64_t before = 0;
  int64_t after = 0;
};

Extent extent_of(const Shape& shape, const Strides& strides) {
  Extent extent;
  for (int i = 0; i < shape.size(); ++i) {
    const int64_t reach = (shape[i] - 1) * strides[i];
    (reach < 0 ? extent.before : extent.after) += reach < 0 ? -reach : reach;
  }
  return extent;
}

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
  const auto bytes = static_cast<std::size_t>((extent.before + 1 + extent.after) * size);
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
  const Shape& shape = data_.spec.shape;
  const std::size_t size = size_of(data_.spec.dtype);
  const int64_t count = element_count(shape);
  if (count == 0) return;
  if (is_contiguous(shape, data_.strides)) {
    std::memcpy(to, first_, size * static_cast<std::size_t>(count));
    return;
  }
  // Not contiguous, so there is a last dimension; the ones before it count like an odometer.
  const int inner = shape.size() - 1;
  const int64_t run = shape[inner];
  const int64_t step = data_.strides[inner] * static_cast<int64_t>(size);
  Dims indices = Dims::filled(shape.size(), 0);
  for (int64_t done = 0; done < count; done += run) {
    copy_run(size, at(indices), step, to, run);
    to += static_cast<std::size_t>(run) * size;
    for (int i = inner - 1; i >= 0 && ++indices[i] == shape[i]; --i) indices[i] = 0;
  }
}

uint64_t first_element(const Tensor& tensor) {
  const HostElements elements(tensor.internals());
  uint64_t bits = 0;
  std::memcpy(&bits, elements.first(), size_of(tensor.dtype()));
  return bits;
}

}  // namespace nitinol
