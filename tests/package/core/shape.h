// The user's own core/shape.h, which has nothing to do with tensors.
#pragma once

namespace consumer {

enum class Shape { circle, square };

}  // namespace consumer
