// Prelude: the text that stands before every kernel.
#pragma once

#include <string_view>

namespace nitinol::cuda {

/// The words in which kernels are written, for NVRTC, without a header: types, bits of numbers,
/// correctly rounded arithmetic, conversions of 16-bit numbers, threads. The tests put their own
/// definitions of the same words in its place and run kernels on the host (tests/cuda/shim.h).
[[nodiscard]] std::string_view device_words();

/// What is written with these words, and stands between them and a kernel.
[[nodiscard]] std::string_view common_words();

}  // namespace nitinol::cuda
