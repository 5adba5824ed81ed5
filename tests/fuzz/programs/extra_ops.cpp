#include "tests/fuzz/programs/extra_ops.h"

#include "autograd/gradient.h"
#include "eager/ops/ops.h"
#include "tests/outside_ops.h"

#include <array>

namespace nitinol::fuzz {
namespace {

constexpr std::array<std::string_view, 1> shape_attrs = {"shape"};
constexpr std::array<std::string_view, 2> create_attrs = {"shape", "dtype"};

const Dims& shape_of(const Attrs& attrs) {
  return std::get<Dims>(attrs[0]);
}
DType dtype_of(const Attrs& attrs) {
  return std::get<DType>(attrs[1]);
}

/// A composite of `arity` inputs.
consteval Op extra(std::string_view name, int arity, Tensor (*expand)(Inputs, const Attrs&),
                   std::span<const std::string_view> attrs = {}) {
  return {.name = name,
          .kind = OpKind::composite,
          .arity = arity,
          .attr_names = attrs,
          .expand = expand,
          .summary = "For random programs."};
}

constinit const Op stop_op =
    extra("fuzz.stop_gradient", 1, [](Inputs x, const Attrs&) { return stop_gradient(*x[0]); });
constinit const Op no_grad_op = extra("fuzz.no_grad", 1, [](Inputs x, const Attrs&) {
  return no_grad([&] { return *x[0] * *x[0]; });
});
/// The operand itself, through a scope that notes nothing.
constinit const Op no_grad_same_op = extra("fuzz.no_grad_same", 1, [](Inputs x, const Attrs&) {
  return no_grad([&] { return Tensor(*x[0]); });
});
constinit const Op flip_op =
    extra("fuzz.flip", 1, [](Inputs x, const Attrs&) { return flip(*x[0]); });
constinit const Op transpose_op =
    extra("fuzz.transpose", 1, [](Inputs x, const Attrs&) { return transpose(*x[0]); });
constinit const Op full_op = extra(
    "fuzz.full", 1,
    [](Inputs x, const Attrs& attrs) { return full(shape_of(attrs), *x[0], dtype_of(attrs)); },
    create_attrs);
constinit const Op rand_op = extra(
    "fuzz.rand", 0,
    [](Inputs, const Attrs& attrs) { return nitinol::rand(shape_of(attrs), dtype_of(attrs)); },
    create_attrs);
constinit const Op randn_op = extra(
    "fuzz.randn", 0,
    [](Inputs, const Attrs& attrs) { return randn(shape_of(attrs), dtype_of(attrs)); },
    create_attrs);
constinit const Op randint_op = extra(
    "fuzz.randint", 0, [](Inputs, const Attrs& attrs) { return randint(-20, 20, shape_of(attrs)); },
    shape_attrs);
constinit const Op range_op = extra(
    "fuzz.arange", 0,
    [](Inputs, const Attrs& attrs) {
      return reshape(arange(element_count(shape_of(attrs)), dtype_of(attrs)), shape_of(attrs));
    },
    create_attrs);

constexpr std::array<std::string_view, 1> number_attr = {"number"};
constexpr std::array<std::string_view, 1> which_attr = {"keepdims"};
constinit const Op noted_op = extra(
    "fuzz.host.noted", 1,
    [](Inputs x, const Attrs& attrs) { return test::noted(*x[0], std::get<int64_t>(attrs[0])); },
    number_attr);
/// Both results, or the second alone.
constinit const Op turned_op = extra(
    "fuzz.host.turned", 1,
    [](Inputs x, const Attrs& attrs) {
      const auto [flat, same] = test::turned(*x[0]);
      return std::get<bool>(attrs[0]) ? reshape(flat, same.shape()) : same;
    },
    which_attr);
constinit const Op turned_twice_op = extra("fuzz.host.turned_twice", 1, [](Inputs x, const Attrs&) {
  const auto [flat, same] = test::turned(*x[0]);
  return concat({flat, reshape(same, {same.size()})}, 0);
});

}  // namespace

std::span<const Op* const> extra_ops() {
  static constexpr auto ops = std::to_array<const Op*>(
      {&stop_op, &no_grad_op, &no_grad_same_op, &flip_op, &transpose_op, &full_op, &rand_op,
       &randn_op, &randint_op, &range_op, &noted_op, &turned_op, &turned_twice_op});
  return ops;
}

}  // namespace nitinol::fuzz
