// Loops come simplified (core/loop_nest.h) from those who launch; here they are turned, from
// strides by operand to bytes by loop, and it is checked that each operand moves along the
// innermost loop as code was made for.

#include "backends/host/domain.h"

#include "core/error.h"
#include "core/kernel.h"
#include "core/loop_nest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace nitinol::host {
namespace {

int64_t unit_of(const Operand& operand) {
  return operand.role == Role::position ? 1 : static_cast<int64_t>(size_of(operand.dtype));
}

int64_t step_of_class(const Operand& operand) {
  return operand.inner == StrideClass::zero || operand.role == Role::scalar ? 0 : unit_of(operand);
}

bool fits(const Operand& operand, int64_t step) {
  switch (operand.inner) {
    case StrideClass::zero:
      return step == 0;
    case StrideClass::one:
      return step == unit_of(operand);
    case StrideClass::any:
      return true;
  }
  return false;
}

/// Whether operand k takes part in stages of this level.
bool is_used(const Kernel& kernel, std::size_t k, Stage::Level level) {
  const auto uses = [k](const auto& list, auto kind) {
    return std::ranges::any_of(list, [&](const auto& x) { return x.kind == kind && x.index == k; });
  };
  return std::ranges::any_of(kernel.stages, [&](const Stage& stage) {
    return stage.level == level && (uses(stage.sources, Source::Kind::operand) ||
                                    uses(stage.sinks, Sink::Kind::store) || looks_up(stage, k));
  });
}

/// The first operand whose steps along the innermost loop are not of its class, or -1.
int first_misfit(const Kernel& kernel, const Launch& launch, const Steps& steps,
                 const Steps& reduced_steps) {
  for (std::size_t k = 0; k < kernel.operands.size(); ++k) {
    const Operand& operand = kernel.operands[k];
    if (operand.role == Role::scalar || fits(operand, steps[k])) continue;
    if (kernel.order == Order::turned && reduced_steps[k] != 0 && steps[k] != 0) continue;
    if (kernel.order == Order::across && operand.role == Role::scratch) continue;
    if (operand.inner == StrideClass::one && walks_apart(kernel, launch, k)) continue;
    const bool lies_along = reduced_steps[k] == unit_of(operand) && operand.role == Role::input;
    if (kernel.order == Order::sequential && lies_along && steps[k] != 0) continue;
    // Per row, nothing moves along the reduced loop.
    if (kernel.order == Order::lanes && !is_used(kernel, k, Stage::Level::element)) continue;
    return static_cast<int>(k);
  }
  return -1;
}

[[noreturn]] void reject(const Kernel& kernel, std::string what) {
  throw Error(ErrorKind::internal,
              {.where = "launch", .what = std::move(what), .got = to_string(kernel)});
}

void check_sizes(const Kernel& kernel, const Launch& launch) {
  const std::size_t loops = launch.sizes.size();
  const std::size_t operands = kernel.operands.size();
  const bool reduces = kernel.order != Order::none;
  if (operands > max_operands || loops > max_rank + (reduces ? 1 : 0) ||
      (reduces && loops < kernel.reduced_loops) || launch.strides.size() != operands * loops ||
      launch.buffers.size() != operands) {
    reject(kernel, "arguments do not match the kernel");
  }
}

/// The output's memory may be exactly that of the input the kernel names, and of no other.
void check_alias(const Kernel& kernel, const Launch& launch, std::size_t output) {
  const int alias = kernel.operands[output].alias;
  if (alias >= 0 && launch.buffers[static_cast<std::size_t>(alias)] == launch.buffers[output]) {
    return;
  }
  for (std::size_t k = 0; k < kernel.operands.size(); ++k) {
    if (kernel.operands[k].role == Role::input && launch.buffers[k] == launch.buffers[output]) {
      reject(kernel,
             fmt::format("operand {} is in place of operand {}, which the kernel does not say",
                         output, k));
    }
  }
}

void set_bases(const Kernel& kernel, const Launch& launch, Domain& domain) {
  for (std::size_t k = 0; k < domain.operands; ++k) {
    const Operand& operand = kernel.operands[k];
    domain.base[k] = static_cast<char*>(launch.buffers[k]);
    if (operand.role == Role::position) {
      const int64_t offset = launch.offsets.empty() ? 0 : launch.offsets[k];
      domain.base[k] = reinterpret_cast<char*>(offset);  // NOLINT: positions travel as pointers
    }
    if (operand.role == Role::output && launch.buffers[k] != nullptr)
      check_alias(kernel, launch, k);
  }
}

/// The steps of loop number `loop` of the launch.
void set_steps(const Kernel& kernel, const Launch& launch, std::size_t loop, Steps& steps) {
  const std::size_t loops = launch.sizes.size();
  for (std::size_t k = 0; k < kernel.operands.size(); ++k) {
    const Operand& operand = kernel.operands[k];
    steps[k] =
        operand.role == Role::scalar ? 0 : launch.strides[k * loops + loop] * unit_of(operand);
  }
}

void append_single_point(const Kernel& kernel, Domain& domain) {
  const auto loop = static_cast<std::size_t>(domain.rank++);
  domain.sizes[loop] = 1;
  for (std::size_t k = 0; k < domain.operands; ++k)
    domain.steps[loop][k] = step_of_class(kernel.operands[k]);
}

/// Of Order::none all of them may lie across the rows. `first` is the first.
[[gnu::noinline]] void check_misfits(const Kernel& kernel, const Domain& domain, const Steps& inner,
                                     std::size_t first) {
  for (std::size_t k = first; k < domain.operands; ++k) {
    const Operand& operand = kernel.operands[k];
    if (operand.role == Role::scalar || fits(operand, inner[k]) || lies_across(kernel, domain, k))
      continue;
    reject(kernel, fmt::format("operand {} has an innermost step of {}", k, inner[k]));
  }
}

void check_innermost(const Kernel& kernel, const Launch& launch, const Domain& domain) {
  const bool is_row_loop = kernel.order != Order::lanes;
  if (!is_row_loop && domain.reduced_size <= 1) return;
  const Steps& inner =
      is_row_loop ? domain.steps[static_cast<std::size_t>(domain.rank - 1)] : domain.reduced_steps;
  const int misfit = first_misfit(kernel, launch, inner, domain.reduced_steps);
  if (misfit >= 0) [[unlikely]]
    check_misfits(kernel, domain, inner, static_cast<std::size_t>(misfit));
}

}  // namespace

