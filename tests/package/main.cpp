// A user's program: the public header, one error, and a function that is compiled with what was
// installed. The first argument says whether kernels are expected to come from LLVM.
#include <cstdio>
#include <cstring>
#include <nitinol/nitinol.h>

using namespace nitinol;

namespace {

bool reports_bad_input() {
  try {
    set_num_threads(0);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return true;
  }
  return false;
}

bool compiles(bool expects_llvm) {
  const auto f = [](const Tensor& x) { return exp(x) * 2.0 + x; };
  const auto g = compile(f);
  const Tensor x = arange(0, 1000, 1, f32);
  for (int call = 0; call < 3; ++call) {
    if (g(x).to_vector<float>() != f(x).to_vector<float>()) return false;
  }
  const Explanation e = g.explain();
  std::printf("%s", to_string(e).c_str());
  if (e.plan_calls != 1 || e.signatures[0].plan.steps.size() != 1) return false;
  return !expects_llvm || e.signatures[0].plan.steps[0].build.code_bytes > 0;
}

}  // namespace

int main(int argc, char** argv) {
  return reports_bad_input() && compiles(argc > 1 && std::strcmp(argv[1], "llvm") == 0) ? 0 : 1;
}
