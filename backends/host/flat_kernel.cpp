#include "backends/host/flat_kernel.h"

#include "backends/host/loop_nest.h"
#include "core/kernel.h"
#include "core/parallel.h"

#include <vector>

namespace nitinol::host {
namespace {

/// An output and an input that must not be its memory.
struct Apart {
  std::size_t output, input;
};

/// Where a position begins, as a pointer (see Pointers).
struct Position {
  std::size_t operand;
  char* first;
};

class FlatKernel final : public Executable {
 public:
  FlatKernel(const Kernel& kernel, const StageCode& code, const Executable& whole,
             const Domain& domain)
      : code_(code),
        whole_(whole),
        size_(domain.sizes[0]),
        grain_(grain_of(kernel)),
        has_checks_(nitinol::has_checks(kernel)),
        steps_(domain.steps[0].begin(), domain.steps[0].begin() + domain.operands) {
    for (std::size_t k = 0; k < kernel.operands.size(); ++k) {
      const Operand& operand = kernel.operands[k];
      if (operand.role == Role::position) positions_.push_back({k, domain.base[k]});
      if (operand.role != Role::output) continue;
      for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
        const bool may_be = operand.alias >= 0 && static_cast<std::size_t>(operand.alias) == i;
        if (kernel.operands[i].role == Role::input && !may_be) apart_.push_back({k, i});
      }
    }
  }

  void launch(const Launch& launch) const override {
    const bool is_for_one = size_ <= grain_ || launch.threads <= 1;
    const bool lacks_status = has_checks_ && launch.status == nullptr;
    if (!is_for_one || launch.buffers.size() != steps_.size() || lacks_status || !is_apart(launch))
      return whole_.launch(launch);  // which says what is wrong, if anything is
    Pointers pointers;
    for (std::size_t k = 0; k < steps_.size(); ++k)
      pointers[k] = static_cast<char*>(launch.buffers[k]);
    for (const Position& position : positions_) pointers[position.operand] = position.first;
    const DefaultFloatMode mode;
    code_.function(code_.self, flat_call(pointers.data(), steps_.data(), size_, launch));
  }

 private:
  /// An output's memory may be that of the input that the kernel names; this is for the others.
  [[nodiscard]] bool is_apart(const Launch& launch) const {
    for (const Apart& pair : apart_) {
      if (launch.buffers[pair.output] == launch.buffers[pair.input]) return false;
    }
    return true;
  }

  const StageCode code_;
  const Executable& whole_;
  const int64_t size_, grain_;
  const bool has_checks_;
  const std::vector<int64_t> steps_;
  std::vector<Position> positions_;
  std::vector<Apart> apart_;
};

}  // namespace

std::unique_ptr<const Executable> flat_kernel(const Kernel& kernel, const StageCode& code,
                                              const Executable& whole, const Launch& example) {
  if (kernel.order != Order::none) return nullptr;
  Domain domain;
  make_domain(kernel, example, domain);
  if (domain.is_empty || domain.rank != 1) return nullptr;
  return std::make_unique<FlatKernel>(kernel, code, whole, domain);
}

}  // namespace nitinol::host
