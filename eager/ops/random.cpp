#include "eager/ops/random.h"

#include "core/isa.h"
#include "core/loop.h"
#include "core/random_words.h"
#include "eager/apply.h"
#include "eager/elements.h"
#include "eager/infer.h"
#include "eager/ops/cast.h"
#include "eager/ops/create_op.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace nitinol {
namespace {

/// F over arrays: the first `count` words of an element, and what follows them. Any word stands for
/// those that it does not use.
template <class F, std::size_t count>
struct OverWords {
  template <class... A>
  constexpr auto operator()(A... arguments) const {
    const std::tuple<A...> all(arguments...);
    const auto word = [&]<std::size_t k>(std::integral_constant<std::size_t, k>) {
      return convert<uint32_t>(std::get < k < count ? k : 0 > (all));
    };
    return [&]<std::size_t... k, std::size_t... rest>(std::index_sequence<k...>,
                                                      std::index_sequence<rest...>) {
      return F{}(std::array{word(std::integral_constant<std::size_t, k>())...},
                 std::get<count + rest>(all)...);
    }
    (std::make_index_sequence<4>(), std::make_index_sequence<sizeof...(A) - count>());
  }
};

/// Loops over {index, key, counter, rest...}: the words of a block, then the formula.
template <class F, class Words, class... Rest>
struct Draws;
template <class F, std::size_t... word, class... Rest>
struct Draws<F, std::index_sequence<word...>, Rest...> {
  static constexpr std::size_t count = sizeof...(word);
  using Formula = OverWords<F, count>;
  template <std::size_t>
  using Word = uint64_t;
  using R = formulas::Result<Formula, Word<word>..., Rest...>;

  template <Isa isa>
  static void run(const void* const* in, void* out, int64_t n) {
    const auto from = [&](std::size_t k, int64_t first) {
      return static_cast<const int64_t*>(in[k]) + first;
    };
    RandomWords made;
    for (int64_t first = 0; first < n; first += random_block) {
      const int64_t size = std::min(random_block, n - first);
      fill_random_words<count>(isa)(from(0, first), from(1, first), from(2, first), size, made);
      const std::array<const void*, count + sizeof...(Rest)> arguments = [&]<std::size_t... k>(
          std::index_sequence<k...>) {
        return std::array<const void*, count + sizeof...(Rest)>{made.words[word].data()...,
                                                                from(3 + k, first)...};
      }
      (std::index_sequence_for<Rest...>());
      loops_of<Formula, R, Word<word>..., Rest...>.at(isa)(arguments.data(),
                                                           static_cast<R*>(out) + first, size);
    }
  }

  static constexpr Loops loops = {run<Isa::baseline>, run<Isa::avx2>, run<Isa::avx512>};
};

/// A create op of i64 inputs {key, counter, rest...} with results of one type R, of an F over an
/// element's words, of which it uses the first `count`, and `rest`.
template <class R, std::size_t count, class... Rest, class F>
consteval Op random_op(std::string_view name, F, std::string_view summary) {
  constexpr auto emit = [](std::span<const Expr> arguments) {
    const auto bits = [&](std::size_t k) { return convert<uint64_t>(arguments[k]); };
    return [&]<std::size_t... rest>(std::index_sequence<rest...>) {
      return Expr(F{}(philox(bits(0), bits(2), bits(1)), arguments[3 + rest]...));
    }
    (std::index_sequence_for<Rest...>());
  };
  constexpr auto loops = [](ScalarType, DType result) {
    if (compute_type(result) != scalar_type_of<R>) return Loops{};
    return Draws<F, std::make_index_sequence<count>, Rest...>::loops;
  };
  return {.name = name,
          .kind = OpKind::create,
          .arity = 2 + static_cast<int>(sizeof...(Rest)),
          .accepts = {i64},
          .attr_names = create_attrs,
          .infer = infer_create,
          .formula = {.emit = emit, .loops = loops},
          .summary = summary};
}

template <class T>
constexpr auto uniform_formula = [](const auto& words) { return uniform_of_words<T>(words); };
template <class T>
constexpr auto normal_formula = [](const auto& words) { return normal_of_words<T>(words); };
// The upper half of bits * range is uniform in [0, range).
constexpr auto integer_formula = [](const auto& words, auto low, auto range) {
  return convert<int64_t>(mul_high(bits_of_words(words), convert<uint64_t>(range))) + low;
};

constexpr std::array<std::string_view, 1> permutation_attrs = {"count"};

Spec infer_permutation(const Op& op, Inputs inputs, const Attrs& attrs) {
  if (inputs[0]->shape() != Shape{2}) {
    throw Error(ErrorKind::shape, {.where = std::string(op.name),
                                   .what = "the generator's state " + describe(*inputs[0]),
                                   .expected = "shape [2]",
                                   .got = to_string(inputs[0]->shape()),
                                   .fix = {}});
  }
  Spec spec = {.dtype = i64,
               .shape = {attr<int64_t>(attrs, 0)},
               .is_weak = false,
               .device = inputs[0]->device()};
  check_sizes(op, spec.shape);
  return spec;
}

LibraryCall call_permutation(Inputs inputs, const Attrs&, const Spec& spec) {
  return library_call(LibraryCall::Kind::permutation, inputs, spec);
}

constexpr auto random_numbers = family({
    random_op<float, 1>("rand_f32", uniform_formula<float>, "Uniform float32 in [0, 1)."),
    random_op<double, 2>("rand_f64", uniform_formula<double>, "Uniform float64 in [0, 1)."),
    random_op<float, 2>("randn_f32", normal_formula<float>, "Normal float32."),
    random_op<double, 4>("randn_f64", normal_formula<double>, "Normal float64."),
    random_op<int64_t, 2, int64_t, int64_t>("randint", integer_formula,
                                            "Uniform int64 in [low, low + range)."),
    {.name = "permutation",
     .kind = OpKind::index,
     .accepts = DTypes{i64},
     .attr_names = permutation_attrs,
     .infer = infer_permutation,
     .call = call_permutation,
     .gradient = {.is_zero = true},
     .summary = "The numbers 0 to count - 1 in random order, of {key, counter}."},
});

/// The generator's key and counter for one op.
struct Draw {
  Tensor key, counter;
};

Draw draw_for(std::string_view where, const Shape& shape, const Generator& generator) {
  check_shape(where, shape);
  const Tensor state = generator.draw(element_count(shape));
  return {state[0], state[1]};
}

[[noreturn]] void throw_dtype(std::string_view where, DType dtype, std::string expected,
                              std::string fix) {
  throw Error(ErrorKind::dtype, {.where = std::string(where),
                                 .what = "the result's dtype",
                                 .expected = std::move(expected),
                                 .got = std::string(name_of(dtype)),
                                 .fix = std::move(fix)});
}

}  // namespace

