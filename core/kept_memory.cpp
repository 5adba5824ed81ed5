#include "core/kept_memory.h"

#include "core/fork.h"

#include <mutex>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

struct All {
  ForkSafeMutex mutex;
  std::vector<const KeptMemory*> list;
};

All& all() {
  static All& instance = *new All;  // who keeps memory may live as long as the process
  return instance;
}

}  // namespace

KeptMemory::KeptMemory(const Backend& device, std::function<void()> give_back)
    : device_(device), give_back_(std::move(give_back)) {
  const std::lock_guard lock(all().mutex);
  all().list.push_back(this);
}

KeptMemory::~KeptMemory() {
  const std::lock_guard lock(all().mutex);
  std::erase(all().list, this);
}

void KeptMemory::give_back_all(const Backend& device) {
  const std::lock_guard lock(all().mutex);
  for (const KeptMemory* const kept : all().list) {
    if (&kept->device_ == &device) kept->give_back_();
  }
}

}  // namespace nitinol
