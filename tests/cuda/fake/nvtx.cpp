// NVTX's library, which notes ranges: how deep, what they are called, and how many kernels were
// launched while they were open.
#include "tests/cuda/fake/fake.h"

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <string>
#include <vector>

namespace {

uint64_t launches() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  const auto counts = reinterpret_cast<decltype(&fake_counts)>(::dlsym(driver, "fake_counts"));
  return counts == nullptr ? 0 : counts().launches;
}

struct Range {
  std::string name;
  uint64_t launches_before;
};
thread_local std::vector<Range> open_ranges;  // NOLINT(cert-err58-cpp)

struct Noted {
  std::mutex mutex;
  std::string text;
};
Noted& noted() {
  static Noted& instance = *new Noted;
  return instance;
}

}  // namespace

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): NVTX's names
int nvtxRangePushA(const char* name) {
  open_ranges.push_back({name, launches()});
  return static_cast<int>(open_ranges.size()) - 1;
}

int nvtxRangePop() {
  if (open_ranges.empty()) std::abort();
  const Range range = open_ranges.back();
  open_ranges.pop_back();
  const std::lock_guard lock(noted().mutex);
  noted().text += std::string(2 * open_ranges.size(), ' ') + range.name + ": " +
                  std::to_string(launches() - range.launches_before) + "\n";
  return static_cast<int>(open_ranges.size());
}
// NOLINTEND(readability-identifier-naming)

void fake_ranges(std::string* text) {
  const std::lock_guard lock(noted().mutex);
  *text = noted().text;
}
}
