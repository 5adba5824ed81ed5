#include "backends/reference/device.h"

#include "backends/cpu/allocator.h"
#include "backends/reference/interpreted.h"
#include "backends/reference/routines.h"

#include <cstring>

namespace nitinol::reference {
namespace {

class ReferenceDevice final : public Backend {
 public:
  StorageHandle allocate(std::size_t bytes) override {
    return cpu::allocate(bytes, {.kind = Device::Kind::reference, .index = 0});
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    std::memmove(to, from, bytes);
  }
  std::unique_ptr<Executable> prepare(const Step& step) override {
    if (const auto* kernel = std::get_if<Kernel>(&step)) return make_interpreted(*kernel);
    return make_routine(std::get<LibraryCall>(step));
  }
  void synchronize() override {}
  MemoryStatistics memory() override { return cpu::memory_statistics(); }
  void set_memory_budget(std::size_t bytes) override { cpu::set_memory_budget(bytes); }
  void release_cached_memory() override { cpu::release_cached_memory(); }
  void reset_peak_memory() override { cpu::reset_peak_memory(); }
  bool can_generate_code() override { return false; }
};

}  // namespace

Backend& device() {
  static Backend& instance = *new ReferenceDevice;
  return instance;
}

}  // namespace nitinol::reference
