// Which operations become one kernel: graphs as text in, groups as text out.
#include "fusion/fuse.h"

#include "core/backend.h"
#include "eager/all_ops.h"
#include "jit/passes/pipeline.h"
#include "tests/jit/calls.h"
#include "tests/jit/passes/pass_text.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// "exp mul | sum": the operations of each group, in the order of the program.
std::string groups_of(const Graph& graph, bool is_enabled = true,
                      const DeviceLimits& limits = {.rows_of_vectors = 16}) {
  verify(graph, "test");
  const fusion::Fusion fusion = fusion::fuse(graph, is_enabled, limits);
  std::vector<const fusion::Group*> groups;
  for (const fusion::Group& group : fusion.groups) {
    if (!group.members.empty()) groups.push_back(&group);
  }
  std::ranges::sort(groups, {}, [](const fusion::Group* group) { return group->members[0].value; });
  std::string text;
  for (const fusion::Group* group : groups) {
    if (!text.empty()) text += " | ";
    for (const fusion::Member& member : group->members) {
      if (&member != group->members.data()) text += ' ';
      text += graph[member.value].op->name;
    }
  }
  return text;
}

std::string groups(std::string_view text, bool is_enabled = true,
                   const DeviceLimits& limits = {.rows_of_vectors = 16}) {
  return groups_of(parse(text, all_ops()), is_enabled, limits);
}

/// The ops of each kernel of f(x)'s Plan, after checking that it gives eager's bits.
template <class F>
std::vector<std::size_t> kernel_sizes(const F& f, const Tensor& x) {
  const auto g = compile(f);
  CHECK(same_bits(settle(g, x), f(x)));
  std::vector<std::size_t> sizes;
  const jit::PlanReport plan = g.explain().signatures[0].plan;
  for (const program::StepReport& step : plan.steps) sizes.push_back(step.ops.size());
  return sizes;
}

Tensor tenths(const Shape& shape) {
  return reshape(arange(0, element_count(shape), 1, f32) * 0.1 + 0.5, shape);
}

}  // namespace

TEST_CASE("what only a later group reads is computed there", "[jit][fusion]") {
  const std::string start =
      "x: f32[8, 8] = input; t = tanh x; q = square t; s = sub x q; w = matmul t t; ";
  // t is read there anyway, so that s need not be kept until then.
  CHECK(groups(start + "y = mul w s; z = add y t; return z") == "tanh | square sub mul add");
  // Not if more would have to be kept for it, or if it is a result.
  CHECK(groups("x: f32[8, 8] = input; t = exp x; g = gt t x; u = mul t x; w = matmul u u; "
               "z = where g w x; return z") == "exp gt mul | where");
  CHECK(groups(start + "y = mul w s; z = add y t; return z s") == "tanh square sub | mul add");
}

TEST_CASE("a view of what has its sizes 1 elsewhere than what it is computed from",
          "[jit][fusion]") {
  const auto numbers = [](const Shape& shape) {
    return reshape(arange(0, element_count(shape), 1, f32) * 0.25 - 1.0, shape);
  };
  for (const Shape& shape :
       {Shape{3, 2, 2, 1}, Shape{3, 1, 2, 2}, Shape{1, 4, 4, 1}, Shape{2, 3, 3, 2}}) {
    const Tensor x = numbers(shape), y = numbers(shape) * 0.5;
    const Tensor flat = reshape(y, {y.size()});
    for (const Dims& axes : {Dims{0, 2, 1, 3}, Dims{0, 1, 3, 2}, Dims{0, 3, 2, 1}}) {
      const auto f = [&](const Tensor& a) {
        const Tensor b = exp(permute(a * 2.0, axes));
        return b * reshape(flat, b.shape());  // a factor that lies in the result's order
      };
      const auto compiled = compile(f, {.name = "f", .check = Check::never});
      for (int call = 0; call < 4; ++call) CHECK(same_bits(compiled(x), f(x)));
    }
  }
}

TEST_CASE("a chain is one group", "[jit][fusion]") {
  CHECK(groups("a: f32[4] = input; b = exp a; c = neg b; d = mul c a; return d") == "exp neg mul");
}

