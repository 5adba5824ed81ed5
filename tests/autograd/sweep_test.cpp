// Sweep: one pass over the tape, with what it visits, where it ends, and in which order it adds.
#include "autograd/sweep.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace nitinol;
using autograd::Arguments;
using autograd::node_of;
using autograd::Sweep;

namespace {

// Not a constant: the default device is chosen after those are made.
Tensor x0() {
  return tensor({1.0, -2.0, 3.0});
}

/// x to itself, counting how often its gradient is asked for.
auto counted(int& count) {
  return custom_gradient([&count](const Tensor& x) {
    return std::pair(x * 1.0, [&count](const Tensor& g) {
      ++count;
      return g;
    });
  });
}

void sweep_from(Sweep& sweep, const Tensor& y) {
  sweep.add(y.internals().gradient, ones(y.shape(), y.dtype()));
  sweep.run();
}

}  // namespace

TEST_CASE("a node is visited once, with all of its gradient", "[autograd]") {
  Arguments arguments;
  const Tensor x = arguments.add(x0());
  int visits = 0;
  const Tensor shared = counted(visits)(x * 2.0);
  const Tensor y = sum(shared * shared + shared);
  const std::vector<const autograd::Node*> ends = {node_of(x)};
  Sweep sweep({});
  sweep.end_at(ends);
  sweep_from(sweep, y);
  CHECK(visits == 1);
  CHECK(same_bits(sweep.at(node_of(x)), (x0() * 2.0 + x0() * 2.0 + 1.0) * 2.0));
}

TEST_CASE("gradients of one value are added in the order in which they arrive", "[autograd]") {
  // Backward goes from the youngest use to the oldest.
  const Variable w = parameter(tensor(1.0F));
  const Tensor v = w;
  const Tensor oldest = v * -1e8F;
  const Tensor middle = v * 1.0F;
  const Tensor youngest = v * 1e8F;
  Sweep sweep({});
  sweep_from(sweep, oldest + middle + youngest);
  REQUIRE(sweep.variables().size() == 1);
  CHECK(sweep.variables()[0].second.item<float>() == 0);  // 1e8 + 1 is 1e8
  const Tensor first = v * 1.0F;
  const Tensor second = v * -1e8F;
  const Tensor third = v * 1e8F;
  Sweep other({});
  sweep_from(other, first + second + third);
  CHECK(other.variables()[0].second.item<float>() == 1);
}

TEST_CASE("Variables are listed in the order in which gradients arrive", "[autograd]") {
  const Variable a = parameter(tensor(2.0));
  const Variable b = parameter(tensor(3.0));
  const Variable c = parameter(tensor(5.0));
  const Tensor first = a * b;
  Sweep sweep({});
  sweep_from(sweep, first * c);
  REQUIRE(sweep.variables().size() == 3);
  CHECK(sweep.variables()[0].first == c);  // the youngest use
  CHECK(sweep.variables()[0].second.item<double>() == 6);
  CHECK(sweep.variables()[1].first == a);
  CHECK(sweep.variables()[1].second.item<double>() == 15);
  CHECK(sweep.variables()[2].first == b);
  CHECK(sweep.variables()[2].second.item<double>() == 10);
}

TEST_CASE("end_at does not go beyond, stop_at visits only what leads there", "[autograd]") {
  Arguments outer;
  const Tensor far = outer.add(x0());
  int beyond = 0;
  const Tensor given = counted(beyond)(far) * 1.0;
  Arguments inner;
  const Tensor near = inner.add(given);
  int beside = 0;
  const Tensor other = counted(beside)(far);
  const Tensor y = sum(near * other);
  const std::vector<const autograd::Node*> ends = {node_of(near)};
  SECTION("end_at") {
    Sweep sweep({});
    sweep.end_at(ends);
    sweep_from(sweep, y);
    CHECK(same_bits(sweep.at(node_of(near)), x0()));
    CHECK(beyond == 0);
    CHECK(beside == 1);
  }
  SECTION("stop_at") {
    Sweep sweep({});
    sweep.stop_at(ends);
    sweep_from(sweep, y);
    CHECK(same_bits(sweep.at(node_of(near)), x0()));
    CHECK(beyond == 0);
    CHECK(beside == 0);
  }
}

TEST_CASE("a tape is let go as it is swept, unless it is to be kept", "[autograd]") {
  const Variable w = parameter(x0());
  const Tensor y = sum(square(w.get()));
  for (int i = 0; i < 2; ++i) {
    Sweep keeping({.keeps_tape = true});
    sweep_from(keeping, y);
    CHECK(same_bits(keeping.variables()[0].second, x0() * 2.0));
  }
  Sweep last({});
  sweep_from(last, y);
  Sweep late({});
  CHECK_THROWS_WITH(sweep_from(late, y), Catch::Contains("was freed by an earlier backward()"));
}

