// Running one program in every way there is, and comparing memory.
#pragma once

#include "tests/fuzz/programs/program.h"

#include <optional>
#include <string>

namespace nitinol::fuzz {

/// What went wrong first, as a sentence, or nothing if the program gives the same bits
/// - eagerly and compiled (recorded calls and Plans, with other values at each call),
/// - with all passes, without any, and without one of them,
/// - on 1, 2 and 3 threads, on the cpu (library calls excepted: they are compared at equal thread
///   counts),
/// - on the reference device, which interprets,
/// and if gradients of arguments and parameters agree too. "The same" includes errors: compiled
/// code must throw what eager code throws.
[[nodiscard]] std::optional<std::string> first_failure(const Program& program, uint64_t seed);

/// The same of two ways only: eagerly and compiled, on one thread, and so the gradients.
[[nodiscard]] std::optional<std::string> first_compiled_failure(const Program& program,
                                                                uint64_t seed);

/// Hash of all that the program computes eagerly on one thread; equal under every NITINOL_ISA if it
/// makes no library calls.
[[nodiscard]] uint64_t digest(const Program& program, uint64_t seed);

[[nodiscard]] bool has_library_call(const Program& program);

/// True if two calls gave the same.
[[nodiscard]] bool same_results(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

}  // namespace nitinol::fuzz
