#include "eager/safetensors.h"

#include "core/error.h"
#include "core/interpreter.h"
#include "eager/file.h"
#include "eager/host_read.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <set>
#include <span>
#include <string_view>

namespace nitinol {
namespace {

namespace fs = std::filesystem;
using eager::File;
using nlohmann::json;

/// The largest header that the format's own reader accepts.
constexpr uint64_t longest_header = 100'000'000;

struct Name {
  DType dtype;
  std::string_view text;
};
constexpr auto names = std::to_array<Name>({{boolean, "BOOL"},
                                            {u8, "U8"},
                                            {i8, "I8"},
                                            {i16, "I16"},
                                            {i32, "I32"},
                                            {i64, "I64"},
                                            {f16, "F16"},
                                            {bf16, "BF16"},
                                            {f32, "F32"},
                                            {f64, "F64"}});

std::string_view text_of(DType dtype) {
  return std::ranges::find(names, dtype, &Name::dtype)->text;
}

[[noreturn]] void damaged(const std::string& file, std::string what, std::string expected,
                          std::string got) {
  throw Error(ErrorKind::io, {.where = "load_safetensors",
                              .what = fmt::format("\"{}\": {}", file, what),
                              .expected = std::move(expected),
                              .got = std::move(got),
                              .fix = "The file is damaged, or no safetensors file."});
}

/// Bytes first to last of the data belong to this tensor.
struct Entry {
  std::string name;
  Spec spec;
  uint64_t first = 0, last = 0;
};

// ---- reading the header

/// `number` as a size, unless it is something else.
std::optional<uint64_t> size_in(const json& number) {
  if (!number.is_number_unsigned()) return std::nullopt;
  return number.get<uint64_t>();
}

Shape shape_in(const std::string& file, const std::string& name, const json& entry) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array()) {
    damaged(file, fmt::format("tensor \"{}\" has no shape", name), "a list of sizes", "none");
  }
  if (found->size() > max_rank) {
    throw Error(ErrorKind::unsupported, {.where = "load_safetensors",
                                         .what = fmt::format("\"{}\": tensor \"{}\"", file, name),
                                         .expected = fmt::format("at most {} dimensions", max_rank),
                                         .got = fmt::format("{}", found->size()),
                                         .fix = {}});
  }
  Shape shape;
  uint64_t count = 1;
  for (const json& element : *found) {
    const std::optional<uint64_t> size = size_in(element);
    // Sizes whose product would not fit are those of no file.
    if (!size || *size >= uint64_t{1} << 56U ||
        (*size != 0 && count >= (uint64_t{1} << 56U) / *size)) {
      damaged(file, fmt::format("tensor \"{}\" has an impossible shape", name),
              "sizes from 0 up to those of the file", element.dump());
    }
    count *= std::max<uint64_t>(*size, 1);
    shape.push_back(static_cast<int64_t>(*size));
  }
  return shape;
}

DType dtype_in(const std::string& file, const std::string& name, const json& entry) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string()) {
    damaged(file, fmt::format("tensor \"{}\" has no dtype", name), "such as \"F32\"", "none");
  }
  const std::string& text = found->get_ref<const std::string&>();
  const auto known = std::ranges::find(names, std::string_view(text), &Name::text);
  if (known != names.end()) return known->dtype;
  throw Error(ErrorKind::unsupported,
              {.where = "load_safetensors",
               .what = fmt::format("\"{}\": the dtype of tensor \"{}\"", file, name),
               .expected = "BOOL, U8, I8, I16, I32, I64, F16, BF16, F32 or F64",
               .got = text.substr(0, 40),
               .fix = "Convert it before saving."});
}

Entry entry_in(const std::string& file, const std::string& name, const json& json_entry) {
  if (!json_entry.is_object()) {
    damaged(file, fmt::format("the entry of \"{}\"", name), "an object",
            std::string(json_entry.type_name()));
  }
  Entry entry;
  entry.name = name;
  entry.spec.dtype = dtype_in(file, name, json_entry);
  entry.spec.shape = shape_in(file, name, json_entry);
  const auto offsets = json_entry.find("data_offsets");
  if (offsets == json_entry.end() || !offsets->is_array() || offsets->size() != 2 ||
      !size_in((*offsets)[0]) || !size_in((*offsets)[1])) {
    damaged(file, fmt::format("the offsets of \"{}\"", name), "two numbers",
            offsets == json_entry.end() ? "none" : offsets->dump().substr(0, 40));
  }
  entry.first = *size_in((*offsets)[0]);
  entry.last = *size_in((*offsets)[1]);
  const uint64_t bytes =
      static_cast<uint64_t>(element_count(entry.spec.shape)) * size_of(entry.spec.dtype);
  if (entry.last < entry.first || entry.last - entry.first != bytes) {
    damaged(file, fmt::format("the bytes of \"{}\", {}", name, describe(entry.spec)),
            fmt::format("{}", bytes), fmt::format("{} to {}", entry.first, entry.last));
  }
  return entry;
}

