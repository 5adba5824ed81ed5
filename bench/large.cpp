// What a GPU is for: rows of 64 MB and more, so that no cache holds them, in f32 and bf16. A host
// computes them if they are asked for by name.
#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace nitinol::bench {

namespace {

/// Elements of the operands; few where all is only to be seen to run.
int64_t count_of(const Timer& timer) {
  return timer.is_quick() ? 1 << 12 : 1 << 26;
}

double bytes_of(DType dtype, int64_t elements) {
  return static_cast<double>(size_of(dtype)) * static_cast<double>(elements);
}

std::string named(const char* function, DType dtype, int64_t size) {
  return fmt::format("large.{}.{}.{}", function, dtype == bf16 ? "bf16" : "f32", size);
}

/// Along rows of so many elements: forward, and forward and backward.
void along_rows(Timer& timer, DType dtype, int64_t columns) {
  const auto wants = [&](const char* function) {
    return timer.wants_large(named(function, dtype, columns));
  };
  const bool wants_any = wants("softmax") || wants("softmax-grad") || wants("norm") ||
                         wants("norm-grad") || wants("entropy") || wants("entropy-grad");
  if (!wants_any) return;
  const int64_t rows = timer.is_quick() ? 4 : count_of(timer) / columns;
  const double array = bytes_of(dtype, rows * columns);
  const Tensor x = normal(0, {rows, columns}).to(dtype);
  const Tensor seed = normal(1, {rows, columns}).to(dtype);
  const Tensor scale = normal(2, {columns}).to(dtype), bias = normal(3, {columns}).to(dtype);
  const Tensor classes = arange(rows) * 7919 % columns;
  const auto softmax_of = [](const Tensor& v) -> Tensor { return softmax(v, -1); };
  const auto norm_of = [](const Tensor& v, const Tensor& g, const Tensor& b) -> Tensor {
    return layer_norm(v, {.weight = g, .bias = b});
  };
  const auto entropy_of = [](const Tensor& v, const Tensor& t) -> Tensor {
    return nn::cross_entropy(v, t);
  };
  time_both(timer, named("softmax", dtype, columns), {.bytes = 2 * array}, softmax_of, x);
  time_both(timer, named("norm", dtype, columns), {.bytes = 2 * array}, norm_of, x, scale, bias);
  time_both(timer, named("entropy", dtype, columns), {.bytes = array}, entropy_of, x, classes);
  time_both(
      timer, named("softmax-grad", dtype, columns), {.bytes = 3 * array},
      [=](const Tensor& v, const Tensor& s) -> Tensor { return vjp(softmax_of, v).second(s); }, x,
      seed);
  time_both(
      timer, named("norm-grad", dtype, columns), {.bytes = 3 * array},
      [=](const Tensor& v, const Tensor& g, const Tensor& b,
          const Tensor& s) -> std::vector<Tensor> {
        const auto f = [&](const std::vector<Tensor>& all) {
          return norm_of(all[0], all[1], all[2]);
        };
        return vjp(f, std::vector<Tensor>{v, g, b}).second(s);
      },
      x, scale, bias, seed);
  time_both(
      timer, named("entropy-grad", dtype, columns), {.bytes = 2 * array},
      [=](const Tensor& v, const Tensor& t) -> Tensor {
        return grad([&](const Tensor& w) -> Tensor { return entropy_of(w, t); })(v);
      },
      x, classes);
}

void whole(Timer& timer) {
  const int64_t n = count_of(timer), columns = timer.is_quick() ? 64 : 1024;
  const double array = bytes_of(f32, n);
  const auto time = [&](const char* name, double bytes, const auto& f) {
    const std::string row = fmt::format("large.{}", name);
    if (timer.wants_large(row))
      time_both(timer, row, {.bytes = bytes}, f, normal(0, {n / columns, columns}));
  };
  time("copy", 2 * array, [](const Tensor& v) -> Tensor { return copy(v); });
  time("sum", array, [](const Tensor& v) -> Tensor { return sum(v); });
  time("mean", array, [](const Tensor& v) -> Tensor { return mean(v, -1); });
  time("var", array, [](const Tensor& v) -> Tensor { return var(v, -1); });
  time("argmax", array, [](const Tensor& v) -> Tensor { return argmax(v, -1); });
  time("columns", array, [](const Tensor& v) -> Tensor { return sum(v, 0); });
  time("cumsum", 2 * array, [](const Tensor& v) -> Tensor { return cumsum(v, -1); });
  time("transpose", 2 * array, [](const Tensor& v) -> Tensor { return copy(transpose(v)); });
  if (timer.wants_large("large.few-columns")) {
    time_both(
        timer, "large.few-columns", {.bytes = 4e6},
        [](const Tensor& v) -> Tensor { return sum(v, 0); }, normal(0, {1000, 1000}));
  }
  if (timer.wants_large("large.W1b.bf16"))
    time_both(timer, "large.W1b.bf16", {.bytes = array}, w1b, normal(0, {n}).to(bf16));
  if (timer.wants_large("large.scatter")) {
    const int64_t words = timer.is_quick() ? 50 : 50'000, width = timer.is_quick() ? 8 : 256;
    const Tensor rows = normal(0, {n / width, width});
    time_both(
        timer, "large.scatter", {.bytes = array + bytes_of(f32, words * width)},
        [words](const Tensor& v, const Tensor& i) -> Tensor { return scatter_add(v, i, words); },
        rows, Tensor(arange(n / width) * 7919 % words));
  }
}

/// A step of Adam alone, over 200 tensors of different sizes, whose gradients are there.
void optimizer_row(Timer& timer) {
  if (!timer.wants_large("large.adam200")) return;
  const auto make = [&] {
    std::vector<Variable> parameters;
    for (int64_t i = 0; i < 200; ++i) {
      const int64_t size = timer.is_quick() ? 8 : 64 << (i % 8);
      parameters.push_back(parameter(normal(static_cast<uint64_t>(i), {size, 64})));
      parameters.back().set_grad(normal(static_cast<uint64_t>(i) + 1000, {size, 64}));
    }
    return parameters;
  };
  const std::vector<Variable> of_eager = make(), of_compiled = make();
  const nn::Adam eager(of_eager), other(of_compiled);
  const auto compiled = compile([&] { other.step(); });
  double elements = 0;
  for (const Variable& p : of_eager) elements += static_cast<double>(p.get().size());
  timer.time("large.adam200", {.bytes = 7 * 4 * elements},
             {{.name = "eager", .call = [&] { eager.step(); }},
              {.name = "compiled", .call = [&] { compiled(); }, .calls_to_settle = 128}});
}

void libraries(Timer& timer) {
  for (const auto& [dtype, n] :
       {std::pair<DType, int64_t>{f32, 4096}, {bf16, 4096}, {bf16, 8192}}) {
    const std::string row = named("matmul", dtype, n);
    if (!timer.wants_large(row)) continue;
    const int64_t size = timer.is_quick() ? 16 : n;
    const double operations = 2.0 * static_cast<double>(size * size) * static_cast<double>(size);
    time_both(
        timer, row, {.flops = operations},
        [](const Tensor& a, const Tensor& b) -> Tensor { return matmul(a, b); },
        normal(0, {size, size}).to(dtype), normal(1, {size, size}).to(dtype));
  }
  for (const DType dtype : {f32, bf16}) {
    const int64_t images = timer.is_quick() ? 1 : 64, size = timer.is_quick() ? 8 : 56;
    const Tensor x = normal(0, {images, 64, size, size}).to(dtype);
    const Tensor weight = normal(1, {64, 64, 3, 3}).to(dtype);
    const auto f = [](const Tensor& v, const Tensor& w) -> Tensor {
      return conv2d(v, w, {.padding = 1});
    };
    const Work work = {.flops = 2.0 * 9 * 64 * static_cast<double>(x.size())};
    if (timer.wants_large(named("conv", dtype, 56)))
      time_both(timer, named("conv", dtype, 56), work, f, x, weight);
    if (!timer.wants_large(named("conv-grad", dtype, 56))) continue;
    time_both(
        timer, named("conv-grad", dtype, 56), {.flops = 3 * work.flops},
        [f](const Tensor& v, const Tensor& w, const Tensor& s) -> std::vector<Tensor> {
          const auto of_both = [&](const std::vector<Tensor>& both) { return f(both[0], both[1]); };
          return vjp(of_both, std::vector<Tensor>{v, w}).second(s);
        },
        x, weight, x);
  }
}

/// Batches that come from the host while a step computes: if copies run beside kernels, both take
/// little more than the longer of the two.
void copies_rows(Timer& timer) {
  if (!timer.wants_large("copies")) return;
  const int64_t width = timer.is_quick() ? 8 : 4096, batch = timer.is_quick() ? 4 : 8192;
  const Tensor images = normal(0, {4 * batch, width}).to(Device{});
  nn::DataLoader loader({images},
                        {.batch = batch, .is_shuffled = false, .device = default_device()});
  const Tensor weight = normal(1, {width, width}), resident = normal(2, {batch, width});
  const auto step = compile([&](const Tensor& x) -> Tensor { return sum(matmul(x, weight)); });
  timer.time("copies", {},
             {{.name = "steps",
               .call =
                   [&] {
                     for (int i = 0; i < 4; ++i) static_cast<void>(step(resident));
                   },
               .calls_to_settle = 16},
              {.name = "copies",
               .call =
                   [&] {
                     for (const nn::Batch& part : loader) static_cast<void>(part);
                   }},
              {.name = "both", .call = [&] {
                 for (const nn::Batch& part : loader) static_cast<void>(step(part[0]));
               }}});
}

}  // namespace

void large_rows(Timer& timer) {
  if (timer.wants_large("large")) {
    whole(timer);
    for (const DType dtype : {f32, bf16}) {
      for (const int64_t columns : {256, 1000, 1024, 4096, 16384, 50257, 65536})
        along_rows(timer, dtype, columns);
    }
    optimizer_row(timer);
    libraries(timer);
  }
  copies_rows(timer);
}

}  // namespace nitinol::bench