TEST_CASE("without fusion each operation is its own group", "[jit][fusion]") {
  CHECK(groups("a: f32[4] = input; b = exp a; c = neg b; d = mul c a; return d", false) ==
        "exp | neg | mul");
}

TEST_CASE("a diamond is one group", "[jit][fusion]") {
  CHECK(groups("a: f32[4] = input; b = exp a; c = neg b; d = sin b; e = add c d; return e") ==
        "exp neg sin add");
}

TEST_CASE("several outputs of one group", "[jit][fusion]") {
  CHECK(groups("a: f32[4] = input; b = exp a; c = neg b; d = sin b; return b c d") ==
        "exp neg sin");
}

TEST_CASE("operands broadcast into a group", "[jit][fusion]") {
  CHECK(groups("a: f32[3, 4] = input; b: f32[4] = input; c = exp a; d = add c b; return d") ==
        "exp add");
  CHECK(groups("a: f32[3, 1] = input; b: f32[1, 4] = input; c = add a b; d = exp c; return d") ==
        "add exp");
}

TEST_CASE("what is computed on the small side of a broadcast is not computed again for each reader",
          "[jit][fusion]") {
  CHECK(groups("a: f32[3, 4] = input; b: f32[4] = input; c = exp b; d = add a c; return d") ==
        "exp | add");
}

TEST_CASE("other shapes are other groups", "[jit][fusion]") {
  CHECK(groups("a: f32[4] = input; b: f32[5] = input; c = exp a; d = exp b; return c d") ==
        "exp | exp");
}

TEST_CASE("groups that read the same are one", "[jit][fusion]") {
  const std::string two = "a: f32[3, 4] = input; b: f32[3, 4] = input; ";
  CHECK(groups("a: f32[8] = input; b = sin a; c = cos a; return b c") == "sin cos");
  CHECK(groups(two + "c = mul a b; d = neg c; e = add a b; f = exp e; return d f") ==
        "mul neg add exp");
  CHECK(groups(two + "v: f32[3, 4] = input; c = mul a b; d = add v b; e = sub v a; return c d e") ==
        "mul add sub");
  CHECK(groups(two + "c = sin a; d = cos b; return c d") == "sin | cos");
  // They read one row, or one number, again and again.
  CHECK(groups(two + "v: f32[4] = input; n: f32[] = input; w = expand v shape=[3, 4]; "
                     "c = add a v; d = mul b v; e = mul b n; f = sub a n; g = maximum b w; "
                     "return c d e f g") == "add sub | mul mul maximum");
  CHECK(
      groups("a: f32[3, 4] = input; b = sin a; c = reshape a shape=[12]; d = cos c; return b d") ==
      "sin | cos");
  // One of them reads it turned, and none of both may fail.
  CHECK(groups("a: f32[4, 4] = input; b = exp a; c = permute b axes=[1, 0]; d = neg c; e = sin a; "
               "return d e") == "exp neg | sin");
  CHECK(groups("a: i64[4] = input; t: f32[9] = input; b = neg a; c = take t a; return b c") ==
        "neg | take");
}

TEST_CASE("no group that depends on another is its sibling", "[jit][fusion]") {
  // By itself, and through a third.
  const std::string turned = "a: f32[4, 4] = input; b = exp a; c = permute b axes=[1, 0]; ";
  CHECK(groups(turned + "d = mul c a; return b d") == "exp | mul");
  CHECK(groups(turned + "d = neg c; e = permute d axes=[1, 0]; f = mul e a; return b d f") ==
        "exp | neg | mul");
  // What began later is what the other, which goes on, waits for.
  CHECK(groups("a: f32[4, 4] = input; b = exp a; c = sin a; d = permute c axes=[1, 0]; "
               "e = mul b d; return b c e") == "exp mul | sin");
}

