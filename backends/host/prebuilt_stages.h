// What the prebuilt kinds of kernels share.
#pragma once

#include "backends/host/sign_bits.h"
#include "backends/host/stage.h"
#include "core/executable.h"
#include "core/kernel.h"

#include <memory>
#include <optional>

namespace nitinol::host {

/// Elements that are converted or gathered at a time: buffers stay in the first-level cache.
inline constexpr int64_t staging_block = 512;

/// One of the kinds listed in prebuilt.h, or null if the kernel is not of it.
[[nodiscard]] std::unique_ptr<Executable> make_prebuilt_loop(const Kernel& kernel);
[[nodiscard]] std::unique_ptr<Executable> make_prebuilt_copy(const Kernel& kernel);
[[nodiscard]] std::unique_ptr<Executable> make_prebuilt_lookup(const Kernel& kernel);
[[nodiscard]] std::unique_ptr<Executable> make_prebuilt_reduction(const Kernel& kernel);

/// True if the stage does nothing but store (or accumulate) its only argument; for f16 and bf16 it
/// may round it again, or for the first time: `dtype` is what it was loaded as, or is stored as.
[[nodiscard]] bool is_identity(const Stage& stage, DType dtype);
/// What the stage does to the sign of its only argument, if it does nothing else and both argument
/// and result are of `dtype`, f16 or bf16.
[[nodiscard]] std::optional<SignChange> sign_change_of(const Stage& stage, DType dtype);

}  // namespace nitinol::host
