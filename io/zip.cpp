// libzip reads and writes by functions that it is given. They are called from C, so an Error of
// theirs is kept, and thrown when libzip has come back with a failure.
#include "io/zip.h"

#include "core/error.h"
#include "core/shape.h"
#include "io/file.h"
#include "io/zip_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <zip.h>

namespace nitinol::io {
namespace {

/// libzip's description of what went wrong.
class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ~ZipError() { zip_error_fini(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  zip_error_t* get() { return &error_; }
  [[nodiscard]] std::string text() { return zip_error_strerror(&error_); }

 private:
  zip_error_t error_ = {};
};

/// What the functions of a source share: how one that has thrown fails.
struct ZipSource {
  ZipError error;
  std::exception_ptr failure = nullptr;

  /// f(), which returns a count; -1 if it throws, or something has thrown before.
  template <class F>
  zip_int64_t guarded(const F& f) {
    if (failure) return -1;
    try {
      return static_cast<zip_int64_t>(f());
    } catch (...) {
      failure = std::current_exception();
      zip_error_set(error.get(), ZIP_ER_INTERNAL, 0);
      return -1;
    }
  }
  zip_int64_t stat(void* data, int64_t size) {
    auto* const stat = static_cast<zip_stat_t*>(data);
    zip_stat_init(stat);
    stat->size = static_cast<zip_uint64_t>(size);
    stat->valid |= ZIP_STAT_SIZE;
    return sizeof *stat;
  }
};

/// A zip file as libzip sees it.
struct ZipFile : ZipSource {
  ZipFile(const File& file_, int64_t size_) : file(file_), size(size_) {}

  zip_int64_t read(void* to, zip_uint64_t length) {
    return guarded([&] {
      const int64_t rest = std::max<int64_t>(size - position, 0);
      const auto count = std::min(static_cast<std::size_t>(length), static_cast<std::size_t>(rest));
      file.read_at({static_cast<std::byte*>(to), count}, position);
      position += static_cast<int64_t>(count);
      return count;
    });
  }
  zip_int64_t write(const void* from, zip_uint64_t length) {
    return guarded([&] {
      file.write_at({static_cast<const std::byte*>(from), length}, position);
      position += static_cast<int64_t>(length);
      size = std::max(size, position);
      return length;
    });
  }
  zip_int64_t seek(void* data, zip_uint64_t length) {
    const zip_int64_t to =
        zip_source_seek_compute_offset(static_cast<zip_uint64_t>(position),
                                       static_cast<zip_uint64_t>(size), data, length, error.get());
    if (to < 0) return -1;
    position = to;
    return 0;
  }

  const File& file;
  int64_t size, position = 0;
};

zip_int64_t call_file(void* user, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  ZipFile& file = *static_cast<ZipFile*>(user);
  switch (command) {
    case ZIP_SOURCE_OPEN:
      file.position = 0;
      return 0;
    case ZIP_SOURCE_READ:
      return file.read(data, length);
    case ZIP_SOURCE_WRITE:
      return file.write(data, length);
    case ZIP_SOURCE_SEEK:
    case ZIP_SOURCE_SEEK_WRITE:
      return file.seek(data, length);
    case ZIP_SOURCE_TELL:
    case ZIP_SOURCE_TELL_WRITE:
      return file.position;
    case ZIP_SOURCE_STAT:
      return file.stat(data, file.size);
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(file.error.get(), data, length);
    case ZIP_SOURCE_SUPPORTS:
      return ZIP_SOURCE_SUPPORTS_WRITABLE |
             ZIP_SOURCE_MAKE_COMMAND_BITMASK(ZIP_SOURCE_ACCEPT_EMPTY);
    case ZIP_SOURCE_ACCEPT_EMPTY:  // a file of no bytes is no zip file
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_REMOVE:
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
      return 0;  // TemporaryFile does what there is to do
    default:
      zip_error_set(file.error.get(), ZIP_ER_OPNOTSUPP, 0);
      return -1;
  }
}

/// A member that is written, as libzip sees it.
struct NewMember : ZipSource {
  explicit NewMember(const ZipContents& contents_) : contents(contents_) {}

