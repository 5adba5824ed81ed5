// The interpreter that computes: what `current()` is when no layer has put itself on top.
#pragma once

#include "core/interpreter.h"

namespace nitinol::eager {

/// Computes each op at once on the inputs' device. Stateless; serves all threads.
class EagerInterpreter final : public Interpreter {
 public:
  [[nodiscard]] bool watches() const override { return false; }
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override;
  std::vector<Tensor> run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                              std::span<const Spec> specs) override;
  void read(const Tensor& tensor, const ReadSite& site) override;
  Tensor get(const Variable& variable) override;
  void set(const Variable& variable, const Tensor& value) override;
  void created(const Tensor& tensor) override;
  void guard(const HostValueGuard& guard) override;
};

}  // namespace nitinol::eager