TEST_CASE("siblings wait for no call, and keep nothing in memory over one", "[jit][fusion]") {
  const std::string product =
      "x: f32[8, 8] = input; w: f32[8, 8] = input; b = sin x; m = matmul b w; ";
  CHECK(groups(product + "c = cos x; return m c") == "sin | cos");
  CHECK(groups(product + "c = mul x m; d = neg x; return c d") == "sin | mul neg");
  // x is made here; cos is the last to read it, and takes its place.
  const std::string made =
      "a: f32[8, 8] = input; w: f32[8, 8] = input; x = matmul a w; "
      "b = sin x; m = matmul b w; ";
  CHECK(groups(made + "c = cos x; return m c") == "sin cos");
  CHECK(groups(made + "v: f32[8, 8] = input; c = mul x v; return m c") == "sin mul");
  CHECK(groups(made + "n = matmul a a; c = mul x n; return m c") == "sin | mul");
  CHECK(groups(made + "c = cos x; d = matmul x m; return m c d") == "sin | cos");
  CHECK(groups(made + "c = cos x; return m c x") == "sin | cos");
  CHECK(groups(made + "c = cos x; d = exp x; return m c d") == "sin | cos exp");
}

TEST_CASE("of three siblings that unite none moves where it may not", "[jit][fusion]") {
  // The last takes both x, before the call, and y, after it, for what it frees; what reads y alone
  // stays behind the call.
  const std::string made =
      "a: f32[8, 8] = input; w: f32[8, 8] = input; y: f32[8, 8] = input; x = matmul a w; "
      "b = sin x; m = matmul b w; d = exp y; ";
  CHECK(groups(made + "c = mul x y; return m d c") == "sin mul | exp");
  CHECK(groups("a: f32[8, 8] = input; w: f32[8, 8] = input; y = matmul w w; x = matmul a w; "
               "b = sin x; m = matmul b w; d = exp y; c = mul x y; return m d c") ==
        "sin mul | exp");
}

TEST_CASE("what is computed again on purpose has no sibling before", "[jit][fusion]") {
  Graph graph =
      parse("a: f32[4] = input; b = sin a; c = cos a; d = exp a; return b c d", all_ops());
  for (const std::size_t v : {2, 3}) graph.nodes[v].repetition = 7;
  CHECK(groups_of(graph) == "sin | cos exp");
}

TEST_CASE("siblings read and store no more than a processor follows", "[jit][fusion]") {
  std::string text = "a: f32[8] = input; ", results = "return";
  for (int i = 0; i < 20; ++i) {
    text += fmt::format("b{0}: f32[8] = input; c{0} = mul a b{0}; ", i);
    results += fmt::format(" c{}", i);
  }
  const std::string names = groups(text + results);
  CHECK(names ==
        "mul mul mul mul mul mul mul | mul mul mul mul mul mul mul | "
        "mul mul mul mul mul mul");
}

TEST_CASE("siblings are no longer code than a group may be", "[jit][fusion]") {
  constexpr std::array functions = {"sin", "cos", "exp", "erf", "log", "sqrt"};
  std::string text = "a: f32[8] = input; ", results = "return";
  for (std::size_t i = 0; i < functions.size(); ++i) {
    text += fmt::format("b{}x0 = {} a; ", i, functions[i]);
    for (int k = 0; k < 5; ++k) text += fmt::format("b{0}x{1} = tanh b{0}x{2}; ", i, k + 1, k);
    results += fmt::format(" b{}x5", i);
  }
  const auto between = std::ranges::count(groups(text + results), '|');
  CHECK(between > 0);
  CHECK(between < 5);
}

TEST_CASE("a transpose with one reader is an index map", "[jit][fusion]") {
  CHECK(groups("a: f32[3, 4] = input; b = exp a; c = permute b axes=[1, 0]; d = neg c; return d") ==
        "exp neg");
}

TEST_CASE("what a transpose and another read is in memory", "[jit][fusion]") {
  CHECK(groups("a: f32[3, 4] = input; b = exp a; c = permute b axes=[1, 0]; d = neg c; return d "
               "b") == "exp | neg");
  CHECK(groups("a: f32[3, 4] = input; b = exp a; c = permute b axes=[1, 0]; d = neg c; e = sin c; "
               "return d e") == "exp | neg sin");
}

