#include "eager/ops/infer.h"

#include <fmt/format.h>

namespace nitinol {

std::string to_string(DTypes dtypes) {
  std::string text;
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!dtypes.contains(dtype)) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(dtype));
  }
  return text;
}

void check_dtype(const Op& op, const Tensor& x) {
  if (op.accepts.contains(x.dtype())) return;
  const bool wants_floats = !op.accepts.contains(i32) && !op.accepts.contains(boolean);
  const bool wants_numbers = op.accepts.contains(i32);
  const std::string_view to = wants_floats ? "f32" : wants_numbers ? "i32" : "boolean";
  throw Error(ErrorKind::dtype, {.where = std::string(op.name),
                                 .what = fmt::format("not defined for {}", describe(x)),
                                 .expected = to_string(op.accepts),
                                 .got = std::string(name_of(x.dtype())),
                                 .fix = fmt::format("Cast it first: x.to({}).", to)});
}

Device common_device(const Op& op, Inputs inputs) {
  if (inputs.empty()) return {};
  const Device device = inputs[0]->device();
  for (const Tensor* input : inputs) {
    if (input->device() == device) continue;
    throw Error(ErrorKind::device,
                {.where = std::string(op.name),
                 .what = fmt::format("operands {} and {} are on different devices",
                                     describe(*inputs[0]), describe(*input)),
                 .expected = "all on one device",
                 .got = "two devices",
                 .fix = "Copy one of them to the other's device."});
  }
  return device;
}

Spec infer_elementwise(const Op& op, Inputs inputs, const Attrs&) {
  const Spec& last = inputs.back()->spec();
  check_dtype(op, *inputs.back());
  Spec spec = {.dtype = op.is_predicate ? boolean : last.dtype,
               .shape = last.shape,
               .is_weak = true,
               .device = common_device(op, inputs)};
  for (const Tensor* input : inputs) {
    const Spec& given = input->spec();
    spec.is_weak = spec.is_weak && given.is_weak;
    if (given.dtype != last.dtype) {
      throw Error(ErrorKind::dtype,
                  {.where = std::string(op.name),
                   .what = fmt::format("operands {} and {}", describe(given), describe(last)),
                   .expected = "one dtype",
                   .got = "two",
                   .fix = "Cast one of them."});
    }
  }
  for (std::size_t k = inputs.size(); k-- > 0;) {
    if (inputs[k]->shape() == spec.shape) continue;
    spec.shape = broadcast_shapes(op.name, inputs[k]->shape(), spec.shape);
  }
  return spec;
}

Spec infer_create(const Op& op, Inputs inputs, const Attrs& attrs) {
  for (const Tensor* input : inputs) check_dtype(op, *input);
  return {.dtype = attr<DType>(attrs, 1),
          .shape = attr<Dims>(attrs, 0),
          .is_weak = false,
          .device = common_device(op, inputs)};
}

}  // namespace nitinol
