#include "backends/cpu/onednn/trial.h"

#include "backends/host/allocator.h"

#include <span>

namespace nitinol::cpu {

StorageHandle trial_numbers(std::size_t count, uint64_t seed) {
  StorageHandle storage = host::allocate(count * sizeof(float));
  for (float& number : std::span(static_cast<float*>(storage->data), count)) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const float magnitude = static_cast<float>((seed >> 40) + 1) * 0x1p-16F;
    number = (seed >> 39 & 1) != 0 ? magnitude : -1 / magnitude;
  }
  return storage;
}

}  // namespace nitinol::cpu
