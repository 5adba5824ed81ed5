// Dispatcher: how each call of one compiled function runs: recorded, by a Plan, or eagerly.
#pragma once

#include "core/deferred_check.h"
#include "core/fork.h"
#include "core/variable.h"
#include "jit/compiled_function.h"
#include "jit/entries.h"
#include "jit/ledger.h"
#include "jit/stance.h"
#include "tracer/segments.h"
#include "tracer/transaction.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace nitinol::tracer {
class Deferred;
}

namespace nitinol::jit {

class Dispatcher {
 public:
  /// `is_const`: the function's call operator is const; otherwise no two threads run it at once.
  Dispatcher(CompileOptions options, bool is_const);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  void call(const Leaves& leaves, Caller& caller);
  /// Runs the function as written, with Variables committed at the end.
  void call_eagerly(const Leaves& leaves, Caller& caller);
  /// Runs the function as a part of the call that this thread is recording.
  void call_inlined(Caller& caller);
  /// Drops the signatures whose meaning has ended.
  void forget_ended();
  [[nodiscard]] Explanation explain() const;
  void set_stance(int stance) { stance_ = stance; }

 private:
  enum class Action : uint8_t { run_plan, record, build, defer, run_eagerly };
  /// What one call does.
  struct Decision {
    Action action = Action::run_eagerly;
    std::shared_ptr<Entry> entry;  ///< null: there is no room for another signature
    std::shared_ptr<const Snapshot> now;
    Guards::Match match = Guards::Match::yes;
    Eagerly why = Eagerly::for_good;  ///< run_eagerly
    bool is_timed = false;
  };

  /// While it lives, mutex_ is held. What is logged or dropped meanwhile is logged and destroyed
  /// after: both may run the user's code.
  class Section {
   public:
    explicit Section(Dispatcher& dispatcher) : dispatcher_(dispatcher), lock_(dispatcher.mutex_) {}
    ~Section();
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    Dispatcher& dispatcher_;
    std::unique_lock<ForkSafeMutex> lock_;
  };

  void act(const Decision& decision, const Leaves& leaves, Caller& caller, Stance stance);
  void act_noted(const Decision& decision, const Leaves& leaves, Caller& caller, Stance stance);
  Decision decide(const Leaves& leaves, Caller& caller, Stance stance);
  Decision decide_by_key(const Leaves& leaves, Caller& caller, Stance stance);
  Entries::Found add_entry(const Leaves& leaves, std::span<const uint64_t> key,
                           std::vector<Word> words, std::shared_ptr<const Meaning> meaning);
  void check_known(const Entry* entry) const;
  Decision decide_for(Entries::Found found, Stance stance);
  void choose(Decision& decision, Stance stance);
  [[nodiscard]] Action choose_without_plan(Decision& decision, Stance stance);
  [[nodiscard]] static Action choose_segments(Decision& decision, Stance stance);
  [[nodiscard]] bool is_check_due(Entry& entry);
  void look_at_deferred();
  Plan::Outcome run_steps(const Snapshot& now, const Leaves& leaves, std::span<Tensor> read,
                          std::span<Tensor> results);
  Plan::Outcome run_deferred(const Snapshot& now, const Leaves& leaves, std::span<Tensor> read,
                             std::span<Tensor> results);
  Plan::Outcome run_forward(const Snapshot& now, const Leaves& leaves, std::span<Tensor>& results);
  void run_plan(const Decision& decision, const Leaves& leaves, Caller& caller);
  void record(const Decision& decision, const Leaves& leaves, Caller& caller);
  void build_and_call(Decision decision, const Leaves& leaves, Caller& caller);
  void run_eagerly(const Decision& decision, const Leaves& leaves, Caller& caller);
  void defer(const Decision& decision, const Leaves& leaves, Caller& caller, Stance stance);
  /// Runs user code eagerly and commits its assignments; returns how long that took, if asked.
  double compute(const Leaves& leaves, Caller& caller, bool is_timed = false);
  /// The same by this transaction; `deferred`: that, if it is one, which then finishes.
  double compute_by(tracer::Transaction& transaction, const Leaves& leaves, Caller& caller,
                    bool is_timed, tracer::Deferred* deferred = nullptr);
  [[nodiscard]] std::shared_ptr<tracer::Segments> segments_for(int threads, ResultCheck check);
  static void count_eager(const Decision& decision);
  /// Then order() and note_assigned() have nothing to do for a call that assigns nothing either.
  [[nodiscard]] bool assigns_nothing() const {
    return assigns_nothing_.load(std::memory_order_relaxed);
  }
  void order(tracer::Transaction& transaction, const Leaves& leaves);
  void note_assigned(const tracer::Transaction& transaction, const Leaves& leaves);

