// Node: how one tensor was computed, for going back.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "core/variable.h"

#include <boost/container/small_vector.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::autograd {

/// What the rule of a custom node is called with.
struct CustomCall {
  std::span<const Tensor> gradients;  ///< per output; undefined where nothing used the output
  bool builds_tape = false;           ///< the result must be differentiable itself
  /// Per input: whether another gradient of it has been added before.
  const std::function<bool(std::size_t)>& has_arrived;
};

/// A gradient of input number `input` of a custom node, or of `variable` if that is defined.
struct Contribution {
  std::size_t input = 0;
  Tensor gradient;
  Variable variable = {};
};

/// Gradients of a custom node's inputs, in the order in which they are to be added: none, one or
/// several of each.
using CustomRule = std::function<std::vector<Contribution>(const CustomCall&)>;

/// One for each input: most ops have two at most.
template <class T>
using OfInputs = boost::container::small_vector<T, 2>;

/// What a function with a rule of its own leaves on the tape.
struct Custom {
  std::string name;
  CustomRule rule;
  bool reads_variables = false;  ///< gradients may flow to Variables besides the inputs
};

/// An application of an op, a leaf, or a function with a rule of its own. Immutable once linked,
/// until the tape is freed. A tensor's `gradient` slot holds it.
class Node final : public TensorSlot {
 public:
  static void* operator new(std::size_t size);
  static void operator delete(void* node);
  void end() noexcept override;

  enum class Kind : uint8_t {
    op,      ///< one op
    leaf,    ///< an argument that gradients are asked for, or a Variable
    custom,  ///< several outputs
    output,  ///< output number `output` of `inputs[0]`, which has several
  };
  Kind kind = Kind::op;
  uint64_t sequence = 0;   ///< order of creation: what was computed from it has a larger one
  const Op* op = nullptr;  ///< kind op
  Attrs attrs;
  Spec spec;                            ///< of the result
  OfInputs<Handle<TensorSlot>> inputs;  ///< their nodes; null: nothing wants that gradient
  OfInputs<Spec> input_specs;
  OfInputs<Tensor> saved;  ///< kind op: of each input, or undefined if the rule does not look at it
  uint64_t trace = 0;      ///< the trace that the result was recorded in, and its number there
  uint32_t value = 0;
  Tensor result;                   ///< if the rule looks at it, without its slot
  Variable variable;               ///< kind leaf: where the gradient gathers, if it is a Variable's
  std::unique_ptr<Custom> custom;  ///< kind custom
  int output_count = 1;            ///< kind custom, and ops of several results
  int output = 0;                  ///< kind output

  /// Lets go of all that backward needs: when the last Pin goes, if there is one.
  void free() noexcept;
  [[nodiscard]] bool is_freed() const { return (pins_.load() & freed_bit) != 0; }

 private:
  friend class Pin;
  friend class LettingGo;
  static constexpr uint32_t freed_bit = uint32_t{1} << 31;
  void let_all_go() noexcept;

  mutable std::atomic<uint32_t> pins_ = 0;
  Node* next_ = nullptr;  ///< of those that wait for their end
};

/// While it lives, what a node holds is there: another thread's backward() may free the same tape.
/// Nothing if the node was freed before. The node itself is kept by who holds its handle.
class Pin {
 public:
  Pin() = default;
  explicit Pin(const Node& node) noexcept;
  Pin(Pin&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Pin& operator=(Pin&& other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Pin();
  [[nodiscard]] explicit operator bool() const { return node_ != nullptr; }

 private:
  const Node* node_ = nullptr;
};

/// The node of a tensor, or null.
[[nodiscard]] Node* node_of(const Tensor& tensor);
/// A fresh node with the next sequence number.
[[nodiscard]] Handle<TensorSlot> make_node(Node::Kind kind, Node*& node);
/// A node of kind custom.
[[nodiscard]] Handle<TensorSlot> make_custom_node(std::string name, Node*& node);
/// The same value, computed by `node`.
[[nodiscard]] Tensor with_node(const Tensor& value, Handle<TensorSlot> node);

/// The same value, as output number `output` of a node that has several.
[[nodiscard]] Tensor as_output(const Tensor& value, const Handle<TensorSlot>& whole,
                               std::size_t output);

/// The sequence number of the next node.
[[nodiscard]] uint64_t next_sequence();

/// What a function closes over: while it lives, ops are not noted for differentiation on this
/// thread, but what they use of earlier tapes is.
class CaptureScope {
 public:
  CaptureScope();
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  /// Notes that the function uses `tensor`.
  void note(const Tensor& tensor);
  /// Each once, in the order of their first use.
  [[nodiscard]] const std::vector<Tensor>& captured() const { return captured_; }

 private:
  bool was_enabled_;
  CaptureScope* outer_;
  uint64_t first_;  ///< nodes from here on are the function's own
  std::vector<Tensor> captured_;
};

namespace thread_tape {
/// The CaptureScope that is open on this thread, or null.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local CaptureScope* captures;
void note_use(Inputs tensors);
}  // namespace thread_tape

/// Notes for the CaptureScope that is open on this thread, if one is, that these are used.
inline void note_use(Inputs tensors) {
  if (thread_tape::captures != nullptr) thread_tape::note_use(tensors);
}

/// Whether ops note how to differentiate on this thread.
[[nodiscard]] bool is_enabled();
/// Sets that for this thread, and returns what it was: for scopes that do not nest.
bool set_enabled(bool enabled);
/// Sets that while it lives.
class EnabledScope {
 public:
  explicit EnabledScope(bool enabled);
  ~EnabledScope();
  EnabledScope(const EnabledScope&) = delete;
  EnabledScope& operator=(const EnabledScope&) = delete;

 private:
  bool before_;
  CaptureScope* captures_;  ///< closed meanwhile, if noting is switched off
};

/// How many differentiations of functions (grad, vjp, jvp) this thread's call is inside of.
[[nodiscard]] int differentiation_depth();
class DifferentiationScope {
 public:
  explicit DifferentiationScope(int order);
  ~DifferentiationScope();
  DifferentiationScope(const DifferentiationScope&) = delete;
  DifferentiationScope& operator=(const DifferentiationScope&) = delete;

 private:
  int order_;
};

}  // namespace nitinol::autograd

#pragma GCC visibility pop
