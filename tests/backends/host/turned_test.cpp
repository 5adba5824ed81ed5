// Short rows, of which vectors take many (Order::turned), and rows that lie side by side
// (Order::across): the bits of Order::lanes, which eager code follows op by op.
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

using OneTensor = std::function<Tensor(const Tensor&)>;

struct Case {
  std::string name;
  OneTensor f;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"sum of a chain", [](const Tensor& x) { return sum(tanh(x) * 2 + 1, {-1}); }},
      {"product", [](const Tensor& x) { return prod(x * 0.5, {-1}); }},
      {"maximum", [](const Tensor& x) { return max(abs(x) - 1, {-1}); }},
      {"argmax", [](const Tensor& x) { return argmax(x * x, -1); }},
      {"argmin of equal ones", [](const Tensor& x) { return argmin(floor(x), -1); }},
      {"all", [](const Tensor& x) { return all(x * 2 > -1, {-1}); }},
      {"two sums", [](const Tensor& x) { return sum(x * x, {-1}) - sum(x * 2, {-1}); }},
      {"softmax",
       [](const Tensor& x) {
         const Tensor power = exp(x - max(x, {-1}, keepdims));
         return power / sum(power, {-1}, keepdims);
       }},
      {"norm",
       [](const Tensor& x) {
         const Tensor middle = x - sum(x, {-1}, keepdims) * 0.25;
         return middle / sqrt(sum(middle * middle, {-1}, keepdims) + 1e-5);
       }},
      {"weights",
       [](const Tensor& x) {
         const Tensor w = arange(x.shape().back()).to(x.dtype());
         return sum(x * w, {-1}) * 2;
       }},
      {"a number per row",
       [](const Tensor& x) {
         const Tensor middle = sum(x, {-1}, keepdims) / 2;
         return sum(abs(x - middle), {-1}) + 1;
       }},
      {"kept beside",
       [](const Tensor& x) {
         const Tensor y = exp(x * 0.25);
         return concat({y, y / sum(y, {-1}, keepdims)}, -1);
       }},
  };
  return list;
}

/// -0, NaN and infinity in some rows.
Tensor with_special(const Tensor& x) {
  const Tensor number = reshape(arange(x.size()), x.shape());
  const double inf = std::numeric_limits<double>::infinity();
  Tensor y = where(number % 97 == 5, std::numeric_limits<double>::quiet_NaN(), x);
  y = where(number % 89 == 7, inf, y);
  return where(number % 5 == 0, -0.0, y);
}

void check(const OneTensor& f, const Tensor& x) {
  const auto compiled = compile([&f](const Tensor& v) -> Tensor { return f(v); });
  CHECK(same_bits(settle(compiled, x), f(x)));
}

}  // namespace

TEST_CASE("short rows give the bits of eager code", "[host][turned]") {
  manual_seed(1);
  const DType dtype = GENERATE(f32, f64, bf16);
  for (const Case& c : cases()) {
    for (const int64_t length : {2, 3, 5, 8, 16, 17, 31}) {
      for (const int64_t rows : {16, 33, 2000}) {
        if (dtype != f32 && rows != 33 && length != 17) continue;  // says what f32 does
        CAPTURE(c.name, length, rows, name_of(dtype));
        check(c.f, with_special(randn({rows, length})).to(dtype));
      }
    }
  }
}

TEST_CASE("rows that lie side by side give the bits of others", "[host][across]") {
  manual_seed(5);
  const DType dtype = GENERATE(f32, f64, bf16);
  for (const Case& c : cases()) {
    for (const int64_t length : {32, 63, 64, 65, 1000, 1025, 4097, 9000}) {
      for (const int64_t rows : {16, 33, 200}) {
        // Rows that fill vectors, and those of several blocks, of few lengths.
        if (rows != 33 && length != 63 && length != 1025 && length != 4097) continue;
        if (rows != 33 && dtype != f32 && length != 1025) continue;
        CAPTURE(c.name, length, rows, name_of(dtype));
        // One NaN hides all other elements of its row.
        const Tensor plain = randn({rows, length});
        const Tensor is_special = unsqueeze(arange(rows) % 5 == 3, 1);
        const Tensor x = where(is_special, with_special(plain), plain).to(dtype);
        const Tensor y = transpose(copy(transpose(x)));
        const Tensor expected = c.f(x);
        CHECK(same_bits(c.f(y), expected));
        const auto compiled = compile([&c](const Tensor& v) -> Tensor { return c.f(v); });
        CHECK(same_bits(settle(compiled, y), expected));
      }
    }
  }
}

