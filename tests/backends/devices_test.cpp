// Devices other than the host, by the fenced one (tests/fenced.h): a look at its memory that does
// not wait, or by the host itself, ends the process or gives what was there before.
#include "core/backend.h"
#include "nitinol.h"
#include "tests/fenced.h"
#include "tests/in_child.h"
#include "tests/jit/calls.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <functional>

using namespace nitinol;
using namespace nitinol::test;

namespace {

constexpr Device reference = {.kind = Device::Kind::reference, .index = 0};

/// While it lives, tensors of nothing but numbers lie on the fenced device.
class OnFenced {
 public:
  OnFenced() : before_(default_device()) { set_default_device(fenced_device); }
  OnFenced(const OnFenced&) = delete;
  OnFenced& operator=(const OnFenced&) = delete;
  ~OnFenced() { set_default_device(before_); }

 private:
  Device before_;
};

Tensor numbers(const Shape& shape) {
  const Tensor count = arange(element_count(shape), f32, Device{});
  return reshape(count * 0.25 - 2, shape);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("launches on the fenced device run when something waits", "[devices]") {
  const Tensor x = numbers({3, 5}).to(fenced_device);
  static_cast<void>(x.to_vector<float>());
  const FencedCounts before = fenced_counts();
  const Tensor y = sum(exp(x) * 2 + x, 1);
  CHECK(fenced_counts().done == before.done);
  CHECK(fenced_counts().launches == before.launches + 4);
  const Tensor host = numbers({3, 5});
  CHECK(same_bits(y.to(Device{}), sum(exp(host) * 2 + host, 1)));
  CHECK(fenced_counts().done == fenced_counts().asked);
}

TEST_CASE("nobody reads the fenced device's memory but the device", "[devices]") {
  const Tensor x = numbers({4}).to(fenced_device);
  CHECK(in_child([&] {
          std::signal(SIGSEGV, SIG_DFL);
          return *static_cast<const volatile float*>(x.internals().address()) > 0 ? 1 : 0;
        }) == 128 + SIGSEGV);
}

TEST_CASE("tensors move between devices, gradients the other way", "[devices]") {
  const Tensor x = numbers({2, 3});
  for (const Device from : {Device{}, reference, fenced_device}) {
    for (const Device to : {Device{}, reference, fenced_device}) {
      INFO(from << " to " << to);
      const Tensor there = transpose(x.to(from)).to(to);
      CHECK(there.device() == to);
      CHECK(same_bits(there.to(Device{}), copy(transpose(x))));
    }
  }
  CHECK(x.to(Device{}).handle() == x.handle());
  // What is read of a view that runs backwards begins before its first element.
  const Tensor far = arange(8192, f32, fenced_device);
  CHECK(same_bits(flip(far).to(Device{}), arange(8191, -1, -1, f32)));
  CHECK(same_bits(flip(far).at({Range{8000, 8190, 3}}).get().to(Device{}),
                  flip(arange(8192, f32)).at({Range{8000, 8190, 3}}).get()));
  const Variable w = parameter(x);
  sum(square(w.to(fenced_device)) * 3).backward();
  CHECK(w.grad().device() == Device{});
  CHECK(same_bits(w.grad(), 2 * x * 3));
}

TEST_CASE("operands on two devices are rejected by name", "[devices]") {
  const Tensor x = numbers({3});
  const Tensor y = x.to(fenced_device);
  const std::vector<std::function<Tensor()>> calls = {
      [&] { return x + y; },
      [&] {
        return concat({x, y});
      },
      [&] { return where(x > 0, y, x); },
      [&] { return matmul(x, y); },
      [&] { return take(x, arange(2, i64, fenced_device)); },
      [&] { return y * tensor(2.0F, f32, Device{}); }};
  for (const auto& call : calls) {
    const std::string error = error_of(call);
    INFO(error);
    CHECK(error.starts_with("device"));
    CHECK(has(error, "cpu:0"));
    CHECK(has(error, "reference:1"));
    CHECK(has(error, ".to(device)"));
  }
  const Variable variable(x);
  CHECK(has(error_of([&] {
              variable.set(y);
              return x;
            }),
            "keeps its device"));
  CHECK(has(error_of([&] { return rand_like(y, Generator(1, Device{})); }), "generator"));
  CHECK(has(error_of([&] { return tensor(y.data<float>()); }), "to_vector()"));
}

TEST_CASE("numbers are at home on every device", "[devices]") {
  const Tensor host = numbers({7});
  const Tensor x = host.to(fenced_device);
  const auto formulas = [](const Tensor& t) {
    const Scalar s = 3;
    Tensor u = t * 2;
    u += 1;
    return std::vector<Tensor>{
        u,
        2 / (t + 9),
        pow(t, s),
        maximum(t, 0),
        where(t > 0, t, -1),
        clamp(t, -0.5, s),
        t.to(i32) % 3,
        remainder(t.to(i8), Scalar(5)),
        t * exp(-Scalar(0.5)),
        t + (s + 1) * 2,
        concat({t, full_like(t, s)}),
        cast(t, f16) * 0.1,
    };
  };
  const std::vector<Tensor> there = formulas(x);
  const std::vector<Tensor> here = formulas(host);
  for (std::size_t i = 0; i < here.size(); ++i) {
    INFO(i);
    CHECK(there[i].device() == fenced_device);
    CHECK(same_bits(there[i].to(Device{}), here[i]));
  }
  const Tensor number = Scalar(2.5);
  CHECK((number * 2).item<double>() == 5);
  CHECK(same_bits((x * number).to(Device{}), host * number));
}

TEST_CASE("what is made of numbers alone lies on the default device", "[devices]") {
  const auto make = [] {
    manual_seed(7);
    return std::vector<Tensor>{
        zeros({2, 3}),       ones({2}, f64),     full({3}, 2.5),  tensor({{1, 2}, {3, 4}}),
        arange(5),           linspace(0, 1, 7),  eye(3),          rand({4, 4}),
        randn({3, 5}),       randint(0, 9, {8}), full({}, 3, i8), one_hot(arange(3), 4),
        tensor(Scalar(2.0)), zeros({0, 2})};
  };
  const std::vector<Tensor> here = make();
  const OnFenced scope;
  const std::vector<Tensor> there = make();
  for (std::size_t i = 0; i < here.size(); ++i) {
    INFO(i);
    CHECK(here[i].device() == Device{});
    CHECK(there[i].device() == fenced_device);
    CHECK(same_bits(there[i].to(Device{}), here[i]));
  }
  const Tensor like = numbers({2, 2}).to(reference);
  for (const Tensor& made :
       {zeros_like(like), ones_like(like), full_like(like, 2), rand_like(like)})
    CHECK(made.device() == reference);
}

TEST_CASE("reductions of nothing and of numbers have a device too", "[devices]") {
  const Tensor none = zeros({0, 3}, f32, fenced_device);
  CHECK(same_bits(sum(none, 0).to(Device{}), zeros({3})));
  CHECK(same_bits(prod(none, 0).to(Device{}), ones({3})));
  CHECK(matmul(zeros({2, 0}, f32, fenced_device), none).to_vector<float>() ==
        std::vector<float>(6, 0));
}

TEST_CASE("a function is compiled for each device", "[devices]") {
  const auto f = compile([](const Tensor& x, const Scalar& s) {
    return std::pair{softmax(x * s) + arange(x.shape()[1], f32, x.device()), sum(x, 0) / s};
  });
  CHECK(run_self("", "[.devices]").status == 0);
  for (const Device device : {Device{}, reference, fenced_device}) {
    INFO(device);
    const Tensor x = numbers({4, 6}).to(device);
    const auto [a, b] = settle(f, x, Scalar(2.0));
    CHECK(a.device() == device);
    const auto [c, d] = f(x, Scalar(3.0));
    const Tensor host = numbers({4, 6});
    CHECK(same_bits(a.to(Device{}), softmax(host * 2.0) + arange(6, f32)));
    CHECK(same_bits(d.to(Device{}), sum(host, 0) / 3.0));
  }
  const Explanation explanation = f.explain();
  CHECK(explanation.signatures.size() == 3);
  CHECK(explanation.plan_calls == 3);
}

TEST_CASE("a Plan says what its executables will be launched with", "[devices]") {
  const FencedCounts before = fenced_counts();
  const auto f = compile([](const Tensor& x) { return sum(exp(x), 1); });
  settle(f, numbers({3, 4}).to(fenced_device));
  CHECK(fenced_counts().specialised > before.specialised);
}

TEST_CASE("the default device is part of the signature", "[devices]") {
  const auto f =
      compile([](const Scalar& s) { return arange(4, f32) * s; }, {.check = Check::never});
  CHECK(settle(f, Scalar(2.0)).device() == Device{});
  const OnFenced scope;
  CHECK(settle(f, Scalar(2.0)).device() == fenced_device);
}

TEST_CASE("a function that moves tensors runs eagerly and says so", "[devices]") {
  const auto f = compile([](const Tensor& x) { return (x * 2).to(fenced_device) + 1; });
  const Tensor x = numbers({3});
  for (int i = 0; i < 4; ++i) CHECK(same_bits(f(x).to(Device{}), x * 2 + 1));
  CHECK(has(to_string(f.explain()), "moves a tensor float32[3] from cpu:0 to reference:1"));
}

TEST_CASE("checks fail where they are, compiled or not", "[devices]") {
  const auto look_up = [](const Tensor& table, const Tensor& rows) {
    return sum(take(table, rows) * 2, 1);
  };
  const Tensor table = numbers({5, 2}).to(fenced_device);
  const Tensor good = tensor({1, 4}, i64, fenced_device);
  const Tensor bad = tensor({1, 5}, i64, fenced_device);
  const std::string eager = error_of([&] { return look_up(table, bad); });
  CHECK(has(eager, "5"));
  const auto f = compile(look_up, {.check = Check::never});
  settle(f, table, good);
  CHECK(error_of([&] { return f(table, bad); }) == eager);
  CHECK(f.explain().failed_checks == 1);
  CHECK(same_bits(f(table, good).to(Device{}), look_up(table.to(Device{}), good.to(Device{}))));
  const auto divide = compile([](const Tensor& x, const Scalar& by) { return remainder(x, by); },
                              {.check = Check::never});
  const Tensor integers = arange(6, i32, fenced_device);
  CHECK(same_bits(settle(divide, integers, Scalar(4)).to(Device{}), arange(6, i32) % 4));
  CHECK(error_of([&] { return divide(integers, Scalar(0)); }) ==
        error_of([&] { return remainder(integers, Scalar(0)); }));
}

TEST_CASE("a model trains on another device as on the host", "[devices]") {
  const auto train = [](Device device) {
    manual_seed(3);
    const auto model =
        nn::to(nn::Sequential(nn::linear(3, 8), relu, nn::dropout(0.25), nn::linear(8, 2)), device);
    const nn::Adam optimizer(nn::parameters(model), {.rate = 0.05});
    const auto step = compile([&](const Tensor& x, const Tensor& classes) {
      optimizer.zero_grad();
      const Tensor loss = nn::cross_entropy(model(x), classes);
      loss.backward();
      nn::clip_gradient_norm(nn::parameters(model), 1);
      optimizer.step();
      return loss;
    });
    const Tensor x = numbers({6, 3}).to(device);
    const Tensor classes = (arange(6, i64) % 2).to(device);
    Tensor loss;
    for (int i = 0; i < 6; ++i) loss = step(x, classes);
    CHECK(step.explain().plan_calls > 0);
    return std::pair{loss.to(Device{}), nn::parameters(model)[0].get().to(Device{})};
  };
  // The host's matrix products are a library's; number 0 of the kind has the fenced one's.
  const auto [loss, weight] = train(fenced_device);
  const auto [expected_loss, expected_weight] = train(reference);
  CHECK(same_bits(loss, expected_loss));
  CHECK(same_bits(weight, expected_weight));
}

TEST_CASE("tensors on a device are saved, loaded and printed", "[devices]") {
  const TemporaryFolder folder;
  const Tensor x = numbers({2, 3});
  const Tensor there = transpose(x.to(fenced_device));
  save_npy(folder / "x.npy", there);
  CHECK(same_bits(load_npy(folder / "x.npy"), copy(transpose(x))));
  CHECK(to_string(there) == to_string(transpose(x)));
  const OnFenced scope;
  const Tensor loaded = load_npy(folder / "x.npy");
  CHECK(loaded.device() == fenced_device);
  CHECK(same_bits(loaded.to(Device{}), copy(transpose(x))));
}

TEST_CASE("devices of a process in which no test has added one", "[.devices]") {
  CHECK(std::ranges::count_if(devices(), [](const DeviceInfo& info) {
          return info.device.kind != Device::Kind::cuda;
        }) == 3);
}

TEST_CASE("a device that is not there is named, with those that are", "[devices]") {
  const std::string error = error_of([] {
    set_default_device({.kind = Device::Kind::cpu, .index = 3});
    return 0;
  });
  CHECK(has(error, "cpu:3"));
  CHECK(has(error, "cpu:0, reference:0, reference:1"));
  CHECK(default_device() != Device{.kind = Device::Kind::cpu, .index = 3});
  CHECK(device_named("reference:1") == fenced_device);
  CHECK(device_named("cpu") == Device{});
  for (const char* wrong : {"", "gpu:0", "cuda:x", "cpu:", "cpu:x", "cpu:-1", "cpu:1000", "cpu:0 "})
    CHECK_FALSE(device_named(wrong));
  const std::vector<DeviceInfo> all = devices();
  const auto is_cuda = [](const DeviceInfo& info) {
    return info.device.kind == Device::Kind::cuda;
  };
  CHECK(all[0].device == Device{});
  CHECK(all[0].missing.empty());
  CHECK(has(all[0].description, "threads"));
  for (const DeviceInfo& info : all) {
    if (!is_cuda(info)) continue;
    // One that cannot be used says what was looked for, and so does the error of using it.
    CHECK((info.missing.empty() || has(info.missing, "libcuda.so.1") ||
           has(info.missing, "the driver")));
    if (!info.missing.empty())
      CHECK(has(error_of([&] { return ones({2}, f32, info.device); }), info.missing));
  }
}
