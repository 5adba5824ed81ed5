#include "backends/cuda/text/parts.h"

#include "backends/cuda/text/instruction.h"
#include "backends/cuda/text/shapes.h"

namespace nitinol::cuda {
namespace {

/// Where results of earlier launches are: reductions, then row values, eight bytes a row.
std::string place_of_result(std::string_view type, std::size_t number) {
  return fmt::format("*({}*)(a.results + ((u64){} * (u64)a.rows + (u64)row) * 8)", type, number);
}

}  // namespace

Teams teams_of(const Schedule& schedule) {
  if (schedule.shape == Schedule::Shape::blocks) return {1};
  return {block_threads / schedule.threads};
}

void write_stack(Body& body, std::size_t r) {
  Writer& out = body.out;
  const int levels = body.schedule.levels;
  out.open("DEVICE void push{0}(Joined{0}* stack, u32 round, Joined{0} value)", r);
  out.line("bool placed = false;");
  out.line("UNROLL");
  out.open("for (int level = 0; level < {}; ++level)", levels);
  out.line("if (placed) continue;");
  out.line("if (round >> level & 1) value = join{}(stack[level], value);", r);
  out.line("else stack[level] = value, placed = true;");
  out.close();
  out.close();
  out.open("DEVICE Joined{0} total{0}(const Joined{0}* stack, u32 rounds)", r);
  out.line("Joined{0} value = nothing{0}();", r);
  out.line("UNROLL");
  out.line("for (int level = 0; level < {}; ++level)", levels);
  out.line("  if (rounds >> level & 1) value = join{}(stack[level], value);", r);
  out.line("return value;");
  out.close();
}

void write_tree(Body& body, std::size_t r, const std::string& value, Teams teams) {
  if (teams.threads() == 1) return;
  Writer& out = body.out;
  out.open("");
  out.line("Joined{0}* const slots = (Joined{0}*)shared;", r);
  out.line("barrier();");
  out.line("slots[thread_index()] = {};", value);
  out.open("for (u32 step = 1; step < {}; step *= 2)", teams.threads());
  out.line("barrier();");
  out.line(
      "if (y % (2 * step) == 0) slots[thread_index()] = join{}(slots[thread_index()], "
      "slots[thread_index() + step * {}]);",
      r, teams.columns);
  out.close();
  out.line("barrier();");
  out.line("{} = slots[x];", value);
  out.close();
}

void write_part(Body& body, const std::string& rounds) {
  Writer& out = body.out;
  if (!body.schedule.is_split) {
    out.line("const Index tile = (Index)block_index();");
    return out.line("const Index begin = 0, end = {};", rounds);
  }
  out.line("const Index tile = (Index)(block_index() / a.groups);");
  out.line("const u32 group = block_index() % a.groups;");
  out.line("const Index begin = (Index)group * (Index)a.group_size;");
  out.line("const Index end = least<Index>(begin + (Index)a.group_size, {});", rounds);
}

namespace {

/// Declares the results of earlier launches that a stage uses.
void load_results(Body& body, const Stage& stage) {
  for (std::size_t r = 0; r < body.kernel.reductions.size(); ++r) {
    const auto type = word_of(result_type(body.kernel.reductions[r]));
    for (const Source& source : stage.sources) {
      if (source.kind != Source::Kind::reduction || source.index != r) continue;
      body.out.line("const {} r{} = {};", type, r, place_of_result(type, r));
      break;
    }
  }
  for (std::size_t q = 0; q < body.kernel.row_values.size(); ++q) {
    const auto type = word_of(body.kernel.row_values[q]);
    for (const Source& source : stage.sources) {
      if (source.kind != Source::Kind::row_value || source.index != q) continue;
      body.out.line("const {} q{} = {};", type, q,
                    place_of_result(type, body.kernel.reductions.size() + q));
      break;
    }
  }
}

/// The last block of threads to come here joins all parts, each sum<r>, and keeps the results.
void write_joined_parts(Body& body, const Stage& stage, Teams teams) {
  const std::vector<uint16_t> reductions = reductions_of(stage);
  if (reductions.empty()) return;
  Writer& out = body.out;
  out.line("const u64 tiles = ((u64)a.rows + {}) / {};", teams.columns - 1, teams.columns);
  out.line("const u64 parts = tiles * a.groups * {};", teams.columns);
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    out.line("Joined{0}* const parts{0} = (Joined{0}*)(a.workspace + {1} * parts * 16);",
             reductions[i], i);
    out.line("if (y == 0) parts{0}[(u64)block_index() * {1} + x] = sum{0};", reductions[i],
             teams.columns);
  }
  out.line("if (!is_last(a.counters + tile, a.groups)) return;");
  out.line("u32 segment = 1;");
  out.line("while (segment * {} < a.groups) segment *= 2;", teams.threads());
  for (const uint16_t r : reductions) {
    out.open("");
    out.line("Joined{} stack[{}];", r, body.schedule.levels);
    out.open("for (u32 i = 0; i < segment; ++i)");
    out.line("const u32 part = y * segment + i;");
    out.line(
        "push{0}(stack, i, part < a.groups ? fresh{0}(parts{0} + ((u64)tile * a.groups + part) * "
        "{1} + x) : nothing{0}());",
        r, teams.columns);
    out.close();
    out.line("Joined{0} all = total{0}(stack, segment);", r);
    write_tree(body, r, "all", teams);
    out.line("if (y == 0 && live) {} = result{}(all);",
             place_of_result(word_of(result_type(body.kernel.reductions[r])), r), r);
    out.close();
  }
}

/// A stage of Level::row, for one row.
void write_row_results(Body& body, const Stage& stage) {
  load_results(body, stage);
  write_row_stage(body, stage, "true", "");
  for (const Sink& sink : stage.sinks) {
    if (sink.kind == Sink::Kind::row_value)
      body.out.line("{} = q{};",
                    place_of_result(word_of(body.kernel.row_values[sink.index]),
                                    body.kernel.reductions.size() + sink.index),
                    sink.index);
  }
}

/// A stage of Level::row that no launch comes before, a thread a row.
void write_row_entry(Body& body, std::size_t entry, const Stage& stage) {
  Writer& out = body.out;
  open_entry(body, entry);
  out.line("const Index row = (Index)block_index() * {} + (Index)thread_index();", block_threads);
  out.line("if (row >= a.rows) return;");
  write_row(body, "row", body.last_loop());
  write_row_results(body, stage);
  out.close();
}

}  // namespace