  zip_int64_t open() {
    return guarded([&] {
      position = 0;
      elements.emplace(contents.elements);
      return 0;
    });
  }
  zip_int64_t read(void* data, zip_uint64_t length) {
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(contents.text)),
                                                elements->get()};
    std::span<std::byte> to(static_cast<std::byte*>(data), length);
    std::size_t before = 0;
    for (const std::span<const std::byte> part : parts) {
      const std::size_t skipped = std::min(position - std::min(position, before), part.size());
      const std::size_t count = std::min(to.size(), part.size() - skipped);
      if (count > 0) std::memcpy(to.data(), part.data() + skipped, count);
      to = to.subspan(count);
      position += count;
      before += part.size();
    }
    return static_cast<zip_int64_t>(length - to.size());
  }
  [[nodiscard]] int64_t size() const {
    const Spec& spec = contents.elements.spec();
    return static_cast<int64_t>(contents.text.size()) +
           element_count(spec.shape) * static_cast<int64_t>(size_of(spec.dtype));
  }

  const ZipContents contents;
  std::optional<ElementBytes> elements;  // while it is written
  std::size_t position = 0;
};

zip_int64_t call_member(void* user, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  NewMember& member = *static_cast<NewMember*>(user);
  switch (command) {
    case ZIP_SOURCE_OPEN:
      return member.open();
    case ZIP_SOURCE_READ:
      return member.read(data, length);
    case ZIP_SOURCE_CLOSE:
      member.elements.reset();
      return 0;
    case ZIP_SOURCE_STAT:
      return member.stat(data, member.size());
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(member.error.get(), data, length);
    case ZIP_SOURCE_FREE:
      return 0;
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                            ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
    default:
      zip_error_set(member.error.get(), ZIP_ER_OPNOTSUPP, 0);
      return -1;
  }
}

/// Opens the file for libzip; nullptr, and the reason in `error`.
zip_t* open_zip(ZipFile& file, int flags, ZipError& error) {
  zip_source_t* const source = zip_source_function_create(call_file, &file, error.get());
  if (source == nullptr) return nullptr;
  zip_t* const zip = zip_open_from_source(source, flags, error.get());
  if (zip == nullptr) zip_source_free(source);
  return zip;
}

}  // namespace

// ---- ZipReader

struct ZipReader::State {
  State(const char* where_, const std::filesystem::path& path)
      // O_NONBLOCK: opening a pipe must not wait for its writer.
      : where(where_), file(where_, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) {}
  ~State() {
    if (member != nullptr) zip_fclose(member);
    if (zip != nullptr) zip_discard(zip);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[noreturn]] void fail(ErrorKind kind, std::string what, std::string expected = {},
                         std::string got = {}, std::string fix = {}) const {
    if (source.failure) std::rethrow_exception(source.failure);
    throw Error(kind, {.where = where,
                       .what = std::move(what),
                       .expected = std::move(expected),
                       .got = std::move(got),
                       .fix = std::move(fix)});
  }

  [[noreturn]] void fail_member(const std::string& reason) const {
    fail(ErrorKind::io, fmt::format("{} is damaged: {}", quoted(), reason), "", "",
         "If it was cut short or changed, get it again.");
  }

  [[nodiscard]] std::string quoted() const {
    return fmt::format("{} in \"{}\"", shown_zip_name(name), file.name());
  }

  void check_sizes(const zip_stat_t& stat);
  [[noreturn]] void fail_repeated();

  const char* where;
  File file;
  ZipFile source = {file, file.size()};
  zip_t* zip = nullptr;
  zip_file_t* member = nullptr;
  std::string name;          // the member's
  int64_t rest_of_file = 0;  // bytes that no member's compressed ones have been yet
  zip_uint64_t count = 0, number = 0;
};

