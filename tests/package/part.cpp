// A user's code: the public header beside a header that has the name of one of the library's, an
// error that is caught, a derived class, and a function that is compiled with what was installed.
#include "core/shape.h"
#include <nitinol/nitinol.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <tuple>
#include <typeinfo>

using namespace nitinol;

namespace {

bool has_its_own_shape() {
  return consumer::Shape::circle != consumer::Shape::square && Shape{2, 3}.size() == 2;
}

bool reports_bad_input() {
  try {
    set_num_threads(0);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return error.kind() == ErrorKind::value && typeid(error) == typeid(Error);
  }
  return false;
}

/// A network and sizes that the package knows nothing of, in the first process of a user.
bool needs_no_generator() {
  const auto model = std::tuple(nn::linear(13, 7), nn::linear(7, 3));
  const auto& [first, second] = model;
  const nn::Adam optimizer(nn::parameters(model));
  const auto step = compile([&](const Tensor& x, const Tensor& classes) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(second(relu(first(x))), classes);
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  });
  const Tensor x = ones({40, 13}), classes = arange(40) % 3;
  for (int call = 0; call < 4; ++call) static_cast<void>(step(x, classes));
  std::printf("%s", to_string(step.explain()).c_str());
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), {});
  return step.explain().plan_calls > 0 && executable_statistics().shipped > 2 &&
         text.find("libnitinol.so") != std::string::npos &&
         text.find("libnitinol_llvm") == std::string::npos;
}

// As everything that a template or an inline function reaches: trained, printed, formatted, saved.
bool trains() {
  struct Model {
    nn::Linear first = nn::linear(3, 4);
    nn::Linear second = nn::linear(4, 1);
    Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
  };
  const Model model;
  const nn::Adam optimizer(nn::parameters(model), {.rate = 0.05});
  const nn::Optimizer& base = optimizer;
  const Tensor x = from_span<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor y = tensor({{1.0F}, {0.0F}});
  const auto step = compile([&](const Tensor& in, const Tensor& wanted, const Scalar& factor) {
    optimizer.zero_grad();
    const Tensor loss = mean(square(model(in) - wanted)) * factor;
    loss.backward();
    optimizer.step();
    return loss;
  });
  float first = 0, last = 0;
  for (int i = 0; i < 20; ++i) {
    last = step(x, y, 1.0 + i * 0.0).item<float>();
    if (i == 0) first = last;
  }
  return last < first && dynamic_cast<const nn::Adam*>(&base) != nullptr &&
         nn::parameters(model).size() == 4;
}

bool compiles(bool expects_llvm) {
  const auto f = [](const Tensor& x) { return exp(x) * 2.0 + x; };
  const auto g = compile(f);
  const Tensor x = arange(0, 1000, 1, f32);
  for (int call = 0; call < 3; ++call) {
    if (g(x).to_vector<float>() != f(x).to_vector<float>()) return false;
  }
  const Explanation e = g.explain();
  std::printf("%s%s", to_string(e).c_str(), build_info().c_str());
  if (e.plan_calls != 1 || e.signatures[0].plan.steps.size() != 1) return false;
  return !expects_llvm || e.signatures[0].plan.steps[0].build.code_bytes > 0;
}

/// What other libraries read and write; these may have been left out.
bool keeps_files() {
  const Tensor image = full({2, 3, 3}, 7, u8);
  const std::string name = "nitinol-" + std::to_string(std::random_device()());
  const std::filesystem::path npz = std::filesystem::temp_directory_path() / (name + ".npz");
  const std::filesystem::path png = std::filesystem::temp_directory_path() / (name + ".png");
  const auto is_kept = [&](const auto& keep) {
    try {
      return keep().template to_vector<uint8_t>() == image.to_vector<uint8_t>();
    } catch (const Error& error) {
      std::printf("%s\n", error.what());
      return error.kind() == ErrorKind::unsupported;
    }
  };
  const bool keeps_npz = is_kept([&] {
    save_npz(npz, {{"image", image}}, {.is_compressed = true});
    return load_npz(npz).front().second;
  });
  const bool keeps_png = is_kept([&] {
    save_image(png, image);
    return load_image(png);
  });
  std::filesystem::remove(npz);
  std::filesystem::remove(png);
  return keeps_npz && keeps_png;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int consume_shipped() {
  return needs_no_generator() ? 0 : 1;
}

/// 0 if all went well, else a number that says what did not.
extern "C" [[gnu::visibility("default")]] int consume(int expects_llvm) {
  if (!has_its_own_shape()) return 2;
  if (!reports_bad_input()) return 3;
  if (!compiles(expects_llvm != 0)) return 4;
  if (!keeps_files()) return 6;
  return trains() ? 0 : 5;
}
