#include "backends/cpu/device.h"
#include "backends/reference/device.h"
#include "core/backend.h"
#include "core/error.h"

#include <fmt/format.h>

namespace nitinol {

Backend& backend(Device device) {
  if (device.index == 0) {
    switch (device.kind) {
      case Device::Kind::cpu:
        return cpu::device();
      case Device::Kind::reference:
        return reference::device();
    }
  }
  throw Error(ErrorKind::device, {.where = "backend",
                                  .what = fmt::format("there is no device of kind {} with index {}",
                                                      static_cast<int>(device.kind), device.index),
                                  .expected = "cpu:0 or reference:0",
                                  .got = {},
                                  .fix = "Use Device{}, the host."});
}

}  // namespace nitinol
