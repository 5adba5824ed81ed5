// The one function of glibc 2.36 that LLVM's libraries call, where they draw a random number for
// the name of a temporary file. With our own the module runs from glibc 2.34 on. It is not
// exported.

#if defined(NITINOL_LLVM_RESERVE)  // in a static library the name would be the program's too

#  include <chrono>
#  include <cstdint>
#  include <cstdlib>
#  include <sys/random.h>

extern "C" [[gnu::visibility("hidden")]] std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number)) {
    number =
        static_cast<std::uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return number;
}

#endif