TEST_CASE("parts are listed as they arrive, not added", "[autograd]") {
  Arguments arguments;
  const Tensor x = arguments.add(tensor(2.0));
  const Variable w = parameter(tensor(3.0));
  const Tensor older = x * 10.0;
  const Tensor younger = w.get() * x;
  const Tensor y = older + younger;
  const std::vector<const autograd::Node*> ends = {node_of(x)};
  Sweep sweep({.keeps_parts = true});
  sweep.end_at(ends);
  sweep_from(sweep, y);
  REQUIRE(sweep.parts().size() == 3);
  CHECK(sweep.variables().empty());
  CHECK(sweep.parts()[0].variable == w);
  CHECK(sweep.parts()[0].node == nullptr);
  CHECK(sweep.parts()[0].gradient.item<double>() == 2);
  CHECK(sweep.parts()[1].node == node_of(x));
  CHECK(sweep.parts()[1].gradient.item<double>() == 3);
  CHECK(sweep.parts()[2].gradient.item<double>() == 10);
}

TEST_CASE("slices that lie apart are one part of the list", "[autograd][gathered]") {
  Arguments arguments;
  const Tensor x = arguments.add(x0());
  const Variable w = parameter(x0());
  const Tensor v = w.get();
  Tensor y = x[0] * 2.0;  // backward comes from the last one
  y = y + v[2] * 3.0;
  y = y + x[2] * 4.0;
  y = y + v[1] * 5.0;
  y = y + sum(v);
  y = y + x[0] * 6.0;
  y = y + v[0] * 7.0;
  const std::vector<const autograd::Node*> ends = {node_of(x)};
  Sweep sweep({.keeps_parts = true});
  sweep.end_at(ends);
  sweep_from(sweep, y);
  const std::vector<Sweep::Part>& parts = sweep.parts();
  REQUIRE(parts.size() == 5);
  const auto check = [&](std::size_t i, const Tensor& gradient) {
    INFO(i);
    CHECK((parts[i].node == nullptr) == (parts[i].variable == w));
    CHECK(same_bits(parts[i].gradient, gradient));
  };
  check(0, tensor({7.0, 0.0, 0.0}));
  check(1, tensor({6.0, 0.0, 4.0}));
  check(2, tensor({1.0, 1.0, 1.0}));  // not a slice
  check(3, tensor({0.0, 5.0, 3.0}));
  check(4, tensor({2.0, 0.0, 0.0}));  // x[0] again
}

TEST_CASE("gradients are differentiable if the sweep builds a tape", "[autograd]") {
  Arguments arguments;
  const Tensor x = arguments.add(x0());
  const std::vector<const autograd::Node*> ends = {node_of(x)};
  for (const bool builds : {false, true}) {
    Sweep sweep({.keeps_tape = true, .builds_tape = builds});
    sweep.end_at(ends);
    sweep_from(sweep, sum(x * x * x));
    CHECK(sweep.at(node_of(x)).tracks_gradient() == builds);
  }
}

TEST_CASE("a gradient takes its operand's shape and dtype", "[autograd]") {
  const Tensor g = reshape(arange(24, f64), {2, 3, 4});
  const auto reduced = [&](DType dtype, const Shape& shape) {
    return autograd::reduced_to(g,
                                {.dtype = dtype, .shape = shape, .is_weak = false, .device = {}});
  };
  CHECK(same_bits(reduced(f64, {2, 3, 4}), g));
  CHECK(same_bits(reduced(f64, {4}), sum(g, {0, 1})));
  CHECK(same_bits(reduced(f64, {3, 1}), sum(sum(g, 0), 1, keepdims)));
  CHECK(same_bits(reduced(f32, {}), cast(sum(g), f32)));
  CHECK(same_bits(autograd::reduced_to(tensor(2.0), full({2}, 2.0, f64).spec()),
                  full({2}, 2.0, f64)));
}

TEST_CASE("a result depends on more if something outside the leaves is tracked", "[autograd]") {
  Arguments arguments;
  const Tensor x = arguments.add(x0());
  const Variable w = parameter(x0());
  const std::vector<const autograd::Node*> leaves = {node_of(x)};
  CHECK_FALSE(autograd::depends_on_more(x * x, leaves));
  CHECK(autograd::depends_on_more(x * w, leaves));
  CHECK_FALSE(autograd::depends_on_more(x * stop_gradient(w), leaves));
}

TEST_CASE("threads go back along one tape at once", "[autograd]") {
  const Variable p = parameter(ones({8, 8}));
  std::atomic<int> others = 0;  // errors; Catch itself is not for several threads
  for (int i = 0; i < 300; ++i) {
    Tensor shared = p.get();
    for (int k = 0; k < 20; ++k) shared = tanh(shared * 1.5);
    const Tensor y = sum(shared);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        try {
          t == 0 ? sum(shared * 2.0).backward() : y.backward();
        } catch (const Error& error) {  // another was first
          if (error.message().find("freed by an earlier backward()") == std::string::npos) ++others;
        }
      });
    }
  }
  CHECK(others == 0);
  CHECK(p.grad().is_defined());
}
