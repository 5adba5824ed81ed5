// Every kind of source, seen through every view and pair of views, read by every kind of group:
// compiled against eager, bit for bit.
//
// A group walks through each operand by strides, with its reduced axes as one loop. Whether it may
// do so depends on where the operand comes from, on the views between, and on what reads it; any
// two of the three may agree and the third be wrong. So nothing is drawn here: all are tried. The
// cases of one source and one reader are one function, whose Plan has a step or more for each.
#include "core/isa.h"
#include "tests/jit/calls.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <array>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string_view>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// What origins are made of: an argument as it may lie in memory, a number, and a generator.
struct Given {
  Tensor x;
  Scalar number;
};

/// Which tensors are drawn.
struct Kind {
  Shape shape;
  DType dtype;
};

struct Origin {
  std::string_view name;
  std::function<Tensor(const Given&, const Kind&, const Generator&)> make;
};

const std::vector<Origin> origins = {
    {"input", [](const Given& g, const Kind&, const Generator&) { return g.x; }},
    {"computed",
     [](const Given& g, const Kind& k, const Generator&) { return cast(g.x * 3 - 1, k.dtype); }},
    {"number", [](const Given& g, const Kind& k,
                  const Generator&) { return expand(full({}, g.number, k.dtype), k.shape); }},
    {"filled", [](const Given& g, const Kind& k,
                  const Generator&) { return full(k.shape, g.number, k.dtype); }},
    {"arange",
     [](const Given&, const Kind& k, const Generator&) {
       return reshape(arange(0, element_count(k.shape), 1, k.dtype), k.shape);
     }},
    {"computed positions",
     [](const Given& g, const Kind& k, const Generator&) {
       const Tensor positions = arange(-3.0, element_count(k.shape) - 3, 1, k.dtype);
       return reshape(positions, k.shape) * g.number;
     }},
    {"random", [](const Given&, const Kind& k,
                  const Generator& generator) { return randn(k.shape, k.dtype, generator); }},
    {"random integers",
     [](const Given&, const Kind& k, const Generator& generator) {
       return cast(randint(-20, 20, k.shape, i64, generator), k.dtype);
     }},
    {"row value", [](const Given& g, const Kind& k,
                     const Generator&) { return expand(sum(g.x, {-1}, KeepDims::yes), k.shape); }},
    {"centred", [](const Given& g, const Kind&,
                   const Generator&) { return g.x - sum(g.x, {-1}, KeepDims::yes); }},
    {"library result",
     [](const Given& g, const Kind&, const Generator&) { return cumsum(g.x, 0); }},
};

/// A view, or nothing if the tensor has no such view.
using View = std::optional<Tensor> (*)(const Tensor&);

const std::vector<View> views = {
    [](const Tensor& x) -> std::optional<Tensor> { return flip(x, {0}); },
    [](const Tensor& x) -> std::optional<Tensor> { return flip(x, {-1}); },
    [](const Tensor& x) -> std::optional<Tensor> { return flip(x); },
    [](const Tensor& x) -> std::optional<Tensor> {
      if (x.rank() < 2) return std::nullopt;
      return transpose(x, 0, -1);
    },
    [](const Tensor& x) -> std::optional<Tensor> {
      if (x.rank() != 3) return std::nullopt;
      return permute(x, {1, 2, 0});
    },
    [](const Tensor& x) -> std::optional<Tensor> {
      return slice(x, -1, {1, Range::open});
    },
    [](const Tensor& x) -> std::optional<Tensor> {
      return slice(x, 0, {Range::open, Range::open, 2});
    },
    [](const Tensor& x) -> std::optional<Tensor> {
      return slice(x, -1, {Range::open, Range::open, -2});
    },
    [](const Tensor& x) -> std::optional<Tensor> { return reshape(x, {-1}); },
    [](const Tensor& x) -> std::optional<Tensor> {
      if (x.size() % 6 != 0) return std::nullopt;
      return reshape(x, {-1, 6});
    },
    [](const Tensor& x) -> std::optional<Tensor> {
      if (x.rank() > 3) return std::nullopt;
      return unsqueeze(x, 1);
    },
    [](const Tensor& x) -> std::optional<Tensor> {
      if (x.rank() > 3) return std::nullopt;
      Shape shape = x.shape();
      shape.insert(0, 2);
      return expand(x, shape);
    },
};

/// What reads the view: `x` is the tensor that it is a view of.
struct Reader {
  std::string_view name;
  Tensor (*read)(const Tensor& view, const Tensor& x);
};

