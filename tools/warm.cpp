// nitinol_warm -- Compiles what programs use, and keeps it on disk, so that the first of them does
// not wait for the compiler: when a machine is set up, say, or a package is made.
//
// For a GPU it runs the vocabulary eagerly, at the sizes that make a difference to its kernels. On
// the processor, where eager code is prebuilt and a kernel fits all sizes, it runs compiled steps
// of training. Kernels are kept where NITINOL_CACHE says (docs/environment.md); what is there is
// not compiled again.

#include "tools/training_tasks.h"
#include <nitinol/nitinol.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

template <class F>
struct Named {
  const char* name;
  F function;
};
using Unary = Named<Tensor (*)(const Tensor&)>;
using Binary = Named<Tensor (*)(const Argument&, const Argument&)>;
using Reduction = Named<Tensor (*)(const Tensor&, const Axes&, KeepDims)>;

constexpr Unary unary_functions[] = {
    {"abs", abs},
    {"neg", neg},
    {"sign", sign},
    {"square", square},
    {"floor", floor},
    {"ceil", ceil},
    {"round", round},
    {"trunc", trunc},
    {"relu", relu},
    {"sqrt", sqrt},
    {"rsqrt", rsqrt},
    {"reciprocal", reciprocal},
    {"exp", exp},
    {"exp2", exp2},
    {"expm1", expm1},
    {"log", log},
    {"log1p", log1p},
    {"log2", log2},
    {"log10", log10},
    {"sin", sin},
    {"cos", cos},
    {"tan", tan},
    {"tanh", tanh},
    {"erf", erf},
    {"sigmoid", sigmoid},
    {"gelu", gelu},
    {"gelu_tanh", gelu_tanh},
    {"silu", silu},
    {"softplus", softplus},
    {"isnan", isnan},
    {"isinf", isinf},
    {"isfinite", isfinite},
    {"copy", copy},
    {"cbrt", cbrt},
    {"asin", asin},
    {"acos", acos},
    {"atan", atan},
    {"sinh", sinh},
    {"cosh", cosh},
    {"asinh", asinh},
    {"acosh", acosh},
    {"atanh", atanh},
    {"erfc", erfc},
    {"signbit", signbit},
    {"erfinv", erfinv},
    {"lgamma", lgamma},
    {"digamma", digamma},
    {"mish", mish},
    {"hardswish", hardswish},
    {"hardsigmoid", hardsigmoid},
};
constexpr Binary binary_functions[] = {
    {"add", add},
    {"sub", sub},
    {"mul", mul},
    {"div", div},
    {"pow", pow},
    {"maximum", maximum},
    {"minimum", minimum},
    {"copysign", copysign},
    {"floor_divide", floor_divide},
    {"remainder", remainder},
    {"fmod", fmod},
    {"atan2", atan2},
    {"hypot", hypot},
    {"logaddexp", logaddexp},
    {"fmax", fmax},
    {"fmin", fmin},
    {"eq", eq},
    {"ne", ne},
    {"lt", lt},
    {"le", le},
    {"gt", gt},
    {"ge", ge},
};
constexpr Reduction reductions[] = {
    {"sum", sum}, {"prod", prod}, {"max", max},
    {"min", min}, {"mean", mean}, {"logsumexp", logsumexp},
};

/// Rows of this many elements are shared by threads in ways of their own.
constexpr int64_t row_lengths[] = {10, 128, 1000, 4096};

