// What ops say about operands that do not fit.
#include "eager/ops/ops.h"

#include "core/error.h"
#include "nitinol.h"

#include <catch2/catch.hpp>

using namespace nitinol;

namespace {

/// The kind and message of the Error that f throws.
template <class F>
std::string error_of(F f) {
  try {
    static_cast<void>(f());
  } catch (const Error& error) {
    return std::string(name_of(error.kind())) + ": " + error.message();
  }
  return "no error";
}

}  // namespace

#define NITINOL_CHECK_ERROR(expression, message) \
  CHECK(error_of([&] { return (expression); }) == (message))

TEST_CASE("shapes that do not fit", "[errors]") {
  const Tensor x = zeros({2, 3, 4});
  NITINOL_CHECK_ERROR(
      x + zeros({5}),
      "shape: add: shapes [2, 3, 4] and [5] do not broadcast: expected equal sizes, or 1, in "
      "dimension 1 from the end, got 4 and 5.\nReshape one of them, or insert a dimension of "
      "size 1 with unsqueeze.");
  NITINOL_CHECK_ERROR(
      matmul(x, x),
      "shape: matmul: inner dimensions of float32[2, 3, 4] and float32[2, 3, 4] differ: "
      "expected b.shape[-2] == 4, got 3.\nTranspose an operand, or check the layer's sizes.");
  NITINOL_CHECK_ERROR(
      reshape(x, {5, -1}),
      "shape: reshape: float32[2, 3, 4] as shape [5, 4]: expected a shape of 24 elements, got "
      "20.\nOne size may be -1: it is computed.");
  NITINOL_CHECK_ERROR(
      reshape(zeros({0, 5}), {0, -1}),
      "shape: reshape: float32[0, 5] to [0, -1]: expected sizes other than 0 beside the -1, got "
      "[0, -1].\nAny size would do for the -1: write the one that you mean.");
  NITINOL_CHECK_ERROR(
      expand(x, {2, 2, 4}),
      "shape: expand: float32[2, 3, 4] to shape [2, 2, 4]: expected sizes equal or 1, counted "
      "from the last axis, got [2, 3, 4].\nInsert axes of size 1 with unsqueeze or reshape.");
  NITINOL_CHECK_ERROR(
      concat({x, x[0]}),
      "shape: concat: float32[2, 3, 4] and float32[3, 4] along axis 0: expected equal sizes "
      "along all axes but 0, got [3, 4].\nReshape, or use stack for a new axis.");
  NITINOL_CHECK_ERROR(
      x.at({0}).set(zeros({5})),
      "shape: expand: float32[5] to shape [3, 4]: expected sizes equal or 1, counted from the "
      "last axis, got [5].\nInsert axes of size 1 with unsqueeze or reshape.");
  NITINOL_CHECK_ERROR(
      tensor({{1, 2}, {3}}),
      "shape: tensor: lists of level 1 differ: expected a list of 2, got a list of 1.\nGive "
      "all rows the same length.");
  NITINOL_CHECK_ERROR(
      zeros({-1}),
      "shape: zeros: shape [-1]: expected sizes of at least 0, got -1.\nCheck how the shape is "
      "computed.");
  NITINOL_CHECK_ERROR(
      zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}),
      "unsupported: shape: a tensor of rank 9: expected at most 8 dimensions, got 9.\nMerge "
      "dimensions with reshape.");
  NITINOL_CHECK_ERROR(
      gather(x[0], 1, tensor({{0}, {1}})),
      "shape: gather: float32[3, 4] at indices int64[2, 1]: expected equal sizes, or 1, but "
      "along axis 1, got [3, 4] and [2, 1].\nThere is an index for each element of the "
      "result; take chooses whole rows.");
  NITINOL_CHECK_ERROR(
      gather(x, 1, tensor({0})),
      "shape: gather: float32[2, 3, 4] at indices int64[1]: expected indices of 3 axes, one for "
      "each of the tensor's, got 1.\nInsert axes of size 1 with unsqueeze; take chooses whole "
      "rows with indices of any shape.");
  NITINOL_CHECK_ERROR(
      scatter_add_along(x[0], 0, zeros({2, 4}, i64), 5),
      "shape: scatter_add_along: float32[3, 4] at indices int64[2, 4]: expected equal "
      "sizes, or 1, got [3, 4] and [2, 4].\nThere is an index for each element of the "
      "result; take chooses whole rows.");
  NITINOL_CHECK_ERROR(
      layer_norm(x, {.weight = ones({3})}),
      "shape: layer_norm: weight is float32[3] for float32[2, 3, 4]: expected shape [4], got "
      "[3].\nIt has the sizes of the normalised axes.");
}

