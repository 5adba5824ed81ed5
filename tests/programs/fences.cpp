// Library calls of many shapes, and lookups, whose memory ends at pages that nobody may touch.
//
// oneDNN's code, like ours, is not seen by the address sanitizer. Here a call that writes outside
// of its buffers ends the process, and the line before says which it was.

#include "nitinol.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace nitinol;

namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  int64_t operator()(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(engine_);
  }

 private:
  std::mt19937 engine_;
};

std::string now;  ///< what is running

/// A convolution and its gradients.
void convolve(Draw& draw) {
  const bool is_wide = draw(0, 3) == 0, is_point = draw(0, 1) == 0;
  const int64_t most_padding = draw(0, 2);
  const int64_t groups = draw(0, 3) == 0 ? draw(2, 3) : 1;
  const int64_t in = groups * draw(1, is_wide ? 40 : 5), out = groups * draw(1, is_wide ? 40 : 5);
  const int64_t rows = is_point ? 1 : draw(1, 3), columns = is_point ? 1 : draw(1, 3);
  const Conv2dOptions options = {.stride = {draw(1, 3), draw(1, 3)},
                                 .padding = {draw(0, most_padding), draw(0, most_padding)},
                                 .dilation = {draw(1, 2), draw(1, 2)},
                                 .groups = groups};
  const Shape images = {draw(1, 4), in, draw(5, 12), draw(5, 12)};
  const Shape kernels = {out, in / groups, rows, columns};
  const Variable x = parameter(randn(images)), weight = parameter(randn(kernels));
  now = "conv2d " + to_string(images) + " " + to_string(kernels) + " strides " +
        std::to_string(options.stride.rows()) + " " + std::to_string(options.stride.columns());
  sum(square(conv2d(x, weight, options))).backward();
}

void multiply(Draw& draw) {
  const bool is_wide = draw(0, 3) == 0;  // what oneDNN multiplies in another way
  const int64_t rows = draw(0, 5) == 0 ? 1 : draw(1, 70);
  const int64_t inner = is_wide ? draw(100, 500) : draw(1, 70);
  const int64_t columns = is_wide ? draw(1020, 1100) : draw(0, 5) == 0 ? 1 : draw(1, 70);
  const Shape a = {draw(1, 3), rows, inner}, b = {1, inner, columns};
  const DType dtype = draw(0, 2) == 0 ? bf16 : draw(0, 3) == 0 ? f64 : f32;
  const Variable x = parameter(randn(a, dtype)), y = parameter(randn(b, dtype));
  now = "matmul " + to_string(a) + " " + to_string(b) + " " + std::string(name_of(dtype));
  sum(square(matmul(x, y))).backward();
}

/// Compiled lookups whose points lie far apart: a vector's lanes that are no points would be far
/// behind the end.
void look_up(Draw& draw) {
  const auto elements =
      compile([](const Tensor& x, const Tensor& i) { return gather(x, 0, i) * 2 + 1; },
              {.check = Check::never});
  const int64_t points = draw(1, 70), apart = draw(100, 3000);
  const Tensor x =
      unsqueeze(slice(transpose(randn({points, apart})), 0, Range{apart - 1, apart}), 0);
  const Tensor i = zeros({1, points}, i64);
  now = "gather of " + std::to_string(points) + " points " + std::to_string(apart) + " apart";
  for (int call = 0; call < 3; ++call) static_cast<void>(elements(squeeze(x, 0), i));
}

/// How a child ends that writes `bytes` behind the end of a tensor of 100 bytes.
int end_of_writer(std::size_t bytes) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);  // which sanitizers take
    {
      const Tensor x = zeros({100}, u8) + 0;
      std::memset(const_cast<uint8_t*>(x.data<uint8_t>().data()) + 100, 1, bytes);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

int main(int, char** arguments) {
  if (std::getenv("NITINOL_FENCES") == nullptr) {
    setenv("NITINOL_FENCES", "1", 1);
    execv("/proc/self/exe", arguments);
    return 1;
  }
  if (end_of_writer(1) != SIGABRT || end_of_writer(100) != SIGSEGV || end_of_writer(0) != 0) {
    std::puts("the fences do not hold");
    return 1;
  }
  std::signal(SIGSEGV, [](int) {
    std::fprintf(stderr, "beyond its memory: %s\n", now.c_str());
    _exit(1);
  });
  Draw draw(1), of_products(2);
  for (int i = 0; i < 1200; ++i) {
    set_num_threads(static_cast<int>(draw(1, 4)));
    i % 3 == 0 ? multiply(of_products) : convolve(draw);
  }
  for (int i = 0; i < 40; ++i) look_up(draw);
  std::puts("1,200 library calls with their gradients, and 40 lookups, stayed within their memory");
  return 0;
}
