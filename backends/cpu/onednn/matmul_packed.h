// Matrix products that take b in oneDNN's own layout, on the cpu device.
#pragma once

#include "core/executable.h"
#include "core/library.h"

#include <cstddef>
#include <memory>

namespace nitinol::cpu {

/// Backend::packed_bytes() of the cpu.
[[nodiscard]] std::size_t packed_bytes(const LibraryCall& product, std::size_t uses);

/// Whether the product with b packed has the bits of the call as it lies, tried once on this
/// machine. Throws what make_packed_matmul() does.
[[nodiscard]] bool has_bits_of_unpacked(const LibraryCall& product);

/// Executables of LibraryCall::pack and packed_matmul, for operands of which packed_bytes() has not
/// said 0. Throw Error(unsupported) for products that oneDNN does not take as they lie.
[[nodiscard]] std::unique_ptr<Executable> make_packing(const LibraryCall& call);
[[nodiscard]] std::unique_ptr<Executable> make_packed_matmul(const LibraryCall& call);

}  // namespace nitinol::cpu
