// Rows and elements that indices name, inside fused kernels of every shape.
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

/// `i` as indices of the columns of x.
Tensor columns_of(const Tensor& x, const Tensor& i) {
  return remainder(i, x.shape()[1]) - where(i < 0, x.shape()[1], 0);
}

/// x [r, c] looked up by i [r], as a part of a group of each kind.
const Case cases[] = {
    {"alone", [](const Tensor& x, const Tensor& i) { return take(x, i); }, 1},
    {"embedding",
     [](const Tensor& x, const Tensor& i) {
       return take(x, i) * 2 + slice(x, 0, Range{0, 1});
     },
     1},
    {"by indices of another type",
     [](const Tensor& x, const Tensor& i) { return take(x, (i - 1 + 1).to(i32)) * 2; }, 1},
    {"long program",
     [](const Tensor& x, const Tensor& i) {
       Tensor y = take(x, i);
       for (int k = 0; k < 20; ++k) y = y * y + x;
       return y;
     },
     1},
    {"sums of rows", [](const Tensor& x, const Tensor& i) { return sum(take(x, i) + x, 1); }, 1},
    {"sums of columns", [](const Tensor& x, const Tensor& i) { return sum(take(x, i) + x, 0); }, 1},
    {"two passes",
     [](const Tensor& x, const Tensor& i) {
       const Tensor y = take(x, i);
       return y - max(y, 1, keepdims);
     },
     1},
    {"an element of each row",
     [](const Tensor& x, const Tensor& i) {
       return sum(x, 1) - squeeze(gather(x, 1, unsqueeze(columns_of(x, i), 1)), 1);
     },
     0},
    {"along rows",
     [](const Tensor& x, const Tensor& i) {
       return gather(x, 1, unsqueeze(columns_of(x, i), 0)) + 1;
     },
     0},
    {"along columns",
     [](const Tensor& x, const Tensor& i) { return gather(x, 0, unsqueeze(i, 1)) + x; }, 1},
    {"by a number for each",
     [](const Tensor& x, const Tensor& i) {
       const Tensor flat = slice(x, 1, Range{0, 1});
       return take(squeeze(flat, 1), i + 0) * 3;
     },
     1},
    {"twice", [](const Tensor& x, const Tensor& i) { return take(x, i) - take(x, -1 - i); }, 0},
    {"of a lookup", [](const Tensor& x, const Tensor& i) { return take(x, take(i * 1, i)) + x; },
     0},
    {"of what is made here", [](const Tensor& x, const Tensor& i) { return take(x + x, i) + x; },
     2},
    {"by itself", [](const Tensor&, const Tensor& i) { return take(i, i) + take(i + 0, i); }, 0},
    {"by what is made with it",
     [](const Tensor& x, const Tensor& i) {
       const Tensor y = maximum(i, -x.shape()[0]);
       return take(y, y) * 2;
     },
     2},
    {"of a transposed table",
     [](const Tensor& x, const Tensor& i) { return take(transpose(x), columns_of(x, i)) * 2; }, 0},
    {"transposed", [](const Tensor& x, const Tensor& i) { return transpose(take(x, i)) + 1; }, 0},
    {"seen in part",
     [](const Tensor& x, const Tensor& i) {
       return slice(take(x, i), 0, Range{0, 1}) + 1;
     },
     0},
    {"not used",
     [](const Tensor& x, const Tensor& i) {
       static_cast<void>(take(x, i));
       return x + 1;
     },
     0},
    {"of one number",
     [](const Tensor& x, const Tensor& i) {
       return take(expand(full({1}, 5, x.dtype()) * 2, {x.shape()[0]}), i) + 1;
     },
     0},
};

}  // namespace

TEST_CASE("a lookup in a kernel finds what eager finds, and fails where eager fails",
          "[jit][lookup]") {
  for (const Case& c : cases) {
    for (const DType dtype : {f32, f64, f16, bf16, i8}) {
      for (const Shape& shape :
           {Shape{1, 1}, Shape{3, 5}, Shape{16, 2}, Shape{67, 9}, Shape{5, 130}}) {
        CAPTURE(c.name, name_of(dtype), to_string(shape));
        const auto compiled = compile(c.function, {.name = "f", .check = Check::never});
        const int64_t count = element_count(shape), rows = shape[0];
        const Tensor x = reshape(arange(count) % 7, shape).to(dtype);
        const Tensor good = (arange(rows) * 5) % rows - where(arange(rows) % 3 == 0, rows, 0);
        check_good(compiled, c.function, x, good);
        for (const int64_t at : {int64_t{0}, rows - 1}) {
          for (const int64_t wrong : {rows, -rows - 1, INT64_MIN}) {
            check_bad(compiled, c.function, x, where(arange(rows) == at, wrong, good));
          }
        }
        CHECK(same_bits(compiled(x, good), c.function(x, good)));
        if (count > 1 && c.kernels > 0)
          CHECK(compiled.explain().signatures[0].plan.steps.size() == c.kernels);
      }
    }
  }
}

TEST_CASE("a Variable that is looked up is not overwritten meanwhile", "[jit][lookup]") {
  const auto run = [](bool is_compiled) {
    const Variable state(reshape(arange(12), {4, 3}).to(f32));
    const auto turn = [&](const Tensor& i) {
      state = take(state.get(), i);
      return state.get() * 2;
    };
    const auto compiled = compile(turn, {.check = Check::never});
    const Tensor order = tensor({1, 2, 3, 0});
    Tensor last;
    for (int k = 0; k < 7; ++k) last = is_compiled ? compiled(order) : turn(order);
    return last;
  };
  CHECK(same_bits(run(true), run(false)));
}

TEST_CASE("a number that is looked up is in memory", "[jit][lookup]") {
  const auto f = [](const Scalar& s, const Tensor& i) { return take(zeros({1}) + s, i); };
  const auto compiled = compile(f, {.check = Check::never});
  const Tensor i = tensor({0, -1, 0}).to(i64);
  CHECK(same_bits(settle(compiled, 2.5, i), f(2.5, i)));
  CHECK(same_bits(compiled(3.5, i), f(3.5, i)));
}

TEST_CASE("bytes of a lookup are counted by what is read of its table", "[jit][lookup]") {
  const auto compiled = compile([](const Tensor& x, const Tensor& i) { return take(x, i) + 1; });
  const Tensor table = zeros({1000, 8});
  settle(compiled, table, tensor({5, 6, 7}).to(i64));
  const auto steps = compiled.explain().signatures[0].plan.steps;
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].bytes_read == 3 * 8 * 4 + 3 * 8);
}