void add_elementwise(Tasks& tasks, DType dtype) {
  // Whole vectors, and a rest.
  const Tensor even = cast(rand({4096}) + 0.5, dtype), odd = cast(rand({4099}) + 0.5, dtype);
  const Tensor matrix = cast(rand({32, 128}) + 0.5, dtype), row = cast(rand({128}) + 0.5, dtype);
  for (const Unary& each : unary_functions) {
    tasks.push_back({each.name, [=, f = each.function] {
                       for (const Tensor& x : {even, odd}) static_cast<void>(f(x));
                     }});
  }
  for (const Binary& each : binary_functions) {
    tasks.push_back({each.name, [=, f = each.function] {
                       for (const Tensor& x : {even, odd}) {
                         static_cast<void>(f(x, x));
                         static_cast<void>(f(x, 2.0));
                         static_cast<void>(f(2.0, x));
                       }
                       static_cast<void>(f(matrix, row));
                     }});
  }
  tasks.push_back({"where", [=] {
                     for (const Tensor& x : {even, odd}) {
                       static_cast<void>(where(x > 1.0, x, -x));
                       static_cast<void>(where(x > 1.0, x, 0.0));
                     }
                   }});
  tasks.push_back({"cast", [=] {
                     for (const DType to : {boolean, i32, i64, f16, bf16, f32, f64}) {
                       static_cast<void>(cast(cast(even, to), dtype));
                       static_cast<void>(cast(cast(odd, to), dtype));
                     }
                   }});
}

void add_rows(Tasks& tasks, DType dtype) {
  for (const int64_t length : row_lengths) {
    const Tensor x = cast(rand({32, length}), dtype), scale = cast(rand({length}), dtype);
    const auto name = [&](const char* function) { return fmt::format("{} {}", function, length); };
    for (const Reduction& each : reductions) {
      tasks.push_back({name(each.name), [=, f = each.function] {
                         for (const Axes& axes : {Axes(-1), Axes(0), Axes()})
                           static_cast<void>(f(x, axes, KeepDims::no));
                       }});
    }
    tasks.push_back({name("argmax"), [=] {
                       static_cast<void>(argmax(x, -1));
                       static_cast<void>(argmin(x, -1));
                     }});
    tasks.push_back({name("var"), [=] { static_cast<void>(var(x, -1)); }});
    tasks.push_back({name("softmax"), [=] {
                       static_cast<void>(softmax(x));
                       static_cast<void>(log_softmax(x));
                     }});
    tasks.push_back({name("layer_norm"), [=] {
                       static_cast<void>(layer_norm(x));
                       static_cast<void>(layer_norm(x, {.weight = scale, .bias = scale}));
                     }});
  }
}

void add_places(Tasks& tasks, DType dtype) {
  const Tensor x = cast(rand({64, 128}), dtype);
  const Tensor rows = arange(32) * 7 % 64;
  tasks.push_back({"take", [=] {
                     static_cast<void>(take(x, rows));
                     static_cast<void>(scatter_add(take(x, rows), rows, 64));
                     static_cast<void>(one_hot(rows, 64, dtype));
                   }});
  tasks.push_back({"concat", [=] {
                     static_cast<void>(concat({x, x}));
                     static_cast<void>(concat({x, x}, 1));
                     static_cast<void>(stack({x, x}));
                     static_cast<void>(copy(transpose(x)));
                   }});
  tasks.push_back({"create", [=] {
                     static_cast<void>(full({4096}, 1.0, dtype));
                     const DType drawn = dtype == f64 ? f64 : f32;  // none is drawn in 16 bits
                     static_cast<void>(rand({4096}, drawn));
                     static_cast<void>(randn({4096}, drawn));
                     static_cast<void>(arange(4096));
                   }});
}

/// Steps of a perceptron of two layers, three of them: the kernels of ops that are made of others
/// are compiled when they are wanted again.
template <class Optimizer>
void add_step(Tasks& tasks, const char* name, DType dtype) {
  for (const int64_t batch : {32, 64, 100, 128, 256, 1000}) {
    tasks.push_back({fmt::format("a step of {} with a batch of {}", name, batch), [=] {
                       const auto layers = std::tuple(nn::linear(784, 128, {.dtype = dtype}),
                                                      nn::linear(128, 10, {.dtype = dtype}));
                       const auto& [hidden, out] = layers;
                       const Optimizer optimizer(nn::parameters(layers));
                       const Tensor x = cast(rand({batch, 784}), dtype);
                       const Tensor classes = arange(batch) % 10;
                       for (int step = 0; step < 3; ++step) {
                         optimizer.zero_grad();
                         const Tensor loss = nn::cross_entropy(out(relu(hidden(x))), classes);
                         loss.backward();
                         optimizer.step();
                       }
                     }});
  }
}

