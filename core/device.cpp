#include "core/device.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <ostream>
#include <utility>

namespace nitinol {
namespace {

constexpr std::array<std::pair<Device::Kind, std::string_view>, 3> kinds = {
    {{Device::Kind::cpu, "cpu"},
     {Device::Kind::reference, "reference"},
     {Device::Kind::cuda, "cuda"}}};

}  // namespace

std::string describe(Device device) {
  for (const auto& [kind, name] : kinds) {
    if (kind == device.kind) return fmt::format("{}:{}", name, device.index);
  }
  return "no device";
}

std::ostream& operator<<(std::ostream& stream, Device device) {
  return stream << describe(device);
}

std::optional<Device> device_named(std::string_view text) {
  const std::size_t colon = text.find(':');
  Device device;
  if (colon != std::string_view::npos) {
    const std::string_view number = text.substr(colon + 1);
    const char* const end = number.data() + number.size();
    const auto [read, error] = std::from_chars(number.data(), end, device.index);
    if (error != std::errc() || read != end || device.index < 0) return std::nullopt;
  }
  for (const auto& [kind, name] : kinds) {
    if (name != text.substr(0, colon)) continue;
    device.kind = kind;
    return device;
  }
  return std::nullopt;
}

}  // namespace nitinol
