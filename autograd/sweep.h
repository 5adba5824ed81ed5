// Sweep: one pass over the tape from a result back to what it was computed from.
#pragma once

#include "autograd/gathered.h"
#include "autograd/node.h"

#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nitinol::autograd {

/// What a sweep does besides.
struct SweepOptions {
  bool keeps_tape = false;   ///< the tape can be swept again
  bool builds_tape = false;  ///< gradients are themselves differentiable
  bool keeps_parts = false;  ///< gradients of leaves and Variables are listed, not added up
  uint64_t first = 0;        ///< throws where it would go on to nodes that are older
};

/// Visits nodes from the youngest to the oldest, so each has all of its gradient when it is
/// visited. Gradients of one value are added in the order in which they arrive: a function of the
/// program alone.
class Sweep {
 public:
  explicit Sweep(SweepOptions options) : options_(options) {}

  /// A gradient that arrived at one of the nodes of end_at(), or (node null) at a Variable.
  struct Part {
    const Node* node = nullptr;
    Variable variable;
    Tensor gradient;
  };

  /// Does not go on beyond these nodes. It ends at Variables in any case.
  void end_at(std::span<const Node* const> nodes);
  /// The same, and visits only what leads to them.
  void stop_at(std::span<const Node* const> leaves);
  /// Adds a gradient of the value that `node` made.
  void add(const Handle<TensorSlot>& node, const Tensor& gradient);
  void run();

  /// After run(): the gradient that arrived at a leaf, or an undefined tensor.
  [[nodiscard]] Tensor at(const Node* leaf);
  /// After run() with keeps_parts: everything that arrived, in order.
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  /// After run(): gradients of Variables, in the order in which the first of each arrived.
  [[nodiscard]] const std::vector<std::pair<Variable, Tensor>>& variables() const {
    return variables_;
  }

 private:
  struct Arrived {
    Handle<TensorSlot> node;
    Pin pin;
    boost::container::small_vector<Gathered, 1> gradients;  ///< per output
  };
  struct Younger {
    bool operator()(const Node* a, const Node* b) const { return a->sequence < b->sequence; }
  };

  [[nodiscard]] bool has_arrived(const Handle<TensorSlot>& node) const;
  [[nodiscard]] bool is_end(const Node& node) const;
  [[nodiscard]] Gathered& at(const Handle<TensorSlot>& handle);
  [[nodiscard]] Gathered& at(const Variable& variable);
  [[nodiscard]] Gathered& new_part(const Node& node);
  [[nodiscard]] Gathered& new_part(const Node* node, const Variable& variable);
  [[nodiscard]] Gathered& part_beside(const Node& node, const Dims& starts, const Shape& sizes);
  void add(const Variable& variable, const Tensor& gradient);
  void add_slice(const Handle<TensorSlot>& handle, const Tensor& gradient, const Dims& starts,
                 const Spec& whole);
  void visit(Node& node, const std::vector<Tensor>& gradients);
  void visit_op(Node& node, const std::vector<Tensor>& gradients);
  [[nodiscard]] bool visit_slice(Node& node, const Tensor& gradient);
  void visit_custom(Node& node, const std::vector<Tensor>& gradients);
  void pass(const Node& node, std::size_t k, const Tensor& gradient);
  [[nodiscard]] bool wants(const Handle<TensorSlot>& node);
  [[nodiscard]] bool leads_to_leaf(const Node* node);

  SweepOptions options_;
  bool has_leaves_ = false;
  uint64_t oldest_leaf_ = 0;
  std::unordered_map<const Node*, bool> leads_;
  std::unordered_map<const Node*, Gathered> at_leaves_;
  std::unordered_map<const Node*, Arrived> arrived_;
  std::priority_queue<Node*, std::vector<Node*>, Younger> waiting_;
  std::vector<std::pair<Variable, Gathered>> at_variables_;
  std::unordered_map<const VariableCell*, std::size_t> variable_index_;  ///< of at_variables_
  std::vector<std::pair<Variable, Tensor>> variables_;
  std::vector<Part> parts_;
  std::vector<Gathered> at_parts_;  ///< their gradients, until the sweep has run
  std::unordered_map<const void*, std::size_t> last_part_;  ///< of a leaf, or a Variable's cell
};

/// Whether `result` was computed from anything tracked besides `leaves`: then its gradients can be
/// asked for again.
[[nodiscard]] bool depends_on_more(const Tensor& result, std::span<const Node* const> leaves);

/// The Error of a function that was run again to go back through it, and `did` what it had not
/// done.
[[noreturn]] void throw_does_otherwise(const std::string& did);

/// `gradient` summed over broadcast axes and cast: a gradient of an operand of this spec.
[[nodiscard]] Tensor reduced_to(const Tensor& gradient, const Spec& spec);

}  // namespace nitinol::autograd
