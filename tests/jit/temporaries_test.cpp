// Values that somebody holds when host code looks, and that no call has used after it: they are
// not computed, unless they are used after all.
#include "nitinol.h"
#include "tests/jit/segments.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

bool is_left(const Tensor& tensor) {
  return is_pending(tensor.internals());
}

}  // namespace

TEST_CASE("the temporaries of a look are not computed", "[jit][deferred]") {
  bool is_temporary_left = false, is_result_left = false;
  const auto f = [&](const Tensor& x) {
    const Tensor y = x * 0.5 + 0.5;
    const Tensor difference = y * y - x, error = abs(difference);
    const bool is_large = max(error).item<float>() > 1e9F;
    is_temporary_left = is_left(difference) && is_left(error);
    is_result_left = is_left(y);
    return is_large ? y : y + 1.0;
  };
  const auto g = compile(f);
  const Tensor x = ramp(100);
  for (int i = 0; i < 4; ++i) CHECK(same_bits(g(x), x * 0.5 + 0.5 + 1.0));
  if (!generates()) return;
  CHECK(is_temporary_left);
  CHECK_FALSE(is_result_left);
  CHECK(counts_of(g).plans == 2);
}

TEST_CASE("what is used after a look once is given at it from then on", "[jit][deferred]") {
  bool uses = false, was_left = false;
  const auto f = [&](const Tensor& x) {
    const Tensor y = exp(x), z = y * y;
    if (bool(sum(z) > 1e30)) return y;
    was_left = is_left(z);
    return uses ? z + y : y + 1.0;
  };
  const auto g = compile(f);
  const Tensor x = ramp(33);
  const Tensor y = exp(x), unused = y + 1.0, used = y * y + y;
  for (int i = 0; i < 4; ++i) CHECK(same_bits(g(x), unused));
  if (generates()) CHECK(was_left);
  uses = true;
  for (int i = 0; i < 4; ++i) CHECK(same_bits(g(x), used));
  CHECK_FALSE(was_left);
  const Counts before = counts_of(g);
  for (uses = false; !uses; uses = true) CHECK(same_bits(g(x), unused));
  CHECK(same_bits(g(x), used));
  const Counts warm = counts_of(g) - before;
  CHECK(warm.computed == 0);
  CHECK(warm.plans == 0);
}

TEST_CASE("what is returned or assigned after a look needs one Plan", "[jit][deferred]") {
  const Variable state(ramp(9));
  const auto g = compile([&](const Tensor& x) {
    const Tensor y = tanh(x), z = y * 2.0;
    state.set(z);
    return bool(all(isfinite(y))) ? y : x;
  });
  const Tensor x = ramp(9) * 0.25;
  for (int i = 0; i < 5; ++i) {
    CHECK(same_bits(g(x), tanh(x)));
    CHECK(same_bits(state.get(), tanh(x) * 2.0));
  }
  if (generates()) CHECK(counts_of(g).plans == 1);
}

TEST_CASE("what no call has used becomes the value of a Variable", "[jit][deferred]") {
  const Variable state(ramp(9));
  bool sets = false;
  const auto g = compile([&](const Tensor& x) {
    const Tensor y = tanh(x), z = y * 2.0;
    if (!bool(all(isfinite(y)))) return x;
    if (sets) state.set(z);
    return y;
  });
  const Tensor x = ramp(9) * 0.25;
  for (int i = 0; i < 6; ++i) {
    sets = i > 2;
    CHECK(same_bits(g(x), tanh(x)));
    CHECK(same_bits(state.get(), sets ? tanh(x) * 2.0 : ramp(9)));
  }
}

TEST_CASE("a gradient that is cleared in a call that looks", "[jit][deferred]") {
  const Variable w = parameter(ramp(4));
  const auto g = compile([&](const Tensor& x) {
    w.clear_grad();
    const Tensor loss = sum(square(w * x));
    if (bool(loss > 1e4)) return loss;
    loss.backward();
    return stop_gradient(loss);
  });
  for (int i = 0; i < 6; ++i) {
    const Tensor x = ramp(4) * (i % 2 == 0 ? 1.0 : 1e3);
    (void)g(x);
    REQUIRE(w.grad().is_defined() == (i % 2 == 0));
    if (i % 2 == 0) CHECK(same_bits(w.grad(), 2.0 * (w.get() * x) * x));
  }
}

TEST_CASE("what outlives the call is computed when it ends", "[jit][deferred]") {
  const Variable three = parameter(full({}, 3.0));
  std::vector<Tensor> held;
  bool fails = false;
  const auto g = compile([&](const Tensor& x) {
    const Tensor y = x * three, z = y - 1.0;
    const Tensor view = transpose(reshape(z, {2, -1}), 0, 1), bare = stop_gradient(z);
    const bool is_large = bool(max(y) > 1e9);
    held.insert(held.end(), {z, view, bare, stop_gradient(z)});  // the last: of what is left
    if (fails) throw std::runtime_error("by the user");
    return is_large ? y : y + x;
  });
  const Tensor x = ramp(8), z = x * 3.0 - 1.0, view = transpose(reshape(z, {2, -1}), 0, 1);
  for (int i = 0; i < 8; ++i) {
    held.clear();
    fails = i > 2 && i % 2 == 1;
    if (fails)
      CHECK_THROWS_AS(g(x), std::runtime_error);
    else
      CHECK(same_bits(g(x), x * 3.0 + x));
    REQUIRE(held.size() == 4);
    CHECK(held[0].tracks_gradient());
    for (const Tensor& tensor : held) CHECK_FALSE(is_left(tensor));
    CHECK(same_bits(held[0], z));
    CHECK(same_bits(held[1], view));
    CHECK(same_bits(held[2], z));
    CHECK(same_bits(held[3], z));
  }
}

