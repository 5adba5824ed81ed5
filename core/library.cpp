#include "core/library.h"

namespace nitinol {

int64_t Windows::count(int axis, int64_t size) const {
  const auto i = static_cast<std::size_t>(axis);
  const int64_t room = size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
  return room < 0 ? 0 : room / stride[i] + 1;
}

int64_t Windows::reach(int axis, int64_t count) const {
  const auto i = static_cast<std::size_t>(axis);
  return (count - 1) * stride[i] - padding[i] + dilation[i] * (kernel[i] - 1) + 1;
}

std::string_view name_of(LibraryCall::Kind kind) {
  switch (kind) {
    case LibraryCall::Kind::matmul:
      return "matmul";
    case LibraryCall::Kind::pack:
      return "pack";
    case LibraryCall::Kind::packed_matmul:
      return "packed_matmul";
    case LibraryCall::Kind::scatter_add:
      return "scatter_add";
    case LibraryCall::Kind::scatter:
      return "scatter";
    case LibraryCall::Kind::scatter_add_along:
      return "scatter_add_along";
    case LibraryCall::Kind::scan:
      return "scan";
    case LibraryCall::Kind::sort:
      return "sort";
    case LibraryCall::Kind::argsort:
      return "argsort";
    case LibraryCall::Kind::search:
      return "search";
    case LibraryCall::Kind::compress:
      return "compress";
    case LibraryCall::Kind::positions:
      return "positions";
    case LibraryCall::Kind::conv2d:
      return "conv2d";
    case LibraryCall::Kind::conv2d_input:
      return "conv2d_input";
    case LibraryCall::Kind::conv2d_weight:
      return "conv2d_weight";
    case LibraryCall::Kind::pack_filter:
      return "pack_filter";
    case LibraryCall::Kind::packed_conv2d:
      return "packed_conv2d";
    case LibraryCall::Kind::window_max:
      return "window_max";
    case LibraryCall::Kind::window_max_input:
      return "window_max_input";
    case LibraryCall::Kind::routine:
      return "routine";
  }
  return "?";
}

}  // namespace nitinol
