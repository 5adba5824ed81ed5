// Trace: what one recorded call did, as data.
#pragma once

#include "core/graph.h"
#include "core/host_value.h"
#include "core/variable.h"

#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace nitinol::tracer {

/// Where an input of the graph comes from at each call.
struct TraceInput {
  enum class Kind : uint8_t { tensor, scalar, variable };
  Kind kind = Kind::tensor;
  int leaf = -1;      ///< position among the call's leaves of that kind; -1: a captured Variable
  Variable captured;  ///< kind variable with leaf -1: bound by cell
};

/// Why a trace cannot stand for the function, and where that was seen.
struct Obstacle {
  std::string reason;
  std::string place;  ///< "file:line", or empty
};

/// A recorded call.
struct Trace {
  Graph graph;
  std::vector<TraceInput> inputs;  ///< parallel to graph.inputs
  std::vector<TraceInput>
      assigned;  ///< Variables whose new values are graph.outputs[result_count ...]
  std::size_t result_count = 0;
  std::vector<Value>
      host_made;  ///< constants made from host data during the call: compared by bytes
  std::vector<HostValueGuard> guards;
  std::optional<Obstacle> obstacle;
};

/// What differs first between two recordings of one function, as a sentence, or nothing if they
/// agree. Captured tensors are compared by identity, tensors made from host data by bytes.
[[nodiscard]] std::optional<std::string> first_difference(const Trace& before, const Trace& now);

}  // namespace nitinol::tracer