/// Says which name comes twice, as libzip does not.
void ZipReader::State::fail_repeated() {
  ZipError error;
  zip = open_zip(source, ZIP_RDONLY, error);
  std::set<std::string> seen;
  for (zip_int64_t i = 0; zip != nullptr && i < zip_get_num_entries(zip, 0); ++i) {
    const char* const each = zip_get_name(zip, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    name = each != nullptr ? each : "";
    if (!seen.insert(name).second) break;
  }
  fail(ErrorKind::io, fmt::format("the member {}", quoted()), "each name once", "it a second time");
}

/// A list may say of a small file that it holds much, or of the same bytes that they are several
/// members: neither can make us allocate more than the file's size allows.
void ZipReader::State::check_sizes(const zip_stat_t& stat) {
  const bool is_stored = stat.comp_method == ZIP_CM_STORE;
  if (stat.comp_size > static_cast<zip_uint64_t>(rest_of_file)) {
    fail(ErrorKind::io, fmt::format("the compressed size of {}", quoted()),
         fmt::format("at most {} bytes, which are left", rest_of_file),
         std::to_string(stat.comp_size));
  }
  const zip_uint64_t most =
      is_stored ? stat.comp_size : stat.comp_size * static_cast<zip_uint64_t>(most_inflated);
  if (stat.size > most || (is_stored && stat.size != most)) {
    fail(ErrorKind::io, fmt::format("the size of {}", quoted()),
         fmt::format("what {} bytes can hold, {}{}", stat.comp_size, is_stored ? "" : "at most ",
                     most),
         std::to_string(stat.size));
  }
  rest_of_file -= static_cast<int64_t>(stat.comp_size);
}

ZipReader::ZipReader(const char* where, const std::filesystem::path& path)
    : state_(std::make_unique<State>(where, path)) {
  State& state = *state_;
  ZipError error;
  state.zip = open_zip(state.source, ZIP_RDONLY | ZIP_CHECKCONS, error);
  if (zip_error_code_zip(error.get()) == ZIP_ER_EXISTS) state.fail_repeated();
  if (state.zip == nullptr) {
    state.fail(
        ErrorKind::io,
        fmt::format("\"{}\" is not a zip file, or is damaged: {}", state.file.name(), error.text()),
        "", "", "If it was cut short or changed, get it again.");
  }
  state.count = static_cast<zip_uint64_t>(zip_get_num_entries(state.zip, 0));
  state.rest_of_file = state.source.size;
}

ZipReader::~ZipReader() = default;

std::optional<ZipMember> ZipReader::next() {
  State& state = *state_;
  if (state.number == state.count) return std::nullopt;
  zip_stat_t stat;
  zip_stat_init(&stat);
  constexpr zip_flags_t flags = ZIP_FL_ENC_RAW | ZIP_FL_UNCHANGED;
  const char* const name = zip_get_name(state.zip, state.number, flags);
  if (name == nullptr || zip_stat_index(state.zip, state.number, flags, &stat) != 0) {
    state.fail(ErrorKind::io, fmt::format("the list of members of \"{}\" is damaged: {}",
                                          state.file.name(), zip_strerror(state.zip)));
  }
  state.name = name;
  if (!is_zip_name(state.name)) {
    state.fail(ErrorKind::io, fmt::format("the name of {}", state.quoted()), "UTF-8 without NUL",
               "other bytes");
  }
  if (stat.encryption_method != ZIP_EM_NONE) {
    state.fail(ErrorKind::unsupported, fmt::format("{} is encrypted", state.quoted()),
               "a member that is not", "", "Unpack it, and pack it without a password.");
  }
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
    state.fail(ErrorKind::unsupported, fmt::format("the compression of {}", state.quoted()),
               "none (method 0) or deflate (8)", fmt::format("method {}", stat.comp_method));
  }
  state.check_sizes(stat);
  state.member = zip_fopen_index(state.zip, state.number++, ZIP_FL_UNCHANGED);
  if (state.member == nullptr) state.fail_member(zip_strerror(state.zip));
  return ZipMember{.name = state.name, .size = static_cast<int64_t>(stat.size)};
}

