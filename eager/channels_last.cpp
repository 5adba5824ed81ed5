#include "eager/channels_last.h"

#include "eager/all_ops.h"
#include "eager/apply.h"

namespace nitinol {

Tensor channels_last(const Tensor& x) {
  return apply(ops::permute(), {&x}, {Dims{0, 2, 3, 1}});
}

Tensor channels_first(const Tensor& x) {
  return apply(ops::permute(), {&x}, {Dims{0, 3, 1, 2}});
}

}  // namespace nitinol
