#include "tests/replay/statements.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <sstream>
#include <string_view>

namespace nitinol::test {
namespace {

constexpr std::array plain_types = {"u8",   "i8",  "u16",   "i16",          "u32",
                                    "i32",  "u64", "i64",   "float",        "double",
                                    "bool", "int", "Index", "UnsignedIndex"};

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

std::string without_number(std::string_view name) {
  while (!name.empty() && is_digit(name.back())) name.remove_suffix(1);
  return std::string(name);
}

/// Reads the lines of one text, in which a name is declared before it is used.
class Reader {
 public:
  std::string statement_of(std::string_view line) {
    const bool keeps_numbers = line.find("SHARED") != std::string_view::npos;
    const bool is_struct = line.starts_with("struct Joined");
    std::string said, type;
    for (std::size_t at = 0; at < line.size();) {
      std::size_t end = at + 1;
      if (is_digit(line[at])) {
        while (end < line.size() && (is_of_word(line[end]) || line[end] == '.')) ++end;
        said += keeps_numbers ? line.substr(at, end - at) : "#";
        type.clear();
      } else if (is_of_word(line[at])) {
        while (end < line.size() && is_of_word(line[end])) ++end;
        if (line.substr(at, end - at) == "Vector" && end < line.size() && line[end] == '<')
          end = std::min(line.find('>', end), line.size() - 1) + 1;
        read_word(std::string(line.substr(at, end - at)), said, type);
      } else {
        if (line[at] == '*' && !type.empty())
          type += '*';
        else if (line[at] != ' ' && line[at] != '&')
          type.clear();
        said += line[at];
      }
      at = end;
    }
    // Two joined values are of one type if they hold the same.
    if (is_struct) types_of_structs_[std::string(line.substr(7, line.find(' ', 7) - 7))] = said;
    return said;
  }

 private:
  /// `type`: what the words before make the name that follows.
  void read_word(const std::string& word, std::string& said, std::string& type) {
    if (const auto found = types_of_structs_.find(word); found != types_of_structs_.end()) {
      type = found->second;
      said += type;
    } else if (word.starts_with("Vector<") ||
               std::ranges::find(plain_types, word) != plain_types.end()) {
      type = word;
      said += word;
    } else if (word == "const") {
      said += word;
    } else if (!type.empty()) {
      said += names_[word] = type;
      type.clear();
    } else if (const auto name = names_.find(word); name != names_.end()) {
      said += name->second;
    } else {
      said += without_number(word);
    }
  }

  std::map<std::string, std::string> names_, types_of_structs_;
};

}  // namespace

std::vector<std::string> statements_of(const std::string& text) {
  Reader reader;
  std::vector<std::string> statements;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos)
      statements.push_back(reader.statement_of(std::string_view(line).substr(first)));
  }
  return statements;
}

}  // namespace nitinol::test
