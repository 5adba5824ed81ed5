// What must hold of every graph, at every stage. verify() checks it all:
//
//  1. An operand of a node is the result of an earlier node, so the nodes are in topological order
//  and acyclic.
//  2. Graph::inputs lists every node of Kind::input, once, and no other node.
//  3. Outputs are numbers of nodes. The same value may be an output several times.
//  4. Inputs and constants have no op, operands or attributes.
//  5. An application has an op that is not composite (those are recorded expanded), as many
//  operands as the op takes,
//     and one attribute for each of the op's attribute names.
//  6. Its spec is what op.infer says of its operands and attributes.
//  7. A constant is present, with memory, and of the node's spec; other nodes hold none.
//  8. An input has a stride for each dimension; other nodes record no strides (results are
//  contiguous, or views whose
//     strides follow from the op).
//  9. Sizes are not negative.
// 10. An op of several results is followed by its parts, all of them in order. Nothing else reads
// it,
//     and it is no output.
#include "core/graph.h"

#include "core/error.h"
#include "core/graph_infer.h"

#include <fmt/format.h>

#include <algorithm>

namespace nitinol {

Tensor placeholder(const Node& node) {
  if (node.kind == Node::Kind::constant) return node.constant;
  const Strides strides =
      node.kind == Node::Kind::input ? node.strides : strides_of(node.spec.shape);
  return make_tensor(node.spec, strides, 0, {});
}

Spec inferred_spec(const Node& node, Inputs operands) {
  const auto require = [&](bool holds, const char* what, std::string expected, std::size_t got) {
    if (holds) return;
    throw Error(ErrorKind::value, {.where = std::string(node.op->name),
                                   .what = what,
                                   .expected = std::move(expected),
                                   .got = fmt::format("{}", got),
                                   .fix = {}});
  };
  const int arity = node.op->arity;
  require(arity < 0 ? !operands.empty() : operands.size() == static_cast<std::size_t>(arity),
          "number of operands", arity < 0 ? "at least 1" : fmt::format("{}", arity),
          operands.size());
  require(node.attrs.size() == node.op->attr_names.size(), "number of attributes",
          fmt::format("{}", node.op->attr_names.size()), node.attrs.size());
  if (node.op->infer_all == nullptr) return node.op->infer(*node.op, operands, node.attrs);
  return node.op->infer_all(*node.op, operands, node.attrs).at(0);
}

std::vector<Node> parts_for(Value v, const Node& node, Inputs operands) {
  std::vector<Node> parts;
  if (!has_parts(node)) return parts;
  for (const Spec& spec : node.op->infer_all(*node.op, operands, node.attrs)) {
    const auto number = static_cast<int64_t>(parts.size());
    parts.push_back({.kind = Node::Kind::part,
                     .op = nullptr,
                     .inputs = {v},
                     .attrs = {number},
                     .spec = spec,
                     .strides = {},
                     .constant = {},
                     .origin = node.origin,
                     .repetition = node.repetition});
  }
  return parts;
}

std::span<const Node> parts_of(const Graph& graph, Value v) {
  if (!has_parts(graph[v])) return {};
  const std::span<const Node> after = std::span(graph.nodes).subspan(v + 1);
  const auto end =
      std::ranges::find_if(after, [](const Node& node) { return node.kind != Node::Kind::part; });
  const auto is_of_it = [&](const Node& node) { return node.inputs[0] == v; };
  return {after.begin(), std::ranges::find_if_not(after.begin(), end, is_of_it)};
}

namespace {

const char* word_for(const Node& node) {
  switch (node.kind) {
    case Node::Kind::input:
      return "input";
    case Node::Kind::constant:
      return "constant";
    case Node::Kind::op:
      return "op";
    case Node::Kind::part:
      return "part";
  }
  return "?";
}

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view stage) : graph_(graph), stage_(stage) {}

  void run() {
    check_inputs();
    for (const Value output : graph_.outputs) {
      if (output >= graph_.nodes.size())
        fail("outputs", "the number of a node", fmt::format("{}", output));
      require(!has_parts(graph_[output]), output, "a result that is one value", "several");
    }
    for (Value v = 0; v < graph_.nodes.size(); ++v) check_node(v);
  }

 private:
  [[noreturn]] void fail(std::string what, std::string expected, std::string got) const {
    throw Error(ErrorKind::internal, {.where = fmt::format("verify after {}", stage_),
                                      .what = std::move(what),
                                      .expected = std::move(expected),
                                      .got = std::move(got),
                                      .fix = {}});
  }
  void require(bool holds, Value v, const char* rule, std::string got) const {
    if (!holds) fail(describe_value(v), rule, std::move(got));
  }
  [[nodiscard]] std::string describe_value(Value v) const {
    const Node& node = graph_[v];
    return fmt::format("value {} ({})", v, node.op != nullptr ? node.op->name : word_for(node));
  }

