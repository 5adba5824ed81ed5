// A member may read memory, numbers, positions, and other members. Memory and positions must be
// walked through by strides, with the reduced axes as one loop; of other members only the value at
// the present point, or of the present row, is at hand.
//
// The limits are on what costs more than linearly, or not at all, beyond them: a kernel of 1,000
// instructions takes 30 ms to compile, and streams beyond 24 outnumber the registers that hold
// their addresses.
#include "fusion/nest_rules.h"

#include "core/formula.h"
#include "fusion/groups.h"

#include <algorithm>

namespace nitinol::fusion {
namespace {

constexpr std::size_t most_streams = 24;
/// Views of a stream cost a register that is soon free again; a kernel has 128 operands.
constexpr std::size_t most_reads = 64;
constexpr std::size_t most_numbers = 40;
constexpr std::size_t most_instructions = 1024;
constexpr std::size_t instructions_of_lookup = 12;
constexpr std::size_t numbers_of_lookup = 2;  ///< how many rows, and their distance
/// Several passes over one long row would be neither parallel nor in cache.
constexpr int64_t longest_lone_row = 65536;

void add_once(std::vector<Value>& list, Value value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

}  // namespace

void Contents::add(const Contents& other) {
  for (const Value v : other.streams) add_once(streams, v);
  for (const Value v : other.reads) add_once(reads, v);
  for (const Value v : other.numbers) add_once(numbers, v);
  positions += other.positions;
  instructions += other.instructions;
}

bool Contents::is_small_enough() const {
  return streams.size() <= most_streams && reads.size() <= most_reads &&
         numbers.size() + positions <= most_numbers && instructions <= most_instructions;
}

std::optional<Contents> NestRules::check(const Group& group) const {
  int passes = 0;
  for (const Member& member : group.members) passes = std::max(passes, member.stage);
  // Rows are visited many at a time: only producers and what follows per row take part.
  if (group.order == Order::sequential && passes > 0) return std::nullopt;
  const int64_t rows = passes > 0 ? element_count(row_shape(group)) : 0;
  const bool is_long = passes > 0 && rows < 8 &&
                       element_count(group.domain) / std::max<int64_t>(rows, 1) > longest_lone_row;
  if (is_long) return std::nullopt;
  Contents contents;
  for (const Member& member : group.members) {
    if (!add(group, member, contents)) return std::nullopt;
  }
  if (group.members.size() > 1 && !contents.is_small_enough()) return std::nullopt;
  return contents;
}

bool NestRules::add(const Group& group, const Member& member, Contents& contents) const {
  const Node& node = graph_[member.value];
  if (node.op->kind == OpKind::create) {
    if (!is_walkable(group, member, position_access(graph_, member))) return false;
    ++contents.positions;
  }
  std::size_t first = 0;
  if (node.op->lookup != nullptr) {
    if (!can_look_up(group, member)) return false;
    add_once(contents.streams, fusion_.bases[node.inputs[0]]);
    add_once(contents.reads, node.inputs[first++]);
    contents.positions += numbers_of_lookup;
  }
  for (std::size_t k = first; k < node.inputs.size(); ++k) {
    if (!is_readable(group, member, node.inputs[k])) return false;
    add_operand(group, node.inputs[k], contents);
  }
  contents.instructions += instructions_of(member.value);
  return true;
}

/// True if what the member looks up is in memory, as no other member makes it.
bool NestRules::can_look_up(const Group& group, const Member& member) const {
  if (group.find(fusion_.bases[graph_[member.value].inputs[0]]) != nullptr) return false;
  const std::optional<LookedUp> table = looked_up(graph_, member);
  return table && is_walkable(group, member, table->access);
}

void NestRules::add_operand(const Group& group, Value input, Contents& contents) const {
  if (needs_no_memory(graph_, fusion_, input)) return add_numbers(input, contents);
  const Value base = fusion_.bases[input];
  if (group.find(base) != nullptr) return;
  add_once(contents.streams, base);
  add_once(contents.reads, input);
}

/// What `number` is made of.
void NestRules::add_numbers(Value number, Contents& contents) const {
  if (!fusion_.is_recomputed[number]) return add_once(contents.numbers, number);
  for (const Value input : graph_[number].inputs) add_numbers(input, contents);
}

std::size_t NestRules::instructions_of(Value v) const {
  if (instructions_[v] == unknown) instructions_[v] = count_instructions(graph_[v]);
  return instructions_[v];
}

std::size_t NestRules::count_instructions(const Node& node) const {
  if (node.op->lookup != nullptr) return instructions_of_lookup;
  if (reduces(node) || node.op->formula.emit == nullptr) return 0;
  const DType last = node.inputs.empty() ? i64 : graph_[node.inputs.back()].spec.dtype;
  const NodeFormula formula = formula_of(graph_, node);
  const auto [found, is_new] = of_formula_.try_emplace({formula.emit, last, node.spec.dtype}, 0);
  if (!is_new) return found->second;
  ScalarProgram program;
  std::vector<Expr> arguments;
  const auto add_argument = [&](DType dtype) {
    const auto number = static_cast<uint32_t>(arguments.size());
    arguments.push_back(argument(program, compute_type(dtype), number));
  };
  if (node.op->kind == OpKind::create) add_argument(i64);
  for (std::size_t k = 0; k < formula.arguments; ++k)
    add_argument(graph_[node.inputs[k]].spec.dtype);
  static_cast<void>(as_stored(formula.emit(arguments), node.spec.dtype));
  found->second = program.instrs.size() - arguments.size();
  return found->second;
}

std::size_t NestRules::operands_of(const Group& group) const {
  Contents contents;
  std::vector<Load> loads;
  std::size_t others = 0;
  int passes = 0;
  for (const Member& member : group.members) {
    const Node& node = graph_[member.value];
    const bool looks_up = node.op->lookup != nullptr;
    if (looks_up) others += numbers_of_lookup + 1;
    for (std::size_t k = looks_up ? 1 : 0; k < node.inputs.size(); ++k) {
      if (needs_no_memory(graph_, fusion_, node.inputs[k]))
        add_numbers(node.inputs[k], contents);
      else
        add_load(group, member, node.inputs[k], loads);
    }
    if (fusion_.is_materialised[member.value]) ++others;
    if (node.op->kind == OpKind::create) ++others;
    passes = std::max(passes, member.stage);
  }
  // What a later pass reads again may be kept in scratch.
  const std::size_t kept = passes > 0 ? group.members.size() : 0;
  return loads.size() + contents.numbers.size() + others + kept;
}

void NestRules::add_load(const Group& group, const Member& member, Value input,
                         std::vector<Load>& loads) const {
  const Value base = fusion_.bases[input];
  if (group.find(base) != nullptr) return;
  const Access access = leaf_access(graph_, member, input).value_or(Access{});
  const Load load = {base, access.offset, squeezed(access), member.level};
  if (std::ranges::find(loads, load) == loads.end()) loads.push_back(load);
}

/// True if what the member reads of another member is the value at the very point, or of the very
/// row, that is being computed. In y - transpose(y) it reads y at two points: only one of them is
/// at hand, so y must be in memory.
bool NestRules::reads_present_point(const Group& group, const Member& member, Value input) const {
  std::vector<Map> maps;
  const Value base = base_of(graph_, input, &maps);
  const Member& made = *group.find(base);
  const Node& node = graph_[member.value];
  const Shape& shape = graph_[base].spec.shape;
  const bool is_plain = maps.empty() && member.maps.empty() && made.maps.empty() && !reduces(node);
  if (is_plain && made.level == member.level && shape == node.spec.shape) return true;
  if (!reduces(node)) maps.push_back(broadcast_to(node));
  maps.insert(maps.end(), member.maps.begin(), member.maps.end());
  const Access whole = {shape, strides_of(shape), 0};
  const std::optional<Access> seen = through(whole, maps, f32);
  if (!seen) return false;
  const bool at_elements = reduces(node) || member.level == Stage::Level::element;
  if (made.level == Stage::Level::element) {
    const std::optional<Access> present = through(whole, made.maps, f32);
    return at_elements && present && present->offset == seen->offset &&
           squeezed(*present) == squeezed(*seen);
  }
  const Strides rows = strides_of(row_shape(group));
  Strides expected;
  int row = 0;
  for (int i = 0; i < group.domain.size(); ++i) {
    const bool is_reduced = contains(group.reduced, i);
    const int64_t stride = is_reduced ? 0 : rows[row++];
    if (group.domain[i] != 1 && (at_elements || !is_reduced)) expected.push_back(stride);
  }
  return seen->offset == 0 && squeezed(*seen) == expected;
}

/// True if the member can read this input from memory (or need not).
bool NestRules::is_readable(const Group& group, const Member& member, Value input) const {
  if (needs_no_memory(graph_, fusion_, input)) return true;
  if (group.find(fusion_.bases[input]) != nullptr) return reads_present_point(group, member, input);
  // Broadcasting is always possible.
  if (fusion_.bases[input] == input && member.maps.empty() && group.reduced.size() < 2) return true;
  const std::optional<Access> access = leaf_access(graph_, member, input);
  return is_walkable(group, member, access) || is_copyable(group, access);
}

/// True if rows of what lies so may be brought together.
bool NestRules::is_copyable(const Group& group, const std::optional<Access>& access) const {
  return access && group.reduced.size() > 1 && may_copy_rows(group, squeezed(*access), limits_);
}

/// True if the member can walk through the loops of the group like this: strides express it, with
/// the reduced axes as one loop.
bool NestRules::is_walkable(const Group& group, const Member& member,
                            const std::optional<Access>& access) const {
  if (!access) return false;
  const bool is_row = member.level == Stage::Level::row && !reduces(graph_[member.value]);
  return is_row || reduced_axes_merge(group, *access);
}

}  // namespace nitinol::fusion