TEST_CASE("two parts of a value are two points: two groups", "[jit][fusion]") {
  const std::string parts =
      "p = slice b starts=[0] sizes=[4] steps=[1]; q = slice b starts=[4] sizes=[4] steps=[1]; ";
  CHECK(groups("a: f32[8] = input; b = exp a; " + parts + "c = mul p q; return c") == "exp | mul");
  CHECK(groups("a: f32[8] = input; b = exp a; " + parts + "c = sin p; d = mul c q; return d") ==
        "exp | sin mul");
  const auto f = [](const Tensor& x) {
    const Tensor y = exp(x);
    return slice(y, 0, {0, 4}) * slice(y, 0, {4, 8}) + sum(y);
  };
  const auto g = compile(f);
  CHECK(same_bits(settle(g, tenths({8})), f(tenths({8}))));
}

TEST_CASE("y - transpose(y) reads two points: two groups", "[jit][fusion]") {
  CHECK(groups("a: f32[4, 4] = input; b = exp a; c = permute b axes=[1, 0]; d = sub b c; return "
               "d") == "exp | sub");
  kernel_sizes(
      [](const Tensor& x) {
        const Tensor y = exp(x);
        return y - transpose(y, 0, 1);
      },
      tenths({5, 5}));
}

TEST_CASE("a reduction takes in what computes its operand and what follows per row",
          "[jit][fusion]") {
  CHECK(groups("a: f32[3, 4] = input; b = mul a a; c = sum b axes=[1] keepdims=false; d = sqrt c; "
               "return d") == "mul sum sqrt");
  CHECK(groups("a: f32[3, 4] = input; b = mul a a; c = sum b axes=[0] keepdims=false; d = sqrt c; "
               "return d") == "mul sum sqrt");
}

TEST_CASE("a value read by a reduction and by others is computed once", "[jit][fusion]") {
  CHECK(groups("a: f32[3, 4] = input; b = exp a; c = sum b axes=[1] keepdims=false; return b c") ==
        "exp sum");
}

TEST_CASE("reductions over different axes are different groups", "[jit][fusion]") {
  CHECK(groups("a: f32[3, 4] = input; b = sum a axes=[1] keepdims=false; c = sum a axes=[0] "
               "keepdims=false; return b c") == "sum | sum");
}

TEST_CASE("softmax is one kernel", "[jit][fusion]") {
  const std::vector<std::size_t> sizes =
      kernel_sizes([](const Tensor& x) { return softmax(x); }, tenths({20, 30}));
  CHECK(sizes == std::vector<std::size_t>{6});
}

TEST_CASE("layer_norm is one kernel", "[jit][fusion]") {
  const Tensor weight = tenths({30});
  const auto norm = [weight](const Tensor& x) {
    return layer_norm(x, {.weight = weight, .bias = weight});
  };
  CHECK(kernel_sizes(norm, tenths({20, 30})).size() == 1);
}

TEST_CASE("a group is not merged around a path through a library call", "[jit][fusion]") {
  CHECK(groups("a: f32[4, 4] = input; b = exp a; c = matmul b b; d = add b c; return d") ==
        "exp | add");
  CHECK(groups("a: f32[4, 4] = input; b = exp a; c = matmul b b; d = neg b; e = add d c; return "
               "e") == "exp neg | add");
}

TEST_CASE("checks of elements are members of groups, calls with checks are not", "[jit][fusion]") {
  CHECK(groups("a: i64[4] = input; b: i64[4] = input; c = add a b; d = check_nonzero c "
               "checker=1; e = floor_divide a d; return e") == "add check_nonzero floor_divide");
  CHECK(groups("a: f32[4, 2] = input; b: i64[4] = input; c = add a a; d = take c b; e = mul d a; "
               "return e") == "add | take mul");
  CHECK(groups("a: f32[4, 2] = input; b: i64[4] = input; c = scatter_add a b rows=3; d = neg c; "
               "return d") == "neg");
}

