// Order::none: each thread takes `width` neighbours along the innermost loop. What is left over at
// the end of a row that is not even is visited by the same text, which takes the last point again
// instead of what lies behind it: a second text would cost NVRTC as much again.
#include "backends/cuda/text/shapes.h"

namespace nitinol::cuda {

void write_points(Body& body) {
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
