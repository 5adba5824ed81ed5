// Files as saves and loads need them: errors with names and reasons, writes that happen whole or
// not at all.
#pragma once

#include "core/descriptor.h"
#include "core/host_access.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace nitinol::io {

/// An open file descriptor, and the name of its file in messages. Errors are Error(io); of a path
/// with a NUL character Error(value).
class File {
 public:
  /// `where`: the function that messages name. `flags`: those of open(2).
  File(const char* where, const std::filesystem::path& path, int flags)
      : File(where, path, flags, path) {}
  /// Messages have another name than the file's own.
  File(const char* where, const std::filesystem::path& path, int flags,
       const std::filesystem::path& name);

  /// Throws the Error that says why the last call to the system failed.
  [[noreturn]] void fail(std::string_view what) const;
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Bytes in it. Throws Error(io) unless it is a regular file, whose size is known.
  [[nodiscard]] int64_t size() const;
  void read(std::span<std::byte> to) const;
  void write(std::span<const std::byte> from) const;
  /// The same from this byte of the file on; where read() and write() are stays as it is.
  void read_at(std::span<std::byte> to, int64_t offset) const;
  void write_at(std::span<const std::byte> from, int64_t offset) const;
  /// Waits until the contents are on the disk.
  void synchronize() const;

 private:
  [[noreturn]] void fail_short(std::size_t missing) const;

  const char* where_;
  std::string name_;
  Descriptor descriptor_;
};

/// Makes every byte that is not 0 a 1: booleans as files may hold them.
inline void make_boolean(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = byte != std::byte{0} ? std::byte{1} : std::byte{0};
}

/// Reverses the bytes of each element, of `width` bytes.
inline void reverse_elements(std::span<std::byte> bytes, std::size_t width) {
  for (auto at = bytes.begin(); at != bytes.end(); at += static_cast<std::ptrdiff_t>(width))
    std::reverse(at, at + static_cast<std::ptrdiff_t>(width));
}

/// The bytes of all elements in row-major order: where they lie, or a copy.
class ElementBytes {
 public:
  /// The elements must live as long.
  explicit ElementBytes(const HostElements& elements);
  [[nodiscard]] std::span<const std::byte> get() const { return bytes_; }

 private:
  std::unique_ptr<std::byte[]> packed_;
  std::span<const std::byte> bytes_;
};

/// A file that takes its final name at the end of a successful write, and is removed otherwise.
class TemporaryFile {
 public:
  /// For `path`, or what a symbolic link there points to. Throws Error(io) if that is a device or
  /// folder. Errors name `path`.
  TemporaryFile(const char* where, const std::filesystem::path& path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const File& file() const { return file_; }
  /// Writes all elements in row-major order.
  void write_elements(const HostElements& elements) const;
  void publish();

 private:
  void synchronize_folder() const;

  std::filesystem::path target_;
  std::filesystem::path path_;
  File file_;
  bool is_published_ = false;
};

/// Writes a file, which appears complete or not at all. Throws Error(io) if it cannot be written.
void write_text(const char* where, const std::filesystem::path& path, std::string_view text);

}  // namespace nitinol::io