TEST_CASE("what has its axes in another order than its rows takes part in them", "[jit][fusion]") {
  // x - sum(x) of a matrix that lies column after column: "-" is applied to x as it lies.
  const std::string centred =
      "a: f32[3, 4] = input; m = sum a axes=[1] keepdims=true; x = permute a axes=[1, 0]; "
      "n = permute m axes=[1, 0]; d = sub x n; ";
  CHECK(groups(centred + "return d") == "sum sub");
  CHECK(groups(centred + "e = exp d; return e") == "sum sub exp");
  CHECK(groups(centred + "e = exp d; f = permute e axes=[1, 0]; "
                         "s = sum f axes=[1] keepdims=true; g = mul e e; return g s") ==
        "sum sub exp sum mul");
  // Sums down the columns: it would be visited across.
  CHECK(groups("a: f32[3, 4] = input; m = sum a axes=[0] keepdims=true; x = permute a axes=[1, 0]; "
               "n = permute m axes=[1, 0]; d = sub x n; return d") == "sum | sub");
}

TEST_CASE("what several reductions of one kernel read through views is made there",
          "[jit][fusion]") {
  const std::string sums =
      "a: f32[3, 4] = input; b = exp a; c = permute b axes=[1, 0]; "
      "s = sum c axes=[1] keepdims=false; d = mul b b; e = permute d axes=[1, 0]; "
      "t = sum e axes=[1] keepdims=false; ";
  CHECK(groups(sums + "u = sub s t; return u") == "exp sum mul sum sub");
  CHECK(groups(sums + "return s t") == "exp sum mul sum");
  // Somebody else reads it, too: it is stored there; or through another view.
  CHECK(groups(sums + "u = sub s t; v = matmul b c; return u v") == "exp sum mul sum sub");
  CHECK(groups("a: f32[4, 4] = input; b = exp a; c = permute b axes=[1, 0]; "
               "s = sum c axes=[1] keepdims=false; t = sum b axes=[1] keepdims=false; "
               "u = sub s t; return u") == "exp sum | sum sub");
  // Down the first axis it would be visited across.
  const std::string down =
      "a: f32[3, 4] = input; b = exp a; c = permute b axes=[1, 0]; "
      "s = sum c axes=[0] keepdims=false; d = mul b b; return d s";
  CHECK(groups(down) == "exp mul | sum");
  const auto spread = [](const Tensor& x) -> Tensor {
    const Tensor y = exp(permute(x, {0, 3, 1, 2}));
    return sum(y * y, {2, 3}) - square(sum(y, {2, 3}));
  };
  CHECK(kernel_sizes(spread, tenths({2, 5, 6, 20})).size() == 1);
}

TEST_CASE("a reduction over axes that do not merge is one kernel with what its operand is made of",
          "[jit][fusion]") {
  // Elsewhere, as on a GPU, what is reduced is copied first: with the same bits.
  const bool brings_together = backend(default_device()).limits().rows_of_vectors > 0;
  const auto spread = [](const Tensor& x) -> Tensor {
    const Tensor y = exp(x);
    return sum(y * y, {0, 2, 3}) - square(sum(y, {0, 2, 3}));
  };
  CHECK((kernel_sizes(spread, tenths({2, 5, 6, 20})).size() == 1) == brings_together);
  const auto shifted = [](const Tensor& x) -> Tensor { return x - mean(x, {0, 2}, keepdims); };
  CHECK((kernel_sizes(shifted, tenths({3, 5, 40})).size() == 1) == brings_together);
  CHECK((kernel_sizes(shifted, tenths({3, 5, 4000})).size() == 1) == brings_together);
  // An index along such an axis; what lies otherwise, or is repeated.
  const auto weighted = [](const Tensor& x) -> Tensor {
    const Tensor place = reshape(arange(0, 3, 1, f32), {3, 1, 1});
    return sum(x * place * reshape(arange(0, 40, 1, f32), {1, 1, 40}), {0, 2});
  };
  kernel_sizes(weighted, tenths({3, 5, 40}));
  const auto found = [](const Tensor& x) -> Tensor {
    const Tensor rows = reshape(arange(0, 600, 1, i64), {3, 5, 40}) % 3;
    return sum(gather(x, 0, rows), {0, 2});
  };
  kernel_sizes(found, tenths({3, 5, 40}));
  const auto turned = [](const Tensor& x) -> Tensor {
    return sum(x * permute(x, {2, 1, 0}), {0, 2});
  };
  kernel_sizes(turned, tenths({40, 5, 40}));
  // Rows of many short parts are copied: one after the other they would leap through memory.
  const std::string sums = "b = exp a; c = sum b axes=[0, 2] keepdims=false; return c";
  CHECK(groups("a: f32[100, 3, 40] = input; " + sums) == "exp sum");
  CHECK(groups("a: f32[100, 3, 40] = input; " + sums, true, {}) == "exp");
  CHECK(groups("a: f32[20, 3, 2] = input; " + sums) == "exp sum");
  CHECK(groups("a: f32[3000, 3, 4] = input; " + sums) == "exp");
}

