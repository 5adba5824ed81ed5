#include "backends/reference/device.h"

#include "backends/host/host_memory.h"
#include "backends/reference/interpreted.h"
#include "backends/reference/routines.h"

namespace nitinol::reference {
namespace {

class ReferenceDevice final : public host::HostMemoryBackend {
 public:
  [[nodiscard]] Device device() const override {
    return {.kind = Device::Kind::reference, .index = 0};
  }
  [[nodiscard]] std::string description() const override {
    return "the processor, by interpretation: slow, to compare with";
  }
  std::unique_ptr<Executable> prepare(const Step& step) override {
    if (const auto* kernel = std::get_if<Kernel>(&step)) return make_interpreted(*kernel);
    return make_routine(std::get<LibraryCall>(step));
  }
  bool can_generate_code() override { return false; }
};

}  // namespace

Backend& device() {
  static Backend& instance = *new ReferenceDevice;
  return instance;
}

}  // namespace nitinol::reference
