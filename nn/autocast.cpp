#include "nn/autocast.h"

#include "core/error.h"

#include <string>

namespace nitinol::nn {

DType Autocast::checked(DType dtype) {
  if (is_cast_freely(dtype)) return dtype;
  throw Error(ErrorKind::dtype, {.where = "autocast",
                                 .what = "what products are to be computed in",
                                 .expected = "bfloat16, float16, or float32, which ends a scope",
                                 .got = std::string(name_of(dtype)),
                                 .fix = "bfloat16 has float32's range and needs no LossScale."});
}

}  // namespace nitinol::nn
