// Letting go of a tape must not recurse: a chain of 100,000 ops would overflow the stack. Nodes
// that only a node held wait in a list of the thread's until that one is gone.
#include "autograd/node.h"

#include "core/per_thread.h"
#include "core/profiling.h"
#include "core/thread_settings.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace nitinol::autograd {
namespace {

std::atomic<uint64_t> sequence = 1;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool enabled = true;
constinit thread_local int depth = 0;  ///< of differentiations

constinit thread_local bool lets_go = false;
constinit thread_local Node* waiting = nullptr;

}  // namespace

/// While the outermost one of a thread lives, nodes that nobody holds wait for its end.
class LettingGo {
 public:
  LettingGo() : is_outermost_(!std::exchange(lets_go, true)) {}
  LettingGo(const LettingGo&) = delete;
  LettingGo& operator=(const LettingGo&) = delete;
  ~LettingGo() {
    if (!is_outermost_) return;
    while (waiting != nullptr) delete std::exchange(waiting, waiting->next_);
    lets_go = false;
  }
  static void later(Node& node) { node.next_ = std::exchange(waiting, &node); }

 private:
  bool is_outermost_;
};

constinit thread_local CaptureScope* thread_tape::captures = nullptr;
using thread_tape::captures;

void* Node::operator new(std::size_t /*size*/) {
  return BlockPool<Node>::take();
}

void Node::operator delete(void* node) {
  BlockPool<Node>::give(node);
}

void Node::end() noexcept {
  if (lets_go) return LettingGo::later(*this);
  const LettingGo scope;
  delete this;
}

void Node::let_all_go() noexcept {
  const LettingGo scope;
  inputs.clear();
  saved.clear();
  result = Tensor();
  if (custom) custom->rule = nullptr;
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
  if (profiling::is_on() && (kind == Node::Kind::op || kind == Node::Kind::custom))
    profiling::note_node(node->sequence);
  return adopt<TensorSlot>(node);
}

Handle<TensorSlot> make_custom_node(std::string name, Node*& node) {
  Handle<TensorSlot> handle = make_node(Node::Kind::custom, node);
  node->custom = std::make_unique<Custom>();
  node->custom->name = std::move(name);
  return handle;
}

Tensor with_node(const Tensor& value, Handle<TensorSlot> node) {
  Tensor copy = bare_copy(value);
  copy.internals().gradient = std::move(node);
  return copy;
}

Tensor as_output(const Tensor& value, const Handle<TensorSlot>& whole, std::size_t output) {
  Node* node = nullptr;
  Handle<TensorSlot> handle = make_node(Node::Kind::output, node);
  node->inputs.push_back(whole);
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
