// Values that kernels store right where a concat, stack or pad wants them.
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <functional>
#include <iterator>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

struct Case {
  const char* name;
  std::function<std::vector<Tensor>(const Tensor&, const Tensor&)> function;
  std::size_t steps;  ///< of its Plan
};

/// x and y are [4, 6].
const Case cases[] = {
    {"rows",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{concat({x + 1, y * 2})};
     },
     2},
    {"in another shape",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{concat({reshape(x + 1, {2, 3, 1, 4}), reshape(y * 2, {2, 3, 1, 4})})};
     },
     4},
    {"columns",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{concat({x + y, sum(y, 1, keepdims)}, 1)};
     },
     2},
    {"stacked",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{stack({x - y, y - x, -x}, 1)};
     },
     1},
    {"stacked at the end",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{stack({x - y, y - x}, -1)};
     },
     1},
    {"padded",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{pad(x * y, {{1, 0}, {2, 3}})};
     },
     3},  // what is around it is stored first, so that the piece has to wait
    {"a part of what is computed",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{
           place(x + 1, slice(slice(y, 0, Range{0, 2}), 1, Range{0, 2}), {1, 1}, {2, 2}, {2, 3})};
     },
     0},
    {"over a computed base",
     [](const Tensor& x, const Tensor& y) {
       const Tensor base = concat({x, x}) * 2;
       return std::vector{place(base, y, {2, 0}, {4, 6}, {1, 1})};
     },
     0},
    {"rows of reductions",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{concat({max(x, 1), sum(y, 0)})};
     },
     2},
    {"softmax",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{concat({softmax(x, 1), y + 1}, 1)};
     },
     2},
    {"rows beside a sum of all",
     [](const Tensor& x, const Tensor& y) {
       const Tensor z = x + y;
       return std::vector{concat({z * 2, y}), sum(z)};
     },
     2},
    {"columns beside a sum of all",  // which is one loop over all elements: the piece is none
     [](const Tensor& x, const Tensor& y) {
       const Tensor z = x + y;
       return std::vector{concat({z * 2, y}, 1), sum(z)};
     },
     3},
    {"stacked at the end beside a sum of all",
     [](const Tensor& x, const Tensor& y) {
       const Tensor z = x + y;
       return std::vector{stack({z * 2, y}, -1), max(z)};
     },
     0},
    {"padded beside sums over two of three axes",
     [](const Tensor& x, const Tensor& y) {
       const Tensor z = reshape(x + y, {2, 2, 6});
       return std::vector{pad(z * 2, {{0, 0}, {0, 0}, {1, 2}}), sum(z, {1, 2}),
                          concat({z * 3, z}, 1)};
     },
     0},
    {"columns beside sums over the first axes",
     [](const Tensor& x, const Tensor& y) {
       const Tensor z = reshape(x + y, {2, 2, 6});
       return std::vector{concat({z * 2, reshape(y, {2, 2, 6})}, 1), sum(z, {0, 1})};
     },
     0},
    {"twice the same",
     [](const Tensor& x, const Tensor& y) {
       const Tensor z = x + y;
       return std::vector{concat({z, z})};
     },
     3},
    {"also a result",
     [](const Tensor& x, const Tensor& y) {
       const Tensor z = x + y;
       return std::vector{concat({z, y * 3}), z};
     },
     2},
    {"read afterwards",
     [](const Tensor& x, const Tensor& y) {
       const Tensor z = concat({x + y, y * 3});
       return std::vector{sum(z, 0), transpose(z) * 2};
     },
     0},
    {"turned",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{concat({transpose(x + 1), transpose(y)})};
     },
     3},
    {"of arguments",
     [](const Tensor& x, const Tensor& y) {
       return std::vector{concat({x, flip(y + 1, 0)})};
     },
     3},
};

}  // namespace

