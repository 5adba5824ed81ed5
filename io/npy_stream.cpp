#include "io/npy_stream.h"

#include "core/error.h"
#include "core/host_access.h"
#include "core/interpreter.h"
#include "core/shape.h"
#include "io/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace nitinol::io {
namespace {

[[noreturn]] void fail_npy_size(const NpyStream& stream, int64_t expected) {
  throw Error(ErrorKind::io, {.where = stream.name.where,
                              .what = fmt::format("the size of {} does not agree with its header",
                                                  stream.name.quoted),
                              .expected = fmt::format("{} bytes", expected),
                              .got = std::to_string(stream.size),
                              .fix = "It was cut short, or holds more than one array."});
}

/// The header, leaving the stream at the first element. The elements are all there.
NpyHeader read_npy_header(const NpyStream& stream) {
  const auto read_text = [&](std::size_t bytes) {
    std::string text(bytes, '\0');
    stream.read(std::as_writable_bytes(std::span(text)));
    return text;
  };
  const auto fits = static_cast<std::size_t>(std::min<int64_t>(stream.size, npy_magic_bytes));
  const std::string start = read_text(fits);
  // A shorter start is not the magic string, whatever it is.
  const std::size_t length_bytes = npy_length_bytes(start, stream.name);
  const auto before = static_cast<int64_t>(npy_magic_bytes + length_bytes);
  if (stream.size < before) fail_npy_size(stream, before);
  const std::string length_text = read_text(length_bytes);
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<std::size_t>(static_cast<uint8_t>(length_text[i])) << (8 * i);
  }
  if (length > npy_longest_header) {
    throw Error(ErrorKind::io,
                {.where = stream.name.where,
                 .what = fmt::format("the header of {} is too long", stream.name.quoted),
                 .expected = fmt::format("at most {} bytes", npy_longest_header),
                 .got = std::to_string(length)});
  }
  const int64_t header_end = before + static_cast<int64_t>(length);
  if (stream.size < header_end) fail_npy_size(stream, header_end);
  const NpyHeader header = parse_npy_header(read_text(length), stream.name);
  const int64_t data_bytes = npy_data_bytes(header);
  if (stream.size - header_end != data_bytes) fail_npy_size(stream, header_end + data_bytes);
  return header;
}

/// Reads the elements, which lie in the order of columns, and stores them in that of rows.
void read_reversed(const NpyStream& stream, const Spec& spec, std::span<std::byte> to) {
  Spec stored = spec;
  stored.device = Device{};
  std::ranges::reverse(stored.shape);
  const Tensor columns =
      filled_tensor(stored, [&](std::span<std::byte> memory) { stream.read(memory); });
  Strides strides = strides_of(stored.shape);
  std::ranges::reverse(strides);
  Spec rows = stored;
  rows.shape = spec.shape;
  HostElements(make_tensor(rows, strides, 0, columns.internals().storage).internals())
      .copy_to(to.data());
}

}  // namespace

Tensor read_npy(const NpyStream& stream) {
  const NpyHeader header = read_npy_header(stream);
  const Spec spec = {
      .dtype = header.dtype, .shape = header.shape, .is_weak = false, .device = default_device()};
  const Tensor tensor = filled_tensor(spec, [&](std::span<std::byte> memory) {
    if (header.is_fortran && spec.shape.size() > 1)
      read_reversed(stream, spec, memory);
    else
      stream.read(memory);
    if (spec.dtype == boolean) make_boolean(memory);
    if (header.is_big_endian) reverse_elements(memory, size_of(spec.dtype));
  });
  current().created(tensor);
  return tensor;
}

}  // namespace nitinol::io
