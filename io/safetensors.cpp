#include "io/safetensors.h"

#include "core/error.h"
#include "core/interpreter.h"
#include "eager/host_read.h"
#include "io/file.h"
#include "io/safetensors_header.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <span>
#include <utility>

namespace nitinol {
namespace {

namespace fs = std::filesystem;
using io::File;
using nlohmann::json;

/// The largest header that the format's own reader accepts.
constexpr uint64_t longest_header = 100'000'000;

SafetensorsFile load(const fs::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const File file("load_safetensors", path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const auto size = static_cast<uint64_t>(file.size());
  uint64_t length = 0;
  if (size < sizeof length) {
    io::fail_safetensors(file.name(), "the length of the header", "8 bytes",
                         fmt::format("{}", size));
  }
  std::array<uint8_t, sizeof length> bytes{};
  file.read(std::as_writable_bytes(std::span(bytes)));
  for (std::size_t i = 0; i < bytes.size(); ++i) length |= uint64_t{bytes[i]} << (8 * i);
  if (length > longest_header || length > size - sizeof length) {
    io::fail_safetensors(file.name(), "the length of the header",
                         fmt::format("at most {}", std::min(longest_header, size - sizeof length)),
                         fmt::format("{}", length));
  }
  std::string text(length, '\0');
  file.read(std::as_writable_bytes(std::span(text)));
  io::SafetensorsHeader header =
      io::parse_safetensors_header(text, size - sizeof length - length, file.name());
  SafetensorsFile result;
  result.metadata = std::move(header.metadata);
  for (io::SafetensorsEntry& entry : header.entries) {
    entry.spec.device = default_device();
    const Tensor tensor = filled_tensor(entry.spec, [&](std::span<std::byte> memory) {
      file.read(memory);  // as many bytes as the spec says: the header was checked
      if (entry.spec.dtype == boolean) io::make_boolean(memory);
    });
    current().created(tensor);
    result.tensors.emplace_back(std::move(entry.name), tensor);
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
    header[named->first] = {{"dtype", io::safetensors_name(spec.dtype)},
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
  io::TemporaryFile temporary("save_safetensors", path);
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