  void check_inputs() const {
    std::vector<int> listed(graph_.nodes.size(), 0);
    for (const Value input : graph_.inputs) {
      if (input >= graph_.nodes.size())
        fail("inputs", "the number of a node", fmt::format("{}", input));
      ++listed[input];
    }
    for (Value v = 0; v < graph_.nodes.size(); ++v) {
      const int expected = graph_[v].kind == Node::Kind::input ? 1 : 0;
      if (listed[v] != expected) {
        fail(describe_value(v), fmt::format("to be {} times among the inputs", expected),
             fmt::format("{}", listed[v]));
      }
    }
  }

  void check_node(Value v) {
    const Node& node = graph_[v];
    for (const int64_t size : node.spec.shape)
      require(size >= 0, v, "no negative size", describe(node.spec));
    const bool is_input = node.kind == Node::Kind::input;
    require(!is_input || node.strides.size() == node.spec.shape.size(), v,
            "a stride for each dimension", to_string(node.strides));
    require(is_input || node.strides.empty(), v, "no strides", to_string(node.strides));
    switch (node.kind) {
      case Node::Kind::op:
        check_application(v);
        break;
      case Node::Kind::part:
        check_part(v);
        break;
      case Node::Kind::input:
      case Node::Kind::constant:
        require(node.op == nullptr && node.inputs.empty() && node.attrs.empty(), v,
                "no op, operands or attributes", "some");
    }
    check_constant(v);
    placeholders_.push_back(placeholder(node));
  }

  void check_constant(Value v) const {
    const Node& node = graph_[v];
    const bool is_constant = node.kind == Node::Kind::constant;
    require(node.constant.is_defined() == is_constant, v, "a tensor exactly if it is a constant",
            "otherwise");
    if (!is_constant) return;
    const TensorData& data = node.constant.internals();
    require(data.storage || data.is_number(), v, "a constant with memory, or a number", "neither");
    require(node.constant.spec() == node.spec, v, "the spec of its tensor",
            describe(node.constant));
  }

  /// What an op of several results must have checked: this one only that it is among them.
  void check_part(Value v) const {
    const Node& node = graph_[v];
    require(node.op == nullptr && node.inputs.size() == 1 && node.inputs[0] < v, v,
            "one earlier operand, and no op", "otherwise");
    const Value whole = node.inputs[0];
    require(has_parts(graph_[whole]) && v - whole <= parts_of(graph_, whole).size(), v,
            "to follow an op of several results, or its other parts", describe_value(whole));
  }

  void check_parts(Value v, Inputs operands) const {
    const std::vector<Node> expected = parts_for(v, graph_[v], operands);
    const std::span<const Node> parts = parts_of(graph_, v);
    const auto is_same = [](const Node& a, const Node& b) {
      return a.attrs == b.attrs && a.spec == b.spec;
    };
    require(std::ranges::equal(parts, expected, is_same), v,
            "its parts after it, as they are inferred", "others");
  }

  void check_application(Value v) const {
    const Node& node = graph_[v];
    require(node.op != nullptr, v, "an op", "none");
    require(node.op->kind != OpKind::composite, v, "the expansion of a composite op", "the op");
    std::vector<const Tensor*> operands;
    for (const Value input : node.inputs) {
      require(input < v, v, "operands that come earlier", fmt::format("value {}", input));
      require(!has_parts(graph_[input]), v, "operands that are one value", describe_value(input));
      operands.push_back(&placeholders_[input]);
    }
    try {
      const Spec inferred = inferred_spec(node, operands);
      if (inferred != node.spec) {
        fail(describe_value(v),
             fmt::format("the inferred spec {}{}", inferred.is_weak ? "weak " : "",
                         describe(inferred)),
             fmt::format("{}{}", node.spec.is_weak ? "weak " : "", describe(node.spec)));
      }
      if (has_parts(node)) check_parts(v, operands);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      fail(describe_value(v), "operands and attributes that the op accepts", error.message());
    } catch (const std::bad_variant_access&) {
      fail(describe_value(v), "attributes of the kinds that the op takes",
           to_string(*node.op, node.attrs));
    }
  }

  const Graph& graph_;
  std::string_view stage_;
  std::vector<Tensor> placeholders_;
};

}  // namespace

void verify(const Graph& graph, std::string_view stage) {
  Verifier(graph, stage).run();
}

Device device_of(const Graph& graph) {
  const auto lies_somewhere = [](const Node& node) { return !is_anywhere(node.spec); };
  const auto found = std::ranges::find_if(graph.nodes, lies_somewhere);
  return found != graph.nodes.end() ? found->spec.device : Device{};
}

bool has_ordered(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return node.kind == Node::Kind::op && node.op->effect == Effect::ordered;
  });
}

std::vector<int> use_counts(const Graph& graph) {
  std::vector<int> counts(graph.nodes.size(), 0);
  for (const Node& node : graph.nodes) {
    for (const Value input : node.inputs) ++counts[input];
  }
  for (const Value output : graph.outputs) ++counts[output];
  return counts;
}

}  // namespace nitinol
