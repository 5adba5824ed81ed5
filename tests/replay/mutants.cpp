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

/// Shows where a check has failed, and nowhere else.
constexpr const char* another_report = "another report";

// Loads over the end change nothing, as vectors are aligned and what is too much is not used.
// Whether the last block alone joins what the others left does not show when blocks run one after
// another: the last to run then has the last word.
constexpr std::array<Mistake, 12> mistakes = {{
    {"no barrier", R"(\n *barrier\(\);)", "\n"},
    {"no barrier of a warp", R"(\n *warp_barrier\(\);)", "\n"},
    {"half a fold's distance", R"((shuffled[0-9]+\([a-z0-9\[\]]+, )([0-9a-z]+)\))", "$1$2 / 2)"},
    {"one step of a tree", R"(step < [0-9]+; step \*= 2)", "step < 2; step *= 2"},
    {"no end of rows", R"(\n *if \((at|row|e|i[0-9]+) >= [^\n]*\) return;)", "\n"},
    {"no end of elements", R"((if \(e \+ j < last\) )([a-z]))", "$2"},
    {"a vector over the end", R"(if \(e \+ [0-9]+ <= last\) store)", "if (true) store"},
    {"no gate", R"(\n *if \(a\.gate != 0 [^\n]*\) return;)", "\n"},
    {"another block of the row", R"(blocks\[[1-9]\])", "blocks[0]"},
    {"a neighbour's blocks of the column", R"(\(Index\)y \* size)", "(Index)(y / 2) * size"},
    {"a square turned over", R"((\[\(place) \* ([0-9]+) \+ lane)", "$1 + lane * $2"},
    {another_report, R"(report\(a\.status, ([0-9]+)u\))", "report(a.status, 1$1u)"},
}};

struct Count {
  int found = 0, made = 0;
};

/// A mutant, and whose it is.
struct Changed {
  Mutant mutant;
  const Printed* of;
};
/// To start the compiler takes longer than it takes for one.
constexpr std::size_t mutants_in_batch = 48;

bool reports(const Printed* printed) {
  return std::ranges::any_of(printed->cases, [](const Case& value) { return value.status != 0; });
}

/// `count` of the kernels, evenly, and one that reports.
std::vector<const Printed*> chosen_of(const std::vector<const Printed*>& list, std::size_t count) {
  std::vector<const Printed*> chosen;
  const std::size_t step = std::max<std::size_t>(1, list.size() / count);
  for (std::size_t i = 0; i < list.size(); i += step) chosen.push_back(list[i]);
  const auto found = std::ranges::find_if(list, reports);
  if (found != list.end() && !std::ranges::any_of(chosen, reports)) chosen.push_back(*found);
  return chosen;
}

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
  std::vector<Changed> waiting;
  const auto run_waiting = [&] {
    std::vector<Printed> batch;
    for (Changed& one : waiting)
      batch.push_back({std::move(one.mutant.text), one.of->schedule, one.of->cases});
    std::vector<bool> found = run_batch(batch, shim, compiler, path).has_failed;
    // One that does not compile is found for all.
    if (std::ranges::count(found, false) == 0) {
      for (std::size_t i = 0; i < batch.size(); ++i)
        found[i] = run_batch({batch[i]}, shim, compiler, path).has_failed.front();
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const auto& [mutant, printed] = waiting[i];
      Count& count = counts[mutant.mistake];
      ++count.made;
      if (found[i]) {
        ++count.found;
        continue;
      }
      const std::string file = fmt::format("{}{}.cu", path, printed - all.data());
      std::ofstream(file) << printed->text;
      fmt::print("not found: {} at {}:{}, {}, sizes {}\n", mutant.mistake, file, mutant.line,
                 to_string(printed->schedule), fmt::join(printed->cases.front().sizes, " "));
    }
    waiting.clear();
  };
  for (const auto& [shape, list] : by_shape) {
    for (const Printed* const printed : chosen_of(list, of_each_shape)) {
      for (Mutant& mutant : mutants_of(printed->text)) {
        if (mutant.mistake == another_report && !reports(printed)) continue;
        waiting.push_back({std::move(mutant), printed});
        if (waiting.size() == mutants_in_batch) run_waiting();
      }
    }
  }
  if (!waiting.empty()) run_waiting();
  bool finds = !counts.empty();
  for (const auto& [mistake, count] : counts) {
    fmt::print("{}: {} of {} found\n", mistake, count.found, count.made);
    finds &= count.found > 0;
  }
  return finds;
}

}  // namespace nitinol::test
