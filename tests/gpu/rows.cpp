#include "tests/gpu/rows.h"

#include "backends/cpu/device.h"
#include "backends/cuda/device.h"
#include "backends/host/host_memory.h"
#include "bench/functions.h"
#include "core/backend.h"
#include "core/library.h"
#include "nitinol.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

namespace nitinol::test {
namespace {

constexpr Device capturing_device = {.kind = Device::Kind::reference, .index = 3};

/// Where launches are noted while it is not null.
std::vector<RowLaunch>* captured = nullptr;

class CapturingExecutable final : public Executable {
 public:
  CapturingExecutable(const Kernel& kernel, std::unique_ptr<Executable> inner)
      : kernel_(kernel), inner_(std::move(inner)) {}
  void launch(const Launch& launch) const override {
    inner_->launch(launch);
    if (captured == nullptr) return;
    const auto copied = [](const auto& list) { return std::vector(list.begin(), list.end()); };
    captured->push_back({.kernel = kernel_,
                         .sizes = copied(launch.sizes),
                         .strides = copied(launch.strides),
                         .offsets = copied(launch.offsets),
                         .scalars = copied(launch.scalars),
                         .buffers = copied(launch.buffers)});
  }
  [[nodiscard]] BuildReport report() const override { return inner_->report(); }

 private:
  const Kernel kernel_;
  const std::unique_ptr<Executable> inner_;
};

class CapturingBackend final : public host::HostMemoryBackend {
 public:
  [[nodiscard]] Device device() const override { return capturing_device; }
  [[nodiscard]] std::string description() const override { return "notes launches"; }
  std::unique_ptr<Executable> prepare(const Step& step) override {
    std::unique_ptr<Executable> inner = cpu::device().prepare(step);
    if (const auto* const kernel = std::get_if<Kernel>(&step))
      return std::make_unique<CapturingExecutable>(*kernel, std::move(inner));
    return inner;
  }
  bool can_generate_code() override { return true; }
  [[nodiscard]] DeviceLimits limits() const override { return cuda::limits(); }
};

double bytes_of(const RowLaunch& launch) {
  double bytes = 0;
  for (std::size_t k = 0; k < launch.kernel.operands.size(); ++k) {
    const Role role = launch.kernel.operands[k].role;
    if (role != Role::input && role != Role::output) continue;
    const Reach reach = reach_of(launch.kernel, launch.launch(launch.buffers), k);
    bytes += static_cast<double>(reach.high - reach.low);
  }
  return bytes;
}

class Rows {
 public:
  Rows(const std::vector<std::string>& names, const std::function<void(const Row&)>& take)
      : names_(names), take_(take) {}

  /// Whether some row is wanted whose name begins so.
  [[nodiscard]] bool wants(const std::string& name) const {
    return names_.empty() || std::ranges::any_of(names_, [&](const std::string& prefix) {
             return name.starts_with(prefix) || prefix.starts_with(name);
           });
  }

  template <class F, class... A>
  void add(const std::string& name, const F& function, const A&... arguments) {
    if (!wants(name)) return;
    const auto compiled = compile(function);
    // The fourth is recorded again, op by op, to compare; the fifth runs the Plan.
    for (int call = 0; call < 4; ++call) static_cast<void>(compiled(arguments...));
    Row row = {.name = name, .launches = {}};
    captured = &row.launches;
    const auto results = compiled(arguments...);
    captured = nullptr;
    for (const RowLaunch& launch : row.launches) row.bytes += bytes_of(launch);
    take_(row);
  }