  /// What a recorded call gave.
  struct Recording {
    std::shared_ptr<const tracer::Trace> trace;
    std::vector<uint64_t> fixed;
    std::shared_ptr<const void> form;
    double seconds = 0;
  };
  void accept(const Decision& decision, const Leaves& leaves, const Leaves& result,
              tracer::Trace trace, Recording recording, Caller& caller);
  bool accept_locked(const Decision& decision, const Leaves& leaves, Recording& recording);
  void accept_again(Entry& entry, const Leaves& leaves, const Recording& recording);
  void disagree(const Decision& decision, const Leaves& leaves, const std::string& difference,
                Recording& recording);
  bool split(Entry& entry, const Leaves& leaves, const Recording& recording);
  void give_up(Entry& entry, std::string reason, std::string place);
  void give_up(Entry& entry, Tier tier, std::string reason, std::string place);
  void wait_to_repay(Entry& entry);
  void add_pair(Entry& entry, double eager_s);
  void build(const std::shared_ptr<Entry>& entry);
  void build_later(std::function<void()> build);
  void build_all_queued();
  void warn(const std::string& text);
  void warn_once(bool& has_warned, const std::string& text);
  static void add_remarks(const std::vector<Entry>& entries, Explanation& out);

  CompileOptions options_;
  const bool is_const_;
  std::atomic<int> stance_ = -1;           ///< a Stance, or -1: the thread's
  std::atomic<uint64_t> eager_calls_ = 0;  ///< by stance or eager(), not by any entry
  /// A call has ended, and none has assigned a Variable that was not its own.
  std::atomic<bool> assigns_nothing_ = false;
  /// Guards all below. Never held while user code runs, nor while what may run it is destroyed:
  /// forms, traces, Plans (borrowed memory is given back).
  mutable ForkSafeMutex mutex_;
  std::recursive_mutex running_;  ///< held while a non-const function runs
  Entries entries_;
  Ledger ledger_;
  int64_t last_timed_check_ = 0;       ///< of any signature, by coarse_now()
  std::vector<std::string> warnings_;  ///< to be logged when the mutex is free
  uint64_t crowded_calls_ = 0;         ///< eager: no room for their signature
  /// Calls whose checks failed, when they had returned too.
  const std::shared_ptr<std::atomic<uint64_t>> failed_checks_ =
      std::make_shared<std::atomic<uint64_t>>(0);
  std::deque<Handle<DeferredCheck>> deferred_;  ///< calls whose checks are made later
  std::atomic<bool> has_deferred_ = false;      ///< read without the mutex
  std::vector<std::shared_ptr<tracer::Segments>>
      segments_;                    ///< per number of threads and ResultCheck
  std::vector<Variable> assigned_;  ///< captured Variables that calls have assigned, by id
  bool assigns_arguments_ = false;
  bool has_assigned_ = false;  ///< whether a call has ended, so that the two above tell
  bool has_warned_crowded_ = false, has_warned_unrepaid_ = false;
  std::deque<std::function<void()>> queue_;  ///< what builds Plans in the background
  bool is_building_ = false;                 ///< builder_ is at work on the queue
  std::jthread builder_;                     ///< last: joined before the rest goes
};

}  // namespace nitinol::jit
