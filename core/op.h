// Op: one primitive of the vocabulary. One record is the whole operation.
#pragma once

#include "core/reduction.h"
#include "core/tensor.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

struct Loops;        // core/loops.h
struct LoopsAt;      // core/loops.h
struct LibraryCall;  // core/library.h

/// Static parameter of an op application: an axis, a flag, a dtype, a list of axes.
using Attr = std::variant<bool, int64_t, double, DType, Dims>;
using Attrs = std::vector<Attr>;

/// Operands of an op application, borrowed for its duration.
using Inputs = std::span<const Tensor* const>;
/// What a composite op is made of: its result, by other ops.
using Expand = Tensor (*)(Inputs inputs, const Attrs& attrs);

enum class OpKind : uint8_t {
  elementwise,  ///< a formula of the elements of its inputs, which all have the result's shape or
                ///< broadcast to it
  reduce,       ///< combines elements along axes in the canonical order
  view,         ///< a map of shape and strides
  index,        ///< indirect load or store, or what else goes from place to place in one order:
                ///< bits depend neither on strides nor on the thread count
  create,       ///< a formula of the index of the element
  library,      ///< a LibraryCall
  transfer,     ///< the same elements on another device
  composite,    ///< an expansion in other ops, recorded as its expansion
};

/// What an op does besides computing.
enum class Effect : uint8_t {
  none,
  may_fail,  ///< fails on some values (bounds, division): never removed or merged away
  ordered,  ///< acts on the outside, as what sends a tensor does: once, in the program's order, and
            ///< in a compiled call only when all that may fail has not. A library call
};

/// What autocast (core/autocast.h) does with operands of f16, bf16 and f32.
enum class Precision : uint8_t {
  given,  ///< nothing
  low,    ///< products: in the scope's dtype, with sums in f32
  full,   ///< what magnifies the error of its operands, or has many terms: in f32
};

/// A formula over scalars, written once: instructions for code generators, loops for eager.
struct Formula {
  /// Appends the instructions of f(arguments) and returns the result.
  Expr (*emit)(std::span<const Expr> arguments) = nullptr;
  /// The native loops when the last argument's compute type is `argument` and the result's dtype is
  /// `result`; all null if there are none. They give its compute type; for f16 and bf16, unless
  /// they compute in f32, f32 that was rounded to odd, so that storing it rounds once.
  Loops (*loops)(ScalarType argument, DType result) = nullptr;
  /// The loops for a last argument of this compute type that is `value` everywhere; null if they
  /// are no others.
  LoopsAt (*loops_at)(ScalarType argument, double value) = nullptr;
};

/// What must hold of an op's operands at every element.
struct ElementCheck {
  /// Appends the instructions of the condition; the result's compute type is `result`. Null: the op
  /// has no such check.
  Expr (*emit)(std::span<const Expr> arguments, ScalarType result) = nullptr;
  /// The loops of it, which give bool, for these types.
  Loops (*loops)(ScalarType argument, DType result) = nullptr;
  uint16_t code = 0;  ///< the Status::Code of a failure
};

/// How a view op reads its input: the result's strides and offset.
struct ViewMap {
  bool is_possible =
      true;  ///< false: these strides cannot express it (reshape); the input must be copied first
  Strides strides;
  int64_t offset = 0;
};

/// Where an index op finds the elements of its result in its first input: at the result's position
/// along some axes, and along one axis where the second input says, whose axes are the first of the
/// result's and which is the same along the others. Negative indices count from the end.
struct Lookup {
  int64_t rows = 0;  ///< elements of that axis
  int64_t step = 0;  ///< from one of them to the next, in elements
  Strides strides;   ///< of the first input over the result's shape; 0 where the indices decide
};

/// Where an index op stores one of its inputs: a strided region of the result.
struct Window {
  Shape shape;  ///< the input broadcasts to it
  ViewMap map;  ///< of the result's memory
};

