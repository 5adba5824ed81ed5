// A group's members are written, stage by stage, as scalar programs.
//
// A stage contains what its sinks need: the operand of each reduction that ends in it, and each
// member to be stored. A member that an earlier pass over the row computed too is computed again
// (its operands are in cache), or kept in scratch if that takes long; a number that exists once per
// row is handed on as a row value.
#include "jit/lowering.h"

#include "core/error.h"
#include "core/formula.h"
#include "core/host_access.h"
#include "core/launch.h"
#include "core/loop_nest.h"
#include "core/one_op.h"

#include <algorithm>
#include <map>

namespace nitinol::jit {
namespace {

using Level = Stage::Level;

/// Completes `out` with loops of these sizes and strides per operand: merged where possible, with
/// inner stride classes. A reduced dimension is the last and stays by itself.
void arrange_loops(Lowered& out, const Dims& sizes, std::vector<Dims> strides) {
  std::vector<Operand>& operands = out.kernel.operands;
  LoopNest<std::vector<Dims>> nest = {.sizes = sizes, .strides = std::move(strides)};
  for (Dims& s : nest.strides) {
    while (s.size() < sizes.size()) s.push_back(0);  // scalars
  }
  nest.simplify(sizes.size() - (out.kernel.order == Order::none ? 0 : 1));
  nest.add_point_if_empty();
  const int inner = nest.innermost(out.kernel.order);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const Dims& strides_of_k = nest.strides[k];
    if (operands[k].role != Role::scalar) operands[k].inner = class_of(strides_of_k[inner]);
    out.strides.insert(out.strides.end(), strides_of_k.begin(), strides_of_k.end());
    out.offsets.push_back(
        out.origins[k].kind == OperandOrigin::Kind::position ? out.origins[k].offset : 0);
  }
  out.sizes.assign(nest.sizes.begin(), nest.sizes.end());
}

class Lowerer {
 public:
  Lowerer(const Graph& graph, const Fusion& fusion, const Group& group, const DeviceLimits& limits)
      : graph_(graph), fusion_(fusion), group_(group), limits_(limits) {}

  Lowered run() {
    out_.kernel.order = group_.order;
    for (const Member& member : group_.members) passes_ = std::max(passes_, member.stage);
    find_loops();
    number_reductions();
    for (int s = 0; s <= passes_; ++s) {
      emit_elements(s);
      emit_rows(s);
    }
    drop_empty_stages();
    place_scratch();
    arrange_loops(out_, sizes_, std::move(strides_));
    if (group_.members.size() == 1) find_prebuilt();
    return std::move(out_);
  }

 private:
  /// Where an element stage computes a member.
  struct Computed {
    std::size_t stage = 0;
    uint32_t value = 0;
    std::size_t instructions = 0;
  };

  /// Equal kernels are one entry of the cache, whoever asks first: a group that eager would run as
  /// it is brings eager's loops.
  void find_prebuilt() {
    const Node& node = graph_[group_.members[0].value];
    if (node.op->formula.emit == nullptr) return;
    const std::size_t first = node.op->kind == OpKind::create ? 1 : 0;
    if (out_.kernel.operands.size() != first + node.inputs.size() + 1) return;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {  // a number may be converted on the way
      if (out_.kernel.operands[first + k].dtype != graph_[node.inputs[k]].spec.dtype) return;
    }
    const Kernel eager = elementwise_kernel(*node.op, out_.kernel.operands);
    if (eager == out_.kernel) out_.kernel.prebuilt = eager.prebuilt;
  }

  /// Loop dimensions: the domain's, rows before the reduced ones (which are merged into the last).
  void find_loops() {
    for (int i = 0; i < group_.domain.size(); ++i) {
      if (!is_reduced(i)) rows_.push_back(i);
    }
    for (const int axis : rows_) sizes_.push_back(group_.domain[axis]);
    if (group_.order == Order::none) return;
    int64_t length = 1;
    for (const int64_t axis : group_.reduced) length *= group_.domain[static_cast<int>(axis)];
    sizes_.push_back(length);
  }

  [[nodiscard]] bool is_reduced(int axis) const {
    return std::ranges::find(group_.reduced, axis) != group_.reduced.end();
  }

  void number_reductions() {
    for (const Member& member : group_.members) {
      const Node& node = graph_[member.value];
      if (node.op->kind != OpKind::reduce) continue;
      reductions_[member.value] = static_cast<uint16_t>(out_.kernel.reductions.size());
      out_.kernel.reductions.push_back(
          {.combine = node.op->combine, .type = compute_type(graph_[node.inputs[0]].spec.dtype)});
    }
  }

