// Files that lie in the tree for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace nitinol::test {

inline std::vector<uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// All files of a folder ("/tests/...") whose names begin with `start`, in the order of their
/// names.
inline std::vector<std::vector<uint8_t>> seeds_in(const std::string& folder,
                                                  const std::string& start = "") {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(NITINOL_SOURCE_DIR) + folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".md" && name.starts_with(start)) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<std::vector<uint8_t>> seeds;
  for (const auto& path : paths) seeds.push_back(bytes_of(path));
  return seeds;
}

}  // namespace nitinol::test
