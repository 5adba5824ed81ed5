#include "eager/ops/random.h"

#include "eager/apply.h"
#include "eager/elements.h"
#include "eager/ops/cast.h"
#include "eager/ops/create_op.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

namespace nitinol {
namespace {

/// A create op of i64 inputs {key, counter, ...} with results of one type R.
template <class R, std::size_t arity, class F>
consteval Op random_op(std::string_view name, F, std::string_view summary) {
  constexpr auto emit = [](std::span<const Expr> arguments) {
    return formulas::emit<F>(arguments, std::make_index_sequence<arity>{});
  };
  constexpr auto loops = [](ScalarType, DType result) {
    if (compute_type(result) != scalar_type_of<R>) return Loops{};
    return formulas::loops_for<F, arity, int64_t>();
  };
  return {.name = name,
          .kind = OpKind::create,
          .arity = static_cast<int>(arity) - 1,
          .accepts = {i64},
          .attr_names = create_attrs,
          .infer = infer_create,
          .formula = {.emit = emit, .loops = loops},
          .summary = summary};
}

template <class T>
constexpr auto uniform_formula = [](auto index, auto key, auto counter) {
  return random_uniform<T>(convert<uint64_t>(index), convert<uint64_t>(counter),
                           convert<uint64_t>(key));
};
template <class T>
constexpr auto normal_formula = [](auto index, auto key, auto counter) {
  return random_normal<T>(convert<uint64_t>(index), convert<uint64_t>(counter),
                          convert<uint64_t>(key));
};
// The upper half of bits * range is uniform in [0, range).
constexpr auto integer_formula = [](auto index, auto key, auto counter, auto low, auto range) {
  const auto bits =
      random_bits(convert<uint64_t>(index), convert<uint64_t>(counter), convert<uint64_t>(key));
  return convert<int64_t>(mul_high(bits, convert<uint64_t>(range))) + low;
};

constexpr auto random_numbers = family({
    random_op<float, 3>("rand_f32", uniform_formula<float>, "Uniform float32 in [0, 1)."),
    random_op<double, 3>("rand_f64", uniform_formula<double>, "Uniform float64 in [0, 1)."),
    random_op<float, 3>("randn_f32", normal_formula<float>, "Normal float32."),
    random_op<double, 3>("randn_f64", normal_formula<double>, "Normal float64."),
    random_op<int64_t, 5>("randint", integer_formula, "Uniform int64 in [low, low + range)."),
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
