// CompiledFunction: the untyped half of Compiled<F>.
#pragma once

#include "core/dtype.h"
#include "core/function_ref.h"
#include "core/tensor.h"
#include "jit/describe.h"
#include "jit/explain.h"
#include "jit/leaves.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

enum class ResultCheck : uint8_t;  // core/result_check.h

/// When trusted traces are recorded again and compared.
enum class Check : uint8_t {
  scheduled,  ///< at calls 4, 8, 16 … 1024 of a signature, then every 1024th; and by time
  always,     ///< at every call: for tests of the user's function
  never,      ///< for benchmarks that say so
};

struct CompileOptions {
  std::string name = {};  ///< shown by explain() and in the log; default: "function"
  Check check = Check::scheduled;
  /// Check::scheduled also records a call again when this time has passed since the signature's
  /// last recording, but never two calls in a row, and never more often than costs 1 % of the time:
  /// not before 100 times what a recorded call takes have passed since that happened to any
  /// signature of the function. So a host value that changed unseen is noticed after that long, or
  /// at the second call if that comes later. 0: by the number of calls alone.
  std::chrono::milliseconds check_interval{10};
  /// How many signatures are kept. When all are in use, calls with others run eagerly.
  std::size_t signature_limit = 256;
  /// Compile on a thread of the function's own; calls run eagerly until the Plan is there. Results
  /// have the same bits either way; only the pause goes away.
  bool in_background = false;
  /// Code for the CPU that is nowhere yet, in memory or on disk, is made with little effort first,
  /// in about two thirds of the time; what is launched again is then made well by a thread of the
  /// library's, and takes its place while it runs. Results have the same bits either way. Off, as a
  /// process that ends soon leaves nothing on disk, so that the next one has to wait again.
  bool quick_code = false;
  /// The function runs in an nn::Autocast scope of this dtype.
  std::optional<DType> autocast = {};
  /// The function runs in a ResultCheckScope: NaN in what it gives is an Error that says where it
  /// came from. Takes memory, as nothing is updated in place, and time.
  bool check_nan = false;
  /// The function runs in a ResultCheckScope: each compiled call also runs op by op, and is an
  /// Error if the bits differ (ResultCheck::shadow). Not beside check_nan.
  bool shadow = false;
  /// Names of the parameters, for explain() and the log.
  std::vector<std::string> arguments = {};
};

namespace jit {

/// What numbers among the fixed leaves of a call stand for, where they do not stand for themselves.
class Meaning {
 public:
  virtual ~Meaning() = default;
  /// Whether one of the things that they stand for is gone: no call will have these leaves again.
  [[nodiscard]] virtual bool has_ended() const = 0;
};

/// What the typed half does for one call.
class Caller {
 public:
  virtual ~Caller() = default;
  /// Runs the user's function on the caller's arguments and keeps its result.
  virtual void run() = 0;
  /// Runs it with these stand-ins for the tensor and Scalar leaves.
  virtual void run_on(std::span<const Tensor> tensors, std::span<const Tensor> scalars) = 0;
  /// After run(): the result's leaves.
  virtual void result_leaves(Leaves& leaves) = 0;
  /// After run(): changes the result's tensors.
  virtual void change_result(FunctionRef<void(Tensor&)> change) = 0;
  /// What the arguments look like, for explain(), causes and errors: leaf by leaf, in an order that
  /// depends on their structure alone. `names` are the parameters', as far as they have any.
  virtual std::vector<Word> describe_arguments(std::span<const std::string> names) = 0;
  /// Of the arguments' fixed leaves; a signature holds it. Null: they stand for themselves.
  virtual std::shared_ptr<const Meaning> meaning() { return nullptr; }
  /// After run(): the result without its tensors.
  virtual std::shared_ptr<const void> result_form() = 0;
  /// Makes the result from its form and tensors, which it takes.
  virtual void restore(const void* form, std::span<Tensor> tensors) = 0;
};

class Dispatcher;

/// The untyped half of Compiled<F>.
class CompiledFunction {
 public:
  /// `is_const`: the function's call operator is const; otherwise no two threads run it at once.
  CompiledFunction(CompileOptions options, bool is_const);
  ~CompiledFunction();
  CompiledFunction(const CompiledFunction&) = delete;
  CompiledFunction& operator=(const CompiledFunction&) = delete;

  void call(const Leaves& leaves, Caller& caller);
  /// Runs the function as written, with Variables committed at the end.
  void call_eagerly(const Leaves& leaves, Caller& caller);
  /// Runs the function as a part of the call that this thread is recording.
  void call_inlined(Caller& caller);
  /// Drops the signatures whose meaning has ended.
  void forget_ended();
  [[nodiscard]] Explanation explain() const;
  /// A Stance, or -1: the thread's.
  void set_stance(int stance);

 private:
  std::optional<DType> autocast_;
  const ResultCheck check_;
  const bool has_scope_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace jit
}  // namespace nitinol

#pragma GCC visibility pop