  // ---- stages

  Stage& begin_stage(Level level, int pass) {
    out_.kernel.stages.push_back({.level = level, .program = {}, .sources = {}, .sinks = {}});
    level_ = level;
    pass_ = pass;
    emitted_.clear();
    arguments_.clear();
    rows_of_.clear();
    return out_.kernel.stages.back();
  }

  void emit_elements(int pass) {
    stage_ = &begin_stage(Level::element, pass);
    for (const Member& member : group_.members) {
      if (member.stage != pass) continue;
      const Node& node = graph_[member.value];
      if (node.op->kind == OpKind::reduce) {
        const Expr operand = value(node.inputs[0], &member);
        stage_->sinks.push_back({Sink::Kind::accumulate, reductions_[member.value], operand.id});
      } else if (member.level == Level::element) {
        if (node.op->has_checks) check(member);
        if (fusion_.is_materialised[member.value]) store(member, value(member.value));
      }
    }
  }

  void emit_rows(int pass) {
    if (group_.order == Order::none) return;
    stage_ = &begin_stage(Level::row, pass);
    for (const Member& member : group_.members) {
      if (member.level != Level::row || member.stage != pass) continue;
      if (graph_[member.value].op->has_checks) check(member);
      const bool is_kept =
          graph_[member.value].op->kind != OpKind::reduce && is_read_later(member.value, pass);
      if (!fusion_.is_materialised[member.value] && !is_kept) continue;
      const Expr result = value(member.value);
      if (fusion_.is_materialised[member.value]) store(member, result);
      if (!is_kept) continue;
      const auto index = static_cast<uint16_t>(out_.kernel.row_values.size());
      row_values_[member.value] = index;
      out_.kernel.row_values.push_back(result.type);
      stage_->sinks.push_back({Sink::Kind::row_value, index, result.id});
    }
  }

  /// True if a member in a later stage than row stage `pass` reads `v`.
  [[nodiscard]] bool is_read_later(Value v, int pass) const {
    return std::ranges::any_of(group_.members, [&](const Member& member) {
      if (member.stage <= pass) return false;
      const std::vector<Value>& inputs = graph_[member.value].inputs;
      return std::ranges::any_of(inputs, [&](Value input) { return fusion_.bases[input] == v; });
    });
  }

  /// A stage without sinks does nothing; one that only stands between two others goes too.
  void drop_empty_stages() {
    std::erase_if(out_.kernel.stages, [](const Stage& stage) { return stage.sinks.empty(); });
  }

  /// What is kept until an output of the same layout is stored lies in that output's memory, which
  /// is then in the caches by the time of the store. softmax of 4096 x 1024: 2.1 ms elsewhere,
  /// 1.55 ms there.
  void place_scratch() {
    std::vector<Operand>& operands = out_.kernel.operands;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (operands[k].role != Role::scratch) continue;
      for (std::size_t o = 0; o < operands.size() && operands[k].alias < 0; ++o) {
        const bool is_taken = std::ranges::any_of(operands, [o](const Operand& other) {
          return other.role == Role::scratch && other.alias == static_cast<int16_t>(o);
        });
        if (operands[o].role == Role::output && operands[o].dtype == operands[k].dtype &&
            strides_[o] == strides_[k] && !is_taken && first_store(o) >= last_load(k)) {
          operands[k].alias = static_cast<int16_t>(o);
        }
      }
    }
  }

  [[nodiscard]] std::ptrdiff_t first_store(std::size_t operand) const {
    return std::ranges::find_if(
               out_.kernel.stages,
               [operand](const Stage& stage) {
                 return std::ranges::any_of(stage.sinks, [operand](const Sink& sink) {
                   return sink.kind == Sink::Kind::store && sink.index == operand;
                 });
               }) -
           out_.kernel.stages.begin();
  }
  [[nodiscard]] std::ptrdiff_t last_load(std::size_t operand) const {
    const auto loads = [operand](const Source& source) {
      return source.kind == Source::Kind::operand && source.index == operand;
    };
    std::ptrdiff_t last = -1;
    for (std::size_t s = 0; s < out_.kernel.stages.size(); ++s) {
      if (std::ranges::any_of(out_.kernel.stages[s].sources, loads))
        last = static_cast<std::ptrdiff_t>(s);
    }
    return last;
  }

