// Trace: what one recorded call did, as data.
#pragma once

#include "core/graph.h"
#include "core/host_value.h"
#include "core/place.h"
#include "core/variable.h"

#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {
struct ReadSite;
}

namespace nitinol::tracer {

/// Where an input of the graph comes from at each call.
struct TraceInput {
  enum class Kind : uint8_t {
    tensor,
    scalar,
    variable,
    seed,  ///< of a Backward: the gradient of one of its results
  };
  Kind kind = Kind::tensor;
  int leaf = -1;  ///< position among the call's leaves of that kind; -1: a captured Variable
  bool is_gradient =
      false;          ///< kind variable: not the Variable itself but what gathers its gradient
  Variable captured;  ///< kind variable with leaf -1: bound by cell
  friend bool operator==(const TraceInput&, const TraceInput&) = default;
};

/// Why a trace cannot stand for the function, and where that was seen.
struct Obstacle {
  std::string reason;
  std::string place;  ///< "file:line", or empty
};

/// How gradients of a call's results reach its inputs: the end of the trace's graph.
struct Backward {
  /// A gradient of an input. One input may have several, which add up.
  struct Part {
    TraceInput target;
    Value value;
    friend bool operator==(const Part&, const Part&) = default;
  };
  Value first = 0;                   ///< nodes from here on belong to it
  std::vector<std::size_t> results;  ///< positions of the results; one seed each, in this order
  std::vector<Part> parts;           ///< in the order in which eager adds them
  friend bool operator==(const Backward&, const Backward&) = default;
};

/// A result whose tape a backward() during the call has freed. It still tracks gradients, and says
/// so to whoever calls backward() again.
struct SpentResult {
  std::size_t result = 0;
  Handle<TensorSlot> node;
};

/// A Scalar argument that host code looked at: what was recorded holds for this number only.
struct NumberGuard {
  int leaf = 0;
  uint64_t bits = 0;  ///< Scalar::bits()
  std::string what;   ///< "to_double()"
  std::string place;  ///< "file:line", or empty
  friend bool operator==(const NumberGuard& a, const NumberGuard& b) {
    return a.leaf == b.leaf && a.bits == b.bits;
  }
};

/// "file:line" of a look at data, or empty.
[[nodiscard]] std::string text_of(const ReadSite& site);

/// A result that may be stored where an input lies, if the run lends it.
struct Replacement {
  std::size_t result = 0;
  int leaf = 0;  ///< of the input, a tensor
};

/// Which Variable's value an input is, a tensor of that number; nothing: none, or it is not known.
using ValueOf = FunctionRef<std::optional<ValueId>(std::size_t)>;

/// A recorded call.
struct Trace {
  Graph graph;
  std::vector<TraceInput> inputs;  ///< parallel to graph.inputs
  std::vector<TraceInput>
      assigned;  ///< Variables whose new values are graph.outputs[result_count ...]
  std::size_t result_count = 0;
  std::vector<Replacement> replacements;  ///< instead of `assigned`, of a part of a call
  std::vector<int> values;  ///< inputs, tensors by leaf, that are values of Variables (ValueOf)
  /// Per result: the tensor argument that it is, by identity, or -1; empty if none is. (What has an
  /// argument's value but not its handle, such as stop_gradient() of it, is a tensor of its own.)
  std::vector<int> returned;
  std::vector<TraceInput> empty;    ///< gradients that were read and were not there
  std::vector<TraceInput> cleared;  ///< gradients that are not there when the call ends
  std::vector<Value>
      host_made;  ///< constants made from host data during the call: compared by bytes
  std::vector<HostValueGuard> guards;
  std::vector<NumberGuard> numbers;                       ///< by leaf, each once
  std::optional<Backward> backward;                       ///< if results track gradients
  std::shared_ptr<const std::vector<SpentResult>> spent;  ///< null if there are none
  std::shared_ptr<const std::vector<CallSite>> places;    ///< by Node::origin; null: not noted
  std::optional<Obstacle> obstacle;

  /// "file:line" of a Node::origin; empty if it is not known.
  [[nodiscard]] std::string place_of(uint32_t origin) const {
    return places && origin < places->size() ? (*places)[origin].text() : "";
  }
};

/// What differs first between two recordings of one function, as a sentence, or nothing if they
/// agree. Captured tensors are compared by identity, tensors made from host data by bytes.
[[nodiscard]] std::optional<std::string> first_difference(const Trace& before, const Trace& now);

/// Whether two recordings, of signatures that differ only in sizes, do the same but for sizes: the
/// same operations on the same operands, the same captured state, the same host values seen. Such a
/// second recording says what another one of its own signature would say.
[[nodiscard]] bool differ_only_in_sizes(const Trace& a, const Trace& b);

/// Whether numbers that host code made are to be the same, too.
enum class HostNumbers : uint8_t { may_differ, same };
/// Whether all that `now` does is done in `known` too, on operands made alike, if perhaps at other
/// sizes and more or less often: recordings of a loop over lengths that differ.
[[nodiscard]] bool repeats_parts_of(const Trace& known, const Trace& now, HostNumbers numbers);

}  // namespace nitinol::tracer

#pragma GCC visibility pop
