#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace nitinol::bench {

void scan_rows(Timer& timer) {
  if (!timer.wants("scan")) return;
  constexpr int64_t rows = 4096, columns = 1024;
  const Tensor x = normal(0, {rows, columns});
  const Work moved{.bytes = 8.0 * rows * columns};
  const auto along_rows = [](const Tensor& v) -> Tensor { return cumsum(v, -1); };
  const auto along_columns = [](const Tensor& v) -> Tensor { return cumsum(v, 0); };
  time_both(timer, "scan.rows", moved, along_rows, x);
  time_both(timer, "scan.columns", moved, along_columns, x);
  time_both(timer, "scan.long", moved, along_rows, reshape(x, {rows * columns}));
}

void reduction_rows(Timer& timer) {
  if (!timer.wants("W2")) return;
  constexpr int64_t rows = 4096, columns = 1024;
  const Tensor x = normal(0, {rows, columns});
  const Tensor scale = normal(1, {columns}), bias = normal(2, {columns});
  const Work read{.bytes = 4.0 * rows * columns};
  const Work read_and_write{.bytes = 8.0 * rows * columns};
  const auto sum_all = [](const Tensor& v) -> Tensor { return sum(v); };
  const auto mean_rows = [](const Tensor& v) -> Tensor { return mean(v, -1); };
  const auto softmax_rows = [](const Tensor& v) -> Tensor { return softmax(v, -1); };
  const auto norm_rows = [](const Tensor& v, const Tensor& g, const Tensor& b) -> Tensor {
    return layer_norm(v, {.weight = g, .bias = b});
  };
  const auto var_rows = [](const Tensor& v) -> Tensor { return var(v, -1); };
  const auto argmax_rows = [](const Tensor& v) -> Tensor { return argmax(v, -1); };
  time_both(timer, "W2.sum", read, sum_all, x);
  time_both(timer, "W2.mean", read, mean_rows, x);
  time_both(timer, "W2.softmax", read_and_write, softmax_rows, x);
  time_both(timer, "W2.layernorm", read_and_write, norm_rows, x, scale, bias);
  time_both(timer, "W2.var", read, var_rows, x);
  time_both(timer, "W2.argmax", read, argmax_rows, x);
}

void axis_rows(Timer& timer) {
  if (!timer.wants("axis")) return;
  const Tensor numbers = normal(0, {512, 1024});
  const auto time = [&](const char* name, const auto& f) {
    for (const DType dtype : {f32, bf16, i8}) {
      const Tensor x = cast(numbers * 3, dtype);
      const Work read{.bytes = static_cast<double>(x.size()) * static_cast<double>(size_of(dtype))};
      for (const int64_t axis : {0, 1}) {
        const std::string row = fmt::format("axis.{}.{}.{}", name, name_of(dtype), axis);
        time_both(
            timer, row, read, [&](const Tensor& v) -> Tensor { return f(v, axis); }, x);
      }
    }
  };
  time("sum", [](const Tensor& v, int64_t axis) { return sum(v, axis); });
  time("prod", [](const Tensor& v, int64_t axis) { return prod(v, axis); });
  time("max", [](const Tensor& v, int64_t axis) { return max(v, axis); });
  time("argmax", [](const Tensor& v, int64_t axis) { return argmax(v, axis); });
}

void image_rows(Timer& timer) {
  if (!timer.wants("images")) return;
  const Tensor first = normal(0, {16, 64, 56, 56});
  const Tensor last = permute(copy(permute(first, {0, 2, 3, 1})), {0, 3, 1, 2});
  const Work read{.bytes = 4.0 * static_cast<double>(first.size())};
  const auto time = [&](const std::string& name, const auto& f) {
    time_both(timer, "images." + name + ".first", read, f, first);
    time_both(timer, "images." + name + ".last", read, f, last);
  };
  time("mean", [](const Tensor& v) -> Tensor { return mean(v, {2, 3}); });
  time("relu_mean", [](const Tensor& v) -> Tensor { return mean(relu(v), {2, 3}); });
  time("channels", [](const Tensor& v) -> Tensor { return mean(v, {0, 2, 3}); });
  time("variance", [](const Tensor& v) -> Tensor { return var(v, {0, 2, 3}); });
}

