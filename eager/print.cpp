// Printing tensors like NumPy.
//
// Problem: columns align only if every element is printed with the same number of places, so the
// elements that will be shown are looked at twice: once to choose the notation and the widths
// (FloatStyle), once to print. [0.5, 20, 300.25] becomes
//
//     [  0.5 ,  20.  , 300.25]
//
// A number is shown by the fewest digits that read back to it, or rounded to 8 places if there are
// more. Rules and constants are those of NumPy's array2string (version 2), so that whoever compares
// a printed tensor with a printed array sees differences of values only.
#include "eager/print.h"

#include "core/dtype.h"
#include "core/element_text.h"
#include "core/parallel.h"
#include "eager/elements.h"
#include "eager/host_read.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <vector>

namespace nitinol {
namespace {

constexpr std::size_t line_width = 75;
constexpr int precision = 8;
constexpr int64_t summary_threshold = 1000;
constexpr int64_t edge_items = 3;
constexpr std::string_view prefix = "tensor(";

/// Width, and characters before and after the decimal point.
struct FloatStyle {
  bool is_scientific = false;
  int places = 0;            ///< digits after the point
  std::size_t exponent = 0;  ///< characters from the 'e' on; 0 if not scientific
  std::size_t left = 0;
  std::size_t right = 0;
};

template <class... Precision>
std::string chars_of(double value, std::chars_format format, Precision... digits) {
  std::array<char, 512> text;  // a double has at most 309 digits before the point
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format, digits...);
  return {text.data(), end.ptr};
}

/// Digits after the point in the shortest notation of a finite f16 or bf16 that reads back to it.
int shortest_places(DType dtype, double value, std::chars_format format) {
  for (int places = 0; places < precision; ++places) {
    const std::string text = chars_of(value, format, places);
    const auto bits = element_bits(dtype, text);
    if (bits && number_at(dtype, &*bits).to_double() == value) return places;
  }
  return precision;
}

/// Digits after the point of a finite number: as few as read back to it, at most `precision`.
int places_of(DType dtype, double value, std::chars_format format) {
  if (dtype == f16 || dtype == bf16) return shortest_places(dtype, value, format);
  std::array<char, 512> buffer;
  char* const begin = buffer.data();
  char* const limit = begin + buffer.size();
  const auto end = dtype == f32 ? std::to_chars(begin, limit, static_cast<float>(value), format)
                                : std::to_chars(begin, limit, value, format);
  const std::string_view text(begin, static_cast<std::size_t>(end.ptr - begin));
  const std::size_t mantissa = std::min(text.find('e'), text.size());
  const std::size_t point = text.find('.');
  const std::size_t places = point < mantissa ? mantissa - point - 1 : 0;
  if (places <= precision) return static_cast<int>(places);
  // Rounding may leave zeros at the end.
  std::string rounded = chars_of(value, format, precision);
  rounded.resize(std::min(rounded.find('e'), rounded.size()));
  return static_cast<int>(rounded.find_last_not_of('0') - rounded.find('.'));
}

/// From which magnitude on all elements are in scientific notation: where digits become uncertain.
double largest_positional(DType dtype) {
  if (dtype == bf16) return 1e2;
  if (dtype == f16) return 1e3;
  return dtype == f32 ? 1e6 : 1e8;
}

std::string with_point(std::string text) {
  const std::size_t mantissa = std::min(text.find('e'), text.size());
  if (text.find('.') == std::string::npos) text.insert(mantissa, 1, '.');
  return text;
}

bool is_scientific(DType dtype, const std::vector<double>& values) {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;
  for (const double value : values) {
    if (!std::isfinite(value) || value == 0) continue;
    smallest = std::min(smallest, std::fabs(value));
    largest = std::max(largest, std::fabs(value));
  }
  if (largest == 0) return false;
  return largest >= largest_positional(dtype) || smallest < 0.0001 || largest / smallest > 1000;
}

FloatStyle style_of(DType dtype, const std::vector<double>& values) {
  FloatStyle style{.is_scientific = is_scientific(dtype, values)};
  const auto format =
      style.is_scientific ? std::chars_format::scientific : std::chars_format::fixed;
  bool has_nan = false;
  bool has_infinity = false;
  bool has_negative_infinity = false;
  for (const double value : values) {
    has_nan |= std::isnan(value);
    has_infinity |= std::isinf(value);
    has_negative_infinity |= std::isinf(value) && value < 0;
    if (!std::isfinite(value)) continue;
    const int places = places_of(dtype, value, format);
    style.places = std::max(style.places, places);
    const std::string text = with_point(chars_of(value, format, places));
    style.left = std::max(style.left, text.find('.'));
    if (style.is_scientific)
      style.exponent = std::max(style.exponent, text.size() - text.find('e'));
  }
  style.right = static_cast<std::size_t>(style.places) + style.exponent;
  const std::size_t special = has_infinity ? (has_negative_infinity ? 4 : 3) : (has_nan ? 3 : 0);
  if (style.left + style.right + 1 < special) style.left = special - style.right - 1;
  return style;
}

std::string float_text(DType dtype, double value, const FloatStyle& style) {
  const std::size_t width = style.left + style.right + 1;
  if (std::isnan(value)) return fmt::format("{:>{}}", "nan", width);
  if (std::isinf(value)) return fmt::format("{:>{}}", value < 0 ? "-inf" : "inf", width);
  if (style.is_scientific) {
    std::string text = with_point(chars_of(value, std::chars_format::scientific, style.places));
    const std::size_t exponent = text.find('e');
    text.insert(exponent + 2, style.exponent - (text.size() - exponent), '0');
    return fmt::format("{:>{}}", text, width);
  }
  const auto format = std::chars_format::fixed;
  const std::string text = with_point(chars_of(value, format, places_of(dtype, value, format)));
  return fmt::format("{:>{}}{:<{}}", text.substr(0, text.find('.') + 1), style.left + 1,
                     text.substr(text.find('.') + 1), style.right);
}

/// Elements as text of equal width.
std::vector<std::string> texts_of(const Spec& spec, const std::vector<uint64_t>& elements) {
  std::vector<std::string> texts;
  texts.reserve(elements.size());
  if (is_floating(spec.dtype)) {
    std::vector<double> values;
    values.reserve(elements.size());
    for (const uint64_t& bits : elements) {
      values.push_back(number_at(spec.dtype, &bits).to_double());
    }
    const FloatStyle style = style_of(spec.dtype, values);
    for (const double value : values) texts.push_back(float_text(spec.dtype, value, style));
    return texts;
  }
  std::size_t width = 0;
  for (const uint64_t bits : elements) {
    texts.push_back(spec.dtype == boolean ? (bits != 0 ? "True" : "False")
                                          : element_text(spec.dtype, bits));
    width = std::max(width, texts.back().size());
  }
  if (spec.dtype == boolean && !spec.shape.empty()) width = 5;
  for (std::string& text : texts) text.insert(0, width - text.size(), ' ');
  return texts;
}

/// Reads the shown elements, then writes them; both walk the dimensions in the same order.
class Printer {
 public:
  explicit Printer(const HostElements& elements)
      : elements_(elements),
        shape_(elements.spec().shape),
        is_summary_(element_count(shape_) > summary_threshold) {}

