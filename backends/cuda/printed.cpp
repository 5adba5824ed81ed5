// A kernel's text depends on the sizes and addresses of a launch by its Schedule alone, so one
// Executable holds the few cubins that its launches have needed so far.
#include "backends/cuda/executables.h"
#include "backends/cuda/loaded.h"
#include "core/kernel.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>
#include <vector>

namespace nitinol::cuda {
namespace {

class Printed final : public Executable {
 public:
  Printed(Gpu& gpu, const Kernel& kernel) : gpu_(gpu), kernel_(kernel) {}

  void launch(const Launch& launch) const override {
    if (is_empty(kernel_, launch)) return;
    const Schedule schedule = schedule_of(kernel_, launch);
    const Loaded& loaded = loaded_for(schedule);
    const Loaded::Memory memory =
        loaded.memory_for(workspace_of(kernel_, schedule, launch), launch);
    loaded.run(call_of(kernel_, schedule, launch, memory.places));
  }

  std::unique_ptr<const Executable> specialise(const Launch& example) const override {
    // Without buffers: as memory of the allocator's lies.
    if (!is_empty(kernel_, example)) static_cast<void>(loaded_for(schedule_of(kernel_, example)));
    return nullptr;
  }

  [[nodiscard]] std::size_t bytes() const override {
    const std::lock_guard lock(mutex_);
    std::size_t bytes = 0;
    for (const auto& [schedule, loaded] : loaded_) bytes += loaded->bytes();
    return bytes;
  }

 private:
  const Loaded* find(const Schedule& schedule) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, loaded] : loaded_) {
      if (known == schedule) return loaded.get();
    }
    return nullptr;
  }

  const Loaded& loaded_for(const Schedule& schedule) const {
    if (const Loaded* const found = find(schedule)) return *found;
    const Request request = {&kernel_, schedule, gpu_.properties().architecture};
    const std::shared_ptr<const Cubin> cubin = CubinCache::instance().get(request);
    auto loaded = std::make_unique<Loaded>(
        gpu_, *cubin,
        fmt::format("a kernel of {} operands, {}", kernel_.operands.size(), to_string(schedule)));
    // Two threads may load the same: launches find the first, and the other is kept with it.
    const std::lock_guard lock(mutex_);
    return *loaded_.emplace_back(schedule, std::move(loaded)).second;
  }

  Gpu& gpu_;
  const Kernel kernel_;
  mutable ForkSafeMutex mutex_;
  mutable std::vector<std::pair<Schedule, std::unique_ptr<Loaded>>> loaded_;
};

}  // namespace

std::unique_ptr<Executable> make_printed(Gpu& gpu, const Kernel& kernel) {
  return std::make_unique<Printed>(gpu, kernel);
}

}  // namespace nitinol::cuda