  // ---- values

  /// The value that `v` (perhaps a view of it) has at the present point, in its compute type.
  Expr value(Value v, const Member* reader = nullptr) {
    const Value base = fusion_.bases[v];
    if (const Member* member = group_.find(base)) return value_of_member(*member);
    if (is_scalar_leaf(v)) return scalar(v);
    if (fusion_.is_uniform[v]) return formula(v, nullptr);
    NITINOL_ASSERT(reader != nullptr, "what is read from memory is read for a member");
    return load(v, *reader);
  }

  Expr value_of_member(const Member& member) {
    const Node& node = graph_[member.value];
    if (const auto found = emitted_.find(member.value); found != emitted_.end())
      return found->second;
    Expr result = {};
    if (node.op->kind == OpKind::reduce) {
      const uint16_t index = reductions_[member.value];
      const ScalarType type = out_.kernel.reductions[index].type;
      result = rounded_to(node.spec.dtype, source({Source::Kind::reduction, index}, type));
    } else if (const auto kept = row_values_.find(member.value); kept != row_values_.end()) {
      result = source({Source::Kind::row_value, kept->second}, compute_type(node.spec.dtype));
    } else if (is_worth_keeping(member)) {
      result = operand_source(keep(member), kept_dtype(member));
    } else {
      const std::size_t before = stage_->program.instrs.size();
      result = formula(member.value, &member);
      if (level_ == Level::element) {
        computed_[member.value] = {.stage = out_.kernel.stages.size() - 1,
                                   .value = result.id,
                                   .instructions = stage_->program.instrs.size() - before};
      }
    }
    emitted_[member.value] = result;
    return result;
  }

  /// True if an earlier stage has computed the member, and computing it again would take long.
  [[nodiscard]] bool is_worth_keeping(const Member& member) const {
    const auto found = computed_.find(member.value);
    if (group_.order != Order::lanes || level_ != Level::element || found == computed_.end()) {
      return false;
    }
    const int64_t bytes = sizes_.back() * static_cast<int64_t>(size_of(kept_dtype(member)));
    return found->second.stage + 1 < out_.kernel.stages.size() &&
           found->second.instructions > limits_.cheap_instructions &&
           bytes <= limits_.kept_row_bytes;
  }

  /// The scratch operand that holds the member, which the stage that computed it stores.
  uint16_t keep(const Member& member) {
    const auto [kept, is_new] = kept_.try_emplace(member.value);
    if (!is_new) return kept->second;
    Shape shape;
    for (const int64_t size : sizes_) shape.push_back(size);
    const OperandOrigin origin = {
        .kind = OperandOrigin::Kind::scratch, .value = 0, .offset = 0, .bits = 0};
    kept->second = add_operand(Role::scratch, kept_dtype(member), origin, strides_of(shape));
    const Computed& computed = computed_.at(member.value);
    out_.kernel.stages[computed.stage].sinks.push_back(
        {Sink::Kind::store, kept->second, computed.value});
    return kept->second;
  }

  /// Holds the values in their compute type.
  [[nodiscard]] DType kept_dtype(const Member& member) const {
    const DType dtype = graph_[member.value].spec.dtype;
    return dtype == f16 || dtype == bf16 ? f32 : dtype;
  }

  void check(const Member& member) {
    const Node& node = graph_[member.value];
    if (node.op->lookup != nullptr) {
      stage_->sinks.push_back(
          {Sink::Kind::check, Status::index_out_of_range, row_looked_up(member).exists.id});
      return;
    }
    std::vector<Expr> arguments;
    for (const Value input : node.inputs) arguments.push_back(value(input, &member));
    const Expr holds = node.op->check.emit(arguments, compute_type(node.spec.dtype));
    stage_->sinks.push_back({Sink::Kind::check, node.op->check.code, holds.id});
  }

  Expr formula(Value v, const Member* member) {
    const Node& node = graph_[v];
    if (node.op->lookup != nullptr) {
      const Row row = row_looked_up(*member);
      return element_at(row, tables_.at(v).elements, node.spec.dtype);
    }
    const Member self = {.value = v, .level = level_, .stage = pass_, .maps = {}};
    const Member& reader = member != nullptr ? *member : self;
    std::vector<Expr> arguments;
    if (node.op->kind == OpKind::create) arguments.push_back(position(reader));
    for (const Value input : node.inputs) arguments.push_back(value(input, &reader));
    return apply_formula(*node.op, arguments, node.spec.dtype);
  }

