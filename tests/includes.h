// What files of the project include.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nitinol::test {

using Paths = std::set<std::string, std::less<>>;

/// What includes what, of the files below a folder.
class Includes {
 public:
  explicit Includes(std::filesystem::path root) : root_(std::move(root)) {}

  /// All headers that `path` includes, in the end.
  const Paths& reached(const std::string& path) {
    const auto [entry, is_new] = reached_.try_emplace(path);
    if (!is_new) return entry->second;
    Paths found;
    for (const std::string& header : direct(path)) {
      found.insert(header);
      found.merge(Paths(reached(header)));
    }
    return reached_[path] = found;
  }

  int depth(const std::string& path) {
    if (const auto known = depth_.find(path); known != depth_.end()) return known->second;
    int deepest = 0;
    for (const std::string& header : direct(path)) deepest = std::max(deepest, depth(header) + 1);
    return depth_[path] = deepest;
  }

 private:
  [[nodiscard]] std::vector<std::string> direct(const std::string& path) const {
    std::vector<std::string> headers;
    std::ifstream stream(root_ / path);
    constexpr std::string_view directive = "#include \"";
    for (std::string line; std::getline(stream, line);) {
      if (!line.starts_with(directive)) continue;
      std::string name = line.substr(directive.size(), line.rfind('"') - directive.size());
      if (std::filesystem::exists(root_ / name)) headers.push_back(std::move(name));
    }
    return headers;
  }

  std::filesystem::path root_;
  std::map<std::string, Paths> reached_;
  std::map<std::string, int> depth_;
};

}  // namespace nitinol::test
