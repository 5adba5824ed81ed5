// Waiting: what is done around waiting for another thread, or for a device.
#pragma once

#include "core/call_order.h"

namespace nitinol {

/// While it lives, the thread has given away what a binding gives away meanwhile (WaitHooks).
class Waiting {
 public:
  Waiting() : given_(hooks_ == nullptr ? nullptr : hooks_->begin()) {}
  ~Waiting() {
    if (hooks_ != nullptr) hooks_->end(given_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  const WaitHooks* const hooks_ = wait_hooks.load(std::memory_order_acquire);
  void* const given_;
};

}  // namespace nitinol