TEST_CASE("axes and indices that do not exist", "[errors]") {
  const Tensor x = zeros({2, 3});
  NITINOL_CHECK_ERROR(
      sum(x, 2),
      "shape: sum: axis 2 of a tensor of rank 2: expected -2 <= axis < 2, got 2.\nAxes count "
      "from 0, or from -1 at the end.");
  NITINOL_CHECK_ERROR(
      sum(x, {1, -1}),
      "shape: sum: axes [1, -1]: expected each axis once, got a repeated axis.\nRemove the "
      "repetition; -1 names the last axis.");
  NITINOL_CHECK_ERROR(
      transpose(zeros({3})),
      "shape: transpose: axis -2 of a tensor of rank 1: expected -1 <= axis < 1, got "
      "-2.\nAxes count from 0, or from -1 at the end.");
  NITINOL_CHECK_ERROR(
      permute(x, {0}),
      "shape: permute: axes [0] for float32[2, 3]: expected all 2 axes, each once, got "
      "1.\nName every axis; transpose exchanges two.");
  NITINOL_CHECK_ERROR(
      x[2],
      "shape: index: index 2 for axis 0 of float32[2, 3]: expected -2 <= index < 2, got "
      "2.\nNegative indices count from the end.");
  NITINOL_CHECK_ERROR(
      x.at({0, 0, 0}).get(),
      "shape: at: 3 indices for float32[2, 3]: expected at most 2, and one ellipsis, got 3 and "
      "0.\nCheck the tensor's rank.");
  NITINOL_CHECK_ERROR(
      take(x, tensor({0, 2})),
      "value: take: index 2 for an axis of 2: expected -2 <= index < 2, got 2.\nCheck the "
      "indices; clamp limits them.");
  NITINOL_CHECK_ERROR(
      take(x, tensor({-3})),
      "value: take: index -3 for an axis of 2: expected -2 <= index < 2, got -3.\nCheck the "
      "indices; clamp limits them.");
  NITINOL_CHECK_ERROR(
      gather(x, 1, tensor({{0}, {3}})),
      "value: gather: index 3 for an axis of 3: expected -3 <= index < 3, got 3.\nCheck the "
      "indices; clamp limits them.");
  NITINOL_CHECK_ERROR(
      gather(zeros({2, 0}), 1, tensor({{0}, {0}})),
      "value: gather: index 0 for an axis of 0: expected no index: the axis is empty, got "
      "0.\nCheck the indices; clamp limits them.");
  NITINOL_CHECK_ERROR(
      scatter_add_along(x, 0, tensor({{-3}}), 2),
      "value: scatter_add_along: index -3 for an axis of 2: expected -2 <= index < 2, got "
      "-3.\nCheck the indices; clamp limits them.");
  NITINOL_CHECK_ERROR(scatter_add_along(x, 0, tensor({{0}}), -1),
                      "value: scatter_add_along: the number of rows: expected at least 0, got -1.");
  NITINOL_CHECK_ERROR(
      gather(x, 2, tensor({{0}})),
      "shape: gather: axis 2 of a tensor of rank 2: expected -2 <= axis < 2, got 2.\nAxes "
      "count from 0, or from -1 at the end.");
  NITINOL_CHECK_ERROR(
      cumsum(zeros({}), 0),
      "shape: cumsum: axis 0 of a tensor of rank 0: expected no axis: the tensor has no "
      "dimensions, got 0.\nAxes count "
      "from 0, or from -1 at the end.");
  NITINOL_CHECK_ERROR(
      max(zeros({0})),
      "shape: max: max of no elements: float32[0] over axes [0]: expected at least one element "
      "along the reduced axes, got none.\nCheck for an empty tensor first.");
}

