#include "io/npy.h"

#include "core/error.h"
#include "core/interpreter.h"
#include "core/shape.h"
#include "eager/host_read.h"
#include "io/file.h"
#include "io/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <fcntl.h>
#include <span>
#include <string>

namespace nitinol {
namespace {

namespace fs = std::filesystem;
using io::File;
using io::NpyHeader;
using io::TemporaryFile;

void save(const fs::path& path, const Tensor& tensor, std::source_location place) {
  const Spec& spec = tensor.spec();
  const NpyHeader header{.dtype = spec.dtype, .is_fortran = false, .shape = spec.shape};
  const std::string text = io::npy_header_text(header, path.string());
  const HostElements elements = eager::host_read(tensor, {.what = "save_npy()", .place = place});
  TemporaryFile temporary("save_npy", path);
  temporary.file().write(std::as_bytes(std::span(text)));
  temporary.write_elements(elements);
  temporary.publish();
}

[[noreturn]] void fail_size(const File& file, int64_t expected, int64_t got) {
  throw Error(ErrorKind::io, {.where = "load_npy",
                              .what = fmt::format("the size of \"{}\" does not agree with its "
                                                  "header",
                                                  file.name()),
                              .expected = fmt::format("{} bytes", expected),
                              .got = std::to_string(got),
                              .fix = "It was cut short, or holds more than one array."});
}

/// The header, leaving the file at the first element. The elements are all there.
NpyHeader read_header(const File& file) {
  const int64_t size = file.size();
  const auto read_text = [&](std::size_t bytes) {
    std::string text(bytes, '\0');
    file.read(std::as_writable_bytes(std::span(text)));
    return text;
  };
  const auto fits = static_cast<std::size_t>(std::min<int64_t>(size, io::npy_magic_bytes));
  const std::string start = read_text(fits);
  // A shorter start is not the magic string, whatever it is.
  const std::size_t length_bytes = io::npy_length_bytes(start, file.name());
  const auto before = static_cast<int64_t>(io::npy_magic_bytes + length_bytes);
  if (size < before) fail_size(file, before, size);
  const std::string length_text = read_text(length_bytes);
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<std::size_t>(static_cast<uint8_t>(length_text[i])) << (8 * i);
  }
  if (length > io::npy_longest_header) {
    throw Error(ErrorKind::io,
                {.where = "load_npy",
                 .what = fmt::format("the header of \"{}\" is too long", file.name()),
                 .expected = fmt::format("at most {} bytes", io::npy_longest_header),
                 .got = std::to_string(length)});
  }
  const int64_t header_end = before + static_cast<int64_t>(length);
  if (size < header_end) fail_size(file, header_end, size);
  const NpyHeader header = io::parse_npy_header(read_text(length), file.name());
  const int64_t data_bytes = io::npy_data_bytes(header);
  if (size - header_end != data_bytes) fail_size(file, header_end + data_bytes, size);
  return header;
}

/// Reads the elements, which lie in the order of columns, and stores them in that of rows.
void read_reversed(const File& file, const Spec& spec, std::span<std::byte> to) {
  Spec stored = spec;
  stored.device = Device{};
  std::ranges::reverse(stored.shape);
  const Tensor columns =
      filled_tensor(stored, [&](std::span<std::byte> memory) { file.read(memory); });
  Strides strides = strides_of(stored.shape);
  std::ranges::reverse(strides);
  Spec rows = stored;
  rows.shape = spec.shape;
  HostElements(make_tensor(rows, strides, 0, columns.internals().storage).internals())
      .copy_to(to.data());
}

Tensor load(const fs::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const File file("load_npy", path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const NpyHeader header = read_header(file);
  const Spec spec = {
      .dtype = header.dtype, .shape = header.shape, .is_weak = false, .device = default_device()};
  const Tensor tensor = filled_tensor(spec, [&](std::span<std::byte> memory) {
    if (header.is_fortran && spec.shape.size() > 1)
      read_reversed(file, spec, memory);
    else
      file.read(memory);
    if (spec.dtype == boolean) io::make_boolean(memory);
    if (header.is_big_endian) io::reverse_elements(memory, size_of(spec.dtype));
  });
  current().created(tensor);
  return tensor;
}

}  // namespace

void save_npy(const fs::path& path, const Tensor& tensor, std::source_location place) {
  eager::located(place, [&] { save(path, tensor, place); });
}

Tensor load_npy(const fs::path& path, std::source_location place) {
  return eager::located(place, [&] { return load(path); });
}

}  // namespace nitinol
