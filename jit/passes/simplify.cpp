// Each value gets two stand-ins, both earlier values or itself:
//
// - `same_value` has the same elements at the same indices. Elementwise and reduce ops, whose
//   results depend on nothing else, read that.
// - `same_layout` lies in memory in the same way too. Everybody else reads that: a library call may
//   compute other bits on other strides, a view of other strides may be impossible, and a user may
//   see whether a result is contiguous.
//
// Example: t = transpose x; u = transpose t; c = copy t; y = matmul u c; z = exp c; return y z
// u is x, bits and layout, so matmul reads x instead. c holds what t holds, but contiguously: exp
// may read t, matmul not.
//
// A view is an index map, whatever strides it is applied to. Run on contiguous strides, where
// different elements have different addresses, a chain of views that gives those very strides back
// is the identity map.
//
// What an elementwise op does is seen in its scalar instructions. We number them so that
// instructions with certainly equal bits get one number; if the result's number is that of argument
// k, the op returns argument k.
#include "jit/passes/simplify.h"

#include "fusion/access.h"
#include "jit/passes/layouts.h"
#include "jit/passes/rewrite.h"

#include <algorithm>
#include <utility>

namespace nitinol::jit {
namespace {

/// Longer chains of views are looked at in parts.
constexpr std::size_t longest_chain = 8;

/// What a formula certainly does.
struct Meaning {
  enum class Kind : uint8_t {
    other,
    identity,    ///< returns argument `argument`
    involution,  ///< one instruction of argument `argument` that undoes itself
  };
  Kind kind = Kind::other;
  ScalarOp op = ScalarOp::constant;  ///< involution
  std::size_t argument = 0;
};

bool undoes_itself(ScalarOp op) {
  return op == ScalarOp::neg || op == ScalarOp::bit_not;
}

/// Numbers of a program's instructions, equal only if the values certainly are, bit for bit.
/// Arguments come first in the program; `arguments[k]` is the first one that is the same value as
/// argument k.
std::vector<uint32_t> number_instructions(const ScalarProgram& program,
                                          const std::vector<uint32_t>& arguments) {
  std::vector<uint32_t> number(program.instrs.size());
  for (uint32_t i = 0; i < number.size(); ++i) {
    const ScalarInstr& instr = program.instrs[i];
    const uint32_t a = instr.a < i ? number[instr.a] : i;
    const uint32_t b = instr.b < i ? number[instr.b] : i;
    number[i] = i;
    switch (instr.op) {
      case ScalarOp::argument:
        number[i] = arguments[instr.imm];
        break;
      case ScalarOp::convert:
        if (program.instrs[a].type == instr.type) number[i] = a;
        break;
      case ScalarOp::neg:
      case ScalarOp::bit_not:
        if (program.instrs[a].op == instr.op) number[i] = number[program.instrs[a].a];
        break;
      case ScalarOp::select:
      case ScalarOp::end_if:
      case ScalarOp::bit_and:
      case ScalarOp::bit_or:
        if (a == b) number[i] = a;
        break;
      default:
        break;
    }
  }
  return number;
}

/// True if every value of `from` survives a conversion to `to`.
bool holds_exactly(DType to, DType from) {
  if (to == from || from == boolean) return true;
  if (to == boolean) return false;
  if (is_floating(from)) return to == f64 || (to == f32 && size_of(from) == 2);
  const bool keeps_sign = is_unsigned(from) || !is_unsigned(to);
  return keeps_sign && info_of(to).digits >= info_of(from).digits;
}

class Simplifier {
 public:
  explicit Simplifier(Graph graph) : graph_(std::move(graph)) {}

  Graph run() {
    for (Value v = 0; v < graph_.nodes.size(); ++v) add(v);
    for (Node& node : graph_.nodes) {
      for (Value& input : node.inputs)
        input = reads_by_value(node, same_value_[input]) ? same_value_[input] : same_layout_[input];
    }
    for (Value& output : graph_.outputs) {
      // The argument itself is not the same result as a view or a copy of it.
      if (graph_[same_layout_[output]].kind == Node::Kind::op) output = same_layout_[output];
    }
    return std::move(graph_);
  }