  std::string text() {
    std::string result(prefix);
    if (element_count(shape_) == 0) {
      result += "[]";
    } else {
      Dims indices;
      collect(indices);
      texts_ = texts_of(elements_.spec(), shown_);
      result += shape_.empty() ? texts_[0] : brackets(0, prefix.size() + 1, line_width - 1);
    }
    result += ',';
    const std::string type = describe(elements_.spec());
    const std::size_t column = result.size() - (result.rfind('\n') + 1);
    const bool fits = column + type.size() + 2 <= line_width;
    return result + (fits ? " " : "\n" + std::string(prefix.size(), ' ')) + type + ")";
  }

 private:
  [[nodiscard]] bool is_cut(int axis) const { return is_summary_ && shape_[axis] > 2 * edge_items; }

  void collect(Dims& indices) {
    const int axis = indices.size();
    if (axis == shape_.size()) {
      uint64_t bits = 0;
      std::memcpy(&bits, elements_.at(indices), size_of(elements_.spec().dtype));
      shown_.push_back(bits);
      return;
    }
    for (int64_t i = 0; i < shape_[axis]; ++i) {
      if (is_cut(axis) && i == edge_items) i = shape_[axis] - edge_items;
      indices.push_back(i);
      collect(indices);
      indices.erase(axis);
    }
  }

  /// Number of things in a row of this dimension: elements or nested rows, and one "...".
  [[nodiscard]] int64_t shown(int axis) const {
    return is_cut(axis) ? 2 * edge_items + 1 : shape_[axis];
  }

  /// `indent`: of what stands inside the brackets. `width`: of the lines, brackets included.
  std::string brackets(int axis, std::size_t indent, std::size_t width) {
    return "[" + (axis == shape_.size() - 1 ? row(indent, width - 1) : rows(axis, indent, width)) +
           "]";
  }

  std::string rows(int axis, std::size_t indent, std::size_t width) {
    const auto blank = static_cast<std::size_t>(shape_.size() - axis - 1);
    const std::string separator = "," + std::string(blank, '\n') + std::string(indent, ' ');
    std::string result;
    for (int64_t i = 0; i < shown(axis); ++i) {
      if (i != 0) result += separator;
      result += is_cut(axis) && i == edge_items ? "..." : brackets(axis + 1, indent + 1, width - 1);
    }
    return result;
  }

  std::string row(std::size_t indent, std::size_t width) {
    const int axis = shape_.size() - 1;
    std::string result;
    std::string line(indent, ' ');
    for (int64_t i = 0; i < shown(axis); ++i) {
      const std::string word = is_cut(axis) && i == edge_items ? "..." : texts_[next_++];
      if (line.size() + word.size() > width && line.size() > indent) {
        line.resize(line.find_last_not_of(' ') + 1);
        result += line + "\n";
        line.assign(indent, ' ');
      }
      line += word;
      if (i + 1 != shown(axis)) line += ", ";
    }
    return (result + line).substr(indent);
  }

  const HostElements& elements_;
  const Shape& shape_;
  bool is_summary_;
  std::vector<uint64_t> shown_;
  std::vector<std::string> texts_;
  std::size_t next_ = 0;
};

std::string text_of(const Tensor& tensor, const ReadSite& site) {
  if (!tensor.is_defined()) return "tensor(undefined)";
  const HostElements elements = eager::host_read(tensor, site);
  const DefaultFloatMode mode;  // so that denormal numbers are seen
  return Printer(elements).text();
}

}  // namespace

std::string to_string(const Tensor& tensor, std::source_location place) {
  return eager::located(place, [&] { return text_of(tensor, {.what = "print", .place = place}); });
}

[[gnu::noinline]] std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  const void* const caller = __builtin_extract_return_addr(__builtin_return_address(0));
  try {
    return stream << text_of(tensor, {.what = "print", .place = {}, .return_address = caller});
  } catch (const Error& error) {
    throw error.with_return_address(caller);
  }
}

}  // namespace nitinol
