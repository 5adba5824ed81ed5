// What the stages of a kernel in the making compute: members, and the numbers they are made with.
//
// A member that an earlier pass over the row computed too is computed again (its operands are in
// cache), or kept in scratch if that takes long.
#include "core/error.h"
#include "core/launch.h"
#include "fusion/draft.h"
#include "fusion/groups.h"

namespace nitinol::fusion {
namespace {

using Level = Stage::Level;

/// Holds the values in their compute type.
DType kept_dtype(const Draft& draft, const Member& member) {
  const DType dtype = draft.graph[member.value].spec.dtype;
  return dtype == f16 || dtype == bf16 ? f32 : dtype;
}

/// True if an earlier stage has computed the member, and computing it again would take long.
bool is_worth_keeping(const Draft& draft, const Member& member) {
  const auto found = draft.computed.find(member.value);
  if (draft.group.order != Order::lanes || draft.now.stage.level != Level::element ||
      found == draft.computed.end())
    return false;
  const int64_t bytes =
      row_length(draft.group) * static_cast<int64_t>(size_of(kept_dtype(draft, member)));
  return found->second.instructions > draft.limits.cheap_instructions &&
         bytes <= draft.limits.kept_row_bytes;
}

/// The scratch operand that holds the member, which the stage that computed it stores.
uint16_t keep(Draft& draft, const Member& member) {
  const auto [kept, is_new] = draft.scratch.try_emplace(member.value);
  if (!is_new) return kept->second;
  kept->second = add_scratch(draft, kept_dtype(draft, member));
  const Computed& computed = draft.computed.at(member.value);
  draft.out.kernel.stages[computed.stage].sinks.push_back(
      {Sink::Kind::store, kept->second, computed.value});
  return kept->second;
}

Row row_looked_up(Draft& draft, const Member& member) {
  if (const auto found = draft.now.looked_up.find(member.value); found != draft.now.looked_up.end())
    return found->second;
  const Expr index = value_of(draft, draft.graph[member.value].inputs[1], &member);
  auto known = draft.tables.find(member.value);
  if (known == draft.tables.end())
    known = draft.tables.emplace(member.value, add_table(draft, member)).first;
  const Expr rows = operand_source(draft.now, known->second.rows, i64);
  const Expr step = operand_source(draft.now, known->second.step, i64);
  return draft.now.looked_up[member.value] = row_of(index, rows, step);
}

/// The formula of `v`, which is `member`; or a number if that is null.
Expr formula(Draft& draft, Value v, const Member* member) {
  const Node& node = draft.graph[v];
  if (node.op->lookup != nullptr) {
    const Row row = row_looked_up(draft, *member);
    return element_at(row, draft.tables.at(v).elements, node.spec.dtype);
  }
  const Member self = {
      .value = v, .level = draft.now.stage.level, .stage = draft.now.pass, .maps = {}};
  const Member& reader = member != nullptr ? *member : self;
  std::vector<Expr> arguments;
  if (node.op->kind == OpKind::create) arguments.push_back(position(draft, reader));
  // One op alone has native loops, which look at the number themselves.
  const bool is_alone = draft.group.members.size() == 1;
  const NodeFormula formula = is_alone ? NodeFormula{node.op->formula.emit, node.inputs.size()}
                                       : formula_of(draft.graph, node);
  for (std::size_t k = 0; k < formula.arguments; ++k)
    arguments.push_back(value_of(draft, node.inputs[k], &reader));
  return as_stored(formula.emit(arguments), node.spec.dtype);
}

/// The result of the member, which reduces.
Expr total_of(Draft& draft, const Member& member) {
  const uint16_t index = draft.reductions.at(member.value);
  const Reduction& reduction = draft.out.kernel.reductions[index];
  const ScalarType type = is_arg(reduction.combine) ? ScalarType::i64 : reduction.type;
  const Expr total = source(draft.now, {Source::Kind::reduction, index}, type);
  return rounded_to(draft.graph[member.value].spec.dtype, total);
}

Expr computed(Draft& draft, const Member& member) {
  const Stage& stage = draft.now.stage;
  const std::size_t before = stage.program.instrs.size();
  const Expr result = formula(draft, member.value, &member);
  if (stage.level == Level::element) {
    draft.computed[member.value] = {.stage = draft.out.kernel.stages.size(),
                                    .value = result.id,
                                    .instructions = stage.program.instrs.size() - before};
  }
  return result;
}

Expr value_of_member(Draft& draft, const Member& member) {
  if (const auto found = draft.now.values.find(member.value); found != draft.now.values.end())
    return found->second;
  const Node& node = draft.graph[member.value];
  const auto kept = draft.row_values.find(member.value);
  Expr result = {};
  if (node.op->kind == OpKind::reduce)
    result = total_of(draft, member);
  else if (kept != draft.row_values.end())
    result =
        source(draft.now, {Source::Kind::row_value, kept->second}, compute_type(node.spec.dtype));
  else if (is_worth_keeping(draft, member))
    result = operand_source(draft.now, keep(draft, member), kept_dtype(draft, member));
  else
    result = computed(draft, member);
  draft.now.values[member.value] = result;
  return result;
}

}  // namespace

Expr value_of(Draft& draft, Value v, const Member* reader) {
  const Value base = draft.fusion.bases[v];
  if (const Member* member = draft.group.find(base)) return value_of_member(draft, *member);
  if (is_number(draft.graph[v])) return number(draft, v);
  if (draft.fusion.is_recomputed[v]) return formula(draft, v, nullptr);
  NITINOL_ASSERT(reader != nullptr, "what is read from memory is read for a member");
  return loaded(draft, v, *reader);
}

void write_check(Draft& draft, const Member& member) {
  const Node& node = draft.graph[member.value];
  std::vector<Sink>& sinks = draft.now.stage.sinks;
  if (node.op->lookup != nullptr) {
    const Expr exists = row_looked_up(draft, member).exists;
    sinks.push_back({Sink::Kind::check, Status::index_out_of_range, exists.id});
    return;
  }
  std::vector<Expr> arguments;
  for (const Value input : node.inputs) arguments.push_back(value_of(draft, input, &member));
  const Expr holds = node.op->check.emit(arguments, compute_type(node.spec.dtype));
  sinks.push_back({Sink::Kind::check, node.op->check.code, holds.id});
}

}  // namespace nitinol::fusion