 private:
  void add(Value v) {
    const Node& node = graph_[v];
    layouts_.push_back(layout_of(graph_, node, layouts_));
    meanings_.emplace_back();
    same_value_.push_back(v);
    same_layout_.push_back(v);
    if (node.kind != Node::Kind::op || has_effect(node)) return;
    if (node.op->kind == OpKind::view) {
      const std::optional<Value> earlier = viewed_unchanged(v);
      if (!earlier) return;
      same_value_[v] = same_value_[*earlier];
      if (has_layout_of(v, same_layout_[*earlier])) same_layout_[v] = same_layout_[*earlier];
    } else if (node.op->kind == OpKind::elementwise && node.op->formula.emit != nullptr) {
      meanings_[v] = meaning_of(node);
      const std::optional<Value> earlier = computed_unchanged(v);
      if (!earlier) return;
      same_value_[v] = *earlier;
      // An argument may start at any address; results start where the allocator puts them.
      const bool is_ours = graph_[*earlier].kind == Node::Kind::op;
      if (is_ours && has_layout_of(v, *earlier)) same_layout_[v] = *earlier;
    }
  }

  /// Whether it does not matter how `operand` lies in memory.
  [[nodiscard]] bool reads_by_value(const Node& node, Value operand) const {
    if (node.kind != Node::Kind::op) return false;
    if (node.op->kind == OpKind::elementwise) return true;
    return node.op->kind == OpKind::reduce &&
           (!reduces_split_loop(node, layouts_[operand], graph_[operand].spec.shape) ||
            copies_rows(node, layouts_[operand], graph_[operand].spec.shape));
  }

  [[nodiscard]] bool has_layout_of(Value v, Value other) const {
    const Layout& a = layouts_[v];
    const Layout& b = layouts_[other];
    return a.is_possible && b.is_possible && a.strides == b.strides && a.offset == b.offset;
  }

  // ---- views

  /// The farthest value up the chain of views of which `v` is an unchanged view.
  [[nodiscard]] std::optional<Value> viewed_unchanged(Value v) const {
    std::optional<Value> found;
    std::vector<fusion::Map> maps;
    Value at = v;
    while (is_view(graph_[at]) && maps.size() < longest_chain) {
      maps.insert(maps.begin(), fusion::Map{&graph_[at], graph_[at].spec.shape});
      at = graph_[at].inputs[0];
      if (graph_[at].spec == graph_[v].spec &&
          fusion::is_identity(graph_[at].spec.shape, maps, graph_[v].spec.shape)) {
        found = at;
      }
    }
    return found;
  }

  // ---- formulas

  Meaning meaning_of(const Node& node) {
    program_.instrs.clear();
    std::vector<Expr> arguments;
    std::vector<uint32_t> numbers;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value operand = same_value_[node.inputs[k]];
      uint32_t first = 0;
      while (same_value_[node.inputs[first]] != operand) ++first;
      numbers.push_back(first);
      const ScalarType type = compute_type(graph_[operand].spec.dtype);
      arguments.push_back(argument(program_, type, static_cast<uint32_t>(k)));
    }
    const Expr result = node.op->formula.emit(arguments);
    const std::vector<uint32_t> number = number_instructions(program_, numbers);
    const uint32_t last = number[result.id];
    const ScalarInstr& instr = program_.instrs[last];
    if (instr.op == ScalarOp::argument) return {Meaning::Kind::identity, instr.op, instr.imm};
    if (undoes_itself(instr.op) && program_.instrs[number[instr.a]].op == ScalarOp::argument &&
        instr.type == compute_type(node.spec.dtype)) {
      return {Meaning::Kind::involution, instr.op, program_.instrs[number[instr.a]].imm};
    }
    return {};
  }

  /// The value that `v`, elementwise, gives back unchanged.
  [[nodiscard]] std::optional<Value> computed_unchanged(Value v) const {
    const Meaning& meaning = meanings_[v];
    if (meaning.kind == Meaning::Kind::other) return std::nullopt;
    const Spec& spec = graph_[v].spec;
    const Value operand = same_value_[graph_[v].inputs[meaning.argument]];
    if (meaning.kind == Meaning::Kind::identity && graph_[operand].spec == spec) return operand;
    // The operand may be the same thing done before, which this one undoes.
    const Meaning& before = meanings_[operand];
    if (before.kind != meaning.kind || before.op != meaning.op) return std::nullopt;
    const Value origin = same_value_[graph_[operand].inputs[before.argument]];
    if (graph_[origin].spec != spec) return std::nullopt;
    return holds_exactly(graph_[operand].spec.dtype, spec.dtype) ? std::optional(origin)
                                                                 : std::nullopt;
  }

  Graph graph_;
  std::vector<Value> same_value_, same_layout_;
  std::vector<Layout> layouts_;
  std::vector<Meaning> meanings_;
  ScalarProgram program_;  ///< reused: its memory is what emitting costs
};

}  // namespace

Graph simplify(Graph graph) {
  return Simplifier(std::move(graph)).run();
}

}  // namespace nitinol::jit
