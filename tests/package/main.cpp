// tests/package/main.cpp -- A user's program: all public headers, one error, the thread pool.

#include <core/error.h>
#include <core/parallel.h>
#include <cstdio>
#include <nitinol.h>

int main() {
  try {
    nitinol::set_num_threads(0);
  } catch (const nitinol::Error& error) {
    std::printf("%s\n", error.what());
    return nitinol::num_threads() >= 1 ? 0 : 1;
  }
  return 1;
}
