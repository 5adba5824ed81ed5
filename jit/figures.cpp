#include "jit/figures.h"

#include <fmt/format.h>

#include <algorithm>

namespace nitinol::jit {

std::string seconds(double value) {
  if (value >= 1) return fmt::format("{:.3g} s", value);
  if (value >= 1e-3) return fmt::format("{:.3g} ms", value * 1e3);
  return fmt::format("{:.3g} us", value * 1e6);
}

std::string bytes(std::size_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.3g} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.3g} MB", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.3g} kB", value / 1e3);
  return fmt::format("{} B", count);
}

std::string counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string lines_of(const std::vector<std::string>& places) {
  constexpr std::size_t most = 6;
  std::string text, file;
  for (std::size_t i = 0; i < std::min(places.size(), most); ++i) {
    const std::string place = places[i].substr(places[i].rfind('/') + 1);
    const std::size_t colon = std::min(place.rfind(':'), place.size());
    const bool is_same_file = place.substr(0, colon) == file && colon + 1 < place.size();
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        is_same_file ? place.substr(colon + 1) : place);
    file = place.substr(0, colon);
  }
  if (places.size() > most) text += fmt::format(" and {} more", places.size() - most);
  return text;
}

std::string text_of(const program::ReplayReport& replays) {
  if (replays.made == 0) return replays.why_not.empty() ? "" : "no graph: " + replays.why_not;
  return fmt::format("graph: {} replays, {} made, {} updated{}{}", replays.replays, replays.made,
                     replays.updated,
                     replays.why_not.empty() ? "" : "; no more are made: ", replays.why_not);
}

}  // namespace nitinol::jit
