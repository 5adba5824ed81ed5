// The header of a .npy file: what it says of the array that follows.
#pragma once

#include "core/tensor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nitinol::io {

/// A .npy file as messages name it.
struct NpyName {
  std::string quoted;              ///< "\"x.npy\"", or "\"x.npy\" in \"several.npz\""
  const char* where = "load_npy";  ///< the function that reads or writes it
  const char* writers = "np.save or save_npy";
};

/// An array as a .npy file declares it.
struct NpyHeader {
  DType dtype = f32;
  bool is_fortran = false;     ///< the first axis varies fastest
  bool is_big_endian = false;  ///< the bytes of an element, of which it has several, are reversed
  Shape shape;
  friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

/// Bytes of the magic string and version that begin every file.
inline constexpr std::size_t npy_magic_bytes = 8;
/// Longest header that is read; NumPy itself writes 128 bytes for arrays of numbers.
inline constexpr std::size_t npy_longest_header = 65536;

/// Bytes of the length field, 2 or 4, that follows these first npy_magic_bytes bytes of a file.
/// Throws Error(io) if they are not those of format version 1.0, 2.0 or 3.0.
[[nodiscard]] std::size_t npy_length_bytes(std::string_view start, const NpyName& file);

/// What the text after the length field says: a Python dictionary of 'descr', 'fortran_order' and
/// 'shape'. Throws Error(io) if the text is not such a dictionary or the
/// array would not fit in memory, Error(unsupported) for element types and ranks that tensors do
/// not have.
[[nodiscard]] NpyHeader parse_npy_header(std::string_view text, const NpyName& file);

/// Bytes of the array's elements.
[[nodiscard]] int64_t npy_data_bytes(const NpyHeader& header);

/// All that precedes the elements in a file: magic string, version 1.0, length, dictionary, padding
/// to 64 bytes. Throws Error(unsupported) for bf16, which the format does not have.
[[nodiscard]] std::string npy_header_text(const NpyHeader& header, const NpyName& file);

}  // namespace nitinol::io
