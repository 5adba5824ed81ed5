// Functions that look at data: their host code runs at each call, and what lies between two looks
// by Plans. Bits alone would not show that: the counters do.
#include "tests/jit/segments.h"

#include <catch2/catch.hpp>

#include <limits>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

Tensor newton(const Tensor& x) {
  Tensor y = x * 0.5 + 0.5;
  while (max(abs(y * y - x)).item<float>() > 1e-3F) {
    y = 0.5 * (y + x / y) + 0.0 * tanh(y);
    y = y - (y * y - x) * 0.01 / (y + 1.0);
  }
  return y;
}

}  // namespace

TEST_CASE("both sides of a branch run by Plans", "[jit][deferred]") {
  const auto f = [](const Tensor& x) -> Tensor {
    const Tensor y = tanh(x) * 2.0;
    if (bool(mean(y) > 0.5)) return exp(y) + x;
    return y - x * x;
  };
  check_all_by_plans(f, std::vector{ramp(10) + 5.0, ramp(10) - 5.0, ramp(10) + 9.0});
}

TEST_CASE("a loop runs by the same Plans whatever its trip count", "[jit][deferred]") {
  const auto f = compile([](const Tensor& x, const Tensor& limit) {
    Tensor y = x;
    while (bool(sum(y) < limit)) y = y * 1.5 + 1.0;
    return y;
  });
  const auto plain = [](const Tensor& x, const Tensor& limit) {
    Tensor y = x;
    while (bool(sum(y) < limit)) y = y * 1.5 + 1.0;
    return y;
  };
  const Tensor x = ones({16});
  const auto limit = [](double value) { return tensor(static_cast<float>(value)); };
  for (const double value : {1.0, 40.0, 100.0, 1e4, 1e30, 1.0, 1e3})
    CHECK(same_bits(f(x, limit(value)), plain(x, limit(value))));
  if (!generates()) return;
  check_deferred(f);
  const uint64_t plans = counts_of(f).plans;
  CHECK(plans <= 4);
  CHECK(same_bits(f(x, limit(1e35)), plain(x, limit(1e35))));
  CHECK(counts_of(f).plans == plans);
}

TEST_CASE("more ops than are noted run by Plans as far as they are noted", "[jit][deferred]") {
  double factor = 0.99;
  std::vector<Tensor> rows;
  for (int64_t size = 1; size <= 75; ++size) rows.push_back(ramp(size));
  const auto plain = [&](const Tensor& x) {  // 900 ops of each row
    Tensor total = sum(x);
    for (const Tensor& row : rows) {
      Tensor y = row;
      for (int i = 0; i < 450; ++i) y = factor > 0 ? y * factor + 0.5 : (y - 0.5) * factor;
      const Tensor added = sum(y);
      if (bool(added > 1e30)) break;
      total = total + added;
    }
    return total;
  };
  const auto f = compile(plain);
  const Tensor x = ramp(75);
  for (int call = 0; call < 4; ++call) CHECK(same_bits(f(x), plain(x)));
  if (!generates()) return;
  // Whether a call found most of what it did.
  const auto finds = [&] {
    const Counts before = counts_of(f);
    CHECK(same_bits(f(x), plain(x)));
    const Counts found = counts_of(f) - before;
    return found.matched > 2 * found.computed;
  };
  CHECK(finds());
  CHECK(finds());
  factor = -0.5;  // something else from now on: after some calls that is noted instead
  CHECK_FALSE(finds());
  for (int call = 0; call < 8; ++call) CHECK(same_bits(f(x), plain(x)));
  CHECK(finds());
}

TEST_CASE("Newton's method runs by two Plans", "[jit][deferred]") {
  const auto f = compile(newton);
  const Tensor x = abs(ramp(100)) + 1.0;
  for (int i = 0; i < 4; ++i) CHECK(same_bits(f(x), newton(x)));
  if (!generates()) return;
  const Counts before = counts_of(f);
  CHECK(same_bits(f(x * 0.5), newton(x * 0.5)));
  const Counts warm = counts_of(f) - before;
  CHECK(warm.computed == 0);
  CHECK(warm.plans == 0);
  CHECK(counts_of(f).plans <= 3);
}