TEST_CASE("what is checked is not read through a view that hides some of it", "[jit][fusion]") {
  // f reads half of d: alone, the check would not see the other half.
  CHECK(groups("a: i64[4] = input; d = check_nonzero a checker=1; e = slice d starts=[0] sizes=[2] "
               "steps=[1]; f = neg e; return f") == "check_nonzero | neg");
}

TEST_CASE("numbers made of numbers are in no group", "[jit][fusion]") {
  CHECK(groups("a: f32[4] = input; s: weak f64[] = input; t = neg s; u: weak f32[] = cast t "
               "dtype=f32 weak=true; b = mul a u; return b") == "mul");
}

TEST_CASE("a number that is returned is in memory", "[jit][fusion]") {
  CHECK(groups("s: weak f64[] = input; t = neg s; return t") == "neg");
}

TEST_CASE("a pricing chain is one kernel", "[jit][fusion]") {
  const auto price = [](const Tensor& s) {
    const Tensor k = s * 1.1 - 0.05;
    const Tensor t = sqrt(s) * 0.5 + 0.1;
    const Tensor deviation = 0.3 * sqrt(t);
    const Tensor d1 = (log(s / k) + (0.02 + 0.5 * 0.09) * t) / deviation;
    const Tensor d2 = d1 - deviation;
    const auto normal = [](const Tensor& x) { return 0.5 * (1.0 + erf(x * 0.7071067811865476)); };
    const Tensor discounted = k * exp(-0.02 * t);
    const Tensor call = s * normal(d1) - discounted * normal(d2);
    return call - s + discounted;
  };
  const std::vector<std::size_t> sizes = kernel_sizes(price, tenths({1000}));
  REQUIRE(sizes.size() == 1);
  CHECK(sizes[0] >= 25);
}

TEST_CASE("a chain longer than a kernel may be is cut, with the same bits", "[jit][fusion]") {
  const auto f = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 300; ++i) y = y * 0.99 + x;
    return y;
  };
  const std::vector<std::size_t> sizes = kernel_sizes(f, tenths({50}));
  CHECK(sizes.size() >= 2);
  CHECK(sizes.size() <= 8);
}

TEST_CASE("a kernel is cut before its code takes long to generate", "[jit][fusion]") {
  const auto f = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 60; ++i) y = sin(y) + x;
    return y;
  };
  // 180 instructions each; all kernels but the last are of one structure.
  const std::vector<std::size_t> sizes = kernel_sizes(f, tenths({50}));
  CHECK(sizes.size() >= 8);
  for (const std::size_t size : sizes) CHECK(size <= 12);
}

