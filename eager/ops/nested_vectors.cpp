#include "eager/ops/nested_vectors.h"

#include "core/error.h"
#include "eager/ops/view.h"

#include <fmt/format.h>

namespace nitinol {

void FlatVectorsBase::note_length(int level, std::size_t length) {
  const auto size = static_cast<int64_t>(length);
  if (level == shape_.size()) return shape_.push_back(size);
  if (shape_[level] == size) return;
  throw Error(ErrorKind::shape, {.where = "tensor",
                                 .what = fmt::format("vectors of level {} differ", level),
                                 .expected = fmt::format("one of {}", shape_[level]),
                                 .got = fmt::format("one of {}", size),
                                 .fix = "Give all rows the same length."});
}

Tensor FlatVectorsBase::shaped(const Tensor& numbers) const {
  Shape shape = shape_;
  while (shape.size() < levels_) shape.push_back(0);  // below an empty one
  return reshape(numbers, shape);
}

}  // namespace nitinol
