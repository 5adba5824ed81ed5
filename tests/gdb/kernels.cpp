// A user's program with generated code, for kernels.cmake and ../perf/run.cmake beside it. With the
// argument "loop" it computes for about half a second.
#include <nitinol/nitinol.h>

#include <cstdio>
#include <string_view>

using namespace nitinol;

namespace {

[[gnu::noinline]] void kernels_are_there() {
  asm volatile("");
}
[[gnu::noinline]] void kernels_are_gone() {
  asm volatile("");
}

void compute(int calls) {
  const auto curve = compile([](const Tensor& x, const Tensor& y) {
#line 9001 "model.cpp"
    return tanh(x * y + 1.0);
#line 24 "kernels.cpp"
  });
  const auto rows = compile([](const Tensor& x) { return softmax(x * 2.0, 1); });
  const Tensor x = ones({1000}), y = full({1000}, 0.5), table = ones({8, 40});
  for (int call = 0; call < calls; ++call) static_cast<void>(curve(x, y));
  for (int call = 0; call < 4; ++call) static_cast<void>(rows(table));
  const Explanation told = curve.explain();
  std::printf("code is %s\n",
              std::string(name_of(told.signatures.at(0).plan.steps.at(0).build.origin)).c_str());
  std::fflush(stdout);
  kernels_are_there();
}

}  // namespace

int main(int argc, char** argv) {
  const bool loops = argc > 1 && std::string_view(argv[1]) == "loop";
  compute(loops ? 300'000 : 4);
  clear_executables();
  kernels_are_gone();
}
