// A kernel's text depends on the sizes and addresses of a launch by its Schedule alone, so one
// Executable holds the few cubins that its launches have needed so far.
#include "backends/cuda/runtime/executables.h"
#include "backends/cuda/runtime/loaded.h"
#include "backends/cuda/text/printer.h"
#include "core/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace nitinol::cuda {
namespace {

class Printed final : public Compiled {
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

  void launch_all(std::span<const Launch> launches) const override {
    for (const Batch& batch : batches_of(launches)) {
      if (batch.launches.size() == 1) {
        launch(*batch.launches[0]);
        continue;
      }
      const Loaded& loaded = loaded_for(batch.schedule);
      std::vector<Places> places;
      for (const Launch* const one : batch.launches)
        places.push_back(loaded.memory_for({}, *one).places);
      loaded.run(call_of_all(kernel_, batch.schedule, batch.launches, places));
    }
  }

  std::unique_ptr<const Executable> specialise(std::span<const Launch> examples) const override {
    // Without buffers: as memory of the allocator's lies.
    for (const Batch& batch : batches_of(examples)) static_cast<void>(loaded_for(batch.schedule));
    return nullptr;
  }

  void add_requests(std::span<const Launch> examples,
                    std::vector<Request>& requests) const override {
    for (const Batch& batch : batches_of(examples)) {
      if (find(batch.schedule) == nullptr) requests.push_back(request(batch.schedule));
    }
  }

  [[nodiscard]] std::string describe(std::span<const Launch> examples) const override {
    std::string text;
    for (const Batch& batch : batches_of(examples)) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", to_string(batch.schedule),
                          loaded_for(batch.schedule).describe());
    }
    return text;
  }

  [[nodiscard]] std::vector<CodeText> code_texts(std::span<const Launch> examples) const override {
    std::vector<CodeText> texts;
    for (const Batch& batch : batches_of(examples)) {
      texts.push_back({"CUDA C++", fmt::format("// {}\n{}", to_string(batch.schedule),
                                               print(kernel_, batch.schedule))});
    }
    return texts;
  }

  [[nodiscard]] std::size_t bytes() const override {
    const std::lock_guard lock(mutex_);
    std::size_t bytes = 0;
    for (const auto& [schedule, loaded] : loaded_) bytes += loaded->bytes();
    return bytes;
  }

 private:
  /// Launches that are made as one.
  struct Batch {
    Schedule schedule;
    std::vector<const Launch*> launches;
    std::size_t most;
  };

  /// As many as fit into one, of those with the same schedule; empty ones left out.
  [[nodiscard]] std::vector<Batch> batches_of(std::span<const Launch> launches) const {
    std::vector<Batch> batches;
    for (const Launch& launch : launches) {
      if (is_empty(kernel_, launch)) continue;
      const Schedule schedule = schedule_of(kernel_, launch);
      auto batch = std::ranges::find_if(batches, [&](const Batch& known) {
        return known.schedule == schedule && known.launches.size() < known.most;
      });
      if (batch == batches.end()) {
        const std::size_t most =
            launches.size() == 1 ? 1 : most_parts(kernel_, schedule, gpu_.most_argument_bytes());
        batch = batches.insert(batch, {schedule, {}, most});
      }
      batch->launches.push_back(&launch);
    }
    for (Batch& batch : batches)
      batch.schedule.parts = static_cast<uint8_t>(parts_for(batch.launches.size(), batch.most));
    return batches;
  }

  const Loaded* find(const Schedule& schedule) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, loaded] : loaded_) {
      if (known == schedule) return loaded.get();
    }
    return nullptr;
  }

  [[nodiscard]] Request request(const Schedule& schedule) const {
    return {&kernel_, schedule, gpu_.properties().architecture};
  }

  const Loaded& loaded_for(const Schedule& schedule) const {
    if (const Loaded* const found = find(schedule)) return *found;
    auto loaded = std::make_unique<Loaded>(
        gpu_, CubinCache::instance().get(request(schedule)),
        fmt::format("a kernel of {} operands, {}", kernel_.operands.size(), to_string(schedule)),
        fmt::format("kernel::{}", kernel_.making.name.empty() ? "unnamed" : kernel_.making.name));
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