TEST_CASE("pieces are stored where they belong", "[jit][pieces]") {
  for (const Case& c : cases) {
    for (const DType dtype : {f32, f16, i8, i64}) {
      CAPTURE(c.name, name_of(dtype));
      const auto compiled = compile(c.function, {.name = "f", .check = Check::never});
      const Tensor x = reshape(arange(24) % 11, {4, 6}).to(dtype);
      const Tensor y = reshape(arange(24) % 5 - 2, {4, 6}).to(dtype);
      if (dtype == i8 || dtype == i64) {
        if (std::string(c.name) == "softmax") continue;
      }
      const std::vector<Tensor> wanted = c.function(x, y), got = settle(compiled, x, y);
      REQUIRE(got.size() == wanted.size());
      for (std::size_t k = 0; k < got.size(); ++k) CHECK(same_bits(got[k], wanted[k]));
      CHECK(compiled.explain().plan_calls == 1);
      if (c.steps > 0) CHECK(compiled.explain().signatures[0].plan.steps.size() == c.steps);
    }
  }
}

TEST_CASE("pieces beside sums over any axes", "[jit][pieces]") {
  const Tensor x = reshape(arange(60) % 11, {3, 4, 5}).to(f32);
  const Tensor y = reshape(arange(60) % 7 - 3, {3, 4, 5}).to(f32);
  using Joined = Tensor (*)(const Tensor&, const Tensor&, int64_t);
  const Joined ways[] = {
      [](const Tensor& a, const Tensor& b, int64_t axis) {
        return concat({a, b}, axis);
      },
      [](const Tensor& a, const Tensor& b, int64_t axis) {
        return stack({b, a}, axis);
      },
      [](const Tensor& a, const Tensor&, int64_t axis) {
        std::vector<Padding> around(3);
        around[static_cast<std::size_t>(axis)] = {1, 2};
        return pad(a, around);
      },
  };
  for (unsigned reduced = 1; reduced < 8; ++reduced) {
    Dims axes;
    for (unsigned i = 0; i < 3; ++i) {
      if ((reduced >> i & 1U) != 0) axes.push_back(i);
    }
    for (std::size_t way = 0; way < std::size(ways); ++way) {
      for (int64_t axis = 0; axis < 3; ++axis) {
        CAPTURE(reduced, way, axis);
        const auto f = [&](const Tensor& a, const Tensor& b) {
          const Tensor z = a + b;
          return std::vector{ways[way](z * 2.0, b - a, axis), sum(z, axes)};
        };
        const auto compiled = compile(f, {.name = "f", .check = Check::never});
        const std::vector<Tensor> wanted = f(x, y), got = settle(compiled, x, y);
        for (std::size_t k = 0; k < got.size(); ++k) CHECK(same_bits(got[k], wanted[k]));
      }
    }
  }
}

TEST_CASE("a piece is not stored over what is still read", "[jit][pieces]") {
  const auto run = [](bool is_compiled) {
    const Variable state(reshape(arange(1800) % 13, {6, 300}).to(f32));
    const auto turn = [&](const Tensor& x) {
      const Tensor old = state.get();
      state = concat({x * 2, slice(old, 0, Range{0, 3}) * 3});  // what is read is stored last
      return old + 1;
    };
    const auto shift = [&](const Tensor& x) {
      const Tensor moved = slice(state.get(), 0, Range{0, 5}) * 3;  // by one row: first, and over
      state = concat({slice(x, 0, Range{0, 1}) * 2, moved});        // what it reads
    };
    const auto turned = compile(turn, {.check = Check::never});
    const auto shifted = compile(shift, {.check = Check::never});
    const Tensor x = reshape(arange(900) % 7, {3, 300}).to(f32);
    Tensor last;
    for (int k = 0; k < 6; ++k) {
      last = is_compiled ? turned(x) : turn(x);
      is_compiled ? shifted(x) : shift(x);
    }
    return concat({last, state.get()});
  };
  CHECK(same_bits(run(true), run(false)));
}