/// Entries in the order of their elements, which must follow one another without gaps.
std::vector<Entry> entries_in(const std::string& file, const json& header, uint64_t data_bytes,
                              std::map<std::string, std::string>& metadata) {
  if (!header.is_object()) {
    damaged(file, "the header", "a JSON object", std::string(header.type_name()));
  }
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(entry_in(file, name, value));
      continue;
    }
    if (!value.is_object()) damaged(file, "the metadata", "an object", value.type_name());
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) damaged(file, "the metadata", "texts", text.type_name());
      metadata.emplace(key, text.get<std::string>());
    }
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.first, a.last) < std::pair(b.first, b.last);
  });
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.first != end) {
      damaged(file, fmt::format("the elements of \"{}\"", entry.name),
              fmt::format("to begin at byte {}, where those before end", end),
              fmt::format("{}", entry.first));
    }
    end = entry.last;
  }
  if (end != data_bytes) {
    damaged(file, "bytes of elements after the header", fmt::format("{}", end),
            fmt::format("{}", data_bytes));
  }
  return entries;
}

/// The header as JSON; refuses names that are given twice.
json parse_header(const std::string& file, const std::string& text) {
  std::vector<std::set<std::string>> keys;
  std::string twice;

  const auto notice = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key &&
        !keys.back().insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  json header;
  try {
    header = json::parse(text, notice);
  } catch (const json::exception& error) {
    damaged(file, "the header is not JSON", "JSON", error.what());
  }
  if (!twice.empty()) damaged(file, "a name in the header", "each name once", twice.substr(0, 80));
  return header;
}

SafetensorsFile load(const fs::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const File file("load_safetensors", path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const auto size = static_cast<uint64_t>(file.size());
  uint64_t length = 0;
  if (size < sizeof length) {
    damaged(file.name(), "the length of the header", "8 bytes", fmt::format("{}", size));
  }
  std::array<uint8_t, sizeof length> bytes{};
  file.read(std::as_writable_bytes(std::span(bytes)));
  for (std::size_t i = 0; i < bytes.size(); ++i) length |= uint64_t{bytes[i]} << (8 * i);
  if (length > longest_header || length > size - sizeof length) {
    damaged(file.name(), "the length of the header",
            fmt::format("at most {}", std::min(longest_header, size - sizeof length)),
            fmt::format("{}", length));
  }
  std::string text(length, '\0');
  file.read(std::as_writable_bytes(std::span(text)));
  SafetensorsFile result;
  const json header = parse_header(file.name(), text);
  for (const Entry& entry :
       entries_in(file.name(), header, size - sizeof length - length, result.metadata)) {
    const Tensor tensor = allocate_tensor(entry.spec);
    const std::span memory(static_cast<std::byte*>(tensor.internals().address()),
                           entry.last - entry.first);
    file.read(memory);
    if (entry.spec.dtype == boolean) {
      for (std::byte& element : memory) {
        element = element != std::byte{0} ? std::byte{1} : std::byte{0};
      }
    }
    current().created(tensor);
    result.tensors.emplace_back(entry.name, tensor);
  }
  return result;
}

// ---- writing

void save(const fs::path& path, const std::vector<NamedTensor>& tensors,
          const std::map<std::string, std::string>& metadata, std::source_location place) {
  // Large elements first: all of them then lie at multiples of their size.
  std::vector<const NamedTensor*> order;
  std::set<std::string> seen;
  for (const NamedTensor& named : tensors) {
    order.push_back(&named);
    if (seen.insert(named.first).second && named.first != "__metadata__") continue;
    throw Error(ErrorKind::value, {.where = "save_safetensors",
                                   .what = fmt::format("the name \"{}\"", named.first),
                                   .expected = "each name once, and none \"__metadata__\"",
                                   .got = "it a second time",
                                   .fix = {}});
  }
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const NamedTensor* named) { return size_of(named->second.dtype()); });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t end = 0;
  for (const NamedTensor* named : order) {
    const Spec& spec = named->second.spec();
    const uint64_t first = end;
    end += static_cast<uint64_t>(element_count(spec.shape)) * size_of(spec.dtype);
    header[named->first] = {{"dtype", text_of(spec.dtype)},
                            {"shape", std::vector<int64_t>(spec.shape.begin(), spec.shape.end())},
                            {"data_offsets", {first, end}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& error) {
    throw Error(ErrorKind::value, {.where = "save_safetensors",
                                   .what = "a name or text",
                                   .expected = "UTF-8",
                                   .got = error.what(),
                                   .fix = {}});
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::array<uint8_t, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<uint8_t>(text.size() >> (8 * i));
  }
  eager::TemporaryFile temporary("save_safetensors", path);
  temporary.file().write(std::as_bytes(std::span(length)));
  temporary.file().write(std::as_bytes(std::span(text)));
  for (const NamedTensor* named : order) {
    temporary.write_elements(
        eager::host_read(named->second, {.what = "save_safetensors()", .place = place}));
  }
  temporary.publish();
}

}  // namespace

void save_safetensors(const fs::path& path, const std::vector<NamedTensor>& tensors,
                      const std::map<std::string, std::string>& metadata,
                      std::source_location place) {
  eager::located(place, [&] { save(path, tensors, metadata, place); });
}

SafetensorsFile load_safetensors(const fs::path& path, std::source_location place) {
  return eager::located(place, [&] { return load(path); });
}

}  // namespace nitinol