Tasks tasks_of(DType dtype, Device device) {
  if (device.kind == Device::Kind::cpu) return training_tasks(dtype);
  Tasks tasks;
  add_elementwise(tasks, dtype);
  add_rows(tasks, dtype);
  add_places(tasks, dtype);
  add_step<nn::Sgd>(tasks, "Sgd", dtype);
  add_step<nn::Adam>(tasks, "Adam", dtype);
  add_step<nn::AdamW>(tasks, "AdamW", dtype);
  return tasks;
}

/// Runs them on some threads, since a compiler uses one; returns how many failed.
int run_all(const Tasks& tasks, int threads) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::size_t done = 0;
  int failed = 0;
  const bool shows_progress = isatty(STDERR_FILENO) != 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      std::string failure;
      // Tasks draw from one generator: a step that another drew beside is to be called again.
      for (int attempt = 0; attempt < 5; ++attempt) {
        failure.clear();
        try {
          tasks[i].run();
          break;
        } catch (const std::exception& error) {
          failure = error.what();
        }
      }
      const std::lock_guard lock(mutex);
      ++done;
      if (shows_progress)
        fmt::print(stderr, "\r[{}/{}] {}\x1b[K", done, tasks.size(), tasks[i].name);
      if (failure.empty()) continue;
      ++failed;
      fmt::print(stderr, "{}{}: {}\n", shows_progress ? "\r\x1b[K" : "", tasks[i].name, failure);
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  if (shows_progress) fmt::print(stderr, "\r\x1b[K");
  return failed;
}

/// The first GPU, or a message with what is missing.
Device first_gpu() {
  std::string missing;
  for (const DeviceInfo& info : devices()) {
    if (info.device.kind != Device::Kind::cuda) continue;
    if (info.missing.empty()) return info.device;
    missing += fmt::format("\n  {}: {}", describe(info.device), info.missing);
  }
  throw std::runtime_error("no GPU can be used (--device cpu:0: the processor):" + missing);
}

struct Options {
  std::string device, only, isas;
  std::vector<std::string> dtypes = {"float32"};
  int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
};

int run(const Options& options) {
  if (!options.isas.empty() && ::setenv("NITINOL_KEEP_FOR", options.isas.c_str(), 1) != 0)
    throw std::runtime_error("the environment cannot be changed");
  const std::optional<Device> named = device_named(options.device);
  if (!options.device.empty() && !named)
    throw std::runtime_error(fmt::format("'{}' is no device, as cuda:0 is", options.device));
  const Device device = named ? *named : first_gpu();
  set_default_device(device);
  Tasks tasks;
  for (const std::string& name : options.dtypes) {
    const std::optional<DType> dtype = dtype_named(name);
    if (!dtype || !is_floating(*dtype))
      throw std::runtime_error(fmt::format("'{}' is no floating dtype, as float32 is", name));
    for (Task& task : tasks_of(*dtype, device)) {
      if (task.name.starts_with(options.only)) tasks.push_back(std::move(task));
    }
  }
  if (tasks.empty())
    throw std::runtime_error(fmt::format("nothing begins with '{}' for {}", options.only,
                                         fmt::join(options.dtypes, ", ")));
  const char* const kept = std::getenv("NITINOL_CACHE");
  if (kept != nullptr && std::string(kept) == "0")
    throw std::runtime_error("NITINOL_CACHE is 0, so that nothing would be kept");
  const auto begin = std::chrono::steady_clock::now();
  const int failed = run_all(tasks, options.threads);
  synchronize(device);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("{} of {} done on {} in {:.1f} s.\n", tasks.size() - static_cast<std::size_t>(failed),
             tasks.size(), describe(device), seconds.count());
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Compiles what programs use, and keeps it for other processes.");
  app.add_option("--device", options.device, "cuda:0, cpu:0; the first GPU unless given");
  app.add_option("--dtypes", options.dtypes, "float32, float16, bfloat16, float64")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--for", options.isas,
                 "instruction sets to keep code of the processor for, beside its own: "
                 "baseline,avx2,avx512");
  app.add_option("--only", options.only, "what begins with this: softmax, a step");
  app.add_option("--threads", options.threads, "that compile side by side")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
