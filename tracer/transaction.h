// Transaction: Variables change together at the end of a call, or not at all.
#pragma once

#include "core/interpreter.h"
#include "core/moment.h"
#include "core/variable.h"

#include <optional>
#include <span>
#include <string>
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
      : below_(current()),
        is_outermost_(!is_held()),
        is_below_watched_(is_watched()),
        first_local_(next_variable_id()) {}
  ~Transaction() override;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// Makes this call, which errors name as `name`, one of those that are ordered by the Variables
  /// they assign (core/call_order.h): before it reads any. `assigned` are the Variables that it
  /// will assign, as far as is known, sorted by id; `is_first` if no earlier call tells. What it
  /// reads from then on is the state of one moment. Does nothing within another call, which has its
  /// own order.
  void order(std::string name, std::span<const Variable> assigned, bool is_first);

  /// Only if something below does.
  [[nodiscard]] bool watches() const override { return is_below_watched_; }
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override;
  void read(const Tensor& tensor, const ReadSite& site) override;
  Tensor get(const Variable& variable) override;
  void set(const Variable& variable, const Tensor& value) override;
  void created(const Tensor& tensor) override;
  void guard(const HostValueGuard& guard) override;

  /// Hands the assignments to the interpreter below, at once for all threads that lock the same
  /// cells. Throws Error(value), and changes nothing, if the call is ordered and a Variable that it
  /// read and assigns has been replaced meanwhile.
  void commit();
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
  [[nodiscard]] Interpreter& below() { return below_; }
  /// The value of `variable` from below.
  [[nodiscard]] Tensor fetch(const Variable& variable);
  /// The pending value of `variable`, or null.
  [[nodiscard]] const Tensor* assigned(const Variable& variable) const;

 private:
  [[nodiscard]] bool are_reads_present() const;
  void commit_ordered();
  [[noreturn]] void throw_conflict(const Variable& variable) const;

  Interpreter& below_;
  bool is_outermost_, is_below_watched_;
  uint64_t first_local_;
  bool is_ordered_ = false, is_first_ = false;
  std::optional<Moment> moment_;  ///< ordered: what is read, until the call ends
  std::string name_;
  std::vector<Assignment> assignments_;
  std::vector<Variable> owned_;  ///< whose order this call owns
  /// Ordered: versions that were read; `replaced` for values that were no longer there.
  std::vector<std::pair<Variable, uint64_t>> reads_;
  static constexpr uint64_t replaced = UINT64_MAX;
};

}  // namespace nitinol::tracer

#pragma GCC visibility pop
