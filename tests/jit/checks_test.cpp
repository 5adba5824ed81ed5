// Checks inside kernels: at each element, in every shape of group, and at no other place.
#include "tests/jit/checked_calls.h"

#include <functional>

using namespace nitinol;
using namespace nitinol::test;

namespace {

struct Case {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> function;
  std::size_t kernels;  ///< of its Plan; 0: it depends on the shape
};

/// x divided by y, integers [r, c], as a part of a group of each kind.
const Case cases[] = {
    {"elementwise", [](const Tensor& x, const Tensor& y) { return floor_divide(x, y) * 2 + x; }, 1},
    {"rows", [](const Tensor& x, const Tensor& y) { return sum(remainder(x, y), 1); }, 1},
    {"columns", [](const Tensor& x, const Tensor& y) { return sum(floor_divide(x, y), 0); }, 1},
    {"all", [](const Tensor& x, const Tensor& y) { return sum(floor_divide(x, y)); }, 0},
    {"two passes",
     [](const Tensor& x, const Tensor& y) {
       const Tensor quotient = floor_divide(x, y);
       return quotient - max(quotient, 1, keepdims);
     },
     1},
    {"of each row",
     [](const Tensor& x, const Tensor& y) { return floor_divide(sum(x, 1), max(y, 1)); }, 1},
    {"by a column",
     [](const Tensor& x, const Tensor& y) {
       return floor_divide(x, slice(y, 1, Range{0, 1}));
     },
     2},
    {"seen in part",
     [](const Tensor& x, const Tensor& y) {
       const Tensor quotient = floor_divide(x, y);
       return slice(quotient, 0, Range{0, 1}) + 1;
     },
     0},
    {"not used",
     [](const Tensor& x, const Tensor& y) {
       check_nonzero(y);
       return x + 1;
     },
     2},
    {"transposed",
     [](const Tensor& x, const Tensor& y) { return floor_divide(transpose(x), transpose(y)) + 1; },
     1},
};

}  // namespace

TEST_CASE("a check in a kernel sees each element of its operand, and nothing else",
          "[jit][checks]") {
  for (const Case& c : cases) {
    for (const DType dtype : {i8, i32, i64}) {
      for (const Shape& shape :
           {Shape{1, 1}, Shape{3, 5}, Shape{2, 16}, Shape{1, 100}, Shape{67, 9}}) {
        CAPTURE(c.name, name_of(dtype), to_string(shape));
        const auto compiled = compile(c.function, {.name = "f", .check = Check::never});
        const int64_t count = element_count(shape);
        // Zeros lie beside what is divided by: before, after and between.
        const Tensor memory = zeros({shape[0] + 2, shape[1] + 3}, dtype);
        const auto inside = [&](const Tensor& values) {
          const Tensor whole = place(memory, values, {1, 2}, shape, {1, 1});
          return slice(slice(whole, 0, Range{1, 1 + shape[0]}), 1, Range{2, 2 + shape[1]});
        };
        const Tensor x = reshape(arange(count), shape).to(dtype);
        const Tensor good = inside(reshape(arange(count) % 5 + 1, shape).to(dtype));
        check_good(compiled, c.function, x, good);
        for (const int64_t zero : {int64_t{0}, count / 2, count - 1}) {
          const Tensor bad = inside(where(reshape(arange(count), shape) == zero, 0, 3).to(dtype));
          check_bad(compiled, c.function, x, bad);
        }
        CHECK(same_bits(compiled(x, good), c.function(x, good)));
        if (count > 1 && c.kernels > 0)
          CHECK(compiled.explain().signatures[0].plan.steps.size() == c.kernels);
      }
    }
  }
}

TEST_CASE("a kernel that fails changes no Variable", "[jit][checks]") {
  const Variable state(arange(100));
  const auto step = compile(
      [&](const Tensor& y) {
        state = floor_divide(state + 7, y);
        return state.get() * 2;
      },
      {.check = Check::never});
  const Tensor good = full({100}, 3, i64);
  settle(step, good);
  const Tensor before = state.get() + 0;
  CHECK_THROWS_AS(step(where(arange(100) == 99, 0, good)).to(Device{}), Error);
  CHECK(same_bits(state.get(), before));
}
