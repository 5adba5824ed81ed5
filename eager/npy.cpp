#include "eager/npy.h"

#include "core/error.h"
#include "core/interpreter.h"
#include "core/shape.h"
#include "eager/host_read.h"
#include "eager/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <random>
#include <span>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace nitinol {
namespace {

namespace fs = std::filesystem;
using eager::NpyHeader;

/// An open file descriptor, and the name of its file in messages.
class File {
 public:
  File(const char* where, fs::path path, int flags)
      : where_(where), path_(std::move(path)), descriptor_(::open(path_.c_str(), flags, 0666)) {
    if (descriptor_ < 0) fail("cannot be opened");
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Throws the Error that says why the last call to the system failed.
  [[noreturn]] void fail(std::string_view what) const {
    const std::string reason = std::generic_category().message(errno);
    throw Error(ErrorKind::io,
                {.where = where_, .what = fmt::format("\"{}\" {}: {}", name(), what, reason)});
  }

  [[nodiscard]] std::string name() const { return path_.string(); }

  /// Bytes in it. Throws Error(io) unless it is a regular file, whose size is known.
  [[nodiscard]] int64_t size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail("cannot be examined");
    if (!S_ISREG(status.st_mode)) {
      throw Error(ErrorKind::io,
                  {.where = where_, .what = fmt::format("\"{}\" is not a regular file", name())});
    }
    return status.st_size;
  }

  void read(std::span<std::byte> to) const {
    while (!to.empty()) {
      const ssize_t count = ::read(descriptor_, to.data(), to.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("cannot be read");
      if (count == 0) fail_short(to.size());
      to = to.subspan(static_cast<std::size_t>(count));
    }
  }

  void write(std::span<const std::byte> from) const {
    while (!from.empty()) {
      const ssize_t count = ::write(descriptor_, from.data(), from.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("cannot be written");
      from = from.subspan(static_cast<std::size_t>(count));
    }
  }

  /// Waits until the contents are on the disk.
  void synchronize() const {
    // EINVAL: a file system that cannot.
    if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("cannot be written");
  }

 private:
  [[noreturn]] void fail_short(std::size_t missing) const {
    throw Error(ErrorKind::io, {.where = where_,
                                .what = fmt::format("\"{}\" ends {} bytes early", name(), missing),
                                .fix = "It may still be being written."});
  }

  const char* where_;
  fs::path path_;
  int descriptor_;
};

/// A file that takes its final name at the end of a successful write, and is removed otherwise.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target)
      : target_(target), path_(fresh_name(target)), file_("save_npy", path_, flags) {}
  ~TemporaryFile() {
    if (!is_published_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const File& file() const { return file_; }

  void publish() {
    file_.synchronize();
    if (::rename(path_.c_str(), target_.c_str()) != 0) file_.fail("cannot be renamed");
    is_published_ = true;
    synchronize_folder();
  }

 private:
  static constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;

  static fs::path fresh_name(const fs::path& target) {
    std::random_device random;
    return target.parent_path() / fmt::format(".{:08x}{:08x}.npy.tmp", random(), random());
  }

  /// Makes the new name last; where that is not permitted the file is complete all the same.
  void synchronize_folder() const {
    const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
  }

  fs::path target_;
  fs::path path_;
  File file_;
  bool is_published_ = false;
};

/// The file that a save replaces: what a symbolic link points to, and never a device.
fs::path target_of(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::is_symlink(path, error) ? fs::canonical(path, error) : path;
  const fs::file_status status = fs::status(error ? path : target, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(ErrorKind::io,
                {.where = "save_npy",
                 .what = fmt::format("\"{}\" exists and is not a regular file", path.string()),
                 .fix = "Choose another name."});
  }
  return target.empty() ? path : target;
}

void save(const fs::path& path, const Tensor& tensor, std::source_location place) {
  const Spec& spec = tensor.spec();
  const NpyHeader header{.dtype = spec.dtype, .is_fortran = false, .shape = spec.shape};
  const std::string text = eager::npy_header_text(header, path.string());
  const TensorData& data = eager::host_read(tensor, {.what = "save_npy()", .place = place});
  const auto bytes = static_cast<std::size_t>(eager::npy_data_bytes(header));
  TemporaryFile temporary(target_of(path));
  temporary.file().write(std::as_bytes(std::span(text)));
  if (bytes != 0 && is_contiguous(spec.shape, data.strides)) {
    temporary.file().write({static_cast<const std::byte*>(data.address()), bytes});
  } else if (bytes != 0) {
    const Tensor packed = allocate_tensor(spec);
    auto* const address = static_cast<std::byte*>(packed.internals().address());
    eager::copy_elements(data, address);
    temporary.file().write({address, bytes});
  }
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
  const auto fits = static_cast<std::size_t>(std::min<int64_t>(size, eager::npy_magic_bytes));
  const std::string start = read_text(fits);
  // A shorter start is not the magic string, whatever it is.
  const std::size_t length_bytes = eager::npy_length_bytes(start, file.name());
  const auto before = static_cast<int64_t>(eager::npy_magic_bytes + length_bytes);
  if (size < before) fail_size(file, before, size);
  const std::string length_text = read_text(length_bytes);
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<std::size_t>(static_cast<uint8_t>(length_text[i])) << (8 * i);
  }
  if (length > eager::npy_longest_header) {
    throw Error(ErrorKind::io,
                {.where = "load_npy",
                 .what = fmt::format("the header of \"{}\" is too long", file.name()),
                 .expected = fmt::format("at most {} bytes", eager::npy_longest_header),
                 .got = std::to_string(length)});
  }
  const int64_t header_end = before + static_cast<int64_t>(length);
  if (size < header_end) fail_size(file, header_end, size);
  const NpyHeader header = eager::parse_npy_header(read_text(length), file.name());
  const int64_t data_bytes = eager::npy_data_bytes(header);
  if (size - header_end != data_bytes) fail_size(file, header_end + data_bytes, size);
  return header;
}

std::span<std::byte> memory_of(const Tensor& tensor, int64_t bytes) {
  return {static_cast<std::byte*>(tensor.internals().address()), static_cast<std::size_t>(bytes)};
}

/// `x` with its axes in reverse order, in fresh memory.
Tensor reversed(const Tensor& x, const Spec& spec) {
  TensorData& data = x.internals();
  Strides strides = data.strides;
  std::ranges::reverse(strides);
  const Tensor view = make_tensor(spec, strides, data.offset, data.storage);
  Tensor result = allocate_tensor(spec);
  eager::copy_elements(view.internals(), static_cast<std::byte*>(result.internals().address()));
  return result;
}

Tensor load(const fs::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const File file("load_npy", path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const NpyHeader header = read_header(file);
  Spec spec;
  spec.dtype = header.dtype;
  spec.shape = header.shape;
  Spec stored = spec;
  if (header.is_fortran) std::ranges::reverse(stored.shape);
  Tensor tensor = allocate_tensor(stored);
  const std::span<std::byte> memory = memory_of(tensor, eager::npy_data_bytes(header));
  file.read(memory);
  if (spec.dtype == boolean) {
    for (std::byte& element : memory)
      element = element != std::byte{0} ? std::byte{1} : std::byte{0};
  }
  if (header.is_fortran && spec.shape.size() > 1) tensor = reversed(tensor, spec);
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
