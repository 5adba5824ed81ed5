// What stands for io/zip.cpp in a library that was built without zip files.
#include "io/zip.h"

#include "core/error.h"

namespace nitinol::io {
namespace {

[[noreturn]] void fail_without_zip(const char* where) {
  throw Error(ErrorKind::unsupported,
              {.where = where,
               .what = "the library was built without zip files",
               .fix = "Configure with -DNITINOL_ZIP=ON, for which Debian has libzip-dev."});
}

}  // namespace

struct ZipReader::State {};
ZipReader::ZipReader(const char* where, const std::filesystem::path&) {
  fail_without_zip(where);
}
ZipReader::~ZipReader() = default;
std::optional<ZipMember> ZipReader::next() {
  return std::nullopt;
}
void ZipReader::read(std::span<std::byte>) {}
void ZipReader::check() {}

struct ZipWriter::State {};
ZipWriter::ZipWriter(const char* where, const std::filesystem::path&, ZipMethod) {
  fail_without_zip(where);
}
ZipWriter::~ZipWriter() = default;
void ZipWriter::add(const std::string&, const ZipContents&) {}
void ZipWriter::publish() {}

}  // namespace nitinol::io
