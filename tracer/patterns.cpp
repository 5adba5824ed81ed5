// Recordings of loops that ran differently often have no node in common by number. But each node of
// the one looks like some node of the other as far as one sees from there: the operation, its
// operands, and theirs. What a node looks like is a hash, its pattern. A chance equality of two
// would make a recording count as expected that is not; it is compared with a second one all the
// same, at the signature's fourth call.
#include "core/host_access.h"
#include "tracer/trace.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace nitinol::tracer {
namespace {

/// How many steps of operands a pattern sees.
constexpr int depth = 2;

void mix(uint64_t& hash, uint64_t with) {
  hash = (hash ^ with) * 0x9e3779b97f4a7c15U;
  hash ^= hash >> 32;
}

uint64_t hash_of(const Attr& attr) {
  uint64_t hash = attr.index();
  if (const auto* const dims = std::get_if<Dims>(&attr)) {
    mix(hash, static_cast<uint64_t>(dims->size()));  // axes, but also shapes
  } else if (const auto* const number = std::get_if<double>(&attr)) {
    mix(hash, std::hash<double>()(*number));
  } else if (const auto* const integer = std::get_if<int64_t>(&attr)) {
    mix(hash, static_cast<uint64_t>(*integer));
  } else if (const auto* const dtype = std::get_if<DType>(&attr)) {
    mix(hash, static_cast<uint64_t>(*dtype));
  } else {
    mix(hash, std::get<bool>(attr) ? 1 : 0);
  }
  return hash;
}

/// A captured tensor is told by its memory, one made of host data by its bytes.
void mix_constant(uint64_t& hash, const Tensor& constant, bool is_host_made, HostNumbers numbers) {
  const TensorData& data = constant.internals();
  if (is_host_made) {
    for (const int64_t size : data.spec.shape) mix(hash, static_cast<uint64_t>(size));
    if (numbers == HostNumbers::may_differ || constant.size() == 0) return;
    const HostElements elements(data);
    const auto bytes = static_cast<std::size_t>(constant.size()) * size_of(data.spec.dtype);
    const std::string_view text(reinterpret_cast<const char*>(elements.first()), bytes);
    return mix(hash, std::hash<std::string_view>()(text));
  }
  mix(hash, data.is_number() ? data.number : reinterpret_cast<uintptr_t>(data.storage.get()));
  mix(hash, static_cast<uint64_t>(data.offset));
  for (const int64_t stride : data.strides) mix(hash, static_cast<uint64_t>(stride));
}

/// What the node is, without its operands.
uint64_t kind_of(const Trace& trace, Value v, HostNumbers numbers) {
  const Node& node = trace.graph[v];
  uint64_t hash = static_cast<uint64_t>(node.kind);
  mix(hash, reinterpret_cast<uintptr_t>(node.op));
  mix(hash, static_cast<uint64_t>(node.spec.dtype));
  mix(hash, static_cast<uint64_t>(node.spec.shape.size()) * 2 + (node.spec.is_weak ? 1 : 0));
  for (const Attr& attr : node.attrs) mix(hash, hash_of(attr));
  if (node.kind == Node::Kind::constant) {
    const bool is_host_made = std::ranges::binary_search(trace.host_made, v);
    mix_constant(hash, node.constant, is_host_made, numbers);
  }
  return hash;
}

std::vector<uint64_t> patterns_of(const Trace& trace, HostNumbers numbers) {
  std::vector<uint64_t> patterns;
  for (Value v = 0; v < trace.graph.nodes.size(); ++v)
    patterns.push_back(kind_of(trace, v, numbers));
  for (std::size_t i = 0; i < trace.graph.inputs.size(); ++i)
    mix(patterns[trace.graph.inputs[i]], i);
  for (int step = 0; step < depth; ++step) {
    const std::vector<uint64_t> before = patterns;
    for (Value v = 0; v < patterns.size(); ++v) {
      const Node& node = trace.graph[v];
      std::vector<uint64_t> operands;
      for (const Value input : node.inputs) operands.push_back(before[input]);
      if (node.op != nullptr && node.op->arity < 0) {  // of any number: which there are
        std::ranges::sort(operands);
        operands.erase(std::ranges::unique(operands).begin(), operands.end());
      }
      for (const uint64_t operand : operands) mix(patterns[v], operand);
    }
  }
  return patterns;
}

bool have_same_ends(const Trace& a, const Trace& b) {
  if (a.inputs != b.inputs || a.empty != b.empty || a.assigned != b.assigned ||
      a.cleared != b.cleared || a.guards != b.guards || a.numbers != b.numbers ||
      a.result_count != b.result_count || a.returned != b.returned ||
      a.graph.outputs.size() != b.graph.outputs.size() ||
      a.backward.has_value() != b.backward.has_value())
    return false;
  if (!a.backward) return true;
  const auto targets = [](const Trace& trace) {
    std::vector<TraceInput> found;
    for (const Backward::Part& part : trace.backward->parts) {
      if (std::ranges::find(found, part.target) == found.end()) found.push_back(part.target);
    }
    return found;
  };
  return a.backward->results == b.backward->results && targets(a) == targets(b);
}

}  // namespace

bool repeats_parts_of(const Trace& known, const Trace& now, HostNumbers numbers) {
  if (!have_same_ends(known, now)) return false;
  const std::vector<uint64_t> before = patterns_of(known, numbers);
  const std::vector<uint64_t> patterns = patterns_of(now, numbers);
  for (std::size_t i = 0; i < now.graph.outputs.size(); ++i) {
    if (before[known.graph.outputs[i]] != patterns[now.graph.outputs[i]]) return false;
  }
  const std::unordered_set<uint64_t> seen(before.begin(), before.end());
  return std::ranges::all_of(patterns, [&](uint64_t pattern) { return seen.contains(pattern); });
}

}  // namespace nitinol::tracer
