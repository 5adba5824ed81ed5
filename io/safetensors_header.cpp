// Files come from anywhere, so the header is read event by event, and only what the format knows is
// kept: {"name": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {…}}. A
// tree of all its values would take many times its size, and lists in lists could be so deep that
// no stack is enough to print or free them.
#include "io/safetensors_header.h"

#include "core/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

namespace nitinol::io {
namespace {

using nlohmann::json;

/// The beginning of a text that the file chose, for a message.
std::string shown(std::string_view text) {
  constexpr std::size_t most = 80;
  return std::string(text.substr(0, most)) + (text.size() > most ? "..." : "");
}

/// A list of numbers. What is not a size is kept as none, what is too much is only counted.
struct List {
  std::vector<std::optional<uint64_t>> values;
  std::size_t count = 0;
  void add(std::optional<uint64_t> value) {
    if (count++ < max_rank) values.push_back(value);
  }
};

/// Makes a header of the parser's events. Depth 1 is the header, 2 an entry or the metadata, 3 a
/// list in an entry.
class Reader final : public nlohmann::json_sax<json> {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  SafetensorsHeader header;

  bool null() override { return value("nothing"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(json::number_integer_t) override { return number(std::nullopt); }
  bool number_unsigned(json::number_unsigned_t n) override { return number(n); }
  bool number_float(json::number_float_t, const std::string&) override {
    return number(std::nullopt);
  }
  bool binary(json::binary_t&) override { return value("bytes"); }

  bool string(std::string& text) override {
    if (depth_ == 2 && is_metadata_) {
      header.metadata[key_] = std::move(text);
    } else if (depth_ == 2 && key_ == "dtype") {
      dtype_ = std::move(text);
    } else {
      return value("a text");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ == 2 && is_metadata_) fail("the metadata", "texts", "an object");
    if (depth_ >= 2) fail("the header", "entries with texts and lists of numbers", "an object");
    if (++depth_ == 2) {
      is_metadata_ = key_ == "__metadata__";
      dtype_.reset();
      shape_.reset();
      offsets_.reset();
      fields_.clear();
    }
    return true;
  }

  bool end_object() override {
    if (depth_-- == 2 && !is_metadata_) header.entries.push_back(entry());
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ != 2 || is_metadata_) return value("a list");
    ++depth_;
    list_ = List();
    return true;
  }

  bool end_array() override {
    --depth_;
    if (key_ == "shape") shape_ = std::move(list_);
    if (key_ == "data_offsets") offsets_ = std::move(list_);
    return true;
  }

  bool key(std::string& text) override {
    std::set<std::string>& others = depth_ == 1 ? names_ : fields_;
    if (!others.insert(text).second) fail("a name in the header", "each name once", shown(text));
    key_ = std::move(text);
    if (depth_ == 1) name_ = key_;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    fail("the header is not JSON", "JSON", shown(error.what()));
  }

 private:
  [[noreturn]] void fail(std::string what, std::string expected, std::string got) const {
    fail_safetensors(file_, std::move(what), std::move(expected), std::move(got));
  }

  /// A value that means nothing where it stands. Fields that the format does not know are allowed
  /// in entries.
  bool value(const char* what) {
    switch (depth_) {
      case 0:
        fail("the header", "a JSON object", what);
      case 1:
        if (name_ == "__metadata__") fail("the metadata", "an object", what);
        fail(fmt::format("the entry of \"{}\"", shown(name_)), "an object", what);
      case 2:
        if (is_metadata_) fail("the metadata", "texts", what);
        return true;
      default:
        fail("the header", "lists of numbers", what);
    }
  }

  bool number(std::optional<uint64_t> size) {
    if (depth_ < 3) return value("a number");
    list_.add(size);
    return true;
  }

  [[nodiscard]] SafetensorsEntry entry() const {
    SafetensorsEntry result;
    result.name = name_;
    result.spec.dtype = dtype();
    result.spec.shape = shape();
    if (!offsets_ || offsets_->count != 2 || !offsets_->values[0] || !offsets_->values[1]) {
      fail(fmt::format("the offsets of \"{}\"", shown(name_)), "two numbers",
           offsets_ ? "others" : "none");
    }
    result.first = *offsets_->values[0];
    result.last = *offsets_->values[1];
    const uint64_t bytes =
        static_cast<uint64_t>(element_count(result.spec.shape)) * size_of(result.spec.dtype);
    if (result.last < result.first || result.last - result.first != bytes) {
      fail(fmt::format("the bytes of \"{}\", {}", shown(name_), describe(result.spec)),
           fmt::format("{}", bytes), fmt::format("{} to {}", result.first, result.last));
    }
    return result;
  }

  [[nodiscard]] DType dtype() const {
    if (!dtype_) {
      fail(fmt::format("tensor \"{}\" has no dtype", shown(name_)), "such as \"F32\"", "none");
    }
    for (int i = 0; i < dtype_count; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (safetensors_name(dtype) == *dtype_) return dtype;
    }
    throw Error(ErrorKind::unsupported,
                {.where = "load_safetensors",
                 .what = fmt::format("\"{}\": the dtype of tensor \"{}\"", file_, shown(name_)),
                 .expected = "BOOL, U8, I8, I16, I32, I64, F16, BF16, F32 or F64",
                 .got = shown(*dtype_),
                 .fix = "Convert it before saving."});
  }

  [[nodiscard]] Shape shape() const {
    if (!shape_) {
      fail(fmt::format("tensor \"{}\" has no shape", shown(name_)), "a list of sizes", "none");
    }
    if (shape_->count > max_rank) {
      throw Error(ErrorKind::unsupported,
                  {.where = "load_safetensors",
                   .what = fmt::format("\"{}\": tensor \"{}\"", file_, shown(name_)),
                   .expected = fmt::format("at most {} dimensions", max_rank),
                   .got = fmt::format("{}", shape_->count),
                   .fix = {}});
    }
    Shape result;
    uint64_t count = 1;
    for (const std::optional<uint64_t>& size : shape_->values) {
      // Sizes whose product would not fit are those of no file.
      if (!size || *size >= uint64_t{1} << 56U ||
          (*size != 0 && count >= (uint64_t{1} << 56U) / *size)) {
        fail(fmt::format("tensor \"{}\" has an impossible shape", shown(name_)),
             "sizes from 0 up to those of the file",
             size ? fmt::format("{}", *size) : "what is no size");
      }
      count *= std::max<uint64_t>(*size, 1);
      result.push_back(static_cast<int64_t>(*size));
    }
    return result;
  }

  const std::string& file_;
  int depth_ = 0;
  std::set<std::string> names_;   ///< in the header
  std::set<std::string> fields_;  ///< in the present entry
  std::string key_, name_;        ///< read last, at any depth and at depth 1
  bool is_metadata_ = false;
  std::optional<std::string> dtype_;
  std::optional<List> shape_, offsets_;
  List list_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                           const std::string& file) {
  Reader reader(file);
  // Errors come as exceptions out of the Reader.
  json::sax_parse(text, &reader);
  std::vector<SafetensorsEntry>& entries = reader.header.entries;
  std::ranges::sort(entries, [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.first, a.last) < std::pair(b.first, b.last);
  });
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.first != end) {
      fail_safetensors(file, fmt::format("the elements of \"{}\"", shown(entry.name)),
                       fmt::format("to begin at byte {}, where those before end", end),
                       fmt::format("{}", entry.first));
    }
    end = entry.last;
  }
  if (end != data_bytes) {
    fail_safetensors(file, "bytes of elements after the header", fmt::format("{}", end),
                     fmt::format("{}", data_bytes));
  }
  return std::move(reader.header);
}

void fail_safetensors(const std::string& file, std::string what, std::string expected,
                      std::string got) {
  throw Error(ErrorKind::io, {.where = "load_safetensors",
                              .what = fmt::format("\"{}\": {}", file, what),
                              .expected = std::move(expected),
                              .got = std::move(got),
                              .fix = "The file is damaged, or no safetensors file."});
}

std::string safetensors_name(DType dtype) {
  std::string name(short_name_of(dtype));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace nitinol::io
