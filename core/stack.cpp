#include "core/stack.h"

#include "core/error.h"

#include <fmt/format.h>

#include <pthread.h>

namespace nitinol::thread_stack {

constinit thread_local uintptr_t lowest = unknown;

namespace {

/// Of this thread; 0 if the system does not tell.
uintptr_t find_lowest() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* address = nullptr;
  std::size_t size = 0, guard = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &address, &size) == 0 &&
                        pthread_attr_getguardsize(&attributes, &guard) == 0;
  pthread_attr_destroy(&attributes);
  return is_known ? reinterpret_cast<uintptr_t>(address) + guard : 0;
}

}  // namespace

bool is_short_of(std::size_t bytes, uintptr_t address) noexcept {
  if (lowest == unknown) lowest = find_lowest();
  return address - lowest < bytes;  // wraps below it, where a fiber's stack may be
}

void throw_short(const char* where) {
  throw Error(ErrorKind::unsupported,
              {.where = where,
               .what = "the thread's stack is nearly used up",
               .expected = fmt::format("{} KiB left", stack_of_call >> 10),
               .got = {},
               .fix = "Give the thread a larger stack (256 KiB; in Python threading.stack_size()), "
                      "or call less deeply."});
}

}  // namespace nitinol::thread_stack