TEST_CASE("what outlives the call although it failed is computed, if nothing has used it before",
          "[jit][deferred]") {
  std::vector<Tensor> held;
  bool fails = false;
  const auto g = compile([&](const Tensor& x) {
    const Tensor y = x * 3.0, z = y - 1.0;
    if (fails) held.push_back(z);
    const bool is_large = bool(max(y) > 1e9);
    if (fails) throw std::runtime_error("by the user");
    return is_large ? y : y + x;
  });
  const Tensor x = ramp(8);
  for (int i = 0; i < 4; ++i) (void)g(x);
  fails = true;
  CHECK_THROWS_AS(g(x), std::runtime_error);
  REQUIRE(held.size() == 1);
  CHECK_FALSE(is_left(held[0]));
  CHECK(same_bits(held[0], x * 3.0 - 1.0));
}

TEST_CASE("what is left may be an operand of anything, much later", "[jit][deferred]") {
  const auto f = [](const Tensor& x, int way) {
    const Tensor y = x * 0.5, difference = y - 1.0, chosen = cast(argsort(x), i64);
    const Tensor view = slice(difference, 0, {1, 3});
    if (bool(sum(y) > 1e9)) return y;
    if (bool(min(y) > 1e9)) return x;
    if (way == 0) return y + 1.0;
    if (way == 1) return take(x, chosen) + y;         // may fail by what is pending
    if (way == 2) return concat({difference, y}, 0);  // never seen
    if (way == 3) return y * double(difference.at({0}).item<float>());
    if (way == 4) return view * 2.0;
    if (way == 5) return topk(difference, 2).values;
    return stop_gradient(difference) * difference;
  };
  const auto g = compile(f);
  const Tensor x = ramp(6) - 2.0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) REQUIRE(same_bits(g(x, 0), f(x, 0)));
    for (int way = 1; way < 7; ++way) REQUIRE(same_bits(g(x, way), f(x, way)));
  }
}

TEST_CASE("what temporaries were made of is let go at the next look", "[jit][deferred]") {
  bool was_left = false, is_alone = false;
  const auto g = compile([&](const Tensor& x) {
    const Tensor a = x * 2.0;
    if (bool(sum(a) > 1e9)) return a;
    {
      const Tensor b = a + 1.0;
      if (bool(max(b * b) > 1e9)) return x;
      was_left = is_left(b);
    }
    if (bool(sum(x * x) > 1e9)) return x;
    is_alone = is_unique(a.handle());
    return a - 1.0;
  });
  for (int i = 0; i < 4; ++i) CHECK(same_bits(g(ramp(10)), ramp(10) * 2.0 - 1.0));
  CHECK(is_alone);
  if (generates()) CHECK(was_left);
}

TEST_CASE("values are left by few segments at a time", "[jit][deferred]") {
  std::size_t most = 0;
  const auto f = [&](const Tensor& x) {
    std::vector<Tensor> held;
    Tensor y = x + 1.0;
    for (int i = 0; i < 10; ++i) {
      held.push_back(y * y);
      if (bool(sum(held.back() + y) > 1e30)) return x;
      most = std::max(most, static_cast<std::size_t>(std::ranges::count_if(held, is_left)));
      y = y * 0.5;
    }
    return y;
  };
  const auto g = compile(f);
  const Tensor x = ramp(12), expected = f(x);
  for (int i = 0; i < 6; ++i) REQUIRE(same_bits(g(x), expected));
  if (!generates()) return;
  CHECK(most > 0);
  CHECK(most < 5);
}

TEST_CASE("another thread reads what is left while its owner goes on", "[jit][deferred][threads]") {
  bool reads = false;
  const auto f = [&](const Tensor& x) {
    const Tensor y = exp(x) + 1.0, z = y * y, bare = stop_gradient(z);
    const bool is_large = bool(max(y) > 1e9);
    float first = 0, second = 0;
    std::thread reader([&] {
      if (!reads) return;
      first = max(z).item<float>();
      second = sum(transpose(reshape(bare, {1, -1}), 0, 1)).item<float>();
    });
    Tensor w = y;
    for (int i = 0; i < 10; ++i) {
      w = w * 0.5 + y;
      if (bool(sum(w) > 1e9)) w = w + 1.0;
    }
    reader.join();
    return (is_large ? w : w * 2.0) + double(first) + double(second);
  };
  const auto g = compile(f);
  const Tensor x = ramp(11);
  const Tensor without = f(x);
  for (int i = 0; i < 4; ++i) REQUIRE(same_bits(g(x), without));
  reads = true;
  const Tensor with = f(x);
  for (int i = 0; i < 50; ++i) REQUIRE(same_bits(g(x), with));
}

TEST_CASE("loops with temporaries are right whatever their trip count", "[jit][deferred]") {
  const auto f = [](const Tensor& x, float tolerance) {
    Tensor y = x * 0.5 + 0.5;
    while (max(abs(y * y - x)).item<float>() > tolerance * max(x).item<float>())
      y = 0.5 * (y + x / y);
    return y;
  };
  const auto g = compile(f);
  const Tensor x = abs(ramp(50)) + 1.0;
  for (int round = 0; round < 3; ++round) {
    for (const float tolerance : {1e-4F, 1e3F, 1e-2F, 1e-5F})
      REQUIRE(same_bits(g(x, tolerance), f(x, tolerance)));
  }
}