const std::vector<Reader> readers = {
    {"elementwise", [](const Tensor& v, const Tensor&) { return v * 2 + 1; }},
    {"lanes", [](const Tensor& v, const Tensor&) { return sum(v, {-1}); }},
    {"sequential", [](const Tensor& v, const Tensor&) { return sum(v * v, {0}); }},
    {"outer axes",
     [](const Tensor& v, const Tensor&) {
       return v.rank() < 3 ? max(v, {0}) : sum(v, {0, 1});
     }},
    {"split axes",
     [](const Tensor& v, const Tensor&) {
       return v.rank() < 3 ? min(v, {-1}) : sum(v, {0, 2});
     }},
    {"all", [](const Tensor& v, const Tensor&) { return sum(v); }},
    {"two of all", [](const Tensor& v, const Tensor&) { return max(v) + sum(exp(v * 0.125)); }},
    {"stages", [](const Tensor& v, const Tensor&) { return softmax(v, -1); }},
    {"stages of columns", [](const Tensor& v, const Tensor&) { return softmax(v, 0); }},
    {"stages of all", [](const Tensor& v, const Tensor&) { return logsumexp(v); }},
    {"moments", [](const Tensor& v, const Tensor&) { return var(v, {-1}) * v.shape()[0]; }},
    {"arg_max", [](const Tensor& v, const Tensor&) { return argmax(v, -1); }},
    {"arg_min", [](const Tensor& v, const Tensor&) { return argmin(v + 1, 0); }},
    {"arg of all", [](const Tensor& v, const Tensor&) { return argmax(reshape(v, {-1}), 0); }},
    {"both", [](const Tensor& v,
                const Tensor& x) { return v.shape() == x.shape() ? sum(v * x) + v : sum(v) + x; }},
    {"both by rows",
     [](const Tensor& v, const Tensor& x) {
       return v.shape() == x.shape() ? sum(v - x, {-1}) : sum(v, {-1});
     }},
};

/// No view, one or two, one after the other.
using Views = std::vector<View>;

/// `x` through all views of the path.
std::optional<Tensor> through(const Views& path, const Tensor& x) {
  std::optional<Tensor> seen = x;
  for (const View view : path) {
    if (seen) seen = view(*seen);
  }
  return seen && seen->size() > 0 ? seen : std::nullopt;
}

/// Those paths through which something is seen of a tensor like `x`.
std::vector<Views> paths_of(const Tensor& x, bool with_pairs) {
  std::vector<Views> paths = {{}};
  for (const View first : views) {
    paths.push_back({first});
    for (const View second : views) {
      if (with_pairs) paths.push_back({first, second});
    }
  }
  std::erase_if(paths, [&](const Views& path) { return !through(path, x); });
  return paths;
}

/// `x` with its elements elsewhere: in order, every second one, backwards, or one for all.
std::vector<Tensor> layouts_of(const Tensor& x) {
  std::vector<Tensor> out = strided_variants(x);
  out.push_back(expand(slice(x, 0, {0, 1}), x.shape()));
  out.push_back(x);
  return out;
}

/// Each view of one source has a source of its own: several readers of one value are another case,
/// which "both" is.
void check(const Origin& origin, const Reader& reader, const Kind& kind, const Tensor& x,
           bool with_pairs) {
  const Generator generator(7);
  const std::vector<Views> paths = paths_of(x, with_pairs);
  const auto f = [&](const Tensor& argument, const Scalar& number) {
    std::vector<Tensor> results;
    for (const Views& path : paths) {
      const Tensor made = origin.make({argument, number}, kind, generator);
      results.push_back(reader.read(*through(path, made), made));
    }
    return results;
  };
  const auto g = compile(f, {.check = Check::never});
  const Scalar number = 0.375;
  generator.manual_seed(1);
  const std::vector<Tensor> expected = f(x, number);
  std::vector<Tensor> got;
  for (int call = 0; call < 3; ++call) {
    generator.manual_seed(1);
    got = g(x, number);
  }
  INFO(origin.name << ", " << reader.name << ", " << describe(x));
  REQUIRE(g.explain().plan_calls == 1);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (same_bits(got[i], expected[i])) continue;
    INFO("view " << i << ": " << to_string(got[i]) << " for " << to_string(expected[i]));
    CHECK(same_bits(got[i], expected[i]));
  }
}

}  // namespace

TEST_CASE("every source through every view into every reader", "[jit][views]") {
  const auto [turn, dtype, shape] =
      GENERATE(table<int, DType, Shape>({{0, f32, {3, 4}}, {1, f32, {2, 3, 4}}, {2, f16, {3, 4}}}));
  const Tensor x = random_values(dtype, shape, 3);
  // At a lower instruction set, on other devices and for the text of a GPU each pair of the two has
  // one of the shapes.
  const bool is_whole = current_isa() == host_isa() && default_device() == Device{} &&
                        std::getenv("NITINOL_CASES") == nullptr;
  int pair = 0;
  for (const Origin& origin : origins) {
    for (const Reader& reader : readers) {
      if (is_whole || pair++ % 3 == turn) check(origin, reader, {shape, dtype}, x, dtype == f32);
    }
  }
}

TEST_CASE("every layout of an argument through every view into every reader", "[jit][views]") {
  const Shape shape = {2, 3, 4};
  for (const Tensor& x : layouts_of(random_values(f32, shape, 4))) {
    for (const Reader& reader : readers) check(origins[0], reader, {shape, f32}, x, true);
    for (const Reader& reader : readers) check(origins[1], reader, {shape, f32}, x, false);
  }
}