TEST_CASE("dtypes that an op does not take", "[errors]") {
  NITINOL_CHECK_ERROR(
      pow(tensor({true}), tensor({true})),
      "dtype: pow: not defined for bool[1]: expected float16, bfloat16, float32, float64, got "
      "bool.\nCast it first: x.to(f32).");
  NITINOL_CHECK_ERROR(bitwise_not(zeros({2})),
                      "dtype: bitwise_not: not defined for float32[2]: expected bool, integers, "
                      "got float32.\nCast it first: x.to(i32).");
  NITINOL_CHECK_ERROR(tensor({true}) - tensor({true}),
                      "dtype: sub: not defined for bool[1]: expected integers, "
                      "float16, bfloat16, float32, float64, got bool.\nCast it first: x.to(i32).");
  NITINOL_CHECK_ERROR(
      take(zeros({2}), zeros({1})),
      "dtype: take: the indices are float32[1]: expected integers, got float32.\nCast them: "
      "indices.to(i64).");
  NITINOL_CHECK_ERROR(
      gather(zeros({2}), 0, zeros({1})),
      "dtype: gather: the indices are float32[1]: expected integers, got float32.\nCast "
      "them: indices.to(i64).");
  NITINOL_CHECK_ERROR(scatter_add_along(zeros({2}, boolean), 0, tensor({0, 1}), 2),
                      "dtype: scatter_add_along: not defined for bool[2]: expected integers, "
                      "float16, bfloat16, float32, float64, got bool.\nCast it first: "
                      "x.to(i32).");
  NITINOL_CHECK_ERROR(
      rand({2}, i32),
      "dtype: rand: the result's dtype: expected float32 or float64, got int32.\nCast the "
      "result; it may round to 1.");
}

TEST_CASE("numbers that a dtype does not hold", "[errors]") {
  const Tensor bytes = zeros({2}, u8);
  const std::string message =
      "uint8 does not hold the number that it meets: expected an integer from 0 to 255, got 300.\n";
  NITINOL_CHECK_ERROR(
      bytes + 300,
      "value: add: " + message + "Cast the tensor to a wider dtype first, for example x.to(i64).");
  NITINOL_CHECK_ERROR(full_like(bytes, 300),
                      "value: full: " + message + "Ask for a dtype that does, for example int64.");
  NITINOL_CHECK_ERROR(full_like(zeros({2}, i64), ~0ULL),
                      "value: full: int64 does not hold the number that it meets: expected an "
                      "integer from -9223372036854775808 to 9223372036854775807, got "
                      "18446744073709551615.\nAsk for a dtype that does, for example float64.");
  NITINOL_CHECK_ERROR(linspace(0, 1, 3, i32),
                      "dtype: linspace: the result's dtype: expected a floating dtype, got "
                      "int32.\nRound and cast the result, or use arange.");
}

TEST_CASE("values that an op does not take", "[errors]") {
  const std::string undefined =
      "Initialise it first, for example with zeros({2, 3}). If it is the grad() of a parameter, no "
      "backward() has reached that since it was made or cleared.";
  const std::string zero =
      "integer division by zero: expected divisors other than 0, got 0.\nReplace the zeros, or "
      "divide "
      "floating-point numbers.";
  const Tensor x = tensor({1, 2});
  NITINOL_CHECK_ERROR(x % tensor({1, 0}), "value: remainder: " + zero);
  NITINOL_CHECK_ERROR(floor_divide(x, tensor({1, 0})), "value: floor_divide: " + zero);
  NITINOL_CHECK_ERROR(x % 0, "value: remainder: " + zero);
  NITINOL_CHECK_ERROR(
      slice(x, 0, {.step = 0}),
      "value: slice: a range with step 0: expected a step other than 0, got 0.\nUse 1 for "
      "every element, -1 for reverse order.");
  NITINOL_CHECK_ERROR(
      randint(3, 3, {1}),
      "value: randint: the range [3, 3): expected low < high, got an empty range.\nhigh itself "
      "is never drawn.");
  NITINOL_CHECK_ERROR(
      concat(std::span<const Tensor>{}),
      "value: concat: no tensors: expected at least one, got none.\nCheck for an empty list "
      "first.");
  NITINOL_CHECK_ERROR(
      exp(Tensor()),
      "value: exp: operand is an undefined tensor: expected a tensor with a value, got a "
      "default-constructed one.\n" +
          undefined);
  NITINOL_CHECK_ERROR(
      Tensor().shape(),
      "value: Tensor: use of an undefined tensor: expected a tensor with a value, got a "
      "default-constructed one.\n" +
          undefined);
  const Variable w = parameter(ones({2}));
  NITINOL_CHECK_ERROR(
      w - w.grad() * 0.1,
      "value: mul: operand number 1 is an undefined tensor: expected a tensor with a value, got a "
      "default-constructed one.\n" +
          undefined);
  CHECK(error_of([] { return zeros({int64_t{1} << 40, 1 << 20}); }).starts_with("value: allocate"));
  NITINOL_CHECK_ERROR(
      zeros({int64_t{1} << 40, int64_t{1} << 40}),
      "shape: zeros: shape [1099511627776, 1099511627776]: expected as many elements as memory "
      "could hold, got 1.21e+24.\nCheck how the shape is computed.");
  CHECK(error_of([] { return rand({INT64_MAX, 4}); }).starts_with("shape: rand: shape [922"));
  CHECK(error_of([] { return ones({0, INT64_MAX, INT64_MAX}); }).starts_with("shape: ones: "));
}

