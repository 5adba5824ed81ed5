#include "backends/host/prebuilt.h"

#include "backends/host/prebuilt_stages.h"
#include "core/formula.h"

namespace nitinol::host {

bool is_identity(const Stage& stage, DType dtype) {
  if (stage.sources.size() != 1 || stage.sinks.size() != 1) return false;
  ScalarProgram program;
  const Expr value = argument(program, compute_type(dtype), 0);
  if (stage.program == program && stage.sinks[0].value == value.id) return true;
  const Expr rounded = rounded_to(dtype, value);
  return stage.program == program && stage.sinks[0].value == rounded.id;
}

std::optional<SignChange> sign_change_of(const Stage& stage, DType dtype) {
  if (stage.sources.size() != 1 || stage.sinks.size() != 1) return {};
  if (dtype != f16 && dtype != bf16) return {};
  const auto is_only = [&](ScalarOp op) {
    ScalarProgram program;
    const Expr value = argument(program, ScalarType::f32, 0);
    const Expr changed = emit(program, {.op = op, .type = value.type, .a = value.id});
    const Expr rounded = rounded_to(dtype, changed);
    return stage.program == program && stage.sinks[0].value == rounded.id;
  };
  if (is_only(ScalarOp::neg)) return SignChange::flip;
  if (is_only(ScalarOp::abs)) return SignChange::drop;
  return {};
}

std::unique_ptr<Executable> make_prebuilt(const Kernel& kernel) {
  if (kernel.order == Order::turned) return nullptr;
  if (kernel.order != Order::none) return make_prebuilt_reduction(kernel);
  if (auto copy = make_prebuilt_copy(kernel)) return copy;
  if (auto lookup = make_prebuilt_lookup(kernel)) return lookup;
  return make_prebuilt_loop(kernel);
}

}  // namespace nitinol::host