TEST_CASE("a kernel has no more operands than launches take", "[jit][fusion]") {
  SECTION("numbers") {
    const auto f = [](const Tensor& x) {
      Tensor y = x;
      for (int i = 0; i < 200; ++i) y = y * 0.99 + 0.01 * i;
      return y;
    };
    CHECK(kernel_sizes(f, tenths({50})).size() > 5);
  }
  SECTION("results") {
    const auto f = [](const Tensor& x) {
      std::vector<Tensor> results = {x};
      for (int i = 0; i < 190; ++i) results.push_back(results.back() + x);
      return results;
    };
    const auto g = compile(f);
    const std::vector<Tensor> expected = f(tenths({50}));
    const std::vector<Tensor> got = settle(g, tenths({50}));
    REQUIRE(g.explain().plan_calls > 0);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
  }
  SECTION("views of one tensor, and sums of what is made of them") {
    const auto f = [](const Tensor& x) {
      std::vector<Tensor> results = {x[0]};
      for (int i = 1; i < 160; ++i) {
        results.push_back(results.back() * x[i]);
        results[results.size() - 2] = sum(results[results.size() - 2], {1});
      }
      return results;
    };
    const auto g = compile(f);
    const std::vector<Tensor> expected = f(tenths({160, 3, 5}));
    const std::vector<Tensor> got = settle(g, tenths({160, 3, 5}));
    const Explanation explanation = g.explain();
    REQUIRE(explanation.plan_calls > 0);
    // Parts of some dozen operations, not one of each.
    CHECK(explanation.signatures.at(0).plan.steps.size() < 40);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
  }
  SECTION("sums beside what is computed of numbers in memory") {
    const auto f = grad([](const std::vector<Tensor>& given) {
      Tensor y = zeros_like(given[0]);
      for (int i = 0; i < 80; ++i) y = y * given[0] + given[1][i];
      return sum(y);
    });
    const auto g = compile(f);
    const std::vector<Tensor> given = {tenths({10000}) * 1e-3, tenths({80})};
    const std::vector<Tensor> expected = f(given), got = settle(g, given);
    REQUIRE(g.explain().plan_calls > 0);
    for (std::size_t i = 0; i < 2; ++i) CHECK(same_bits(got[i], expected[i]));
  }
  SECTION("results of a reduction's group") {
    const auto f = [](const Tensor& x) {
      const Tensor centred = exp(x - max(x, {1}, keepdims));
      std::vector<Tensor> results;
      for (int i = 0; i < 130; ++i) {
        results.push_back(centred / sum(centred, {1}, keepdims));
        results.push_back(centred * (i + 2));
      }
      return results;
    };
    const auto g = compile(f);
    const std::vector<Tensor> expected = f(tenths({5, 6}));
    const std::vector<Tensor> got = settle(g, tenths({5, 6}));
    REQUIRE(g.explain().plan_calls > 0);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
  }
}

TEST_CASE("numbers made of many numbers are computed once", "[jit][fusion]") {
  // As a formula in every kernel it would have 2^40 operations.
  const auto f = [](const Tensor& x, const Scalar& s) {
    Tensor number = s * 1;
    for (int i = 0; i < 40; ++i) number = number * number;
    return x + number;
  };
  const auto g = compile(f);
  CHECK(same_bits(settle(g, tenths({5}), 1.0), f(tenths({5}), 1.0)));
  CHECK(same_bits(g(tenths({5}), 0.75), f(tenths({5}), 0.75)));
}

TEST_CASE("the work of planning a chain is proportional to its length", "[jit][fusion]") {
  const auto seconds_of = [](int length) {
    const auto f = [length](const Tensor& x) {
      const Tensor early = tanh(x);
      Tensor y = x;
      for (int i = 0; i < length; ++i) y = i % 2 == 0 ? y * 0.999 : y + early;
      return y;
    };
    const auto g = compile(f, {.check = Check::never});
    const Tensor x = tenths({50});
    CHECK(same_bits(settle(g, x), f(x)));
    REQUIRE(g.explain().plan_calls == 1);
    const jit::PlanReport plan = g.explain().signatures[0].plan;
    return plan.passes_s + plan.fusion_s;
  };
  const double shorter = seconds_of(2000);
  // 8 times the length; 64 times the work if quadratic. The least of several, as others compute,
  // too.
  double longer = seconds_of(16000);
  const auto is_proportional = [&] { return longer < 24 * shorter + 0.05; };
  for (int i = 0; i < 4 && !is_proportional(); ++i) longer = std::min(longer, seconds_of(16000));
  INFO(shorter << " and " << longer);
  CHECK(is_proportional());
}

TEST_CASE("fusion is switched off by name", "[jit][fusion]") {
  const WithoutPasses off({"fuse"});
  const auto f = [](const Tensor& x) { return exp(x) * x + 1.0; };
  CHECK(kernel_sizes(f, tenths({30})) == std::vector<std::size_t>{1, 1, 1});
}
