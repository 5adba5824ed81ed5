#include "io/csv.h"

#include "core/error.h"
#include "core/interpreter.h"
#include "eager/host_read.h"
#include "eager/ops/create.h"
#include "io/file.h"

#include <fmt/format.h>

#include <charconv>
#include <fcntl.h>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace nitinol {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_csv(ErrorKind kind, std::string what, std::string expected, std::string got,
                           std::string fix = {}) {
  throw Error(kind, {.where = "load_csv",
                     .what = std::move(what),
                     .expected = std::move(expected),
                     .got = std::move(got),
                     .fix = std::move(fix)});
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// The text of a field, without the quotes around it.
std::string_view bare(std::string_view field) {
  field = without_blanks(field);
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
    field = without_blanks(field.substr(1, field.size() - 2));
  return field;
}

class CsvReader {
 public:
  CsvReader(std::string text, std::string name, const CsvOptions& options)
      : text_(std::move(text)), name_(std::move(name)), options_(options) {
    rest_ = text_;
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);  // UTF-8's mark
  }

  template <class T>
  CsvFile read() {
    CsvFile file;
    if (options_.has_header) {
      const std::optional<std::string_view> header = next_line();
      if (!header) fail_at("the header", "a line of names", "an empty file");
      for_each_field(*header,
                     [&](std::string_view field) { file.names.emplace_back(bare(field)); });
      columns_ = static_cast<int64_t>(file.names.size());
    }
    std::vector<T> values;
    int64_t lines = 0;
    while (const std::optional<std::string_view> line = next_line()) {
      column_ = 0;
      for_each_field(*line, [&](std::string_view field) {
        ++column_;
        if (columns_ >= 0 && column_ > columns_) return;
        values.push_back(number<T>(bare(field)));
      });
      if (columns_ < 0) columns_ = column_;
      if (column_ != columns_) {
        fail_at(fmt::format("line {}", line_), fmt::format("{} fields", columns_),
                std::to_string(column_));
      }
      ++lines;
    }
    file.values = from_span<T>(values, {lines, std::max<int64_t>(columns_, 0)});
    return file;
  }

 private:
  [[noreturn]] void fail_at(const std::string& what, std::string expected, std::string got,
                            std::string fix = {}) const {
    fail_csv(ErrorKind::io, fmt::format("{} of \"{}\"", what, name_), std::move(expected),
             std::move(got), std::move(fix));
  }

  /// Nothing at the end, before which empty lines do not count.
  std::optional<std::string_view> next_line() {
    if (rest_.find_first_not_of(" \t\r\n") == std::string_view::npos) return std::nullopt;
    const std::size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++line_;
    return line;
  }

  /// Fields end at a separator that stands in no quotes.
  template <class F>
  void for_each_field(std::string_view line, const F& f) const {
    bool is_quoted = false;
    std::size_t first = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"') is_quoted = !is_quoted;
      if (is_quoted || line[i] != options_.separator) continue;
      f(line.substr(first, i - first));
      first = i + 1;
    }
    f(line.substr(first));
  }

  template <class T>
  [[nodiscard]] T number(std::string_view field) const {
    if (field.empty() && std::is_floating_point_v<T>) return std::numeric_limits<T>::quiet_NaN();
    std::string_view digits = field;
    if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
    T value{};
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (error == std::errc() && stop == end && !digits.empty()) return value;
    constexpr std::size_t shown = 40;
    const bool is_beyond = error == std::errc::result_out_of_range && stop == end;
    const bool may_be_header = line_ == 1 && !options_.has_header;
    fail_at(fmt::format("line {}, field {}", line_, column_),
            is_beyond ? fmt::format("a number that {} holds", name_of(options_.dtype))
                      : fmt::format("a number of {}", name_of(options_.dtype)),
            fmt::format("\"{}\"", field.substr(0, shown)),
            may_be_header ? "If the first line holds names, set has_header."
                          : "Check the separator and the dtype.");
  }

  const std::string text_, name_;
  const CsvOptions options_;
  std::string_view rest_;
  int64_t line_ = 0, column_ = 0, columns_ = -1;
};

CsvFile load_table(const fs::path& path, const CsvOptions& options) {
  if (std::string_view("0123456789+-.eE\"\n\r").find(options.separator) != std::string_view::npos) {
    fail_csv(ErrorKind::value, "the separator", "a character that numbers do not contain",
             fmt::format("{:?}", std::string(1, options.separator)));
  }
  if (options.dtype != f32 && options.dtype != f64 && options.dtype != i64) {
    fail_csv(ErrorKind::dtype, "the dtype of the numbers", "float32, float64 or int64",
             std::string(name_of(options.dtype)), "Cast what comes back.");
  }
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const io::File file("load_csv", path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(std::as_writable_bytes(std::span(text)));
  CsvReader reader(std::move(text), file.name(), options);
  if (options.dtype == f32) return reader.read<float>();
  if (options.dtype == f64) return reader.read<double>();
  return reader.read<int64_t>();
}

}  // namespace

CsvFile load_csv(const fs::path& path, const CsvOptions& options, std::source_location place) {
  return eager::located(place, [&] { return load_table(path, options); });
}

}  // namespace nitinol