/// What a gradient rule sees of one application.
struct GradientCall {
  const Attrs& attrs;
  std::span<const Tensor> inputs;  ///< undefined where the rule does not look
  std::span<const Spec> input_specs;
  const Tensor& result;  ///< undefined unless the rule looks
  const Spec& result_spec;
  const Tensor& gradient;  ///< of the result: its shape and dtype
  /// Of an op of several results: those of all, undefined where nothing used one. (Then `result`
  /// and `gradient` are undefined.)
  std::span<const Tensor> gradients = {};
  /// For a rule that adds up over the inputs, for which it is asked in ascending order: how far it
  /// has come, and the sum.
  mutable std::pair<int, int64_t> summed = {0, 0};
  /// For a rule whose gradients share values: what it has computed for an input before.
  mutable std::vector<Tensor> kept = {};
};

/// How an op is differentiated, written with public functions.
struct Gradient {
  /// The gradient of input k, or an undefined tensor for none. It may have any shape that the input
  /// was broadcast to, and any floating dtype: it is summed and cast.
  Tensor (*rule)(const GradientCall& call, int k) = nullptr;
  uint32_t looks_at_inputs = 0;  ///< bit k: at input k
  bool looks_at_result = false;
  bool is_zero = false;  ///< constant almost everywhere, or not a function of floating values

  [[nodiscard]] bool looks_at(std::size_t input) const {
    return input < 32 && (looks_at_inputs >> input & 1U) != 0;
  }
};

/// The record of an operation: name, what it accepts, shape rule, formula. An entry of its family's
/// table (eager/ops/family.h); its address is what tells it from others.
struct Op {
  std::string_view name;
  OpKind kind = OpKind::elementwise;
  int arity = 1;  ///< number of tensor inputs; -1: any number
  DTypes accepts = any_dtype;
  bool is_predicate = false;  ///< elementwise with a boolean result whatever the inputs' dtype
  bool is_row_major = false;  ///< elementwise: the result lies in row-major order even where the
                              ///< operands do not (eager/memory_order.h)
  Effect effect = Effect::none;
  Precision precision = Precision::given;
  std::span<const std::string_view> attr_names = {};

  /// The result's spec, or an Error naming op, operands, expectation and fix.
  Spec (*infer)(const Op& op, Inputs inputs, const Attrs& attrs) = nullptr;
  /// elementwise, create, and index ops that check their operands and compute at every element.
  Formula formula = {};
  /// index: what is checked of those. The formula gives some value where it fails.
  ElementCheck check = {};
  /// view.
  ViewMap (*view)(const Spec& input, const Strides& strides, const Attrs& attrs) = nullptr;
  /// reduce.
  Combine combine = Combine::add;
  /// index, instead of call: by its first input's shape and strides, for a result of this shape.
  Lookup (*lookup)(const Shape& shape, const Strides& strides, const Shape& result,
                   const Attrs& attrs) = nullptr;
  /// index, instead of call: per input the region of the result (of `spec` and `strides`) that it
  /// is stored to. Inputs are stored in order; together they cover the result.
  std::vector<Window> (*windows)(const Spec& spec, const Strides& strides, Inputs inputs,
                                 const Attrs& attrs) = nullptr;
  /// library and index: the call that backends know by name.
  LibraryCall (*call)(Inputs inputs, const Attrs& attrs, const Spec& spec) = nullptr;
  /// Of those: the elements of a result where an input has none. Nothing: the call makes them.
  std::optional<int64_t> of_nothing = 0;
  /// library, of several results (apply_all()), instead of infer and call: the specs of all, and
  /// the call, whose last operands they are.
  std::vector<Spec> (*infer_all)(const Op& op, Inputs inputs, const Attrs& attrs) = nullptr;
  LibraryCall (*call_all)(Inputs inputs, const Attrs& attrs,
                          std::span<const Spec> results) = nullptr;
  /// Effect::may_fail: the input whose elements decide that.
  int checked_input = -1;
  /// Throws the Error that says which of them it fails on, if it does.
  void (*fail)(const Op& op, Inputs inputs, const Attrs& attrs) = nullptr;
  /// composite. Differentiated as what it expands to, unless it has a gradient rule.
  Expand expand = nullptr;
  /// How gradients pass; an op with a floating result has a rule or says that there is none.
  Gradient gradient = {};
  /// One line for the documentation page.
  std::string_view summary = {};
};

/// "elementwise".
[[nodiscard]] std::string_view name_of(OpKind kind);
/// "axes=[0] keepdims=true": attributes in the text form of graphs.
[[nodiscard]] std::string to_string(const Op& op, const Attrs& attrs);

}  // namespace nitinol

#pragma GCC visibility pop
