#include "io/npy.h"

#include "core/error.h"
#include "eager/host_read.h"
#include "io/file.h"
#include "io/npy_header.h"
#include "io/npy_stream.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <span>
#include <string>

namespace nitinol {
namespace {

namespace fs = std::filesystem;
using io::File;
using io::NpyHeader;
using io::NpyName;
using io::TemporaryFile;

void save(const fs::path& path, const Tensor& tensor, std::source_location place) {
  const Spec& spec = tensor.spec();
  const NpyHeader header{.dtype = spec.dtype, .is_fortran = false, .shape = spec.shape};
  const NpyName name = {.quoted = fmt::format("\"{}\"", path.string()), .where = "save_npy"};
  const std::string text = io::npy_header_text(header, name);
  const HostElements elements = eager::host_read(tensor, {.what = "save_npy()", .place = place});
  TemporaryFile temporary("save_npy", path);
  temporary.file().write(std::as_bytes(std::span(text)));
  temporary.write_elements(elements);
  temporary.publish();
}

Tensor load(const fs::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const File file("load_npy", path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const NpyName name = {.quoted = fmt::format("\"{}\"", file.name())};
  const auto read = [&](std::span<std::byte> to) { file.read(to); };
  return io::read_npy({.name = name, .size = file.size(), .read = read});
}

}  // namespace

void save_npy(const fs::path& path, const Tensor& tensor, std::source_location place) {
  eager::located(place, [&] { save(path, tensor, place); });
}

Tensor load_npy(const fs::path& path, std::source_location place) {
  return eager::located(place, [&] { return load(path); });
}

}  // namespace nitinol