void ZipReader::read(std::span<std::byte> to) {
  constexpr std::size_t most_at_once = std::size_t{1} << 30;  // libzip miscounts beyond 32 bits
  while (!to.empty()) {
    const zip_int64_t count =
        zip_fread(state_->member, to.data(), std::min(to.size(), most_at_once));
    if (count < 0) state_->fail_member(zip_file_strerror(state_->member));
    if (count == 0) state_->fail_member(fmt::format("it ends {} bytes early", to.size()));
    to = to.subspan(static_cast<std::size_t>(count));
  }
}

void ZipReader::check() {
  std::byte more = {};
  // At the end libzip compares size and checksum with those of the list.
  const zip_int64_t count = zip_fread(state_->member, &more, 1);
  if (count < 0) state_->fail_member(zip_file_strerror(state_->member));
  if (count > 0) state_->fail_member("it goes on after its end");
  zip_fclose(std::exchange(state_->member, nullptr));
}

// ---- ZipWriter

struct ZipWriter::State {
  State(const char* where, const std::filesystem::path& path, ZipMethod method_)
      : file(where, path), method(method_) {}
  ~State() {
    if (zip != nullptr) zip_discard(zip);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[noreturn]] void fail(const std::string& reason) const {
    if (source.failure) std::rethrow_exception(source.failure);
    for (const NewMember& member : members)
      if (member.failure) std::rethrow_exception(member.failure);
    throw Error(ErrorKind::internal, {.where = "ZipWriter",
                                      .what = fmt::format("libzip cannot write \"{}\": {}",
                                                          file.file().name(), reason)});
  }

  TemporaryFile file;
  ZipMethod method;
  ZipFile source = {file.file(), 0};
  std::deque<NewMember> members;  // they stay where they are
  zip_t* zip = nullptr;
};

ZipWriter::ZipWriter(const char* where, const std::filesystem::path& path, ZipMethod method)
    : state_(std::make_unique<State>(where, path, method)) {
  ZipError error;
  state_->zip = open_zip(state_->source, ZIP_CREATE | ZIP_TRUNCATE, error);
  if (state_->zip == nullptr) state_->fail(error.text());
}

ZipWriter::~ZipWriter() = default;

void ZipWriter::add(const std::string& name, const ZipContents& contents) {
  NewMember& member = state_->members.emplace_back(contents);
  ZipError error;
  zip_source_t* const source = zip_source_function_create(call_member, &member, error.get());
  if (source == nullptr) state_->fail(error.text());
  const zip_int64_t index = zip_file_add(state_->zip, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    state_->fail(zip_strerror(state_->zip));
  }
  const auto number = static_cast<zip_uint64_t>(index);
  constexpr zip_uint16_t first_day = (1U << 5) | 1U;  // there is; so that files are the same
  constexpr zip_uint32_t level = 6;                   // NumPy's; 9 takes longer for little
  const bool is_stored = state_->method == ZipMethod::stored;
  if (zip_file_set_dostime(state_->zip, number, 0, first_day, 0) != 0 ||
      zip_set_file_compression(state_->zip, number, is_stored ? ZIP_CM_STORE : ZIP_CM_DEFLATE,
                               level) != 0) {
    state_->fail(zip_strerror(state_->zip));
  }
}

void ZipWriter::publish() {
  if (state_->members.empty()) {  // of which libzip makes no file: the end of a list alone
    std::string end = "PK\5\6";
    end.resize(22);
    state_->file.file().write(std::as_bytes(std::span(end)));
  } else if (zip_close(state_->zip) != 0) {
    state_->fail(zip_strerror(state_->zip));
  } else {
    state_->zip = nullptr;
  }
  state_->file.publish();
}

}  // namespace nitinol::io
