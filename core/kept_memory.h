// What keeps memory of a device for later, and lets it go when the device has no more.
#pragma once

#include <functional>

namespace nitinol {

class Backend;

/// While it lives, `give_back` is called when an allocation of the device's would fail, by any
/// thread, which may hold locks: it releases what nobody uses just now, and waits for no lock. What
/// it releases is the device's again; what of that the system gets is for the device to say.
class KeptMemory {
 public:
  KeptMemory(const Backend& device, std::function<void()> give_back);
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;
  /// Waits while it is called.
  ~KeptMemory();

  /// Calls all of a device's. Nothing is to be held that releasing memory takes.
  static void give_back_all(const Backend& device);

 private:
  const Backend& device_;
  const std::function<void()> give_back_;
};

}  // namespace nitinol