TEST_CASE("host code runs at each call", "[jit][deferred]") {
  int runs = 0;
  const auto f = compile([&runs](const Tensor& x) {
    ++runs;
    return x.item<float>() > 0 ? x * 2.0 : x * 3.0;
  });
  for (int i = 0; i < 10; ++i) CHECK(f(tensor(1.0F)).item<float>() == 2.0F);
  CHECK(runs == 10);
}

TEST_CASE("loops in loops, early returns and a break", "[jit][deferred]") {
  const auto f = [](const Tensor& x) -> Tensor {
    Tensor y = x;
    for (int i = 0; i < 3; ++i) {
      if (bool(max(y) > 100.0)) return y - 1.0;
      Tensor z = y;
      while (bool(sum(z) < 50.0)) {
        z = z + 1.0;
        if (bool(min(z) > 4.0)) break;
      }
      y = z * 2.0;
      if (bool(any(y > 60.0))) return y;
    }
    return y + 0.5;
  };
  check_all_by_plans(f, std::vector{ramp(8), ramp(8) + 20.0, ramp(8) * 40.0, ramp(8) - 100.0});
}

namespace {

Tensor halved(const Tensor& x, int depth) {
  if (depth > 20 || bool(max(x) < 1.0)) return x;
  return halved(x * 0.5, depth + 1) + 1.0;
}

}  // namespace

TEST_CASE("recursion on data", "[jit][deferred]") {
  check_all_by_plans([](const Tensor& x) { return halved(exp(x), 0); },
                     std::vector{ramp(5), ramp(5) + 3.0, ramp(5) - 9.0});
}

TEST_CASE("a number that was read and goes on comes with each run", "[jit][deferred]") {
  const auto body = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 10; ++i) y = tanh(y) + x * 0.5;
    const auto k = static_cast<double>(max(abs(y)).item<float>());
    for (int i = 0; i < 10; ++i) y = y / k + 0.1 * y;
    return y;
  };
  const auto f = compile(body);
  const Tensor x = ramp(64);
  for (int i = 0; i < 4; ++i) {
    const Tensor given = x + static_cast<double>(i);
    REQUIRE(same_bits(f(given), body(given)));
  }
  if (!generates()) return;
  const Counts before = counts_of(f);
  const uint64_t compiled = compilations();
  for (int i = 0; i < 200; ++i) {
    const Tensor given = x + 0.01 * i;
    REQUIRE(same_bits(f(given), body(given)));
  }
  const Counts warm = counts_of(f) - before;
  CHECK(warm.plans == 0);
  CHECK(warm.computed == 0);
  CHECK(compilations() == compiled);
  CHECK(counts_of(f).plans <= 4);
}

TEST_CASE("numbers of all kinds: NaN, signs of zero, infinities, integers that become reals",
          "[jit][deferred]") {
  const auto f = [](const Tensor& x, double k) {
    (void)x.item<float>();
    return x * k + copysign(x, k);
  };
  Scalar unused = 0;
  (void)unused;
  double k = 1;
  const auto g = compile([&](const Tensor& x) { return f(x, k); });
  const Tensor x = tensor(2.5F);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value :
       {1.0, 1.0, 1.0, -0.0, 0.0, nan, -nan, infinity, -infinity, 1e-300, 0.1}) {
    k = value;
    CHECK(same_bits(g(x), f(x, value)));
  }
  int n = 0;
  const auto h = compile([&](const Tensor& t) {
    (void)t.item<float>();
    ++n;
    return n % 2 == 0 ? t * 2 : t * 2.5;
  });
  for (int i = 0; i < 8; ++i) CHECK(h(x).item<float>() == (i % 2 == 0 ? 6.25F : 5.0F));
}

