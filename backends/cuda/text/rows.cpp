// Order::lanes, rows of one run at most: threads of a warp share a row, and a block of threads
// takes several. Threads beyond the last row take it again, and store nothing, since all threads of
// a warp must come to its shuffles.
#include "backends/cuda/text/lanes.h"
#include "backends/cuda/text/shapes.h"

namespace nitinol::cuda {

void write_rows(Body& body) {
  Writer& out = body.out;
  const int threads = body.schedule.threads;
  open_entry(body, 0);
  out.line("const int lane = (int)(thread_index() % {});", threads);
  out.line("const Index own = (Index)block_index() * {} + (Index)(thread_index() / {});",
           block_threads / threads, threads);
  out.line("const bool live = own < a.rows;");
  out.line("const Index row = live ? own : a.rows - 1;");
  out.line("const Index first = 0, last = a.n{};", body.last_loop());
  write_row(body, "row", body.last_loop());
  const std::vector<bool> is_kept = write_kept(body);
  std::vector<bool> is_loaded(is_kept.size());
  write_stages(body, "live && lane == 0", "warp_barrier();", "sum{0}[0]", [&](const Stage& stage) {
    write_run(body, stage, is_kept, is_loaded, "live && ");
    for (const uint16_t r : reductions_of(stage)) write_fold(body, r);
  });
  out.close();
}

}  // namespace nitinol::cuda