void short_rows(Timer& timer) {
  if (!timer.wants("short")) return;
  constexpr int64_t points = 100'000;
  const auto time_against = [&](const std::string& name, int64_t length, const auto& along,
                                const auto& across) {
    const Tensor x = normal(0, {points / length, length});
    const Work read{.bytes = 4.0 * points};
    const std::string row = fmt::format("short.{}{}", name, length);
    time_both(
        timer, row, read, [along](const Tensor& v) -> Tensor { return along(v, -1); }, x);
    time_both(
        timer, row + ".across", read, [across](const Tensor& v) -> Tensor { return across(v, 0); },
        copy(transpose(x)));
  };
  const auto time = [&](const std::string& name, int64_t length, const auto& f) {
    time_against(name, length, f, f);
  };
  const auto sum_of_chain = [](const Tensor& v, int64_t axis) {
    return sum(tanh(v) * 2 + 1, {axis});
  };
  const auto norm = [](const Tensor& v, int64_t axis) {
    const Tensor middle = v - mean(v, {axis}, keepdims);
    return middle * rsqrt(mean(middle * middle, {axis}, keepdims) + 1e-5);
  };
  const auto layer_norm_written_out = [](const Tensor& v, int64_t axis) {
    const Tensor middle = v - mean(v, {axis}, keepdims);
    const Tensor total = cast(sum(middle, {axis}, keepdims), f64);
    const Tensor squares = cast(sum(middle * middle, {axis}, keepdims), f64);
    const auto count = static_cast<double>(v.shape()[static_cast<int>(axis)]);
    const Tensor shift = total / count, variance = (squares - shift * total) / count;
    const Tensor scale = rsqrt(where(variance < 0, 0, variance) + 1e-5);
    return (middle - cast(shift, f32)) * cast(scale, f32);
  };
  const auto softmax_of = [](const Tensor& v, int64_t axis) { return softmax(v, axis); };
  for (const int64_t length : {2, 3, 4, 8, 16, 24, 31}) time("", length, sum_of_chain);
  for (const int64_t length : {8, 16}) {
    time("softmax.", length, softmax_of);
    time("norm.", length, norm);
    time_against(
        "layer_norm.", length, [](const Tensor& v, int64_t) { return layer_norm(v); },
        layer_norm_written_out);
  }
}

void gradient_rows(Timer& timer) {
  const auto time = [&timer](const char* name, const Shape& shape, int axis, const auto& f) {
    const std::string row = fmt::format("grad.{}", name);
    if (!timer.wants(row)) return;
    const Tensor x = normal(0, shape), seed = normal(1, shape);
    const Tensor scale = normal(2, {shape[axis]}), bias = normal(3, {shape[axis]});
    const auto gradients = [&f](const Tensor& v, const Tensor& g, const Tensor& b,
                                const Tensor& s) {
      return vjp(f, std::vector<Tensor>{v, g, b}).second(s);
    };
    const double array = 4.0 * static_cast<double>(x.size());
    time_both(timer, row, {.bytes = 3 * array}, gradients, x, scale, bias, seed);
  };
  time("softmax", {1024, 768}, 1,
       [](const std::vector<Tensor>& v) -> Tensor { return softmax(v[0] * v[1] + v[2], -1); });
  time("layer_norm", {1024, 768}, 1, [](const std::vector<Tensor>& v) -> Tensor {
    return layer_norm(v[0], {.weight = v[1], .bias = v[2]});
  });
  time("rms_norm", {1024, 768}, 1, [](const std::vector<Tensor>& v) -> Tensor {
    return rms_norm(v[0], {.weight = v[1]}) + v[2];
  });
  time("group_norm", {32, 64, 28, 28}, 1, [](const std::vector<Tensor>& v) -> Tensor {
    return group_norm(v[0], 8, {.weight = v[1], .bias = v[2]});
  });
  time("batch_norm", {32, 64, 28, 28}, 1, [](const std::vector<Tensor>& v) -> Tensor {
    return batch_norm(v[0], {.weight = v[1], .bias = v[2]}).values;
  });
}

}  // namespace nitinol::bench
