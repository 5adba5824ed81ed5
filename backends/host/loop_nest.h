// How a host backend runs a kernel: what loop_nest.cpp and its three parts share.
#pragma once

#include "backends/host/domain.h"
#include "backends/host/stage.h"

#include <cstdint>
#include <span>

namespace nitinol::host {

/// Points that are worth waking a second thread: fewer for longer programs.
[[nodiscard]] int64_t grain_of(const Kernel& kernel);

/// Order::none. (elementwise.cpp)
void run_elementwise(const Kernel& kernel, const StageCode& code, const Launch& launch,
                     const Domain& domain);
/// The same for launches of one loop each, as if their loops were one.
void run_elementwise_all(const Kernel& kernel, const StageCode& code,
                         std::span<const Launch> launches);
/// Order::lanes, Order::sequential and Order::across. (reduction.cpp)
void run_reduction(const Kernel& kernel, const StageCode* code, const Launch& launch,
                   const Domain& domain);
/// Order::turned. (turned.cpp)
void run_turned(const Kernel& kernel, const StageCode* code, const Launch& launch,
                const Domain& domain);

}  // namespace nitinol::host
