#include "tests/backends/kernels.h"

#include "core/formula.h"
#include "core/kernel.h"
#include "core/launch.h"
#include "core/library.h"
#include "fusion/one_op.h"

#include <utility>

namespace nitinol::test {

Kernel reduction(Combine combine, DType input, DType output, Order order, StrideClass inner,
                 StrideClass outer) {
  const ScalarType type = compute_type(input);
  const ScalarType total = is_arg(combine) ? ScalarType::i64 : type;
  Kernel kernel;
  kernel.order = order;
  kernel.operands = {{.role = Role::input, .dtype = input, .inner = inner},
                     {.role = Role::output, .dtype = output, .inner = outer}};
  kernel.reductions = {{.combine = combine, .type = type}};
  Stage elements = {.level = Stage::Level::element,
                    .program = {},
                    .sources = {{Source::Kind::operand, 0}},
                    .sinks = {{Sink::Kind::accumulate, 0, 0}}};
  static_cast<void>(argument(elements.program, type, 0));
  Stage rows = {.level = Stage::Level::row,
                .program = {},
                .sources = {{Source::Kind::reduction, 0}},
                .sinks = {}};
  const Expr rounded = rounded_to(output, argument(rows.program, total, 0));
  rows.sinks.push_back({Sink::Kind::store, 1, rounded.id});
  kernel.stages = {std::move(elements), std::move(rows)};
  return kernel;
}

Kernel elementwise(const Op& op, std::span<const Operand> operands) {
  std::vector<Tensor> tensors;
  for (const Operand& operand : operands) {
    Spec spec = {.dtype = operand.dtype, .shape = {5}, .is_weak = false, .device = {}};
    const int64_t stride = operand.inner == StrideClass::zero  ? 0
                           : operand.inner == StrideClass::one ? 1
                                                               : 3;
    if (operand.role == Role::scalar) {
      spec.shape = {};
      tensors.push_back(make_number(spec, 0));
    } else {
      tensors.push_back(make_tensor(spec, {stride}, 0, {}));
    }
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : tensors) inputs.push_back(&tensor);
  inputs.pop_back();
  return fusion::lower_op(op, inputs, {}, tensors.back());
}

Kernel lookup(std::span<const Operand> operands) {
  Kernel kernel;
  kernel.operands.assign(operands.begin(), operands.end());
  Stage& stage = kernel.stages.emplace_back();
  std::vector<Expr> arguments;
  for (uint16_t k = 0; k < 3; ++k) {
    stage.sources.push_back({Source::Kind::operand, k});
    arguments.push_back(argument(stage.program, ScalarType::i64, k));
  }
  const Row row = row_of(arguments[0], arguments[1], arguments[2]);
  stage.sinks.push_back({Sink::Kind::check, Status::index_out_of_range, row.exists.id});
  stage.sinks.push_back({Sink::Kind::store, 4, element_at(row, 3, operands[3].dtype).id});
  return kernel;
}

void Call::run(const Step& step, Device::Kind kind, Status* status) const {
  const std::shared_ptr<const Executable> executable =
      executable_for(backend({.kind = kind, .index = 0}), step);
  if (!is_specialised) return executable->launch(launch(status));
  const std::vector<void*> none(buffers.size(), nullptr);
  Launch example = launch();
  example.buffers = none;
  const std::unique_ptr<const Executable> specialised = executable->specialise({&example, 1});
  (specialised ? *specialised : *executable).launch(launch(status));
}

}  // namespace nitinol::test
