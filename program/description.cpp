#include "program/description.h"

#include "core/kernel.h"
#include "program/replays.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

namespace nitinol::program {
namespace {

constexpr int nobody = -1;

/// A step of the report: the Program's that are launched together.
using Together = std::span<const ProgramStep>;

std::vector<Together> launches_of(const Program& program) {
  const std::span<const ProgramStep> steps = program.steps;
  std::vector<Together> launches;
  for (std::size_t s = 0; s < steps.size(); s += steps[s].together)
    launches.push_back(steps.subspan(s, steps[s].together));
  return launches;
}

std::size_t memory_of(const Program& program, Value v) {
  const std::size_t nodes = program.graph.nodes.size();
  return v < nodes ? bytes_of(program.graph[v].spec) : program.packed_bytes[v - nodes];
}

/// What a step touches of a value: of a kernel's operand at most one element for each point.
std::size_t touched_bytes(const Program& program, const ProgramStep& step, Value v) {
  const std::size_t bytes = memory_of(program, v);
  if (step.sizes.empty() || v >= program.graph.nodes.size()) return bytes;
  std::size_t points = size_of(program.graph[v].spec.dtype);
  for (const int64_t size : step.sizes) points *= static_cast<std::size_t>(size);
  return std::min(bytes, points);
}

class Describer {
 public:
  Describer(const Program& program, Report& report)
      : program_(program),
        report_(report),
        number_of_(program.places.size(), nobody),
        writers_(program.places.size()) {}

  void run() {
    const std::vector<Together> launches = launches_of(program_);
    for (std::size_t i = 0; i < launches.size(); ++i) {
      for (const ProgramStep& step : launches[i]) add_reads(step, i);
      for (const ProgramStep& step : launches[i]) add_writes(step, i);
    }
  }

 private:
  /// A value that a step wrote.
  struct Written {
    int step = nobody;
    std::size_t bytes = 0;
  };

  void add_reads(const ProgramStep& step, std::size_t number) {
    std::vector<ValueAccess>& reads = report_.steps[number].reads;
    for (const Value v : step.reads) {
      const std::size_t value = value_at(v, number);
      const std::size_t bytes =
          std::min(touched_bytes(program_, step, v), report_.steps[number].bytes_read);
      if (writers_[v].empty()) add(reads, {.value = value, .bytes = bytes});
      for (const Written& written : writers_[v]) {
        add(reads, {.value = value, .bytes = std::min(bytes, written.bytes), .from = written.step});
      }
    }
  }

  void add_writes(const ProgramStep& step, std::size_t number) {
    std::vector<ValueAccess>& writes = report_.steps[number].writes;
    for (const Value v : step.writes) {
      if (program_.places[v].kind == Place::Kind::input) continue;  // where an output is stored
      const std::size_t bytes = touched_bytes(program_, step, v);
      add(writes, {.value = value_at(v, number), .bytes = bytes});
      writers_[v].push_back({static_cast<int>(number), bytes});
    }
  }

  /// An operand that a step has twice counts once.
  static void add(std::vector<ValueAccess>& list, const ValueAccess& access) {
    const auto same = std::ranges::find_if(list, [&](const ValueAccess& known) {
      return known.value == access.value && known.from == access.from;
    });
    if (same == list.end())
      list.push_back(access);
    else
      same->bytes = std::max(same->bytes, access.bytes);
  }

  /// The report's number of a value that `step` touches.
  std::size_t value_at(Value v, std::size_t step) {
    if (number_of_[v] == nobody) {
      number_of_[v] = static_cast<int>(report_.values.size());
      report_.values.push_back(described(v));
      report_.values.back().first_step = step;
    }
    const auto number = static_cast<std::size_t>(number_of_[v]);
    report_.values[number].last_step = step;
    return number;
  }

  [[nodiscard]] ValueReport described(Value v) const {
    using Kind = ValueReport::Kind;
    const Place& place = program_.places[v];
    const bool is_packed = v >= program_.graph.nodes.size();
    ValueReport out = {.kind = Kind::temporary,
                       .number = static_cast<std::size_t>(place.index),
                       .name = {},
                       .type = is_packed ? "packed" : describe(program_.graph[v].spec),
                       .bytes = memory_of(program_, v),
                       .offset = place.offset,
                       .is_in_place = place.takes_over};
    if (place.kind == Place::Kind::input) {
      out.kind = Kind::input;
      out.name = fmt::format("input {}", place.index);
    } else if (place.kind == Place::Kind::constant) {
      out.kind = Kind::constant;
      out.name = "constant";
    } else if (place.kind == Place::Kind::output) {
      out.kind = Kind::output;
      const auto of_base = std::ranges::find(program_.outputs, v, &Output::base);
      out.number = static_cast<std::size_t>(of_base - program_.outputs.begin());
      out.name = fmt::format("output {}", out.number);
      out.is_in_place = program_.memory[static_cast<std::size_t>(place.index)].donation >= 0;
    }
    return out;
  }

  const Program& program_;
  Report& report_;
  std::vector<int> number_of_;                 ///< per value: in the report, or nobody
  std::vector<std::vector<Written>> writers_;  ///< per value
};

}  // namespace

void describe_values(const Program& program, Report& report) {
  Describer(program, report).run();
  if (program.replays) report.replays = program.replays->report();
}

std::string kernel_text(const Program& program, std::size_t step) {
  const std::shared_ptr<const Kernel>& kernel = launches_of(program)[step][0].kernel;
  return kernel ? to_string(*kernel) : "";
}

std::vector<CodeText> code_texts(const Program& program, std::size_t step) {
  const Together together = launches_of(program)[step];
  std::size_t most = 0;
  for (const ProgramStep& each : together) most = std::max(most, each.operands.size());
  std::vector<void*> none(most);
  std::vector<Launch> examples;
  for (const ProgramStep& each : together) {
    examples.push_back(each.launch);
    examples.back().buffers = std::span(none).first(each.operands.size());
  }
  return together[0].executable->code_texts(examples);
}

}  // namespace nitinol::program
