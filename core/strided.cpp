#include "core/strided.h"

#include "core/copy_bytes.h"

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
    copy_bytes(to, from, size * static_cast<std::size_t>(count));
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

Extent extent_of(const Shape& shape, const Strides& strides) {
  Extent extent;
  for (int i = 0; i < shape.size(); ++i) {
    const int64_t reach = (shape[i] - 1) * strides[i];
    (reach < 0 ? extent.before : extent.after) += reach < 0 ? -reach : reach;
  }
  return extent;
}

void copy_elements(const Shape& shape, const Strides& strides, std::size_t size,
                   const std::byte* first, std::byte* to) {
  const int64_t count = element_count(shape);
  if (count == 0) return;
  if (is_contiguous(shape, strides)) {
    copy_bytes(to, first, size * static_cast<std::size_t>(count));
    return;
  }
  // Not contiguous, so there is a last dimension; the ones before it count like an odometer.
  const int inner = shape.size() - 1;
  const int64_t run = shape[inner];
  const int64_t step = strides[inner] * static_cast<int64_t>(size);
  Dims indices = Dims::filled(shape.size(), 0);
  for (int64_t done = 0; done < count; done += run) {
    int64_t offset = 0;
    for (int i = 0; i < inner; ++i) offset += indices[i] * strides[i];
    copy_run(size, first + offset * static_cast<int64_t>(size), step, to, run);
    to += static_cast<std::size_t>(run) * size;
    for (int i = inner - 1; i >= 0 && ++indices[i] == shape[i]; --i) indices[i] = 0;
  }
}

}  // namespace nitinol
