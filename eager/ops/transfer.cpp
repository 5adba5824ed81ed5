#include "eager/ops/transfer.h"

#include "core/variable.h"
#include "eager/apply.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"

#include <array>

namespace nitinol {
namespace {

constexpr std::array<std::string_view, 2> transfer_attrs = {"kind", "index"};

Spec infer_transfer(const Op&, Inputs inputs, const Attrs& attrs) {
  Spec spec = inputs[0]->spec();
  spec.is_weak = false;
  spec.device = {.kind = static_cast<Device::Kind>(attr<int64_t>(attrs, 0)),
                 .index = static_cast<int8_t>(attr<int64_t>(attrs, 1))};
  return spec;
}

Tensor transfer_rule(const GradientCall& c, int) {
  return to(c.gradient, c.input_specs[0].device);
}

constexpr auto transfers = family({
    {.name = "transfer",
     .kind = OpKind::transfer,
     .attr_names = transfer_attrs,
     .infer = infer_transfer,
     .gradient = {.rule = transfer_rule},
     .summary = "The same elements on another device."},
});

}  // namespace

Tensor to(const Tensor& x, Device device) {
  if (x.device() == device && !x.spec().is_weak) return x;
  return apply(transfers["transfer"], {&x},
               {static_cast<int64_t>(device.kind), static_cast<int64_t>(device.index)});
}

Tensor Tensor::to(Device device) const {
  return nitinol::to(*this, device);
}

std::span<const Op> transfer_ops() {
  return transfers.ops;
}

}  // namespace nitinol
