#include "backends/cuda/text/lanes.h"

#include "backends/cuda/text/instruction.h"

#include <algorithm>

namespace nitinol::cuda {
namespace {

int span_of(const Schedule& schedule) {
  return schedule.threads * schedule.width;
}

/// The loops over chunks and pieces of the run, with `e` where a piece begins.
void open_pieces(Body& body) {
  const Schedule& schedule = body.schedule;
  Writer& out = body.out;
  const int chunk = chunk_of(schedule), pieces = pieces_of(schedule);
  if (schedule.chunks > 0) {
    out.line("UNROLL");
    out.open("for (int c = 0; c < {}; ++c)", schedule.chunks);
  } else {
    out.open("for (Index begin = first; begin < last; begin += {})", chunk);
  }
  out.line("UNROLL");
  out.open("for (int p = 0; p < {}; ++p)", pieces);
  out.line("const Index e = {} + p * {} + (Index)lane * {};",
           schedule.chunks > 0 ? fmt::format("first + c * {}", chunk) : "begin", span_of(schedule),
           schedule.width);
}

void close_pieces(Body& body) {
  body.out.close();
  body.out.close();
}

std::string kept_at(const Schedule& schedule) {
  return fmt::format("c * {} + p", pieces_of(schedule));
}

}  // namespace

int chunk_of(const Schedule& schedule) {
  return schedule.threads == warp_threads ? full_chunk : span_of(schedule);
}

int pieces_of(const Schedule& schedule) {
  return chunk_of(schedule) / span_of(schedule);
}

int sums_of(const Schedule& schedule, const Reduction& reduction) {
  const bool is_cut = lanes_of(reduction.type) < chunk_of(schedule);
  return is_cut ? schedule.width : pieces_of(schedule) * schedule.width;
}

std::vector<bool> write_kept(Body& body) {
  std::vector<bool> is_kept(body.kernel.operands.size());
  for (std::size_t k = 0; k < is_kept.size(); ++k) {
    is_kept[k] = k < 64 && (body.schedule.kept >> k & 1) != 0;
    if (is_kept[k])
      body.out.line("{} keep{}[{}];", stored_word(body.kernel.operands[k].dtype), k,
                    body.schedule.chunks * pieces_of(body.schedule) * body.schedule.width);
  }
  return is_kept;
}

void write_run(Body& body, const Stage& stage, const std::vector<bool>& is_kept,
               std::vector<bool>& is_loaded, const std::string& condition) {
  const Schedule& schedule = body.schedule;
  for (const uint16_t r : reductions_of(stage)) {
    const int sums = sums_of(schedule, body.kernel.reductions[r]);
    body.out.line("Joined{} sum{}[{}];", r, r, sums);
    body.out.line("UNROLL");
    body.out.line("for (int j = 0; j < {}; ++j) sum{}[j] = nothing{}();", sums, r, r);
  }
  for (const uint16_t k : memory_sources(body, stage)) {
    if (!is_kept[k] || is_loaded[k] || body.kernel.operands[k].role == Role::scratch) continue;
    open_pieces(body);
    write_kept_load(body, k, {.is_whole = schedule.is_whole, .kept_at = kept_at(schedule)});
    close_pieces(body);
    is_loaded[k] = true;
  }
  open_pieces(body);
  write_piece(body, stage,
              {.is_whole = schedule.is_whole,
               .condition = condition,
               .accumulator = fmt::format("p * {} + j", schedule.width),
               .kept_at = kept_at(schedule),
               .is_kept = is_kept});
  close_pieces(body);
}

void write_fold(Body& body, std::size_t r) {
  const Schedule& schedule = body.schedule;
  Writer& out = body.out;
  const int span = span_of(schedule), width = schedule.width;
  const int lanes = std::min(lanes_of(body.kernel.reductions[r].type), chunk_of(schedule));
  for (int half = lanes / 2; half > 0; half /= 2) {
    const int lower = half >= span ? width : half >= width ? width : half;
    out.line("UNROLL");
    if (half >= span) {
      out.line("for (int j = 0; j < {0}; ++j) sum{1}[j] = join{1}(sum{1}[j], sum{1}[j + {2}]);",
               lower, r, half / span * width);
    } else if (half >= width) {
      out.line(
          "for (int j = 0; j < {0}; ++j) sum{1}[j] = join{1}(sum{1}[j], shuffled{1}(sum{1}[j], "
          "{2}));",
          lower, r, half / width);
    } else {
      out.line("for (int j = 0; j < {0}; ++j) sum{1}[j] = join{1}(sum{1}[j], sum{1}[j + {0}]);",
               lower, r);
    }
  }
}

}  // namespace nitinol::cuda
