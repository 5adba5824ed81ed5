#include "backends/cuda/text/printer.h"

#include "backends/cuda/text/parts.h"
#include "backends/cuda/text/shapes.h"

namespace nitinol::cuda {

std::string print(const Kernel& kernel, const Schedule& schedule) {
  Body body = {kernel, schedule};
  write_head(body);
  switch (schedule.shape) {
    case Schedule::Shape::points:
      write_points(body);
      break;
    case Schedule::Shape::tiles:
      write_tiles(body);
      break;
    case Schedule::Shape::rows:
      write_rows(body);
      break;
    case Schedule::Shape::blocks:
      write_blocks(body);
      break;
    case Schedule::Shape::columns:
      write_columns(body);
      break;
  }
  return body.out.take();
}

std::size_t entry_count(const Kernel& kernel, const Schedule& schedule) {
  return schedule.is_split ? launched_stages(kernel).size() : 1;
}

}  // namespace nitinol::cuda
