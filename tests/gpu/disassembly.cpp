#include "tests/gpu/disassembly.h"

#include "backends/cuda/runtime/libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace nitinol::test {
namespace {

namespace fs = std::filesystem;

/// nvdisasm, or an empty path.
fs::path disassembler() {
  std::vector<fs::path> folders;
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
  std::stringstream list(path != nullptr ? path : "");
  for (std::string folder; std::getline(list, folder, ':');) folders.emplace_back(folder);
  if (!cuda::has_nvrtc()) return {};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (at != std::string::npos && line.find("libnvrtc", at) != std::string::npos)
      folders.push_back(fs::path(line.substr(at)).parent_path().parent_path() / "bin");
  }
  for (const fs::path& folder : folders) {
    const fs::path program = folder / "nvdisasm";
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

/// Instructions around a call of a subroutine, at most.
constexpr std::size_t most_rare = 16;

struct Line {
  std::string text;    ///< "@P0 LDG.E.64 R4, desc[UR4][R4.64]"
  std::string target;  ///< of a branch: the label
};

/// The instructions of a function to its last end, behind which rare cases and subroutines are.
struct Listing {
  std::vector<Line> lines;
  std::map<std::string, std::size_t> labels;
};

std::map<std::string, Listing> listings_of(std::istream& in) {
  static const std::regex label(R"(^(\.L_x_\d+|\$[^:]+):)"), section(R"(^\.text\.(\w+):)");
  static const std::regex instruction(R"(^\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;)");
  static const std::regex branch(R"(BRA.*`\((\.L_x_\d+)\))");
  std::map<std::string, Listing> all;
  Listing* now = nullptr;
  for (std::string text; std::getline(in, text);) {
    std::smatch match;
    if (std::regex_search(text, match, section)) {
      now = &all[match[1]];
    } else if (now == nullptr) {
      continue;
    } else if (std::regex_search(text, match, label)) {
      now->labels[match[1]] = now->lines.size();
    } else if (std::regex_search(text, match, instruction)) {
      Line line = {.text = match[1], .target = {}};
      if (std::regex_search(line.text, match, branch)) line.target = match[1];
      now->lines.push_back(std::move(line));
    }
  }
  for (auto& [name, listing] : all) {
    auto& lines = listing.lines;
    while (!lines.empty() && lines.back().text != "EXIT") lines.pop_back();
  }
  return all;
}

int bits_of(const std::string& instruction) {
  static const std::regex bits(R"(\.(U?S?8|U?S?16|64|128)[. ])");
  std::smatch match;
  if (!std::regex_search(instruction, match, bits)) return 32;
  return std::atoi(std::regex_replace(match[1].str(), std::regex("[US]"), "").c_str());
}

/// Lines [first, last).
Code code_of(const Listing& listing, std::size_t first, std::size_t last) {
  const auto& lines = listing.lines;
  Code code;
  for (std::size_t i = first; i < last; ++i) {
    const std::string& text = lines[i].text;
    ++code.instructions;
    if (text.find("LDG") != std::string::npos) ++code.loads[bits_of(text)];
    if (text.find("STG") != std::string::npos) ++code.stores[bits_of(text)];
    const auto to = listing.labels.find(lines[i].target);
    if (to == listing.labels.end() || to->second <= i || to->second > std::min(last, i + most_rare))
      continue;
    for (std::size_t skipped = i + 1; skipped < to->second; ++skipped) {
      if (lines[skipped].text.find("CALL") == std::string::npos) continue;
      i = to->second - 1;
      break;
    }
  }
  return code;
}

Function function_of(const Listing& listing) {
  Function function = {.all = code_of(listing, 0, listing.lines.size()), .loops = {}};
  std::size_t behind = 0;  // where the last loop ends: one that begins before is around it
  for (std::size_t i = 0; i < listing.lines.size(); ++i) {
    const auto to = listing.labels.find(listing.lines[i].target);
    if (to == listing.labels.end() || to->second > i || to->second < behind) continue;
    Code loop = code_of(listing, to->second, i + 1);
    if (!loop.loads.empty()) function.loops.push_back(std::move(loop));
    behind = i + 1;
  }
  return function;
}

}  // namespace

std::optional<std::map<std::string, Function>> disassembled(std::span<const std::byte> cubin) {
  static const fs::path program = disassembler();
  if (program.empty()) return {};
  const fs::path file = fs::temp_directory_path() / fmt::format("nitinol-{}.cubin", ::getpid());
  const fs::path listing = file.string() + ".txt";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(cubin.data()),
             static_cast<std::streamsize>(cubin.size()));
  const std::string command =
      fmt::format("'{}' -c '{}' >'{}'", program.string(), file.string(), listing.string());
  const bool is_read = std::system(command.c_str()) == 0;  // NOLINT(concurrency-mt-unsafe)
  std::map<std::string, Function> functions;
  if (is_read) {
    std::ifstream in(listing);
    for (const auto& [name, lines] : listings_of(in)) functions[name] = function_of(lines);
  }
  fs::remove(file);
  fs::remove(listing);
  if (!is_read) return {};
  return functions;
}

}  // namespace nitinol::test