TEST_CASE("numbers that have a dtype of their own", "[jit][deferred]") {
  const auto f = [](const Tensor& x) {
    const double end = x.at({0}).item<float>();
    return linspace(0.5, end, 5) * x + arange(0.0, end, end / 5, f32) + randint(0, 1, {5});
  };
  const auto g = compile(f);
  for (int i = 0; i < 10; ++i) {
    const Tensor x = full({5}, 2.0 + 0.37 * i);
    REQUIRE(same_bits(g(x), f(x)));
  }
  if (!generates() || tier_of(g) != Tier::deferred) return;
  const Counts before = counts_of(g);
  const Tensor x = full({5}, 77.5);
  CHECK(same_bits(g(x), f(x)));
  CHECK((counts_of(g) - before).plans == 0);
}

TEST_CASE("16-bit, integer and boolean tensors beside numbers that change", "[jit][deferred]") {
  for (const DType dtype : {f16, bf16, f64, i32, i64, u8}) {
    INFO(name_of(dtype));
    double k = 1;
    const auto f = [&](const Tensor& x) {
      (void)x.at({0}).to(f32).item<float>();
      return is_floating(dtype) ? x * k : x + static_cast<int64_t>(k);
    };
    const auto g = compile(f);
    const Tensor x = cast(arange(0, 9, 1, f32), dtype);
    for (int i = 0; i < 8; ++i) {
      k = 1.0 + 3.1 * i;
      REQUIRE(same_bits(g(x), f(x)));
    }
  }
}

TEST_CASE("which operands are one tensor is part of what is matched", "[jit][deferred]") {
  int turn = 0;
  const auto f = [&turn](const Tensor& a, const Tensor& b, const Tensor& c) {
    Tensor y = turn % 3 == 0 ? a * b : turn % 3 == 1 ? a * c : a * a;
    if (bool(sum(y) > 1e9)) return y;
    return y + (turn % 2 == 0 ? a : b);
  };
  const auto g = compile(f);
  const Tensor a = ramp(6), b = ramp(6) * 2.0, c = ramp(6) - 7.0;
  for (turn = 0; turn < 24; ++turn) CHECK(same_bits(g(a, b, c), f(a, b, c)));
  for (turn = 0; turn < 12; ++turn) CHECK(same_bits(g(a, a, c), f(a, a, c)));  // now one
  if (!generates()) return;
  const Counts before = counts_of(g);
  for (turn = 0; turn < 12; ++turn) CHECK(same_bits(g(a, b, c), f(a, b, c)));
  CHECK((counts_of(g) - before).computed == 0);
}

TEST_CASE("results that change places are matched as they are used", "[jit][deferred]") {
  int turn = 0;
  const auto f = [&turn](const Tensor& a, const Tensor& b) {
    const Tensor p = a + b, q = a - b, r = exp(q);
    const Tensor left = turn % 3 == 0 ? p : turn % 3 == 1 ? q : r;
    const Tensor right = turn / 3 % 3 == 0 ? p : turn / 3 % 3 == 1 ? q : r;
    const Tensor y = left - right * 2.0;
    return bool(sum(y) > 1e9) ? y : y + right;
  };
  const auto g = compile(f);
  const Tensor a = ramp(6), b = ramp(6) * 0.5 + 1.0;
  for (int round = 0; round < 3; ++round) {
    for (turn = 0; turn < 9; ++turn) REQUIRE(same_bits(g(a, b), f(a, b)));
  }
}

TEST_CASE("operands that lie otherwise are others", "[jit][deferred]") {
  const auto f = [](const Tensor& x) {
    const Tensor y = x * 2.0 + transpose(x, 0, 1);
    return bool(sum(y) > 1e9) ? y : concat({y, x}, 0);
  };
  const Tensor x = reshape(ramp(16), {4, 4});
  const auto g = compile(f);
  for (int i = 0; i < 4; ++i) {
    for (const Tensor& given :
         {x, transpose(x, 0, 1), flip(x, 0), slice(reshape(ramp(32), {4, 8}), 1, {0, 8, 2})})
      REQUIRE(same_bits(g(given), f(given)));
  }
}