Tensor rand(const Shape& shape, DType dtype, const Generator& generator) {
  if (dtype != f32 && dtype != f64) {
    throw_dtype("rand", dtype, "float32 or float64", "Cast the result; it may round to 1.");
  }
  const auto [key, counter] = draw_for("rand", shape, generator);
  return apply(dtype == f32 ? random_numbers["rand_f32"] : random_numbers["rand_f64"],
               {&key, &counter}, {shape, dtype});
}

Tensor randn(const Shape& shape, DType dtype, const Generator& generator) {
  if (!is_floating(dtype)) throw_dtype("randn", dtype, "a floating dtype", "Use randint.");
  const auto [key, counter] = draw_for("randn", shape, generator);
  return apply(dtype == f64 ? random_numbers["randn_f64"] : random_numbers["randn_f32"],
               {&key, &counter}, {shape, dtype});
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype,
               const Generator& generator) {
  if (!is_integer(dtype)) throw_dtype("randint", dtype, "an integer dtype", "Cast the result.");
  if (low >= high) {
    throw Error(ErrorKind::value, {.where = "randint",
                                   .what = fmt::format("the range [{}, {})", low, high),
                                   .expected = "low < high",
                                   .got = "an empty range",
                                   .fix = "high itself is never drawn."});
  }
  for (const int64_t end : {low, high - 1}) {
    if (!fits(dtype, end)) throw_does_not_fit("randint", dtype, end, Misfit::element);
  }
  const auto [key, counter] = draw_for("randint", shape, generator);
  const Tensor first = constant(low, i64, false, generator.device());
  const auto length = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const Tensor range = constant(static_cast<int64_t>(length), i64, false, generator.device());
  return cast(apply(random_numbers["randint"], {&key, &counter, &first, &range}, {shape, i64}),
              dtype);
}

Tensor permutation(Integer n, const Generator& generator) {
  if (n < 0) throw_value("permutation", "n", "at least 0", fmt::format("{}", int64_t{n}));
  const Tensor state = generator.draw(n);
  return apply(random_numbers["permutation"], {&state}, {int64_t{n}});
}

namespace {

void check_device(const char* where, const Tensor& like, const Generator& generator) {
  if (like.device() == generator.device()) return;
  throw Error(ErrorKind::device, {.where = where,
                                  .what = "the generator, for a tensor like " + describe(like),
                                  .expected = "one on " + describe(like.device()),
                                  .got = "one on " + describe(generator.device()),
                                  .fix = "Make it there: Generator(seed, x.device())."});
}

}  // namespace

Tensor rand_like(const Tensor& like) {
  return rand_like(like, default_generator(like.device()));
}

Tensor rand_like(const Tensor& like, const Generator& generator) {
  check_device("rand_like", like, generator);
  return rand(like.shape(), like.dtype(), generator);
}

Tensor randn_like(const Tensor& like) {
  return randn_like(like, default_generator(like.device()));
}

Tensor randn_like(const Tensor& like, const Generator& generator) {
  check_device("randn_like", like, generator);
  return randn(like.shape(), like.dtype(), generator);
}

std::span<const Op> random_ops() {
  return random_numbers.ops;
}

}  // namespace nitinol
