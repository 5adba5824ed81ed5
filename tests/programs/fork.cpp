// Compiled code after a fork: parent and child compile, drop and run kernels, and neither sees what
// the other writes.
//
//     fork [shared]
//
// shared: on a system that lets no page become executable later, where code lies in memory that
// parent and child share.

#include "nitinol.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace nitinol;

namespace {

constexpr int functions = 12;

/// A function that is a kernel of its own for each `kind`, of about a page of code: what is written
/// in its place later overwrites all of it.
auto make(int kind) {
  return compile(
      [kind](const Tensor& x) {
        Tensor y = x + 1 + (sin(x) + tanh(x)) * 0;
        for (int bit = 0; bit < 5; ++bit) y = ((kind >> bit) & 1) != 0 ? y * x : y + x;
        return y;
      },
      {.check = Check::never});
}
using Function = decltype(make(0));

float expected(int kind, float x) {
  float y = x + 1;
  for (int bit = 0; bit < 5; ++bit) y = ((kind >> bit) & 1) != 0 ? y * x : y + x;
  return y;
}

bool is_right(const Function& f, int kind) {
  for (int i = 0; i < 3; ++i) {
    if (f(full({40}, 3.0F)).data<float>()[39] != expected(kind, 3)) return false;
  }
  return true;
}

/// Waits for a byte from the other side, having sent one.
void meet(int from, int to) {
  char byte = 'x';
  if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1) _exit(9);
}

int child_of_test(std::vector<Function> inherited, int from, int to, int depth) {
  alarm(60);
  for (int kind = 0; kind < functions; ++kind) {
    if (!is_right(inherited[static_cast<std::size_t>(kind)], kind)) return 2;
  }
  std::vector<Function> own;
  for (int kind = functions; kind < 2 * functions; ++kind) {
    own.push_back(make(kind));
    if (!is_right(own.back(), kind)) return 3;
  }
  meet(from, to);  // the parent drops its functions and compiles others
  for (int kind = 0; kind < functions; ++kind) {
    if (!is_right(inherited[static_cast<std::size_t>(kind)], kind)) return 4;
    if (!is_right(own[static_cast<std::size_t>(kind)], functions + kind)) return 5;
  }
  if (depth == 0) return 0;
  const pid_t grandchild = fork();
  if (grandchild == 0) {
    inherited.clear();
    clear_executables();
    for (int kind = 24; kind < 32; ++kind) {
      if (!is_right(make(kind), kind)) _exit(6);
    }
    _exit(is_right(own[0], functions) ? 0 : 7);
  }
  own.resize(1, make(functions));
  for (int kind = 24; kind < 32; ++kind) {
    if (!is_right(make(kind), kind)) return 6;
  }
  int status = -1;
  waitpid(grandchild, &status, 0);
  return status == 0 && is_right(own[0], functions) ? 0 : 8;
}

/// A parent and a child that take turns.
int run_once() {
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) return 1;
  std::vector<Function> all;
  for (int kind = 0; kind < functions; ++kind) {
    all.push_back(make(kind));
    if (!is_right(all.back(), kind)) return 1;
  }
  const pid_t child = fork();
  if (child == 0) _exit(child_of_test(std::move(all), down[0], up[1], 1));
  const std::vector<Function> kept = {all.end() - 2, all.end()};
  all.clear();
  clear_executables();
  for (int kind = 31; kind >= 14; --kind) {  // into the places of what was dropped
    if (!is_right(make(kind), kind)) return 1;
  }
  meet(up[0], down[1]);
  for (const int fd : {down[0], down[1], up[0], up[1]}) close(fd);
  int status = -1;
  waitpid(child, &status, 0);
  if (status != 0) std::printf("child: status %d\n", status);
  return status == 0 && is_right(kept[1], functions - 1) ? 0 : 1;
}

/// Children that compile while a thread of the parent does.
int run_beside_compilations() {
  std::atomic<bool> stop = false;
  std::thread other([&] {
    for (int i = 0; !stop; ++i) {
      if (!is_right(make(i % 32), i % 32)) _exit(1);
      const auto later =
          compile([i](const Tensor& x) { return x * i + exp(x); }, {.in_background = true});
      for (int k = 0; k < 4; ++k) static_cast<void>(later(ones({10 + i % 9})));
      if (i % 4 == 0) clear_executables();
    }
  });
  int failures = 0;
  for (int i = 0; i < 40; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      clear_executables();
      _exit(is_right(make(i % 32), i % 32) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) ++failures;
  }
  stop = true;
  other.join();
  if (failures != 0) std::printf("%d children failed\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "shared") == 0) {
    constexpr int set_mdwe = 65;  // PR_SET_MDWE, since Linux 6.3
    if (prctl(set_mdwe, 1UL, 0UL, 0UL, 0UL) != 0) {
      std::puts("this system cannot refuse executable pages: nothing to test");
      return 0;
    }
  }
  for (int i = 0; i < 5; ++i) {
    if (const int result = run_once(); result != 0) return result;
  }
  return run_beside_compilations();
}