  /// Operands of a member that looks up.
  struct Table {
    uint16_t rows, step;  ///< numbers
    uint16_t elements;    ///< what is looked up
  };

  Table new_table(const Member& member) {
    const Value from = graph_[member.value].inputs[0];
    const LookedUp found = *looked_up(graph_, member);
    const OperandOrigin origin = {.kind = OperandOrigin::Kind::memory,
                                  .value = fusion_.bases[from],
                                  .offset = found.access.offset,
                                  .bits = 0};
    const auto number = [&](int64_t value) {
      return add_operand(Role::scalar, i64,
                         {.kind = OperandOrigin::Kind::constant,
                          .value = 0,
                          .offset = 0,
                          .bits = static_cast<uint64_t>(value)},
                         {});
    };
    Table table = {.rows = number(found.rows), .step = number(found.step), .elements = 0};
    table.elements = add_operand(Role::input, graph_[from].spec.dtype, origin,
                                 loops_of(found.access, member.level == Level::element));
    return table;
  }

  Row row_looked_up(const Member& member) {
    if (const auto found = rows_of_.find(member.value); found != rows_of_.end())
      return found->second;
    const Expr index = value(graph_[member.value].inputs[1], &member);
    auto known = tables_.find(member.value);
    if (known == tables_.end()) known = tables_.emplace(member.value, new_table(member)).first;
    const Expr rows = operand_source(known->second.rows, i64);
    const Expr step = operand_source(known->second.step, i64);
    return rows_of_[member.value] = row_of(index, rows, step);
  }

  [[nodiscard]] bool is_scalar_leaf(Value v) const {
    const Node& node = graph_[v];
    return (node.kind == Node::Kind::input && node.spec.is_weak) ||
           (node.kind == Node::Kind::constant && element_count(node.spec.shape) == 1);
  }

  Expr source(Source from, ScalarType type) {
    stage_->sources.push_back(from);
    return argument(stage_->program, type, static_cast<uint32_t>(stage_->sources.size() - 1));
  }

  Expr operand_source(uint16_t operand, DType dtype) {
    if (const auto found = arguments_.find(operand); found != arguments_.end())
      return found->second;
    return arguments_[operand] = source({Source::Kind::operand, operand}, compute_type(dtype));
  }

  // ---- operands

  Expr scalar(Value v) {
    const Node& node = graph_[v];
    const auto known = scalars_.find(v);
    if (known != scalars_.end()) return operand_source(known->second, node.spec.dtype);
    OperandOrigin origin = {
        .kind = OperandOrigin::Kind::scalar, .value = v, .offset = 0, .bits = 0};
    if (node.kind == Node::Kind::constant) {
      origin.kind = OperandOrigin::Kind::constant;
      origin.bits = first_element(node.constant);
    }
    const uint16_t operand = add_operand(Role::scalar, node.spec.dtype, origin, {});
    scalars_[v] = operand;
    return operand_source(operand, node.spec.dtype);
  }

  Expr load(Value v, const Member& reader) {
    const Value base = fusion_.bases[v];
    const Access access = *leaf_access(graph_, reader, v);
    const DType dtype = graph_[base].spec.dtype;
    const OperandOrigin origin = {
        .kind = OperandOrigin::Kind::memory, .value = base, .offset = access.offset, .bits = 0};
    const bool reads_elements =
        reader.level == Level::element || graph_[reader.value].op->kind == OpKind::reduce;
    return operand_source(operand_for(Role::input, dtype, origin, loops_of(access, reads_elements)),
                          dtype);
  }

  Expr position(const Member& member) {
    const Access access = *position_access(graph_, member);
    const OperandOrigin origin = {
        .kind = OperandOrigin::Kind::position, .value = 0, .offset = access.offset, .bits = 0};
    return operand_source(
        operand_for(Role::position, i64, origin, loops_of(access, member.level == Level::element)),
        i64);
  }

  void store(const Member& member, const Expr& result) {
    const Node& node = graph_[member.value];
    const auto found = fusion_.pieces.find(member.value);
    const Piece place =
        found != fusion_.pieces.end()
            ? found->second
            : Piece{member.value, {node.spec.shape, strides_of(node.spec.shape), 0}};
    const Access& access = place.access;
    const OperandOrigin origin = {.kind = OperandOrigin::Kind::memory,
                                  .value = place.whole,
                                  .offset = access.offset,
                                  .bits = 0};
    const uint16_t operand = add_operand(Role::output, node.spec.dtype, origin,
                                         loops_of(access, member.level == Level::element));
    stage_->sinks.push_back({Sink::Kind::store, operand, result.id});
  }

