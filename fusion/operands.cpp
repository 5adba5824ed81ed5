// Operands of a kernel in the making: each with its origin, and strides over the group's loops.
#include "core/host_access.h"
#include "fusion/draft.h"
#include "fusion/pieces.h"

#include <algorithm>

namespace nitinol::fusion {
namespace {

OperandOrigin memory(Value value, int64_t offset) {
  return {.kind = OperandOrigin::Kind::memory, .value = value, .offset = offset, .bits = 0};
}

OperandOrigin constant(uint64_t bits) {
  return {.kind = OperandOrigin::Kind::constant, .value = 0, .offset = 0, .bits = bits};
}

/// Strides over the loops of what is walked by `access` over the domain, or over the rows.
Dims over_loops(const Draft& draft, const Access& access, bool is_element) {
  const Group& group = draft.group;
  Strides strides = squeezed(access);
  if (!is_element) {
    for (int i = 0; i < group.reduced.size(); ++i) strides.push_back(0);
    return strides;
  }
  while (strides.size() < group.domain.size()) strides.push_back(0);  // a reduced dimension of one
  Dims loops;
  for (const int axis : draft.rows) loops.push_back(strides[axis]);
  for (const int64_t axis : group.reduced) loops.push_back(strides[static_cast<int>(axis)]);
  return loops;
}

uint16_t add(Draft& draft, Role role, DType dtype, const OperandOrigin& origin,
             const Dims& strides) {
  Lowered& out = draft.out;
  out.kernel.operands.push_back(
      {.role = role, .dtype = dtype, .inner = StrideClass::zero, .alias = -1});
  out.origins.push_back(origin);
  draft.strides.push_back(strides);
  return static_cast<uint16_t>(out.origins.size() - 1);
}

/// Of equal operands there is one.
uint16_t find_or_add(Draft& draft, Role role, DType dtype, const OperandOrigin& origin,
                     const Dims& strides) {
  for (std::size_t i = 0; i < draft.strides.size(); ++i) {
    const OperandOrigin& known = draft.out.origins[i];
    if (draft.out.kernel.operands[i].role == role && known.value == origin.value &&
        known.offset == origin.offset && draft.strides[i] == strides) {
      return static_cast<uint16_t>(i);
    }
  }
  return add(draft, role, dtype, origin, strides);
}

}  // namespace

Expr source(StageDraft& stage, Source from, ScalarType type) {
  stage.stage.sources.push_back(from);
  return argument(stage.stage.program, type, static_cast<uint32_t>(stage.stage.sources.size() - 1));
}

Expr operand_source(StageDraft& stage, uint16_t operand, DType dtype) {
  const auto [found, is_new] = stage.arguments.try_emplace(operand);
  if (is_new) found->second = source(stage, {Source::Kind::operand, operand}, compute_type(dtype));
  return found->second;
}

uint16_t add_scratch(Draft& draft, DType dtype) {
  Shape shape;
  for (const int64_t size : draft.sizes) shape.push_back(size);
  return add(draft, Role::scratch, dtype,
             {.kind = OperandOrigin::Kind::scratch, .value = 0, .offset = 0, .bits = 0},
             strides_of(shape));
}

Table add_table(Draft& draft, const Member& member) {
  const Value from = draft.graph[member.value].inputs[0];
  const LookedUp found = *looked_up(draft.graph, member);
  const auto add_number = [&](int64_t bits) {
    return add(draft, Role::scalar, i64, constant(static_cast<uint64_t>(bits)), {});
  };
  Table table = {.rows = add_number(found.rows), .step = add_number(found.step), .elements = 0};
  table.elements = add(draft, Role::input, draft.graph[from].spec.dtype,
                       memory(draft.fusion.bases[from], found.access.offset),
                       over_loops(draft, found.access, member.level == Stage::Level::element));
  return table;
}

Expr number(Draft& draft, Value v) {
  const Node& node = draft.graph[v];
  const auto [known, is_new] = draft.scalars.try_emplace(v);
  if (is_new) {
    OperandOrigin origin = {
        .kind = OperandOrigin::Kind::scalar, .value = v, .offset = 0, .bits = 0};
    if (node.kind == Node::Kind::constant) origin = constant(first_element(node.constant));
    known->second = add(draft, Role::scalar, node.spec.dtype, origin, {});
  }
  return operand_source(draft.now, known->second, node.spec.dtype);
}

Expr loaded(Draft& draft, Value v, const Member& reader) {
  const Value base = draft.fusion.bases[v];
  const Access access = *leaf_access(draft.graph, reader, v);
  const DType dtype = draft.graph[base].spec.dtype;
  const bool reads_elements =
      reader.level == Stage::Level::element || draft.graph[reader.value].op->kind == OpKind::reduce;
  const uint16_t operand = find_or_add(draft, Role::input, dtype, memory(base, access.offset),
                                       over_loops(draft, access, reads_elements));
  return operand_source(draft.now, operand, dtype);
}

Expr position(Draft& draft, const Member& member) {
  const Access access = *position_access(draft.graph, member);
  const OperandOrigin origin = {
      .kind = OperandOrigin::Kind::position, .value = 0, .offset = access.offset, .bits = 0};
  const uint16_t operand =
      find_or_add(draft, Role::position, i64, origin,
                  over_loops(draft, access, member.level == Stage::Level::element));
  return operand_source(draft.now, operand, i64);
}

void write_store(Draft& draft, const Member& member, const Expr& result) {
  const Node& node = draft.graph[member.value];
  const Piece place = place_of(draft.graph, draft.fusion.pieces, member.value);
  const Access access = *through(place.access, member.maps, node.spec.dtype);
  const uint16_t operand =
      add(draft, Role::output, node.spec.dtype, memory(place.whole, access.offset),
          over_loops(draft, access, member.level == Stage::Level::element));
  draft.now.stage.sinks.push_back({Sink::Kind::store, operand, result.id});
}

}  // namespace nitinol::fusion
