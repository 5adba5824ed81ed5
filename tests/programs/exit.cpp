// How a program may end: computing and compiling in destructors of static and thread_local objects,
// while detached threads and background compilations go on. Exit status 0, and nothing crashes.
//
//     exit [detached]

#include "nitinol.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <unistd.h>

using namespace nitinol;

namespace {

void require(bool condition) {
  if (!condition) _exit(1);
}

/// Made before the library is first used, so destroyed after all that the library makes.
struct Early {
  Tensor x = ones({100});
  Variable v = Variable(zeros({4}));
  ~Early() {
    const auto f = compile([](const Tensor& t) { return exp(t * 0) * 3 + t; });
    for (int i = 0; i < 4; ++i) require(sum(f(x)).item<float>() == 400);
    v += 1;
    for (int i = 0; i < 4; ++i) require(f(ones({50 + i})).data<float>()[0] == 4);
    require(matmul(ones({3, 4}), ones({4, 3})).data<float>()[0] == 4);
    const Variable w = parameter(ones({4}));
    sum(square(w) * v.get()).backward();
    require(w.grad().data<float>()[0] == 2);
    for (int i = 0; i < 300; ++i) x = x + 1;
    require(x.data<float>()[99] == 301);
    require(sort(arange(100) * -1.0)[0].item<float>() == -99);
    clear_executables();
    require(sum(f(x)).item<float>() > 0);
  }
};

const Early early;
const auto in_background =
    compile([](const Tensor& x) { return sin(x) * exp(x) + sum(x); }, {.in_background = true});
thread_local Tensor of_thread;

struct LateOfThread {
  ~LateOfThread() {
    if (of_thread.is_defined()) return;  // destroyed, or in a thread that made none
    require(sum(ones({1000}) * 2).item<float>() == 2000);
  }
};
thread_local LateOfThread late;

[[noreturn]] void compute_for_ever(double number) {
  for (int n = 1;; ++n) {
    const auto f = compile([=](const Tensor& x) { return x * (number + n) + 1; });
    for (int k = 0; k < 4; ++k) static_cast<void>(f(ones({50 + n % 7})));
    static_cast<void>(matmul(ones({n % 50 + 1, 4}), ones({4, 3})));
  }
}

}  // namespace

int main(int count, char** arguments) {
  static_cast<void>(&late);
  for (const int64_t n : {7, 7, 8, 8}) static_cast<void>(in_background(ones({n})));
  of_thread = sort(ones({1000}));
  std::thread([] {
    static_cast<void>(&late);
    of_thread = ones({100'000});
    static_cast<void>(in_background(of_thread));
  }).join();
  if (count > 1 && std::strcmp(arguments[1], "detached") == 0) {
    for (int i = 0; i < 3; ++i) std::thread(compute_for_ever, i).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
  }
  return 0;
}
