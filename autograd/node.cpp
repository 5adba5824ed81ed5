// Letting go of a tape must not recurse: a chain of 100,000 ops would overflow the stack. What a
// node holds goes to a list of the thread's, which the outermost destructor empties.
#include "autograd/node.h"

#include "core/thread_settings.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

namespace nitinol::autograd {
namespace {

std::atomic<uint64_t> sequence = 1;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool enabled = true;
constinit thread_local int depth = 0;  ///< of differentiations

struct Remains {
  std::vector<Handle<TensorSlot>> inputs;
  std::vector<Tensor> saved;
  Tensor result;
  CustomRule rule;
};

/// Null while nothing is being let go of.
constinit thread_local std::vector<Remains>* graveyard = nullptr;

void let_go(Remains remains) {
  try {
    if (graveyard != nullptr) return graveyard->push_back(std::move(remains));
  } catch (const std::bad_alloc&) {  // goes here and now, at the cost of stack
    return;
  }
  std::vector<Remains> waiting;
  graveyard = &waiting;
  { const Remains first = std::move(remains); }  // what it held alone is waiting now
  while (!waiting.empty()) {
    const Remains next = std::move(waiting.back());
    waiting.pop_back();
  }
  graveyard = nullptr;
}

}  // namespace

constinit thread_local CaptureScope* thread_tape::captures = nullptr;
using thread_tape::captures;

Node::~Node() {
  if (!is_freed()) let_all_go();
}

void Node::let_all_go() noexcept {
  let_go({std::move(inputs), std::move(saved), std::move(result), std::move(rule)});
  inputs.clear();
  saved.clear();
  result = Tensor();
  rule = nullptr;
}

void Node::free() noexcept {
  if (pins_.fetch_or(freed_bit) == 0) let_all_go();
}

Pin::Pin(const Node& node) noexcept {
  uint32_t pins = node.pins_.load();
  do {
    if ((pins & Node::freed_bit) != 0) return;
  } while (!node.pins_.compare_exchange_weak(pins, pins + 1));
  node_ = &node;
}

Pin::~Pin() {
  if (node_ == nullptr || node_->pins_.fetch_sub(1) != (Node::freed_bit | 1)) return;
  const_cast<Node*>(node_)->let_all_go();  // NOLINT: nodes are made as such
}

Node* node_of(const Tensor& tensor) {
  return static_cast<Node*>(tensor.internals().gradient.get());
}

Handle<TensorSlot> make_node(Node::Kind kind, Node*& node) {
  node = new Node;  // owned by the handle
  node->kind = kind;
  node->sequence = sequence.fetch_add(1, std::memory_order_relaxed);
  return adopt<TensorSlot>(node);
}

Tensor with_node(const Tensor& value, Handle<TensorSlot> node) {
  Tensor copy = bare_copy(value);
  copy.internals().gradient = std::move(node);
  return copy;
}

Tensor as_output(const Tensor& value, const Handle<TensorSlot>& whole, std::size_t output) {
  Node* node = nullptr;
  Handle<TensorSlot> handle = make_node(Node::Kind::output, node);
  node->inputs = {whole};
  node->output = static_cast<int>(output);
  node->spec = value.spec();
  return with_node(value, std::move(handle));
}

bool is_enabled() {
  bring_settings_up_to_date();
  return enabled;
}

bool set_enabled(bool enable) {
  return std::exchange(enabled, enable);
}

EnabledScope::EnabledScope(bool enable) : captures_(captures) {
  bring_settings_up_to_date();
  before_ = set_enabled(enable);
  if (!enable) captures = nullptr;
}

EnabledScope::~EnabledScope() {
  enabled = before_;
  captures = captures_;
}

uint64_t next_sequence() {
  return sequence.load(std::memory_order_relaxed);
}

CaptureScope::CaptureScope()
    : was_enabled_(is_enabled()),  // brings it up to date
      outer_(std::exchange(captures, this)),
      first_(next_sequence()) {
  enabled = false;
}

CaptureScope::~CaptureScope() {
  enabled = was_enabled_;
  captures = outer_;
}

void CaptureScope::note(const Tensor& tensor) {
  if (outer_ != nullptr) outer_->note(tensor);
  const Node* const node = node_of(tensor);
  if (node == nullptr || node->sequence >= first_) return;
  const auto same = [&](const Tensor& other) { return node_of(other) == node; };
  if (std::ranges::none_of(captured_, same)) captured_.push_back(tensor);
}

void thread_tape::note_use(Inputs tensors) {
  for (const Tensor* tensor : tensors) captures->note(*tensor);
}

int differentiation_depth() {
  return depth;
}

DifferentiationScope::DifferentiationScope(int order) : order_(order) {
  depth += order;
}

DifferentiationScope::~DifferentiationScope() {
  depth -= order_;
}

}  // namespace nitinol::autograd