std::vector<std::size_t> launched_stages(const Kernel& kernel) {
  std::vector<std::size_t> launched;
  bool has_last_block = false;  // of the launch before
  for (std::size_t s = 0; s < kernel.stages.size(); ++s) {
    const Stage& stage = kernel.stages[s];
    if (stage.level == Stage::Level::row && has_last_block) continue;
    launched.push_back(s);
    has_last_block = !reductions_of(stage).empty();
  }
  return launched;
}

void write_split_entries(Body& body, FunctionRef<void(std::size_t)> open,
                         FunctionRef<void(const Stage&)> write_elements) {
  const std::vector<std::size_t> launched = launched_stages(body.kernel);
  for (std::size_t entry = 0; entry < launched.size(); ++entry) {
    const std::size_t first = launched[entry];
    const Stage& stage = body.kernel.stages[first];
    if (stage.level == Stage::Level::row) {
      write_row_entry(body, entry, stage);
      continue;
    }
    open(entry);
    load_results(body, stage);
    write_elements(stage);
    write_joined_parts(body, stage, teams_of(body.schedule));
    const std::size_t end =
        entry + 1 < launched.size() ? launched[entry + 1] : body.kernel.stages.size();
    for (std::size_t s = first + 1; s < end; ++s) {
      body.out.open("if (y == 0 && live)");
      write_row_results(body, body.kernel.stages[s]);
      body.out.close();
    }
    body.out.close();
  }
}

}  // namespace nitinol::cuda
