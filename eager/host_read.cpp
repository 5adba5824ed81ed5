#include "eager/host_read.h"

#include "core/dtype.h"
#include "core/shape.h"

#include <cstdint>
#include <cstring>

namespace nitinol::eager {
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

}  // namespace

const TensorData& host_read(const Tensor& tensor, const ReadSite& site) {
  const TensorData& data = tensor.internals();
  current().read(tensor, site);
  return data;
}

const std::byte* element_at(const TensorData& data, const Dims& indices) {
  int64_t offset = 0;
  for (int i = 0; i < indices.size(); ++i) offset += indices[i] * data.strides[i];
  return static_cast<const std::byte*>(data.address()) +
         offset * static_cast<int64_t>(size_of(data.spec.dtype));
}

void copy_elements(const TensorData& from, std::byte* to) {
  const Shape& shape = from.spec.shape;
  const std::size_t size = size_of(from.spec.dtype);
  const int64_t count = element_count(shape);
  if (count == 0) return;
  if (is_contiguous(shape, from.strides)) {
    std::memcpy(to, from.address(), size * static_cast<std::size_t>(count));
    return;
  }
  // Not contiguous, so there is a last dimension; the ones before it count like an odometer.
  const int inner = shape.size() - 1;
  const int64_t run = shape[inner];
  const int64_t step = from.strides[inner] * static_cast<int64_t>(size);
  Dims indices = Dims::filled(shape.size(), 0);
  for (int64_t done = 0; done < count; done += run) {
    copy_run(size, element_at(from, indices), step, to, run);
    to += static_cast<std::size_t>(run) * size;
    for (int i = inner - 1; i >= 0 && ++indices[i] == shape[i]; --i) indices[i] = 0;
  }
}

}  // namespace nitinol::eager