TEST_CASE("errors tell the line of the user's call", "[errors]") {
  const Tensor x = zeros({2});
  const auto location_of = [](auto f) -> std::string {
    try {
      static_cast<void>(f());
    } catch (const Error& error) {
      return error.location();
    }
    return "no error";
  };
  const auto is_here = [](const std::string& place, uint_least32_t line) {
    // Without line tables, or with a static library, there is a function name or nothing.
    return place.find(".cpp:") == std::string::npos ||
           place.find("errors/ops_test.cpp:" + std::to_string(line)) != std::string::npos;
  };
  std::string place = location_of([&] { return x + zeros({3}); });
  INFO(place);
  CHECK(is_here(place, std::source_location::current().line() - 2));
  place = location_of([&] { return softmax(x, 4); });
  INFO(place);
  CHECK(is_here(place, std::source_location::current().line() - 2));
}

TEST_CASE("convolutions that do not fit", "[errors][conv]") {
  const Tensor x = zeros({2, 3, 8, 8});
  NITINOL_CHECK_ERROR(
      conv2d(x, zeros({4, 5, 3, 3})),
      "shape: conv2d: channels of float32[2, 3, 8, 8] and of weight float32[4, 5, 3, 3] in "
      "1 groups: expected x.shape[1] == 5, got 3.\nImages are [n, c, h, w], weights [out, "
      "c / groups, kh, kw].");
  NITINOL_CHECK_ERROR(
      conv2d(x[0], zeros({4, 3, 3, 3})),
      "shape: conv2d: an operand is float32[3, 8, 8]: expected four axes [n, c, h, w], got "
      "3.\nA single image needs unsqueeze(x, 0), one without channels unsqueeze(x, 1).");
  NITINOL_CHECK_ERROR(
      conv2d(x, zeros({4, 3, 9, 3})),
      "shape: conv2d: windows of 9 by 3 on images of 8 by 8: expected images of at least 9 "
      "by 3, got 8 by 8.\nUse a smaller kernel, less dilation or more padding.");
  NITINOL_CHECK_ERROR(
      conv2d(x, zeros({4, 3, 3, 3}), {.stride = 0}),
      "shape: conv2d: stride [0, 0]: expected two numbers of at least 1, got [0, 0].\nOne "
      "is for rows, the other for columns.");
  NITINOL_CHECK_ERROR(
      conv2d(x, zeros({4, 1, 3, 3}), {.groups = 3}),
      "shape: conv2d: 4 channels in 3 groups: expected a number of groups that divides the "
      "channels, got 3.\nCheck the groups and the weight's first axis.");
  NITINOL_CHECK_ERROR(
      conv2d(x, zeros({4, 3, 3, 3}), zeros({3})),
      "shape: conv2d: the bias is float32[3]: expected [4], got [3].\nIt has a number for "
      "each channel of the result.");
  NITINOL_CHECK_ERROR(conv2d(x.to(boolean), zeros({4, 3, 3, 3}, boolean)),
                      "dtype: conv2d: not defined for bool[2, 8, 8, 3]: expected integers, "
                      "float16, bfloat16, float32, float64, got bool.\nCast it first: x.to(i32).");
}

TEST_CASE("layers and losses say what they take", "[errors][nn]") {
  const nn::Conv2d conv = nn::conv2d(3, 8, 3);
  NITINOL_CHECK_ERROR(
      conv(zeros({3, 8, 8})),
      "shape: Conv2d: the input is float32[3, 8, 8] for weights float32[8, 3, 3, 3]: expected "
      "images [n, 3, h, w], got rank 3.\nA single image needs unsqueeze(x, 0), images without "
      "channels unsqueeze(x, 1).");
  NITINOL_CHECK_ERROR(
      nn::cross_entropy(zeros({20, 3}), zeros({20})),
      "dtype: cross_entropy: targets float32[20] for logits float32[20, 3]: expected class numbers "
      "of an integer dtype and shape [20], or probabilities of shape [20, 3], got "
      "float32[20].\nCast class numbers: targets.to(i64).");
  NITINOL_CHECK_ERROR(
      nn::cross_entropy(zeros({20, 3}), zeros({20, 4})),
      "shape: cross_entropy: targets float32[20, 4] for logits float32[20, 3]: expected class "
      "numbers of an integer dtype and shape [20], or probabilities of shape [20, 3], got "
      "float32[20, 4].\nReshape the targets, or check what was passed.");
}
