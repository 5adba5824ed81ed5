#include "io/file.h"

#include "core/error.h"
#include "core/shape.h"
#include "eager/host_read.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <random>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace nitinol::io {
namespace {

namespace fs = std::filesystem;

fs::path fresh_name(const fs::path& target) {
  std::random_device random;
  return target.parent_path() / fmt::format(".{:08x}{:08x}.tmp", random(), random());
}

/// Throws for a name that the system would read as another, shorter one.
const fs::path& checked(const char* where, const fs::path& path) {
  const std::string& name = path.native();
  if (const std::size_t at = name.find('\0'); at != std::string::npos) {
    throw Error(ErrorKind::value,
                {.where = where,
                 .what = fmt::format("the path has a NUL character after \"{}\"", name.c_str()),
                 .fix = "Give the path without it."});
  }
  return path;
}

/// The file that a save replaces: what a symbolic link points to, and never a device.
fs::path target_of(const char* where, const fs::path& given) {
  const fs::path path = checked(where, given);
  std::error_code error;
  const fs::path target = fs::is_symlink(path, error) ? fs::canonical(path, error) : path;
  const fs::file_status status = fs::status(error ? path : target, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(ErrorKind::io,
                {.where = where,
                 .what = fmt::format("\"{}\" exists and is not a regular file", path.string()),
                 .fix = "Choose another name."});
  }
  return target.empty() ? path : target;
}

}  // namespace

// ---- File

File::File(const char* where, const fs::path& path, int flags, const fs::path& name)
    : where_(where),
      name_(name.string()),
      descriptor_(::open(checked(where, path).c_str(), flags, 0666)) {
  if (!descriptor_.is_open()) fail("cannot be opened");
}

void File::fail(std::string_view what) const {
  const std::string reason = std::generic_category().message(errno);
  throw Error(ErrorKind::io,
              {.where = where_, .what = fmt::format("\"{}\" {}: {}", name(), what, reason)});
}

int64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) != 0) fail("cannot be examined");
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::io,
                {.where = where_, .what = fmt::format("\"{}\" is not a regular file", name())});
  }
  return status.st_size;
}

void File::read(std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t count = ::read(descriptor_.get(), to.data(), to.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot be read");
    if (count == 0) fail_short(to.size());
    to = to.subspan(static_cast<std::size_t>(count));
  }
}

void File::write(std::span<const std::byte> from) const {
  while (!from.empty()) {
    const ssize_t count = ::write(descriptor_.get(), from.data(), from.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot be written");
    from = from.subspan(static_cast<std::size_t>(count));
  }
}

void File::read_at(std::span<std::byte> to, int64_t offset) const {
  while (!to.empty()) {
    const ssize_t count = ::pread(descriptor_.get(), to.data(), to.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot be read");
    if (count == 0) fail_short(to.size());
    to = to.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

void File::write_at(std::span<const std::byte> from, int64_t offset) const {
  while (!from.empty()) {
    const ssize_t count = ::pwrite(descriptor_.get(), from.data(), from.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot be written");
    from = from.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

void File::synchronize() const {
  // EINVAL: a file system that cannot.
  if (::fsync(descriptor_.get()) != 0 && errno != EINVAL) fail("cannot be written");
}

void File::fail_short(std::size_t missing) const {
  throw Error(ErrorKind::io, {.where = where_,
                              .what = fmt::format("\"{}\" ends {} bytes early", name(), missing),
                              .fix = "It may still be being written."});
}

ElementBytes::ElementBytes(const HostElements& elements) {
  const Spec& spec = elements.spec();
  const auto bytes = static_cast<std::size_t>(element_count(spec.shape)) * size_of(spec.dtype);
  if (bytes == 0) return;
  bytes_ = {elements.first(), bytes};
  if (is_contiguous(spec.shape, elements.strides())) return;
  packed_.reset(new std::byte[bytes]);  // not initialised
  elements.copy_to(packed_.get());
  bytes_ = {packed_.get(), bytes};
}

// ---- TemporaryFile

TemporaryFile::TemporaryFile(const char* where, const fs::path& path)
    : target_(target_of(where, path)),
      path_(fresh_name(target_)),
      file_(where, path_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, path) {}

TemporaryFile::~TemporaryFile() {
  if (!is_published_) ::unlink(path_.c_str());
}

void TemporaryFile::write_elements(const HostElements& elements) const {
  file_.write(ElementBytes(elements).get());
}

void TemporaryFile::publish() {
  file_.synchronize();
  if (::rename(path_.c_str(), target_.c_str()) != 0) file_.fail("cannot be renamed");
  is_published_ = true;
  synchronize_folder();
}

/// Makes the new name last; where that is not permitted the file is complete all the same.
void TemporaryFile::synchronize_folder() const {
  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.is_open()) ::fsync(descriptor.get());
}

void write_text(const char* where, const std::filesystem::path& path, std::string_view text) {
  TemporaryFile temporary(where, path);
  temporary.file().write(std::as_bytes(std::span(text)));
  temporary.publish();
}

}  // namespace nitinol::io
