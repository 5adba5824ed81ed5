// Two bytes 0, a byte for the type, one for the number of dimensions, their sizes as big-endian
// 32-bit numbers, and the elements, big-endian, row by row.
#include "io/idx.h"

#include "core/error.h"
#include "core/interpreter.h"
#include "core/shape.h"
#include "eager/host_read.h"
#include "io/file.h"

#include <fmt/format.h>

#include <array>
#include <fcntl.h>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace nitinol {
namespace {

namespace fs = std::filesystem;
using io::File;

std::optional<DType> idx_dtype_of(unsigned code) {
  switch (code) {
    case 0x08:
      return u8;
    case 0x09:
      return i8;
    case 0x0B:
      return i16;
    case 0x0C:
      return i32;
    case 0x0D:
      return f32;
    case 0x0E:
      return f64;
    default:
      return std::nullopt;
  }
}

[[noreturn]] void fail_idx(ErrorKind kind, const std::string& what, std::string expected,
                           std::string got, std::string fix = {}) {
  throw Error(kind, {.where = "load_idx",
                     .what = what,
                     .expected = std::move(expected),
                     .got = std::move(got),
                     .fix = std::move(fix)});
}

void check_idx_size(const File& file, int64_t expected) {
  const int64_t size = file.size();
  if (size == expected) return;
  fail_idx(
      ErrorKind::io, fmt::format("the size of \"{}\" does not agree with its header", file.name()),
      fmt::format("{} bytes", expected), std::to_string(size), "It was cut short, or is no IDX.");
}

Spec read_idx_header(const File& file) {
  std::array<std::byte, 4> start = {};
  if (file.size() < static_cast<int64_t>(start.size()))
    check_idx_size(file, static_cast<int64_t>(start.size()));
  file.read(start);
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(start[i]); };
  const bool is_gzip = at(0) == 0x1F && at(1) == 0x8B;
  const std::optional<DType> dtype = idx_dtype_of(at(2));
  if (at(0) != 0 || at(1) != 0 || !dtype) {
    fail_idx(ErrorKind::io, fmt::format("\"{}\" is no IDX file", file.name()),
             "0, 0 and the number of a type at its beginning",
             fmt::format("{}, {} and {}", at(0), at(1), at(2)),
             is_gzip ? "It is compressed: unpack it with gunzip." : "");
  }
  const auto rank = static_cast<int>(at(3));
  if (rank > max_rank) {
    fail_idx(ErrorKind::unsupported, fmt::format("the dimensions of \"{}\"", file.name()),
             fmt::format("at most {}", max_rank), std::to_string(rank));
  }
  const int64_t header = 4 + 4 * int64_t{rank};
  if (file.size() < header) check_idx_size(file, header);
  Spec spec = {.dtype = *dtype, .shape = {}, .is_weak = false, .device = default_device()};
  int64_t bytes = static_cast<int64_t>(size_of(*dtype));
  for (int i = 0; i < rank; ++i) {
    std::array<std::byte, 4> word = {};
    file.read(word);
    int64_t size = 0;
    for (const std::byte byte : word) size = size << 8 | std::to_integer<int64_t>(byte);
    spec.shape.push_back(size);
    if (size > 0 && bytes > std::numeric_limits<int64_t>::max() / 2 / size) {
      fail_idx(ErrorKind::io, fmt::format("the sizes in \"{}\"", file.name()),
               "a file that holds them", to_string(spec.shape) + " and more");
    }
    bytes *= size;
  }
  check_idx_size(file, header + bytes);
  return spec;
}

Tensor load_elements(const fs::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const File file("load_idx", path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const Spec spec = read_idx_header(file);
  const Tensor tensor = filled_tensor(spec, [&](std::span<std::byte> memory) {
    file.read(memory);
    io::reverse_elements(memory, size_of(spec.dtype));
  });
  current().created(tensor);
  return tensor;
}

}  // namespace

Tensor load_idx(const fs::path& path, std::source_location place) {
  return eager::located(place, [&] { return load_elements(path); });
}

}  // namespace nitinol
