// A user's program that a debugger stops in; run.cmake beside it says what gdb must show.
#include <nitinol/nitinol.h>

#include <csignal>
#include <cstdint>

using namespace nitinol;

namespace {

[[gnu::noinline]] void stop(const Tensor&) {
  std::raise(SIGTRAP);
}

}  // namespace

int main() {
  const Tensor vector = tensor({1.5F, -2.0F, 0.1F});
  const Tensor matrix = reshape(arange(0, 6, 1, i32), {2, 3});
  const Tensor turned = transpose(matrix, 0, 1);
  const Tensor backwards = flip(arange(0, 100, 1, f64), {0});
  const Tensor halves = cast(tensor({1.0, 0.5, 65504.0}), f16);
  const Tensor brains = cast(tensor({1.0, -3.0}), bf16);
  const Tensor truths = tensor({1, 0}, i64) == tensor({1, 1}, i64);
  const Tensor number = tensor(0.1);
  const Tensor empty = zeros({0, 4});
  const Tensor undefined;
  const Variable weight(ones({2}));
  const Scalar rate = 0.25;
  const Scalar count = 3;
  const Shape shape = {4, 5};
  stop(vector);
  return static_cast<int>(halves.size() + brains.size() + truths.size() + number.size() +
                          empty.size() + turned.size() + backwards.size() + shape.size() +
                          count.to_integer()) == 0 ||
         rate.to_double() == 0 || !weight.is_defined();
}
