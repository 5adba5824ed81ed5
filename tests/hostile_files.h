// Files that may hold anything, given to the readers: what the fuzzers and a unit test share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace nitinol::test {

/// A function that reads a file, such as load_npy.
using Reader = void (*)(const std::filesystem::path& path);

/// Gives a file of these bytes to `reader`. True if it reads them, false if it throws an Error that
/// says what is wrong with them. Any other exception goes through, and an Error of another kind
/// becomes a std::logic_error: the reader has run out of the little memory that it is given, so
/// many times the file's size and some more, or has found its own mistake.
bool reads(Reader reader, std::span<const uint8_t> bytes, std::size_t times = 64);
/// Of zip files: what they hold is larger, and may be copied.
inline constexpr std::size_t times_zipped = 2200;

/// Gives these bytes to load_object. True if it loads them, false if it throws Error(compile). Any
/// other exception goes through.
bool loads(std::span<const uint8_t> object);

/// load_safetensors and their like; what is read well is looked at as far as its last element.
void read_safetensors(const std::filesystem::path& path);
void read_npy(const std::filesystem::path& path);
void read_npz(const std::filesystem::path& path);
void read_image(const std::filesystem::path& path);
void read_idx(const std::filesystem::path& path);
void read_csv(const std::filesystem::path& path);

}  // namespace nitinol::test