void make_domain(const Kernel& kernel, const Launch& launch, Domain& domain) {
  check_sizes(kernel, launch);
  const std::size_t loops = launch.sizes.size();
  const bool reduces = kernel.order != Order::none;
  const std::size_t rows = reduces ? loops - kernel.reduced_loops : loops;
  domain.operands = kernel.operands.size();
  domain.rank = 0;
  domain.is_empty = false;
  domain.reduced_size = 1;
  if (reduces) {
    for (const int64_t size : launch.sizes.subspan(rows)) domain.reduced_size *= size;
    set_steps(kernel, launch, loops - 1, domain.reduced_steps);
  }
  for (; domain.rank < static_cast<int>(rows); ++domain.rank) {
    const auto loop = static_cast<std::size_t>(domain.rank);
    domain.sizes[loop] = launch.sizes[loop];
    domain.is_empty |= launch.sizes[loop] == 0;
    set_steps(kernel, launch, loop, domain.steps[loop]);
  }
  if (domain.is_empty) return;
  if (domain.rank == 0 && kernel.order != Order::lanes) append_single_point(kernel, domain);
  set_bases(kernel, launch, domain);
  check_innermost(kernel, launch, domain);
}

bool walks_apart(const Kernel& kernel, const Launch& launch, std::size_t operand) {
  const Role role = kernel.operands[operand].role;
  if (kernel.reduced_loops < 2 || (role != Role::input && role != Role::output)) return false;
  const std::size_t loops = launch.sizes.size();
  return !walks_as_one(launch.sizes, launch.strides.subspan(operand * loops, loops),
                       loops - kernel.reduced_loops);
}

bool lies_across(const Kernel& kernel, const Domain& domain, std::size_t operand) {
  const Operand& of = kernel.operands[operand];
  if (kernel.order != Order::none || domain.rank < 2 || of.role != Role::input ||
      of.inner != StrideClass::one || looks_up(kernel.stages[0], operand))
    return false;
  const auto last = static_cast<std::size_t>(domain.rank - 1);
  return domain.steps[last][operand] != unit_of(of) &&
         domain.steps[last - 1][operand] == unit_of(of);
}

void seek(const Domain& domain, int loops, int64_t index, Pointers& pointers) {
  std::copy_n(domain.base.begin(), domain.operands, pointers.begin());
  for (int i = loops - 1; i >= 0 && index != 0; --i) {
    const auto loop = static_cast<std::size_t>(i);
    const int64_t rest = i == 0 ? 0 : index / domain.sizes[loop];
    const int64_t at = index - rest * domain.sizes[loop];
    for (std::size_t k = 0; k < domain.operands; ++k) pointers[k] += at * domain.steps[loop][k];
    index = rest;
  }
}

}  // namespace nitinol::host