  /// Strides over the loop dimensions.
  [[nodiscard]] Dims loops_of(const Access& access, bool is_element) const {
    Strides strides;
    for (int i = 0; i < access.shape.size(); ++i) {
      if (access.shape[i] != 1) strides.push_back(access.strides[i]);
    }
    if (!is_element) {
      strides.push_back(0);
      return strides;
    }
    while (strides.size() < group_.domain.size())
      strides.push_back(0);  // a reduced dimension of one
    Dims loops;
    for (const int axis : rows_) loops.push_back(strides[axis]);
    if (group_.order != Order::none)
      loops.push_back(strides[static_cast<int>(group_.reduced.back())]);
    return loops;
  }

  uint16_t operand_for(Role role, DType dtype, const OperandOrigin& origin, const Dims& strides) {
    for (std::size_t i = 0; i < out_.origins.size(); ++i) {
      const OperandOrigin& known = out_.origins[i];
      if (out_.kernel.operands[i].role == role && known.value == origin.value &&
          known.offset == origin.offset && strides_[i] == strides) {
        return static_cast<uint16_t>(i);
      }
    }
    return add_operand(role, dtype, origin, strides);
  }

  uint16_t add_operand(Role role, DType dtype, const OperandOrigin& origin, const Dims& strides) {
    out_.kernel.operands.push_back(
        {.role = role, .dtype = dtype, .inner = StrideClass::zero, .alias = -1});
    out_.origins.push_back(origin);
    strides_.push_back(strides);
    return static_cast<uint16_t>(out_.origins.size() - 1);
  }

  const Graph& graph_;
  const Fusion& fusion_;
  const Group& group_;
  const DeviceLimits& limits_;
  Lowered out_;
  int passes_ = 0;
  std::vector<int> rows_;                 ///< axes of the domain that are not reduced
  Dims sizes_;                            ///< of the loops
  std::vector<Dims> strides_;             ///< per operand
  std::map<Value, uint16_t> reductions_;  ///< reduce member -> its number
  std::map<Value, uint16_t>
      row_values_;                     ///< row member -> its number, once a row stage has kept it
  std::map<Value, uint16_t> scalars_;  ///< scalar leaf -> operand
  std::map<Value, Table> tables_;      ///< of members that look up

  Stage* stage_ = nullptr;  ///< being emitted
  Level level_ = Level::element;
  int pass_ = 0;
  std::map<Value, Expr> emitted_;       ///< members in this stage
  std::map<Value, Row> rows_of_;        ///< members that look up, in this stage
  std::map<Value, Computed> computed_;  ///< members in the last element stage that computed them
  std::map<Value, uint16_t> kept_;      ///< members in scratch -> operand
  std::map<uint16_t, Expr> arguments_;  ///< operands loaded in this stage
};

}  // namespace

Lowered lower_copy(DType dtype, const Copy& copy) {
  Lowered out;
  Stage& stage = out.kernel.stages.emplace_back();
  stage.sources.push_back({Source::Kind::operand, 0});
  stage.sinks.push_back({Sink::Kind::store, 1, argument(stage.program, compute_type(dtype), 0).id});
  Dims sizes;
  std::vector<Dims> strides(2);
  for (int i = 0; i < copy.shape.size(); ++i) {
    if (copy.shape[i] == 1) continue;
    sizes.push_back(copy.shape[i]);
    strides[0].push_back(copy.from_strides[i]);
    strides[1].push_back(copy.to_strides[i]);
  }
  for (const Role role : {Role::input, Role::output}) {
    out.kernel.operands.push_back(
        {.role = role, .dtype = dtype, .inner = StrideClass::one, .alias = -1});
  }
  const auto memory = OperandOrigin::Kind::memory;
  out.origins = {{.kind = memory, .value = copy.from, .offset = copy.from_offset, .bits = 0},
                 {.kind = memory, .value = copy.to, .offset = copy.to_offset, .bits = 0}};
  arrange_loops(out, sizes, std::move(strides));
  return out;
}

Lowered lower(const Graph& graph, const Fusion& fusion, const Group& group,
              const DeviceLimits& limits) {
  return Lowerer(graph, fusion, group, limits).run();
}

}  // namespace nitinol::jit