 private:
  const std::vector<std::string>& names_;
  const std::function<void(const Row&)>& take_;
};

void add_elementwise(Rows& rows) {
  using namespace bench;
  if (!rows.wants("W1")) return;
  constexpr int64_t n = int64_t{1} << 24;
  const Tensor x = normal(0, {n}), a = normal(1, {n}), b = normal(2, {n}), c = normal(3, {n});
  const Market market(n);
  const auto gelu = [](const Tensor& v) { return w1b(v); };
  const auto polynomial = [](const Tensor& p, const Tensor& q, const Tensor& r, const Tensor& s) {
    return w1a(p, q, r, s);
  };
  rows.add("W1a", polynomial, x, a, b, c);
  rows.add("W1b", gelu, x);
  rows.add(
      "W1c", [](const Tensor& v) { return w1c(v); }, x);
  rows.add(
      "W1d", [](const Tensor& s, const Tensor& k, const Tensor& t) { return w1d(s, k, t); },
      market.s, market.k, market.t);
  for (const DType dtype : {bf16, f16}) {
    const auto cut = [dtype](const Tensor& v) -> Tensor { return cast(v, dtype); };
    const std::string suffix = dtype == bf16 ? ".bf16" : ".f16";
    rows.add("W1a" + suffix, polynomial, cut(x), cut(a), cut(b), cut(c));
    rows.add("W1b" + suffix, gelu, cut(x));
    rows.add(
        "W1c" + suffix, [](const Tensor& v) { return w1c(v); }, cut(x));
    rows.add(
        "W1d" + suffix,
        [](const Tensor& s, const Tensor& k, const Tensor& t) { return w1d(s, k, t); },
        cut(market.s), cut(market.k), cut(market.t));
  }
}

void add_reductions(Rows& rows) {
  using bench::normal;
  const auto columns = [](const Tensor& v) -> Tensor { return sum(v, 0); };
  rows.add("columns.1000x1000", columns, normal(3, {1000, 1000}));
  rows.add("columns.32x128", columns, normal(3, {32, 128}));
  if (rows.wants("take.rows")) {
    rows.add(
        "take.rows", [](const Tensor& v, const Tensor& i) -> Tensor { return take(v, i, 0); },
        normal(4, {50000, 256}), Tensor(arange(32768) * 7919 % 50000));
  }
  if (rows.wants("transpose")) {
    const auto transposed = [](const Tensor& v) -> Tensor { return copy(transpose(v)) * 2; };
    const Tensor square = normal(5, {2048, 2048});
    rows.add("transpose.f32", transposed, square);
    rows.add("transpose.bf16", transposed, cast(square, bf16));
  }
  for (const int64_t length : {4096, 5000, 16384, 32768, 40000}) {
    const std::string suffix = fmt::format(".{}", length);
    if (!rows.wants("softmax" + suffix) && !rows.wants("norm" + suffix)) continue;
    const Tensor x = normal(6, {512, length});
    const auto of_rows = [](const Tensor& v) -> Tensor { return softmax(v, -1); };
    rows.add("softmax" + suffix, of_rows, x);
    rows.add("softmax.bf16" + suffix, of_rows, cast(x, bf16));
    rows.add(
        "norm" + suffix, [](const Tensor& v) -> Tensor { return layer_norm(v); }, x);
  }
  if (!rows.wants("W2")) return;
  const Tensor x = normal(0, {4096, 1024});
  const Tensor scale = normal(1, {1024}), bias = normal(2, {1024});
  rows.add(
      "W2.sum", [](const Tensor& v) -> Tensor { return sum(v); }, x);
  rows.add(
      "W2.mean", [](const Tensor& v) -> Tensor { return mean(v, -1); }, x);
  rows.add(
      "W2.softmax", [](const Tensor& v) -> Tensor { return softmax(v, -1); }, x);
  rows.add(
      "W2.layernorm",
      [](const Tensor& v, const Tensor& g, const Tensor& b) -> Tensor {
        return layer_norm(v, {.weight = g, .bias = b});
      },
      x, scale, bias);
  for (const DType dtype : {f32, bf16}) {
    rows.add(
        dtype == f32 ? "W2.layernorm-grad" : "W2.layernorm-grad.bf16",
        [](const Tensor& v, const Tensor& g, const Tensor& b,
           const Tensor& s) -> std::vector<Tensor> {
          const auto f = [](const std::vector<Tensor>& all) -> Tensor {
            return layer_norm(all[0], {.weight = all[1], .bias = all[2]});
          };
          return vjp(f, std::vector<Tensor>{v, g, b}).second(s);
        },
        cast(x, dtype), cast(scale, dtype), cast(bias, dtype), cast(x * 2, dtype));
  }
  rows.add(
      "W2.var", [](const Tensor& v) -> Tensor { return var(v, -1); }, x);
  rows.add(
      "W2.argmax", [](const Tensor& v) -> Tensor { return argmax(v, -1); }, x);
}

void add_step(Rows& rows) {
  const auto weight = [](uint64_t seed, int64_t in, int64_t out) {
    return parameter(bench::normal(seed, {in, out}) * 0.1);
  };
  const nn::Linear hidden = {.weight = weight(1, 100, 128), .bias = parameter(zeros({128}))};
  const nn::Linear out = {.weight = weight(2, 128, 10), .bias = parameter(zeros({10}))};
  const nn::Adam optimizer(nn::parameters(std::tuple(hidden, out)));
  const auto step = [&](const Tensor& x, const Tensor& classes) -> Tensor {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(out(relu(hidden(x))), classes);
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  };
  rows.add("step", step, bench::normal(3, {32, 100}), Tensor(arange(32) * 7 % 10));
}

void use_capturing_device() {
  static const bool is_added [[maybe_unused]] = (add_backend(*new CapturingBackend), true);
  set_default_device(capturing_device);
}

}  // namespace

Launch RowLaunch::launch(const std::vector<void*>& at) const {
  return {.buffers = at,
          .sizes = sizes,
          .strides = strides,
          .offsets = offsets,
          .scalars = scalars,
          .threads = 1};
}

void for_each_row(const std::vector<std::string>& names,
                  const std::function<void(const Row&)>& take) {
  use_capturing_device();
  Rows rows(names, take);
  add_elementwise(rows);
  add_reductions(rows);
}

void step_row(const std::function<void(const Row&)>& take) {
  use_capturing_device();
  const std::vector<std::string> all;
  Rows rows(all, take);
  add_step(rows);
}

}  // namespace nitinol::test