TEST_CASE("what comes in the middle of a segment may be any tensor", "[jit][deferred]") {
  const Tensor x = reshape(ramp(16), {4, 4}), y = x - 5.0, z = x * 0.5;
  std::vector<Tensor> held;
  const auto f = [&held](const Tensor& a) {
    const Tensor b = a * 2.0;
    const Tensor c = b + held[0], d = held[1] - held[2];  // new: one, two
    const Tensor e = concat({c, held[3], d, held[4], held[5], held[6]}, 0);
    return bool(sum(e) > 1e9) ? e : e * 3.0;
  };
  const auto g = compile(f);
  g.set_stance(Stance::fail_on_fallback);
  const std::vector<Tensor> apart = {y, z, y + 1.0, z + 1.0, y + 2.0, z + 2.0, y + 3.0};
  for (int round = 0; round < 3; ++round) {
    held = apart;
    for (int i = 0; i < 3; ++i) REQUIRE(same_bits(g(x), f(x)));
    for (std::size_t turned = 0; turned < held.size(); ++turned) {  // lies otherwise
      held = apart;
      held[turned] = transpose(held[turned], 0, 1);
      for (int i = 0; i < 2; ++i) REQUIRE(same_bits(g(x), f(x)));
    }
    for (std::size_t k = 1; k < held.size(); ++k) {  // is one that was there before
      held = apart;
      held[k] = k % 2 == 0 ? held[k - 1] : x;
      for (int i = 0; i < 2; ++i) REQUIRE(same_bits(g(x), f(x)));
    }
    held = apart;  // 16-bit: another dtype
    for (Tensor& each : held) each = each.to(f16);
    held[3] = held[4] = held[5] = held[6] = y;
    for (int i = 0; i < 2; ++i) REQUIRE(same_bits(g(x), f(x)));
  }
}

TEST_CASE("a captured tensor that is an argument, too", "[jit][deferred]") {
  const Tensor x = ramp(4);
  const auto f = [&x](const Tensor& a) -> Tensor {
    if (bool(sum(a) > 1e6)) return a;
    return a * x + bare_copy(a);
  };
  check_all_by_plans(f, std::vector{x, ramp(4) * 2.0});
}

TEST_CASE("a value that is first dead at a cut and later held", "[jit][deferred]") {
  std::vector<Tensor> held;
  bool keeps = false;
  const auto f = [&](const Tensor& x) {
    const Tensor y = x * 2.0, z = y + 1.0;
    if (keeps) held.push_back(y);
    if (bool(sum(z) > 1e6)) return z;
    return z * z;
  };
  const auto g = compile(f);
  const Tensor x = ramp(7);
  for (int i = 0; i < 10; ++i) CHECK(same_bits(g(x), (x * 2.0 + 1.0) * (x * 2.0 + 1.0)));
  keeps = true;
  for (int i = 0; i < 4; ++i) CHECK(same_bits(g(x), (x * 2.0 + 1.0) * (x * 2.0 + 1.0)));
  REQUIRE(held.size() == 4);
  for (const Tensor& tensor : held) {
    CHECK_FALSE(is_pending(tensor.internals()));
    CHECK(same_bits(tensor, x * 2.0));
  }
}

TEST_CASE("many sets of live values share a Plan", "[jit][deferred]") {
  std::vector<Tensor> held;
  unsigned which = 0;
  const auto g = compile([&](const Tensor& x) {
    Tensor y = x;
    for (unsigned i = 0; i < 6; ++i) {
      y = y * 1.5 + 1.0;
      if ((which >> i & 1U) != 0) held.push_back(y);
    }
    return bool(sum(y) > 1e9) ? y : y - x;
  });
  const Tensor x = ramp(5);
  for (int round = 0; round < 3; ++round) {
    for (which = 0; which < 64; ++which) {
      held.clear();
      const Tensor result = g(x);
      Tensor y = x;
      std::size_t next = 0;
      for (unsigned i = 0; i < 6; ++i) {
        y = y * 1.5 + 1.0;
        if ((which >> i & 1U) != 0) REQUIRE(same_bits(held[next++], y));
      }
      REQUIRE(same_bits(result, y - x));
    }
  }
  if (generates()) CHECK(counts_of(g).plans < 40);
}
