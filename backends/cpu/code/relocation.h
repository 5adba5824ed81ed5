// Writes addresses into code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nitinol::cpu {

/// Writes what a relocation asks for at the beginning of `place`, the rest of its section.
///
/// machine: EM_X86_64 or EM_AARCH64. address: where `place` will run. target: the symbol's address
/// plus the addend. Throws Error(compile) for a type that our code does not have, an instruction
/// that ends beyond `place`, and a target that it cannot reach.
/// The formulas: System V ABI for AMD64, table 4.10; ELF for the Arm 64-bit Architecture, 5.7.
void relocate(uint16_t machine, uint32_t type, std::span<std::byte> place, uint64_t address,
              uint64_t target);

}  // namespace nitinol::cpu
