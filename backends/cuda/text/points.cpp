// Order::none: each thread takes `width` neighbours along the innermost loop. What is left over at
// the end of a row that is not even is visited by the same text, which takes the last point again
// instead of what lies behind it: a second text would cost NVRTC as much again.
//
// Of a single point that takes long, each result is computed by a warp of its own.
#include "backends/cuda/text/shapes.h"

namespace nitinol::cuda {
namespace {

void write_point_by_results(Body& body) {
  open_entry(body, 0);
  body.out.line("const Index e = 0;");
  write_row(body, "0", body.last_loop());
  write_results_apart(body, body.kernel.stages[0]);
  if (body.schedule.parts > 1) body.out.close();
  body.out.close();
}

}  // namespace

void write_points(Body& body) {
  if (body.schedule.threads > 1) return write_point_by_results(body);
  Writer& out = body.out;
  const int width = body.schedule.width, loops = body.last_loop();
  open_entry(body, 0);
  out.line("const Index last = a.n{};", loops);
  out.line("const Index at = (Index){} * {} + (Index)thread_index();",
           body.schedule.parts > 1 ? "block" : "block_index()", block_threads);
  if (loops == 0) {
    out.line("const Index e = at * {};", width);
    out.line("if (e >= last) return;");
  } else {
    out.line("const Index pieces = (last + {}) / {};", width - 1, width);
    out.line("if (at >= a.rows * pieces) return;");
    out.line("const Index row = (Index)((UnsignedIndex)at / (UnsignedIndex)pieces);");
    out.line("const Index e = (at - row * pieces) * {};", width);
  }
  write_row(body, "row", loops);
  write_piece(body, body.kernel.stages[0], {.is_whole = width == 1 || body.schedule.is_even});
  if (body.schedule.parts > 1) out.close();
  out.close();
}

}  // namespace nitinol::cuda
