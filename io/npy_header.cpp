// Parsing and writing the headers of .npy files.
//
//     \x93NUMPY 1 0 <length, little-endian>
//     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }<spaces>\n
//
// The dictionary is a Python literal. Files come from anywhere, so it is parsed for exactly the
// three keys, each once, in any order, with Python's freedom of quotes, blanks and trailing commas,
// and nothing is evaluated.
#include "io/npy_header.h"

#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <utility>

namespace nitinol::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored as in memory");

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::string_view resave =
    "In NumPy, save a converted copy: np.save(path, array.astype('<f4')).";

/// NumPy's code of a dtype without the byte order, a letter and the bytes; bf16 has none.
std::string code_of(DType dtype) {
  if (dtype == bf16) return {};
  const char kind = dtype == boolean     ? 'b'
                    : is_floating(dtype) ? 'f'
                    : is_unsigned(dtype) ? 'u'
                                         : 'i';
  return fmt::format("{}{}", kind, size_of(dtype));
}

/// What NumPy calls the element types that tensors do not have.
std::string name_of_unsupported(std::string_view code) {
  switch (code.empty() ? '\0' : code[0]) {
    case 'c':
      return "complex numbers";
    case 'f':
      return "floating-point numbers of another size";
    case 'u':
      return "unsigned integers of another size";
    case 'O':
      return "Python objects, which would have to be unpickled";
    case 'S':
    case 'a':
    case 'U':
      return "text";
    case 'M':
    case 'm':
      return "dates or times";
    case 'V':
      return "raw bytes, as for bfloat16 or records";
    default:
      return "elements of an unknown type";
  }
}

/// Characters that do not disturb a message.
std::string printable(std::string_view text) {
  constexpr std::size_t most = 60;
  std::string result;
  for (const char c : text.substr(0, most)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > most ? "..." : "");
}

