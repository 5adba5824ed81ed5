// Zip files. The format is libzip's business: where the library was built without it
// (NITINOL_ZIP=OFF), the constructors throw Error(unsupported) (missing/zip.cpp).
#pragma once

#include "core/host_access.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace nitinol::io {

/// Deflated data is at most so many times as long as what it is made from: zlib's limit.
inline constexpr int64_t most_inflated = 1032;

/// A file within a zip file, as the list at its end says. The name is UTF-8 without NUL and no
/// other's, and the size one that the bytes in the file can give.
struct ZipMember {
  std::string name;
  int64_t size = 0;
};

/// Reads a zip file, which is not trusted. Errors are Error(io), but Error(unsupported) for members
/// that are encrypted or compressed in another way than by deflate.
class ZipReader {
 public:
  /// `where`: the function that messages name.
  ZipReader(const char* where, const std::filesystem::path& path);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  /// Goes on to the next member; nothing after the last one. All sizes together are at most
  /// most_inflated times the file's.
  [[nodiscard]] std::optional<ZipMember> next();
  /// The member's next bytes; throws if there are not as many, or if they are damaged.
  void read(std::span<std::byte> to);
  /// Checks, when all bytes of the member have been read, that they are those that were written.
  void check();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

enum class ZipMethod { stored, deflated };

/// What a member holds: a text, and then elements in row-major order. Both must live until the file
/// is published.
struct ZipContents {
  std::string_view text;
  const HostElements& elements;
};

/// Writes a zip file that is there whole at the end or not at all.
class ZipWriter {
 public:
  ZipWriter(const char* where, const std::filesystem::path& path, ZipMethod method);
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  /// The name is UTF-8 without NUL of at most longest_zip_name bytes, and new.
  void add(const std::string& name, const ZipContents& contents);
  /// Writes all members, and gives the file its name.
  void publish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nitinol::io
