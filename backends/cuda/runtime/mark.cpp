#include "backends/cuda/runtime/mark.h"

#include "backends/cuda/runtime/libraries.h"

namespace nitinol::cuda {
namespace {

class Mark final : public DeviceMark {
 public:
  explicit Mark(Gpu& gpu) : gpu_(gpu) {
    const Entered entered = gpu_.enter();
    gpu_.check(driver().cuEventCreate(&event_, 0), "making an event");
    const int result = driver().cuEventRecord(event_, gpu_.stream());
    if (result != 0) driver().cuEventDestroy_v2(event_);  // nobody else will
    gpu_.check(result, "recording an event");
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() override {
    try {
      const Entered entered = gpu_.enter();
      driver().cuEventDestroy_v2(event_);
    } catch (...) {  // NOLINT(bugprone-empty-catch): the device is lost, and its events with it
    }
  }

  [[nodiscard]] double seconds_since(const DeviceMark& earlier) const override {
    const Entered entered = gpu_.enter();
    gpu_.await(event_, "waiting for an event");
    float milliseconds = 0;
    gpu_.check(driver().cuEventElapsedTime(&milliseconds, static_cast<const Mark&>(earlier).event_,
                                           event_),
               "reading the time between events");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  Gpu& gpu_;
  Driver::Event event_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceMark> make_mark(Gpu& gpu) {
  return std::make_unique<Mark>(gpu);
}

}  // namespace nitinol::cuda