class Parser {
 public:
  Parser(std::string_view text, const NpyName& file) : text_(text), file_(file) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_dtype = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !std::exchange(has_dtype, true)) {
        read_elements(header);
      } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
        header.is_fortran = boolean_literal();
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        header.shape = shape();
      } else {
        fail("'descr', 'fortran_order' and 'shape', each once",
             fmt::format("'{}'", printable(key)));
      }
      if (!accept(',') && peek() != '}') fail("',' or '}'", rest());
    }
    if (peek() != '\0') fail("nothing after the dictionary", rest());
    if (!has_dtype || !has_order || !has_shape) {
      fail("'descr', 'fortran_order' and 'shape'", printable(text_));
    }
    check_size(header);
    return header;
  }

 private:
  [[noreturn]] void fail(std::string expected, std::string got) const {
    throw Error(ErrorKind::io,
                {.where = file_.where,
                 .what = fmt::format("the header of {} is damaged", file_.quoted),
                 .expected = std::move(expected),
                 .got = std::move(got),
                 .fix = fmt::format("Write the file again with {}.", file_.writers)});
  }

  [[noreturn]] void fail_unsupported(std::string what, std::string expected, std::string got,
                                     std::string_view fix) const {
    throw Error(ErrorKind::unsupported, {.where = file_.where,
                                         .what = fmt::format("{} holds {}", file_.quoted, what),
                                         .expected = std::move(expected),
                                         .got = std::move(got),
                                         .fix = std::string(fix)});
  }

  [[nodiscard]] std::string rest() const {
    return at_ < text_.size() ? fmt::format("\"{}\"", printable(text_.substr(at_))) : "its end";
  }

  /// The next character that is not blank; '\0' at the end.
  char peek() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}'", c), rest());
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a quoted string", rest());
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a closing quote", rest());
    const std::string_view result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }

  bool accept_word(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool boolean_literal() {
    if (accept_word("True")) return true;
    if (!accept_word("False")) fail("True or False", rest());
    return false;
  }

  /// The dtype and the order of bytes.
  void read_elements(NpyHeader& header) {
    const std::string expected = "bool, i1 to i8, u1 to u8, f2, f4 or f8";
    if (peek() == '[') fail_unsupported("records", expected, "a list of fields", resave);
    const std::string_view descr = string();
    const bool has_order =
        !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
    const std::string_view code = descr.substr(has_order ? 1 : 0);
    for (int i = 0; i < dtype_count; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (code.empty() || code_of(dtype) != code) continue;
      header.dtype = dtype;
      header.is_big_endian = descr[0] == '>' && size_of(dtype) > 1;
      return;
    }
    fail_unsupported(name_of_unsupported(code), expected, fmt::format("'{}'", printable(descr)),
                     resave);
  }

  int64_t size() {
    int64_t value = 0;
    peek();
    const char* const end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc() || value < 0) fail("a size from 0 to 2^63 - 1", rest());
    at_ = static_cast<std::size_t>(stop - text_.data());
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    return value;
  }

  Shape shape() {
    Shape result;
    expect('(');
    while (!accept(')')) {
      if (result.size() == max_rank) {
        fail_unsupported("an array of more dimensions than tensors have",
                         fmt::format("at most {}", max_rank), "more",
                         "In NumPy, reshape it first.");
      }
      result.push_back(size());
      if (!accept(',') && peek() != ')') fail("',' or ')'", rest());
    }
    return result;
  }

  /// Sizes 0 do not excuse the others: strides are products of them.
  void check_size(const NpyHeader& header) const {
    constexpr int64_t most = int64_t{1} << 62;  // so that sums with the header's length are numbers
    auto bytes = static_cast<int64_t>(size_of(header.dtype));
    for (const int64_t size : header.shape) {
      if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes) || bytes > most) {
        fail("an array that can be addressed", fmt::format("shape {}", to_string(header.shape)));
      }
    }
  }

  std::string_view text_;
  const NpyName& file_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t npy_length_bytes(std::string_view start, const NpyName& file) {
  const auto fail = [&](std::string expected, std::string got) {
    throw Error(ErrorKind::io, {.where = file.where,
                                .what = fmt::format("{} is not a .npy file", file.quoted),
                                .expected = std::move(expected),
                                .got = std::move(got),
                                .fix = fmt::format("Write it with {}.", file.writers)});
  };
  if (start.size() < npy_magic_bytes || !start.starts_with(magic)) {
    fail("\"\\x93NUMPY\" at its start", "other bytes");
  }
  const auto major = static_cast<uint8_t>(start[6]);
  const auto minor = static_cast<uint8_t>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    fail("format version 1.0, 2.0 or 3.0", fmt::format("{}.{}", major, minor));
  }
  return major == 1 ? 2 : 4;
}

NpyHeader parse_npy_header(std::string_view text, const NpyName& file) {
  return Parser(text, file).parse();
}

int64_t npy_data_bytes(const NpyHeader& header) {
  return element_count(header.shape) * static_cast<int64_t>(size_of(header.dtype));
}

std::string npy_header_text(const NpyHeader& header, const NpyName& file) {
  const std::string code = code_of(header.dtype);
  if (code.empty()) {
    throw Error(ErrorKind::unsupported,
                {.where = file.where,
                 .what = fmt::format("{}: .npy files have no elements of type {}", file.quoted,
                                     name_of(header.dtype)),
                 .fix = "Save a converted copy, which is exact: x.to(f32)."});
  }
  std::string sizes;
  for (const int64_t size : header.shape) sizes += fmt::format("{}, ", size);
  if (header.shape.size() > 1) sizes.resize(sizes.size() - 2);
  if (header.shape.size() == 1) sizes.resize(sizes.size() - 1);
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': ({}), }}",
                                 size_of(header.dtype) == 1 ? '|'
                                 : header.is_big_endian     ? '>'
                                                            : '<',
                                 code, header.is_fortran ? "True" : "False", sizes);
  const std::size_t before = npy_magic_bytes + 2;
  const std::size_t total = (before + text.size() + 1 + 63) / 64 * 64;
  text.resize(total - before - 1, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());
  std::string result(magic);
  result += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return result + text;
}

}  // namespace nitinol::io
