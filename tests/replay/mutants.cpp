#include "tests/replay/mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <regex>
#include <utility>

namespace nitinol::test {
namespace {

struct Mistake {
  const char* name;
  const char* pattern;      ///< a regular expression
  const char* replacement;  ///< with $1 as std::regex has it
};

// Loads over the end change nothing, as vectors are aligned and what is too much is not used.
// Whether the last block alone joins what the others left does not show when blocks run one after
// another: the last to run then has the last word.
constexpr std::array<Mistake, 9> mistakes = {{
    {"no barrier", R"(\n *barrier\(\);)", "\n"},
    {"no barrier of a warp", R"(\n *warp_barrier\(\);)", "\n"},
    {"half a fold's distance", R"((shuffled[0-9]+\([a-z0-9\[\]]+, )([0-9a-z]+)\))", "$1$2 / 2)"},
    {"one step of a tree", R"(step < [0-9]+; step \*= 2)", "step < 2; step *= 2"},
    {"no end of rows", R"(\n *if \((at|row) >= [^\n]*\) return;)", "\n"},
    {"no end of elements", R"((if \(e \+ j < last\) )([a-z]))", "$2"},
    {"a vector over the end", R"(if \(e \+ [0-9]+ <= last\) store)", "if (true) store"},
    {"no gate", R"(\n *if \(a\.gate != 0 [^\n]*\) return;)", "\n"},
    {"another report", R"(report\(a\.status, ([0-9]+)u\))", "report(a.status, 1$1u)"},
}};

struct Count {
  int found = 0, made = 0;
};

}  // namespace

std::vector<Mutant> mutants_of(const std::string& text) {
  std::vector<Mutant> list;
  const auto start = text.begin() + static_cast<std::ptrdiff_t>(text.find("KERNEL("));
  for (const Mistake& mistake : mistakes) {
    const std::regex pattern(mistake.pattern);
    for (std::sregex_iterator match(start, text.end(), pattern), end; match != end; ++match) {
      const auto at = start + match->position();
      const auto line = static_cast<int>(std::count(text.begin(), at, '\n')) + 1;
      list.push_back({mistake.name, line,
                      std::string(text.begin(), at) + match->format(mistake.replacement) +
                          std::string(at + match->length(), text.end())});
    }
  }
  return list;
}

bool finds_mutants(const std::vector<Printed>& all, std::size_t of_each_shape,
                   const std::string& shim, const std::string& compiler, const std::string& path) {
  std::map<cuda::Schedule::Shape, std::vector<const Printed*>> by_shape;
  for (const Printed& printed : all) by_shape[printed.schedule.shape].push_back(&printed);
  std::map<std::string, Count> counts;
  for (const auto& [shape, list] : by_shape) {
    const std::size_t step = std::max<std::size_t>(1, list.size() / of_each_shape);
    for (std::size_t i = 0; i < list.size(); i += step) {
      for (Mutant& mutant : mutants_of(list[i]->text)) {
        const Printed changed = {std::move(mutant.text), list[i]->schedule, list[i]->cases};
        Count& count = counts[mutant.mistake];
        ++count.made;
        if (!run_batch({changed}, shim, compiler, path).failures.empty()) {
          ++count.found;
          continue;
        }
        const std::string file = fmt::format("{}{}.cu", path, list[i] - all.data());
        std::ofstream(file) << list[i]->text;
        fmt::print("not found: {} at {}:{}, {}, sizes {}\n", mutant.mistake, file, mutant.line,
                   to_string(list[i]->schedule), fmt::join(list[i]->cases.front().sizes, " "));
      }
    }
  }
  bool finds = !counts.empty();
  for (const auto& [mistake, count] : counts) {
    fmt::print("{}: {} of {} found\n", mistake, count.found, count.made);
    finds &= count.found > 0;
  }
  return finds;
}

}  // namespace nitinol::test
