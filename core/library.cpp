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
    case LibraryCall::Kind::permutation:
      return "permutation";
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
    case LibraryCall::Kind::collective:
      return "collective";
  }
  return "?";
}

namespace {

double elements_of(const OperandLayout& operand) {
  return static_cast<double>(element_count(operand.shape));
}

/// Of a convolution with these images of its result.
double convolution_operations(const OperandLayout& weight, const OperandLayout& images) {
  if (weight.shape[0] == 0) return 0;
  return 2 * elements_of(images) * elements_of(weight) / static_cast<double>(weight.shape[0]);
}

}  // namespace

double operations_of(const LibraryCall& call) {
  using Kind = LibraryCall::Kind;
  const std::vector<OperandLayout>& operands = call.operands;
  switch (call.kind) {
    case Kind::matmul:
    case Kind::packed_matmul: {
      const Shape& a = operands[0].shape;
      return 2 * elements_of(operands[2]) * static_cast<double>(a[a.size() - 1]);
    }
    case Kind::conv2d:
    case Kind::packed_conv2d:
      return convolution_operations(operands[1], operands[2]);
    case Kind::conv2d_input:
      return convolution_operations(operands[1], operands[0]);
    case Kind::conv2d_weight:
      return convolution_operations(operands[2], operands[1]);
    case Kind::window_max:
      return elements_of(operands[2]) *
             static_cast<double>(call.windows.kernel[0] * call.windows.kernel[1]);
    case Kind::scan:
    case Kind::scatter_add:
    case Kind::scatter_add_along:
      return elements_of(operands[0]);
    case Kind::pack:
    case Kind::pack_filter:
    case Kind::scatter:
    case Kind::sort:
    case Kind::argsort:
    case Kind::search:
    case Kind::compress:
    case Kind::positions:
    case Kind::permutation:
    case Kind::window_max_input:
    case Kind::routine:
    case Kind::collective:
      break;
  }
  return 0;
}

}  // namespace nitinol
