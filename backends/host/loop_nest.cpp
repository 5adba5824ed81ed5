#include "backends/host/loop_nest.h"

#include "core/error.h"
#include "core/kernel.h"

#include <algorithm>

namespace nitinol::host {

int64_t grain_of(const Kernel& kernel) {
  // Measured: two threads win from 32K points of an addition and from 2K of a chain of 12
  // transcendental functions, which is about 300 instructions.
  std::size_t instructions = 0;
  for (const Stage& stage : kernel.stages) instructions += stage.program.instrs.size();
  return int64_t{16384} * 20 / static_cast<int64_t>(20 + instructions) + 64;
}

namespace {

void check_status(const Kernel& kernel, const Launch& launch) {
  if (launch.status != nullptr || !has_checks(kernel)) return;
  throw Error(ErrorKind::internal, {.where = "launch",
                                    .what = "a kernel with checks has no status to write",
                                    .got = to_string(kernel)});
}

}  // namespace

void run_loop_nest(const Kernel& kernel, const StageCode* code, const Launch& launch) {
  check_status(kernel, launch);
  Domain domain;
  make_domain(kernel, launch, domain);
  if (domain.is_empty) return;
  if (kernel.order == Order::none)
    run_elementwise(kernel, code[0], launch, domain);
  else if (kernel.order == Order::turned)
    run_turned(kernel, code, launch, domain);
  else
    run_reduction(kernel, code, launch, domain);
}

void run_loop_nests(const Kernel& kernel, const StageCode* code, std::span<const Launch> launches) {
  for (const Launch& launch : launches) check_status(kernel, launch);
  const auto is_flat = [](const Launch& launch) { return launch.sizes.size() == 1; };
  if (kernel.order == Order::none && std::ranges::all_of(launches, is_flat))
    return run_elementwise_all(kernel, code[0], launches);
  for (const Launch& launch : launches) run_loop_nest(kernel, code, launch);
}

}  // namespace nitinol::host
