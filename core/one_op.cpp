#include "core/one_op.h"

#include "core/formula.h"
#include "core/launch.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

Operand operand(Role role, DType dtype, StrideClass inner) {
  return {.role = role, .dtype = dtype, .inner = inner, .alias = -1};
}

/// A stage with one source and the argument that stands for it.
std::pair<Stage, Expr> stage_reading(Stage::Level level, Source source, ScalarType type) {
  std::pair<Stage, Expr> result = {
      Stage{.level = level, .program = {}, .sources = {source}, .sinks = {}}, Expr{}};
  result.second = argument(result.first.program, type, 0);
  return result;
}

}  // namespace

Kernel elementwise_kernel(const Op& op, std::span<const Operand> operands) {
  Kernel kernel;
  kernel.operands.assign(operands.begin(), operands.end());
  const std::size_t output = operands.size() - 1;
  const DType result = operands[output].dtype;
  Stage& stage = kernel.stages.emplace_back();
  std::vector<Expr> arguments;
  for (const Operand& source : operands.first(output)) {
    const auto index = static_cast<uint16_t>(arguments.size());
    stage.sources.push_back({Source::Kind::operand, index});
    arguments.push_back(argument(stage.program, compute_type(source.dtype), index));
  }
  const Expr value = apply_formula(op, arguments, result);
  stage.sinks.push_back({Sink::Kind::store, static_cast<uint16_t>(output), value.id});
  if (op.check.emit != nullptr) {
    const ScalarType type = compute_type(result);
    stage.sinks.push_back({Sink::Kind::check, op.check.code, op.check.emit(arguments, type).id});
    kernel.prebuilt.check = op.check.loops(compute_type(operands[output - 1].dtype), type);
  }
  if (op.formula.loops != nullptr) {
    const ScalarType last = compute_type(operands[output - 1].dtype);
    // What is stored as f16 or bf16 rounds once: by way of a f32 that was rounded to odd.
    const bool is_short = (result == f16 || result == bf16) && last != ScalarType::f32;
    kernel.prebuilt.loops =
        op.formula.loops(last, is_short ? ScalarType::u16 : compute_type(result));
  }
  return kernel;
}

Kernel lookup_kernel(std::span<const Operand> operands) {
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
  const Expr element = element_at(row, 3, operands[3].dtype);
  stage.sinks.push_back({Sink::Kind::store, 4, element.id});
  return kernel;
}

Kernel reduction_kernel(const Op& op, DType input, DType result, Order order,
                        StrideClass input_class, StrideClass output_class) {
  Kernel kernel;
  kernel.order = order;
  kernel.operands = {operand(Role::input, input, input_class),
                     operand(Role::output, result, output_class)};
  const ScalarType type = compute_type(input);
  kernel.reductions = {{.combine = op.combine, .type = type}};
  auto [elements, element] = stage_reading(Stage::Level::element, {Source::Kind::operand, 0}, type);
  elements.sinks.push_back({Sink::Kind::accumulate, 0, element.id});
  kernel.stages.push_back(std::move(elements));
  auto [rows, total] = stage_reading(Stage::Level::row, {Source::Kind::reduction, 0},
                                     is_arg(op.combine) ? ScalarType::i64 : type);
  const Expr rounded = rounded_to(result, {&rows.program, total.id, total.type});
  rows.sinks.push_back({Sink::Kind::store, 1, rounded.id});
  kernel.stages.push_back(std::move(rows));
  return kernel;
}

Order reduction_order_for(const Shape& shape, const Dims& axes) {
  for (int i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    return std::ranges::find(axes, i) != axes.end() ? Order::lanes : Order::sequential;
  }
  return Order::lanes;
}

}  // namespace nitinol
