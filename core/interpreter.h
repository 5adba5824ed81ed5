// Interpreter: the one noun through which layers hook into what a program does.
//
// `apply(op, ...)` infers the result's spec and calls current().run(...), with operands that lie in
// another order than row-major as views of what lies in memory (eager/memory_order.h). Eager's own,
// at the bottom, computes; a recorder runs the one below it and notes what happened. Then autograd
// notes on a result of tracked operands how to go back. No folder includes another to hook in.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <cstdint>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

class Variable;
class PendingCall;
struct HostValueGuard;

/// Where a data read happened and what it was called.
struct ReadSite {
  const char* what;  ///< "item()", "bool(tensor)", "print"
  std::source_location place;
  const void* return_address = nullptr;  ///< instead of place, where a call cannot take one
};

/// What happens when an op is applied, data is looked at, or a Variable is touched. Two questions
/// are asked of what is on top: who sees the ops, and who answers for Variables.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  /// Whether it is to see each op, each look at data and at a HostValue: then a composite op comes
  /// expanded, and nothing takes the short way past run().
  [[nodiscard]] virtual bool watches() const { return true; }
  /// What is asked before ops reach run(), or null (core/pending.h).
  [[nodiscard]] virtual PendingCall* pending() { return nullptr; }
  /// The result of `op`, whose spec was inferred. Composite ops arrive here expanded.
  virtual Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) = 0;
  /// The results of an op of several (Op::infer_all), whose specs were inferred.
  virtual std::vector<Tensor> run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                                      std::span<const Spec> specs) = 0;
  /// Called before the host looks at a tensor's elements.
  virtual void read(const Tensor& tensor, const ReadSite& site) = 0;
  virtual Tensor get(const Variable& variable) = 0;
  virtual void set(const Variable& variable, const Tensor& value) = 0;
  /// Called with each tensor made from host data.
  virtual void created(const Tensor& tensor) = 0;
  /// Called when a HostValue is read: the compiled function runs its Plan only while the value is
  /// the same.
  virtual void guard(const HostValueGuard& guard) = 0;
};

/// The thread's interpreter; eager's own, which computes, unless a layer has put itself on top.
/// (eager/interpreter.cpp)
[[nodiscard]] Interpreter& current();

/// Notes on `result` how it is differentiated, unless it cannot be or gradients are switched off.
/// Some operand tracks gradients. (autograd/tape.cpp)
void note_gradient(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& result);
/// The same of several results.
void note_gradients(const Op& op, Inputs inputs, const Attrs& attrs, std::span<Tensor> results);

namespace thread_interpreter {
[[gnu::tls_model("initial-exec")]] extern constinit thread_local Interpreter* top;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local bool watches;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local PendingCall* pending;
}  // namespace thread_interpreter

/// What has been put on top of eager's own interpreter on this thread, or null.
[[nodiscard]] inline Interpreter* top_interpreter() {
  return thread_interpreter::top;
}
/// Whether something answers for Variables: a call keeps its assignments to itself.
[[nodiscard]] inline bool is_held() {
  return thread_interpreter::top != nullptr;
}
/// Whether something on this thread watches().
[[nodiscard]] inline bool is_watched() {
  return thread_interpreter::watches;
}

/// The call on this thread that keeps results pending, or null.
[[nodiscard]] inline PendingCall* pending_call() {
  return thread_interpreter::pending;
}

/// Puts `interpreter` on top for this thread while it lives.
class InterpreterScope {
 public:
  explicit InterpreterScope(Interpreter& interpreter)
      : below_(std::exchange(thread_interpreter::top, &interpreter)),
        was_watched_(std::exchange(thread_interpreter::watches, interpreter.watches())),
        pending_before_(std::exchange(thread_interpreter::pending, interpreter.pending())) {}
  ~InterpreterScope() {
    thread_interpreter::top = below_;
    thread_interpreter::watches = was_watched_;
    thread_interpreter::pending = pending_before_;
  }
  InterpreterScope(const InterpreterScope&) = delete;
  InterpreterScope& operator=(const InterpreterScope&) = delete;

 private:
  Interpreter* below_;
  bool was_watched_;
  PendingCall* pending_before_;
};

/// The interpreter at the bottom, which computes. (eager/interpreter.cpp)
[[nodiscard]] Interpreter& base_interpreter();

/// Number of traces begun in this process so far; a tensor's birth is the epoch when it was made.
[[nodiscard]] uint64_t current_epoch();
/// Begins a new epoch and returns it: tensors made from now on are younger than the trace that
/// calls this.
uint64_t begin_epoch();

}  // namespace nitinol

#pragma GCC visibility pop
