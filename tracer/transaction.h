// Transaction: Variables change together at the end of a call, or not at all.
#pragma once

#include "core/interpreter.h"
#include "core/moment.h"
#include "core/variable.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::tracer {

/// A Variable and the value it will have.
struct Assignment {
  Variable variable;
  Tensor value;
};

/// Runs everything by the interpreter below it, but keeps assignments to Variables to itself until
/// commit(). If it is never committed, no Variable has changed.
class Transaction : public Interpreter {
 public:
  Transaction()
      : below_(is_held() ? *top_interpreter() : base_interpreter()),
        is_outermost_(!is_held()),
        is_below_watched_(is_watched()),
        pending_below_(pending_call()),
        first_local_(next_variable_id()) {}
  ~Transaction() override = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// Makes this call, which errors name as `name`, one of those that are ordered by the Variables
  /// they assign (core/call_order.h): before it reads any. `assigned` are the Variables that it
  /// will assign, as far as is known, sorted by id; `is_first` if no earlier call tells. All that
  /// it reads is the state of one moment, that of its first read. Does nothing within another call,
  /// which has its own order. `name` must outlive the call.
  void order(std::string_view name, std::span<const Variable> assigned, bool is_first) {
    if (!is_outermost_) return;
    name_ = name;
    is_first_ = is_first;
    if (!assigned.empty()) own_all(assigned);
  }

  /// Only if something below does.
  [[nodiscard]] bool watches() const override { return is_below_watched_; }
  [[nodiscard]] PendingCall* pending() override { return pending_below_; }
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override;
  std::vector<Tensor> run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                              std::span<const Spec> specs) override;
  void read(const Tensor& tensor, const ReadSite& site) override;
  Tensor get(const Variable& variable) override;
  void set(const Variable& variable, const Tensor& value) override;
  void created(const Tensor& tensor) override;
  void guard(const HostValueGuard& guard) override;

  /// Hands the assignments to the interpreter below, at once for all threads that lock the same
  /// cells. Throws Error(value), and changes nothing, if the call is ordered and a Variable that it
  /// read and assigns has been replaced meanwhile.
  void commit() {
    if (!assignments_.empty()) commit_all();
  }
  /// The pending assignments, in the order in which the Variables were first assigned.
  [[nodiscard]] const std::vector<Assignment>& assignments() const { return assignments_; }
  /// Whether the Variable was made since this call began.
  [[nodiscard]] bool is_local(const Variable& variable) const {
    return variable.cell().id >= first_local_;
  }

 protected:
  /// Ordered: whether no other call assigns the Variable until this one ends. `is_sure`: that it
  /// will be assigned, so that waiting for those before repays.
  bool own(const Variable& variable, bool is_sure = false);
  /// Whether commit() replaces the values itself.
  [[nodiscard]] bool is_ordered() const { return name_.data() != nullptr; }
  /// Called by commit() of an ordered call when nothing else can fail any more and all that it
  /// replaces is locked: the last that may compute the new values, where the old ones lie perhaps.
  virtual void complete() {}
  [[nodiscard]] Interpreter& below() { return below_; }
  /// The value of `variable` from below.
  [[nodiscard]] Tensor fetch(const Variable& variable);
  /// The pending value of `variable`, or null.
  [[nodiscard]] const Tensor* assigned(const Variable& variable) const;
  /// That a value was fetched.
  struct Read {
    static constexpr uint64_t replaced = UINT64_MAX;
    Variable variable;
    uint64_t version;       ///< `replaced`: of a value that was no longer there
    const Storage* memory;  ///< of the value, if somebody still holds that
  };
  /// What an ordered call has fetched, in this order.
  [[nodiscard]] std::span<const Read> reads() const {
    return held_ ? std::span<const Read>(held_->reads) : std::span<const Read>();
  }

 private:
  /// What an ordered call holds until it ends.
  struct Held {
    Held() = default;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held();
    std::vector<Variable> owned;   ///< whose order this call owns
    std::optional<Moment> moment;  ///< what is read, from the first read on
    std::vector<Read> reads;
  };

  [[nodiscard]] Held& held();
  void own_all(std::span<const Variable> variables);
  [[nodiscard]] bool are_reads_present() const;
  void commit_all();
  void commit_ordered();
  [[noreturn]] void throw_conflict(const Variable& variable) const;

  Interpreter& below_;
  bool is_outermost_, is_below_watched_;
  PendingCall* pending_below_;
  bool is_first_ = false;
  uint64_t first_local_;
  std::string_view name_;  ///< of an ordered call; without data if it is not
  std::vector<Assignment> assignments_;
  std::unique_ptr<Held> held_;  ///< null: nothing
};

}  // namespace nitinol::tracer

#pragma GCC visibility pop