TEST_CASE("images whose channels lie last give the bits of others", "[host][across]") {
  manual_seed(6);
  const auto norm = [](const Tensor& x) -> Tensor {
    return (x - mean(x, {2, 3}, keepdims)) * rsqrt(var(x, {2, 3}, 0, keepdims) + 1e-5);
  };
  const auto pool = [](const Tensor& x) -> Tensor { return mean(relu(x), {2, 3}); };
  const auto channels = [](const Tensor& x) -> Tensor { return sum(x * x, {0, 2, 3}); };
  const auto classes = [](const Tensor& x) -> Tensor { return softmax(x * 2, 1); };
  const auto best = [](const Tensor& x) -> Tensor { return argmax(x, 1); };
  const auto pixels = [](const Tensor& x) -> Tensor { return sum(x, 1) * max(abs(x), {1}); };
  for (const Shape& shape : {Shape{3, 40, 7, 9}, Shape{1, 16, 33, 32}, Shape{2, 130, 6, 6}}) {
    const Tensor x = randn(shape);
    const Tensor y = permute(copy(permute(x, {0, 2, 3, 1})), {0, 3, 1, 2});
    CAPTURE(shape);
    for (const OneTensor& f : {OneTensor(norm), OneTensor(pool), OneTensor(channels),
                               OneTensor(classes), OneTensor(best), OneTensor(pixels)}) {
      CHECK(same_bits(f(y), f(x)));
      CHECK(same_bits(settle(compile(f), y), f(x)));
    }
    for (const int threads : {1, 2, 3}) {
      const Threads some(threads);
      CHECK(same_bits(settle(compile(pool), y), pool(x)));
    }
  }
}

TEST_CASE("short rows that lie in any way", "[host][turned]") {
  manual_seed(2);
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    check(c.f, transpose(randn({7, 100})));
    check(c.f, slice(randn({100, 20}), 1, Range{1, 15, 2}));
    check(c.f, flip(randn({100, 6}), {0, 1}));
    check(c.f, randn({40, 3, 9}));
    check(c.f, slice(randn({40, 5, 9}), 1, Range{1, 3}));
    check(c.f, slice(randn({3, 50, 9}), 1, Range{4, 47}));
    check(c.f, expand(randn({30, 1}), {30, 4}));
    check(c.f, expand(randn({4}), {30, 4}));
  }
}

TEST_CASE("short rows of two operands, of which each is the same along a loop", "[host][turned]") {
  manual_seed(3);
  const auto distances = [](const Tensor& x, const Tensor& m) -> Tensor {
    return sum(pow(unsqueeze(x, 1) - unsqueeze(m, 0), 2), {2});
  };
  const auto compiled = compile(distances);
  for (const int64_t length : {2, 8, 13}) {
    const Tensor x = randn({120, length}), m = randn({6, length});
    CHECK(same_bits(settle(compiled, x, m), distances(x, m)));
    CHECK(same_bits(settle(compiled, m, x), distances(m, x)));
  }
}

TEST_CASE("short rows on any number of threads", "[host][turned]") {
  manual_seed(4);
  const Tensor x = randn({20000, 6});
  const auto f = [](const Tensor& v) -> Tensor { return softmax(v * 2, -1); };
  const Tensor expected = f(x);
  for (const int threads : {1, 2, 3}) {
    const Threads some(threads);
    CHECK(same_bits(settle(compile(f), x), expected));
  }
}
