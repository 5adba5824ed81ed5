// A device that shows every mistake which a device with memory of its own would.
#pragma once

#include "core/device.h"

#include <cstddef>

namespace nitinol::test {

/// The reference backend behind a fence. Its memory has an address at which nobody may touch it,
/// the one that tensors know, and another which only its own launches and copies use. Launches run
/// when something waits, in order. Number 1 of its kind: what forgets the number meets number 0.
inline constexpr Device fenced_device = {.kind = Device::Kind::reference, .index = 1};

/// Makes it known, once a process, and makes the device that NITINOL_TEST_DEVICE names the default
/// one. False, with a message, if it names none.
[[nodiscard]] bool use_test_device();

/// What it has been asked for so far, and how much of that it has done.
struct FencedCounts {
  std::size_t asked = 0, done = 0, launches = 0, waits = 0, specialised = 0;
};
[[nodiscard]] FencedCounts fenced_counts();

}  // namespace nitinol::test
