// CompiledFunction: the untyped half of Compiled<F>: signatures, recording, Plans.
#pragma once

#include "core/function_ref.h"
#include "core/tensor.h"
#include "core/variable.h"
#include "jit/explain.h"
#include "jit/leaves.h"
#include "tracer/trace.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// When trusted traces are recorded again and compared.
enum class Check : uint8_t {
  scheduled,  ///< at calls 4, 8, 16 … 1024 of a signature, then every 1024th
  always,     ///< at every call: for tests of the user's function
  never,      ///< for benchmarks that say so
};

struct CompileOptions {
  std::string name = {};  ///< shown by explain() and in the log; default: "function"
  Check check = Check::scheduled;
  std::size_t signature_limit = 256;  ///< the least recently used go first
  /// Compile on a thread of the function's own; calls run eagerly until the Plan is there. Results
  /// have the same bits either way; only the pause goes away.
  bool in_background = false;
};

namespace jit {

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
  /// After run(): the result without its tensors.
  virtual std::shared_ptr<const void> result_form() = 0;
  /// Makes the result from its form and tensors.
  virtual void restore(const void* form, std::span<const Tensor> tensors) = 0;
};

class CompiledFunction {
 public:
  /// `is_const`: the function's call operator is const; otherwise no two threads run it at once.
  CompiledFunction(CompileOptions options, bool is_const);
  ~CompiledFunction();
  CompiledFunction(const CompiledFunction&) = delete;
  CompiledFunction& operator=(const CompiledFunction&) = delete;

  void call(const Leaves& leaves, Caller& caller);
  /// Runs the function as written, with Variables committed at the end.
  void call_eagerly(Caller& caller);
  [[nodiscard]] Explanation explain() const;
  void set_stance(int stance) { stance_ = stance; }

 private:
  struct Entry;
  enum class Action : uint8_t { run_plan, record, run_eagerly };

  std::shared_ptr<Entry> entry_for(const Leaves& leaves, std::span<const uint64_t> key);
  std::shared_ptr<Entry> add_entry(const Leaves& leaves, std::span<const uint64_t> key);
  Action next_action(Entry& entry);
  void run_plan(const std::shared_ptr<Entry>& entry, const Leaves& leaves, Caller& caller);
  void record(const std::shared_ptr<Entry>& entry, const Leaves& leaves, Caller& caller);
  void accept(const std::shared_ptr<Entry>& entry, tracer::Trace trace, const Leaves& result,
              double took, Caller& caller);
  void give_up(Entry& entry, std::string reason, std::string place) const;
  void disagree(Entry& entry, const std::string& difference, tracer::Trace trace,
                const std::vector<uint64_t>& fixed, Caller& caller);
  void build(const std::shared_ptr<Entry>& entry);
  void build_later(const std::shared_ptr<Entry>& entry);
  void build_all_queued();
  [[nodiscard]] bool has_trusted_sibling(const Entry& entry) const;
  void fall_back(Entry& entry, Caller& caller);
  void evict();
  static void add_remarks(const std::vector<const Entry*>& entries, Explanation& out);

  CompileOptions options_;
  const bool is_const_;
  std::atomic<int> stance_ = -1;  ///< a Stance, or -1: the thread's
  mutable std::mutex mutex_;      ///< guards all below; never held while user code runs
  std::mutex running_;            ///< held while a non-const function runs
  std::unordered_map<uint64_t, std::vector<std::shared_ptr<Entry>>>
      entries_;  ///< by hash of the key
  std::shared_ptr<Entry> latest_;
  std::size_t entry_count_ = 0;
  uint64_t clock_ = 0;
  uint64_t eager_calls_ = 0;  ///< by stance, not by any entry
  uint64_t failed_checks_ = 0;
  std::deque<std::shared_ptr<Entry>> queue_;  ///< to be built in the background
  bool is_building_ = false;                  ///< builder_ is taking entries from the queue
  std::jthread builder_;                      ///< last: joined before the rest goes
};

}  // namespace jit
}  // namespace nitinol

#pragma GCC visibility pop
