// Text as numbers, and batches of it.
#pragma once

#include <nitinol/nitinol.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace chargpt {

using nitinol::Tensor;

/// The ASCII characters of some files, and a number for each that occurs.
class Text {
 public:
  explicit Text(std::string text) : text_(std::move(text)) {
    std::erase_if(text_, [](char c) { return c != '\n' && (c < ' ' || c > '~'); });
    alphabet_ = text_;
    std::ranges::sort(alphabet_);
    alphabet_.erase(std::unique(alphabet_.begin(), alphabet_.end()), alphabet_.end());
    numbers_ = nitinol::from_span(std::span<const int64_t>(numbers_of(text_)), {size()});
  }

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(text_.size()); }
  /// All characters that occur, each once; a character's number is its place here.
  [[nodiscard]] const std::string& alphabet() const { return alphabet_; }

  /// Numbers of characters, all of which must occur.
  [[nodiscard]] std::vector<int64_t> numbers_of(const std::string& text) const {
    std::vector<int64_t> numbers;
    for (const char c : text) {
      const std::size_t number = alphabet_.find(c);
      if (number == std::string::npos) {
        throw std::runtime_error(fmt::format("'{}' does not occur in the text", c));
      }
      numbers.push_back(static_cast<int64_t>(number));
    }
    return numbers;
  }

  struct Batch {
    Tensor x, y;  ///< [count, length]: pieces of the text, and the same one character later
  };
  /// Pieces from places drawn from the default generator.
  [[nodiscard]] Batch batch(int64_t count, int64_t length) const {
    const Tensor begin = nitinol::randint(0, size() - length, {count, 1});
    const Tensor places = begin + nitinol::arange(length);
    return {take(numbers_, places), take(numbers_, places + 1)};
  }

 private:
  std::string text_, alphabet_;
  Tensor numbers_;  ///< i64 [size]
};

/// The contents of files, one after another. Throws std::runtime_error if one cannot be read.
inline std::string read_files(const std::vector<std::filesystem::path>& paths) {
  std::string text;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(fmt::format("cannot open {}", path.string()));
    text.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return text;
}

/// README.md and docs/*.md of a folder, in the order of their names.
inline std::vector<std::filesystem::path> documents_of(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> paths = {root / "README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace chargpt
