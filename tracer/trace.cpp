#include "tracer/trace.h"

#include "core/error.h"
#include "core/host_access.h"
#include "core/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace nitinol::tracer {
namespace {

/// Of tensors made from host data, which are contiguous.
bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.spec() != b.spec()) return false;
  const auto bytes = static_cast<std::size_t>(a.size()) * size_of(a.dtype());
  const HostElements x(a.internals());
  const HostElements y(b.internals());
  return bytes == 0 || std::memcmp(x.first(), y.first(), bytes) == 0;
}

/// Tensors do not change, so the same part of the same memory is the same value.
bool same_memory(const Tensor& a, const Tensor& b) {
  const TensorData& m = a.internals();
  const TensorData& n = b.internals();
  if (m.is_number() || n.is_number()) return m.is_number() && n.is_number() && m.number == n.number;
  return m.storage == n.storage && m.offset == n.offset && m.strides == n.strides;
}

/// Whether a list in ascending order has the value.
bool contains(const std::vector<Value>& list, Value value) {
  return std::ranges::binary_search(list, value);
}

std::string describe_node(const Node& node) {
  switch (node.kind) {
    case Node::Kind::input:
      return fmt::format("an input {}", describe(node.spec));
    case Node::Kind::constant:
      return fmt::format("a constant {}", describe(node.spec));
    case Node::Kind::part:
      return fmt::format("result {} of operation {}", std::get<int64_t>(node.attrs[0]),
                         node.inputs[0]);
    case Node::Kind::op:
      break;
  }
  const std::string attrs = to_string(*node.op, node.attrs);
  return fmt::format("{}{}{} -> {}", node.op->name, attrs.empty() ? "" : " ", attrs,
                     describe(node.spec));
}

std::optional<std::string> node_difference(const Trace& a, const Trace& b, Value v) {
  const Node& m = a.graph[v];
  const Node& n = b.graph[v];
  if (m.kind != n.kind || m.op != n.op || m.attrs != n.attrs || m.spec != n.spec) {
    return fmt::format("operation {}: it was {}, now it is {}", v, describe_node(m),
                       describe_node(n));
  }
  if (m.inputs != n.inputs)
    return fmt::format("operation {} ({}) takes other operands", v, describe_node(n));
  if (m.kind != Node::Kind::constant) return std::nullopt;
  if (contains(a.host_made, v) != contains(b.host_made, v))
    return fmt::format("constant {} changed its origin", v);
  if (contains(a.host_made, v)) {
    if (same_bytes(m.constant, n.constant)) return std::nullopt;
    return fmt::format(
        "operation {}: a {} made from host data has another value than before; pass it as a Scalar "
        "or Tensor argument",
        v, describe(m.spec));
  }
  if (same_memory(m.constant, n.constant)) return std::nullopt;
  return fmt::format(
      "operation {}: another captured tensor {} than before; pass it as an argument or use a "
      "Variable",
      v, describe(m.spec));
}

bool same_but_sizes(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  const auto* const dims = std::get_if<Dims>(&a);  // axes, but also shapes
  return dims != nullptr ? dims->size() == std::get<Dims>(b).size() : a == b;
}

bool same_but_sizes(const Trace& a, const Trace& b, Value v) {
  const Node& m = a.graph[v];
  const Node& n = b.graph[v];
  if (m.kind != n.kind || m.op != n.op || m.inputs != n.inputs || m.spec.dtype != n.spec.dtype ||
      m.spec.is_weak != n.spec.is_weak || m.spec.shape.size() != n.spec.shape.size() ||
      m.attrs.size() != n.attrs.size() || contains(a.host_made, v) != contains(b.host_made, v))
    return false;
  for (std::size_t i = 0; i < m.attrs.size(); ++i) {
    if (!same_but_sizes(m.attrs[i], n.attrs[i])) return false;
  }
  if (m.kind != Node::Kind::constant) return true;
  // A number made by host code may be a size: "/ n".
  if (contains(a.host_made, v)) return m.spec == n.spec;
  return same_memory(m.constant, n.constant);
}

}  // namespace

std::string text_of(const ReadSite& site) {
  if (std::string given = given_place(); !given.empty()) return given;
  if (site.place.line() != 0)
    return fmt::format("{}:{}", site.place.file_name(), site.place.line());
  std::string place = describe_users_call();
  if (place.empty() && site.return_address != nullptr)
    return describe_return_address(site.return_address);
  return place;
}

bool differ_only_in_sizes(const Trace& a, const Trace& b) {
  if (a.graph.nodes.size() != b.graph.nodes.size() || a.inputs != b.inputs || a.empty != b.empty ||
      a.assigned != b.assigned || a.cleared != b.cleared || a.graph.outputs != b.graph.outputs ||
      a.returned != b.returned || a.backward != b.backward || a.guards != b.guards ||
      a.numbers != b.numbers)
    return false;
  for (Value v = 0; v < a.graph.nodes.size(); ++v) {
    if (!same_but_sizes(a, b, v)) return false;
  }
  return true;
}

std::optional<std::string> first_difference(const Trace& before, const Trace& now) {
  const std::size_t common = std::min(before.graph.nodes.size(), now.graph.nodes.size());
  for (Value v = 0; v < common; ++v) {
    if (auto difference = node_difference(before, now, v)) return difference;
  }
  if (before.graph.nodes.size() != now.graph.nodes.size()) {
    const Trace& longer = before.graph.nodes.size() > common ? before : now;
    return fmt::format("it recorded {} operations, now {}; the first extra one is {}",
                       before.graph.nodes.size(), now.graph.nodes.size(),
                       describe_node(longer.graph.nodes[common]));
  }
  if (before.inputs != now.inputs || before.empty != now.empty) return "other Variables are read";
  if (before.assigned != now.assigned || before.cleared != now.cleared)
    return "other Variables are assigned";
  if (before.graph.outputs != now.graph.outputs || before.returned != now.returned)
    return "other values are returned";
  if (before.backward != now.backward) return "gradients flow another way";
  if (before.guards != now.guards || before.numbers != now.numbers)
    return "other host values are read";
  return std::nullopt;
}

}  // namespace nitinol::tracer
