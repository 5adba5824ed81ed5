// Transaction: Variables change together at the end of a call, or not at all.
#pragma once

#include "core/interpreter.h"
#include "core/variable.h"

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
  Transaction() : below_(current()) {}

  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override;
  void read(const Tensor& tensor, const ReadSite& site) override;
  Tensor get(const Variable& variable) override;
  void set(const Variable& variable, const Tensor& value) override;
  void created(const Tensor& tensor) override;
  void guard(const HostValueGuard& guard) override;

  /// Hands the assignments to the interpreter below, at once for all threads that lock the same
  /// cells.
  void commit();

 protected:
  [[nodiscard]] Interpreter& below() { return below_; }
  [[nodiscard]] const std::vector<Assignment>& assignments() const { return assignments_; }
  /// The pending value of `variable`, or null.
  [[nodiscard]] const Tensor* assigned(const Variable& variable) const;

 private:
  Interpreter& below_;
  std::vector<Assignment> assignments_;
};

}  // namespace nitinol::tracer

#pragma GCC visibility pop
