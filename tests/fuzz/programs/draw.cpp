// A program grows step by step: choose an op, operands among the values there are (or new inputs),
// and attributes; then apply the op to real tensors. What throws is drawn again, so nothing here
// says what an op takes.
//
// Attributes are drawn by their names, lists blindly among what lists usually are: some axes, a
// permutation, a shape of as many elements, ranges along each axis.
#include "tests/fuzz/programs/draw.h"

#include "core/error.h"
#include "core/graph_infer.h"
#include "core/shape.h"
#include "eager/apply.h"
#include "eager/promotion.h"
#include "tests/fuzz/programs/chance.h"
#include "tests/fuzz/programs/extra_ops.h"
#include "tests/fuzz/programs/unroll.h"
#include "tests/fuzz/programs/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <variant>

namespace nitinol::fuzz {
namespace {

constexpr int64_t largest_tensor = 300000;

/// A value that steps can read, as it was when the program was drawn.
struct Known {
  Operand operand;
  Tensor tensor;
};

}  // namespace

class Drawer::Session : Chance {
 public:
  Session(Drawer& drawer, uint64_t seed) : Chance(seed), drawer_(drawer), seed_(seed) {}

  Program run() {
    const int inputs = 1 + below(3);
    for (int i = 0; i < inputs; ++i) add_input(random_dtype(), random_shape());
    for (const std::size_t turn : {std::size_t{0}, drawer_.all_.size() / 2}) add_due_step(turn);
    if (below(6) == 0) add_created_chain();
    const int steps = 1 + below(below(4) == 0 ? 24 : 8);
    for (int i = 0; i < steps && !must_throw_; ++i) {
      add_step();
      if (below(6) == 0) add_update();
    }
    if (below(3) == 0) add_discontinuous_end();
    choose_outputs();
    return std::move(program_);
  }

  Program run_tiny() { return run_chain(tiny_shape(1 + below(4))); }

  /// A few steps in one dtype, often each on what the one before has given, several times.
  Program run_loop() {
    const Program body = run_chain(below(2) == 0 ? random_shape() : tiny_shape(1 + below(4)));
    return unrolled(body, seed_).value_or(body);
  }

 private:
  /// The last one's result is a result.
  Program run_chain(const Shape& shape) {
    wanted_ = add_input(below(4) == 0 ? f64 : f32, shape).tensor.dtype();
    for (int steps = 2 + below(6); steps > 0; --steps) {
      first_ = below(2) == 0 ? known_.back() : one_of(known_);
      add_step();
      if (steps == 1 || below(4) == 0) keep_latest();
      if (below(8) == 0) add_update();
    }
    choose_outputs();
    return std::move(program_);
  }

  // ---- inputs

  const Known& add_input(DType dtype, Shape shape) {
    while (places_beside_none(shape) > largest_tensor) {
      *std::max_element(shape.begin(), shape.end()) = 1;
    }
    const int index = static_cast<int>(program_.inputs.size());
    InputDecl input = {.dtype = dtype, .shape = shape, .strides = random_strides(shape)};
    input.style = below(4) != 0 ? Style::plain : below(3) == 0 ? Style::wild : Style::special;
    input.is_variable = below(5) == 0;
    input.is_captured = below(6) == 0;
    if (index > 0 && below(5) == 0) see_another(input, below(index));
    input.is_parameter = input.is_variable && is_floating(input.dtype) && below(2) == 0;
    if (input.base >= 0 && input.view == View::same && input.is_variable)
      input.is_parameter = program_.inputs[static_cast<std::size_t>(input.base)].is_parameter;
    program_.inputs.push_back(input);
    const uint64_t seed = seed_ * 1000 + static_cast<uint64_t>(index);
    const Tensor value =
        input.base >= 0 ? view_of(known_inputs_[static_cast<std::size_t>(input.base)], input.view)
                        : sample(input.dtype, input.shape, input.strides, input.style, seed);
    known_inputs_.push_back(value);
    known_.push_back({{Operand::Kind::input, index}, value});
    return known_.back();
  }

  /// `input` becomes a view of input `other`, or that very input passed twice, or also captured.
  void see_another(InputDecl& input, int other) {
    const InputDecl& base = program_.inputs[static_cast<std::size_t>(other)];
    const bool is_captured = input.is_captured != (below(2) == 0);
    const bool is_variable = input.is_variable;
    input = base;
    input.base = other;
    input.is_captured = is_captured;
    input.view = static_cast<View>(below(6));
    if (below(2) == 0) input.view = View::same;
    if (input.view != View::same) input.is_variable = is_variable;
    const Tensor value = view_of(known_inputs_[static_cast<std::size_t>(other)], input.view);
    input.shape = value.shape();
    input.strides = strides_of(input.shape);
  }

  // ---- steps

  const Op& random_op() {
    static const std::vector<OpKind> kinds = {
        OpKind::elementwise, OpKind::elementwise, OpKind::elementwise, OpKind::elementwise,
        OpKind::elementwise, OpKind::elementwise, OpKind::elementwise, OpKind::view,
        OpKind::view,        OpKind::reduce,      OpKind::reduce,      OpKind::index,
        OpKind::create,      OpKind::library,     OpKind::composite};
    while (true) {
      const auto found = drawer_.ops_.find(one_of(kinds));
      if (found != drawer_.ops_.end()) return *one_of(found->second);
    }
  }

  void add_step() {
    const Op* op = &random_op();
    for (int attempt = 0; attempt < 80; ++attempt) {
      if (attempt % 40 == 39) op = &random_op();
      if (attempt_step(*op)) return;
    }
  }

  /// Leaves everything as it was if the op refuses what was drawn for it.
  bool attempt_step(const Op& op) {
    const Program before = program_;
    const std::size_t known = known_.size(), inputs = known_inputs_.size();
    if (try_step(op)) {
      ++drawer_.counts_[&op];
      return true;
    }
    program_ = before;
    known_.resize(known);
    known_inputs_.resize(inputs);
    return false;
  }

  /// The op whose turn it is, or of those beyond it.
  void add_due_step(std::size_t beyond) {
    if (must_throw_) return;
    const Op& op = *drawer_.all_[(seed_ + beyond) % drawer_.all_.size()];
    for (int attempt = 0; attempt < 300 && !attempt_step(op); ++attempt) {
    }
    keep_latest();
  }

  /// The latest value is a result: what nobody reads is not computed.
  void keep_latest() {
    if (!must_throw_) program_.outputs.push_back(known_.back().operand);
  }

  /// What is made inside, seen through views, and reduced.
  void add_created_chain() {
    std::vector<const Op*> views = drawer_.ops_.find(OpKind::view)->second;
    for (const std::string_view name : {"fuzz.flip", "fuzz.transpose"})
      views.push_back(&op_named(name));
    std::vector<const Op*> sources = drawer_.ops_.find(OpKind::create)->second;
    for (const std::string_view name : {"fuzz.arange", "fuzz.rand", "fuzz.randn", "fuzz.randint"})
      sources.push_back(&op_named(name));
    const auto op_of = [&](OpKind kind) {
      if (kind == OpKind::view) return one_of(views);
      return one_of(kind == OpKind::create ? sources : drawer_.ops_.find(kind)->second);
    };
    const auto add = [&](OpKind kind) {
      if (kind != OpKind::create) first_ = known_.back();
      for (int attempt = 0; attempt < 40 && !must_throw_; ++attempt) {
        if (attempt_step(*op_of(kind))) break;
      }
      first_.reset();
    };
    add(OpKind::create);
    for (int count = 1 + below(2); count > 0; --count) add(OpKind::view);
    if (below(2) == 0) add(OpKind::elementwise);
    add(below(3) == 0 ? OpKind::composite : OpKind::reduce);
    keep_latest();
  }

  /// Where a last bit may make all the difference: floor, sign, a comparison, a cast.
  void add_discontinuous_end() {
    std::vector<const Op*> ends;
    for (const Op* op : drawer_.ops_.find(OpKind::elementwise)->second) {
      if (op->gradient.is_zero && op->effect != Effect::may_fail) ends.push_back(op);
      if (op->name == "cast") ends.push_back(op);
    }
    first_ = known_.back();
    for (int attempt = 0; attempt < 20 && !must_throw_; ++attempt) {
      if (attempt_step(*one_of(ends))) break;
    }
    first_.reset();
  }

  /// A Variable changes on the way, and may be read again.
  void add_update() {
    if (must_throw_) return;
    for (int i = 0; i < static_cast<int>(program_.inputs.size()); ++i) {
      const InputDecl& input = program_.inputs[static_cast<std::size_t>(i)];
      // A parameter that holds a captured tensor makes the function eager, and says so.
      if (!input.is_variable || input.is_parameter || below(2) == 0) continue;
      for (auto known = known_.rbegin(); known != known_.rend(); ++known) {
        if (!fits(input, *known)) continue;
        const Tensor value = known->tensor;
        program_.updates.push_back({i, known->operand, static_cast<int>(program_.steps.size())});
        known_.push_back({{Operand::Kind::cell, i}, value});
        return;
      }
    }
  }

  static bool fits(const InputDecl& input, const Known& known) {
    const Spec& spec = known.tensor.spec();
    return spec.dtype == input.dtype && spec.shape == input.shape && !spec.is_weak;
  }

  static void take(const Known& known, Step& step, std::vector<Tensor>& tensors) {
    step.operands.push_back(known.operand);
    tensors.push_back(known.tensor);
  }

  bool try_step(const Op& op) {
    Step step = {.op = &op, .operands = {}, .attrs = {}};
    std::vector<Tensor> tensors;
    if (has_attr(op, "stride") && program_.inputs.size() < 8 && below(2) == 0) {
      add_windowed_operands(step, tensors);
      return is_accepted(step, tensors);
    }
    if (has_attr(op, "eps") || op.name.starts_with("batch_")) {
      return add_normalized_operands(step, tensors) && is_accepted(step, tensors);
    }
    static const std::vector<std::string_view> indexing = {
        "gather", "take_along", "masked_select", "nonzero", "scatter", "scatter_add_along"};
    const bool indexes = std::ranges::find(indexing, op.name) != indexing.end();
    if (indexes && program_.inputs.size() < 7 && below(3) != 0)
      return add_indexed_operands(step, tensors) && is_accepted(step, tensors);
    if (op.name == "rank_exchange" && program_.inputs.size() < 8) {  // a part for each rank
      take(add_input(f32, {1, 1 + below(9)}), step, tensors);
    }
    if (op.name == "permutation" && program_.inputs.size() < 8) {  // of {key, counter}
      take(add_input(i64, {2}), step, tensors);
    }
    const int arity = op.arity >= 0 ? op.arity : 1 + below(3);
    const bool takes_numbers = op.kind == OpKind::create;
    const DType number_dtype = below(2) == 0 ? i64 : f64;
    for (int k = static_cast<int>(tensors.size()); k < arity; ++k) {
      take(takes_numbers ? random_number(number_dtype) : choose_operand(tensors, k), step, tensors);
    }
    const bool makes_shape =
        op.kind == OpKind::create || (op.kind == OpKind::composite && has_attr(op, "shape"));
    Spec like;
    if (!tensors.empty()) like = tensors.front().spec();
    if (tensors.empty() || makes_shape) like.shape = random_shape();
    choose_window(like.shape);
    for (const std::string_view name : op.attr_names) {
      step.attrs.push_back(makes_shape && name == "shape" ? Attr(like.shape)
                                                          : random_attr(name, like));
    }
    use_numbers(step, tensors);
    if (divides_integers(step, tensors)) {
      if (!check_divisor(step, tensors)) return false;
      if (must_throw_) return true;
    }
    return is_accepted(step, tensors);
  }

  static bool has_attr(const Op& op, std::string_view name) {
    return std::ranges::find(op.attr_names, name) != op.attr_names.end();
  }

  /// Something with its weight and bias, which have the sizes of the last axes, or with numbers of
  /// its features.
  bool add_normalized_operands(Step& step, std::vector<Tensor>& tensors) {
    const Op& op = *step.op;
    const Known x = choose_operand({}, 0);
    const int rank = x.tensor.rank();
    const bool is_of_rows = has_attr(op, "normalized_axes");
    if (rank < (is_of_rows ? 1 : 2)) return false;
    take(x, step, tensors);
    Shape shape;
    if (is_of_rows) {
      const int count = 1 + below(rank);
      for (int i = rank - count; i < rank; ++i) shape.push_back(x.tensor.shape()[i]);
      step.attrs = {int64_t{count}};
    } else {
      const int axis = has_attr(op, "groups") ? 1 : below(rank);
      shape = {x.tensor.shape()[axis]};
      const int64_t groups = below(2) == 0 ? 1 : std::max<int64_t>(1, shape[0]);
      step.attrs = {has_attr(op, "groups") ? groups : int64_t{axis}};
    }
    const auto add_parameter = [&] {
      const Known parameter = add_input(x.tensor.dtype(), shape);
      take(parameter, step, tensors);
      return parameter.tensor.shape() == shape;  // and not a view of another input
    };
    const int statistics = op.arity > 0 ? op.arity - 1 : op.name == "batch_norm" ? 2 : 0;
    for (int k = 0; k < statistics; ++k) {
      if (!add_parameter()) return false;
    }
    for (const std::string_view name : op.attr_names.subspan(1)) {
      const bool has_parameter = name != "eps" && program_.inputs.size() < 8 && below(2) == 0;
      step.attrs.push_back(name == "eps" ? Attr(1e-5 * below(3)) : Attr(has_parameter));
      if (has_parameter && !add_parameter()) return false;
    }
    return true;
  }

  /// A tensor and a mask or indices of its rows: of two tensors that are there they hardly ever
  /// are.
  bool add_indexed_operands(Step& step, std::vector<Tensor>& tensors) {
    const auto add = [&](const Known& known) { take(known, step, tensors); };
    const bool is_mask = step.op->name == "nonzero" || step.op->name == "masked_select";
    Shape shape = {1 + below(9)};
    if (step.op->name != "nonzero") {
      const Known x = choose_operand({}, 0);
      if (x.tensor.rank() == 0 || x.tensor.size() == 0) return false;
      add(x);
      if (is_mask) shape = {x.tensor.shape()[0]};
      if (step.op->name == "gather" || step.op->name == "take_along" ||
          step.op->name == "scatter_add_along")
        shape = x.tensor.shape();
      if (step.op->name == "scatter") {
        Shape values = shape;
        for (int i = 1; i < x.tensor.rank(); ++i) values.push_back(x.tensor.shape()[i]);
        add(add_input(x.tensor.dtype(), values));
      }
    }
    add(add_input(is_mask ? boolean : i64, shape));
    for (const std::string_view attr : step.op->attr_names) {
      step.attrs.push_back(attr == "axis" ? Attr(int64_t{below(tensors[0].rank())})
                                          : random_attr(attr, tensors[0].spec()));
    }
    return true;
  }

  /// Images [n, h, w, c], and what windows on them take: hardly anything else fits these ops.
  void add_windowed_operands(Step& step, std::vector<Tensor>& tensors) {
    static const std::vector<DType> dtypes = {f32, f32, f32, f64, f16, bf16, i32, u8};
    const DType dtype = one_of(dtypes);
    const bool has_groups = has_attr(*step.op, "groups");
    const auto pair = [&](int least, int most) {
      return Dims{least + below(most - least + 1), least + below(most - least + 1)};
    };
    const Dims kernel = pair(1, 3);
    const Dims stride = pair(1, 2);
    const Dims padding = {below(static_cast<int>(kernel[0] / 2) + 1),
                          below(static_cast<int>(kernel[1] / 2) + 1)};
    const Dims dilation = has_groups ? pair(1, 2) : Dims{1, 1};
    const int64_t groups = 1 + below(2);
    const Shape image = {1 + below(3), 5 + below(5), 5 + below(5), groups * (1 + below(4))};
    Shape windows = {image[0], 0, 0, has_groups ? groups * (1 + below(3)) : image[3]};
    for (const int i : {0, 1}) {
      windows[i + 1] =
          (image[i + 1] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
    }
    const Shape weight = {windows[3], image[3] / groups, kernel[0], kernel[1]};
    const std::string_view name = step.op->name;
    const bool has_weight = name == "conv2d" || name == "conv2d_input";
    for (const Shape& shape :
         {name == "conv2d_input" ? windows : image, has_weight             ? weight
                                                    : name == "window_max" ? image
                                                                           : windows}) {
      const Known operand = add_input(dtype, shape);
      take(operand, step, tensors);
    }
    for (const std::string_view attr : step.op->attr_names) {
      step.attrs.push_back(attr == "kernel"     ? Attr(kernel)
                           : attr == "stride"   ? Attr(stride)
                           : attr == "padding"  ? Attr(padding)
                           : attr == "dilation" ? Attr(dilation)
                           : attr == "image"    ? Attr(Dims{image[1], image[2]})
                                                : Attr(groups));
    }
  }

  Known choose_operand(const std::vector<Tensor>& others, int k) {
    if (first_ && k == 0) return *first_;
    if (others.empty() || below(8) == 0) {
      return below(3) != 0 ? known_[known_.size() - 1 - recent()] : one_of(known_);
    }
    const Spec& other = others.back().spec();
    std::vector<Known> alike;
    for (const Known& known : known_) {
      if (known.tensor.dtype() == other.dtype) alike.push_back(known);
    }
    if (!alike.empty() && below(3) != 0) return one_of(alike);
    if (k < 3 && program_.inputs.size() < 8) {
      static const std::vector<DType> usual = {i64, f32};
      return add_input(below(5) == 0 ? one_of(usual) : other.dtype, related_shape(other.shape));
    }
    return one_of(known_);
  }
  std::size_t recent() {
    const int count = static_cast<int>(std::min<std::size_t>(known_.size(), 3));
    return static_cast<std::size_t>(below(count));
  }

  /// A host number, or a Scalar argument.
  Known random_number(DType dtype) {
    const auto kind = dtype == boolean                      ? Scalar::Kind::boolean
                      : is_floating(dtype) && below(3) != 0 ? Scalar::Kind::real
                                                            : Scalar::Kind::integer;
    Operand operand = {Operand::Kind::number, 0, 0, dtype};
    if (below(2) == 0) {
      operand.kind = Operand::Kind::scalar;
      operand.index = scalar_of(kind);
      const Scalar number = sample_scalar(kind, operand.index, seed_);
      return {operand, constant(number, dtype, true)};
    }
    operand.number = (below(9) - (is_unsigned(dtype) ? 0 : 3)) * (is_floating(dtype) ? 0.75 : 1);
    if (dtype == boolean) operand.number = below(2);
    return {operand, constant(Scalar(operand.number), dtype, true)};
  }

  /// A Scalar argument of this kind, one of at most four.
  int scalar_of(Scalar::Kind kind) {
    for (int i = 0; i < static_cast<int>(program_.scalars.size()); ++i) {
      const bool is_full = program_.scalars.size() >= 4;
      if (program_.scalars[static_cast<std::size_t>(i)] == kind && (is_full || below(2) == 0))
        return i;
    }
    program_.scalars.push_back(kind);
    return static_cast<int>(program_.scalars.size()) - 1;
  }

  /// Now and then an operand of any op becomes a host number or a Scalar argument.
  void use_numbers(Step& step, std::vector<Tensor>& tensors) {
    if (step.op->kind == OpKind::create || tensors.empty()) return;
    const bool is_binary = step.op->kind == OpKind::elementwise && tensors.size() > 1;
    if (first_ || below(is_binary ? 4 : 8) != 0) return;
    const auto k = static_cast<std::size_t>(below(static_cast<int>(step.operands.size())));
    // What does not fit is told in the name of the op: a device knows those that an extra one
    // calls.
    if (is_unsigned(tensors[k].dtype()) && step.op->name.starts_with("fuzz.")) return;
    const Known number = random_number(tensors[k].dtype());
    step.operands[k] = number.operand;
    tensors[k] = number.tensor;
  }

  /// Puts the vocabulary's check in front of the divisor, as the public functions do.
  bool check_divisor(Step& step, std::vector<Tensor>& tensors) {
    if (step.operands[1].kind == Operand::Kind::number) return step.operands[1].number != 0;
    const auto& index_ops = drawer_.ops_[OpKind::index];
    const auto check = std::ranges::find_if(
        index_ops, [](const Op* op) { return op->effect == Effect::may_fail && op->arity == 1; });
    if (check == index_ops.end()) return false;
    const std::size_t before = program_.steps.size();
    Step checked = {.op = *check, .operands = {step.operands[1]}, .attrs = {true}};
    if (!is_accepted(checked, {tensors[1]})) return false;
    if (must_throw_) return true;  // the program ends with the check
    step.operands[1] = {Operand::Kind::step, static_cast<int>(before)};
    tensors[1] = known_.back().tensor;
    return true;
  }

  /// True if the op takes these operands; then the step is part of the program.
  /// Each is a block of threads, which takes a fake GPU a millisecond or more, however small it is.
  static bool has_many_products(const Shape& shape) {
    constexpr int64_t most = 2048;
    int64_t products = 1;
    for (int i = 0; i + 2 < shape.size(); ++i) products *= shape[i];
    return products > most;
  }

  bool is_accepted(Step& step, const std::vector<Tensor>& tensors) {
    std::vector<const Tensor*> operands;
    for (const Tensor& tensor : tensors) operands.push_back(&tensor);
    Node node;
    node.op = step.op;
    node.attrs = step.attrs;
    try {
      // A composite op has no inference; what its operands broadcast to says how large it gets.
      Shape shape;
      if (step.op->kind != OpKind::composite) {
        shape = inferred_spec(node, operands).shape;
      } else {
        for (const Tensor& x : tensors) shape = broadcast_shapes("fuzz", shape, x.shape());
      }
      if (step.op->name.starts_with("log_likelihood"))  // labels are compared with all classes
        shape.push_back(std::max<int64_t>(1, tensors.end()[-2].size()));
      const auto is_bad = [](int64_t size) { return size < 0 || size > largest_tensor; };
      if (std::ranges::any_of(shape, is_bad) || element_count(shape) > largest_tensor) return false;
      if (step.op->name == "matmul" && has_many_products(shape)) return false;
    } catch (const std::exception&) {
      return false;
    }
    Tensor result;
    try {
      result = apply(*step.op, operands, step.attrs);
    } catch (const Error& error) {
      // A check of elements failed: sometimes that is what the program shall do.
      if (step.op->effect != Effect::may_fail || error.kind() != ErrorKind::value || below(6) != 0)
        return false;
      must_throw_ = true;
    } catch (const std::bad_variant_access&) {
      return false;
    }
    if (wanted_ && !must_throw_ && result.dtype() != *wanted_) return false;
    program_.steps.push_back(std::move(step));
    if (!must_throw_) {
      known_.push_back(
          {{Operand::Kind::step, static_cast<int>(program_.steps.size()) - 1}, result});
    }
    return true;
  }

  // ---- attributes

  /// Per axis a range of indices: all, backwards, one, every second, or a part.
  void choose_window(const Shape& shape) {
    starts_ = sizes_ = steps_ = {};
    for (const int64_t size : shape) {
      const int at = size == 0 ? 0 : below(static_cast<int>(size));
      const int way = size == 0 ? 0 : below(6);
      const int64_t rest = size - at;
      starts_.push_back(way == 2 ? size - 1 : way < 2 ? 0 : at);
      sizes_.push_back(way <= 2 ? size : way == 3 ? 1 : way == 4 ? (rest + 1) / 2 : rest);
      steps_.push_back(way == 2 ? -1 : way == 4 ? 2 : 1);
    }
  }

  /// By the attribute's name, which means the same for every op that has it.
  Attr random_attr(std::string_view name, const Spec& like) {
    if (const std::optional<Attr> attr = attr_of_any(name)) return *attr;
    if (name == "starts") return starts_;
    if (name == "sizes") return sizes_;
    if (name == "steps") return steps_;
    if (name == "axes" && wanted_ && below(3) == 0) return permutation(like.shape.size());
    if (name == "axes" && first_ && below(2) == 0) return Dims{};  // all, if reduced
    if (name == "axes" || name == "shape") return random_dims(like.shape);
    throw Error(ErrorKind::unsupported,
                {.where = "fuzz",
                 .what = fmt::format("an attribute '{}'", name),
                 .expected = "a known one",
                 .got = "a new one",
                 .fix = "Say in Session::random_attr what its values are like."});
  }

  // ---- results

  void choose_outputs() {
    std::vector<Operand> values;
    for (const Known& known : known_) values.push_back(known.operand);
    program_.outputs.push_back(values.back());
    while (below(2) == 0) program_.outputs.push_back(one_of(values));
    if (must_throw_) return;
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const InputDecl& input = program_.inputs[i];
      if (!input.is_variable) continue;
      const auto known = std::find_if(known_.rbegin(), known_.rend(),
                                      [&](const Known& k) { return fits(input, k); });
      if (known == known_.rend()) continue;
      program_.updates.push_back(
          {static_cast<int>(i), known->operand, static_cast<int>(program_.steps.size())});
    }
  }

  Drawer& drawer_;
  uint64_t seed_;
  bool must_throw_ = false;
  std::optional<DType> wanted_;  ///< of the next step's result
  std::optional<Known> first_;   ///< the next step reads it first
  Dims starts_, sizes_, steps_;  ///< of the window that the next step may want
  Program program_;
  std::vector<Known> known_;
  std::vector<Tensor> known_inputs_;  ///< per input
};

Drawer::Drawer(std::span<const Op* const> ops, bool is_tiny) : is_tiny_(is_tiny) {
  for (const Op* op : ops) {
    ops_[op->kind].push_back(op);
    all_.push_back(op);
  }
}

Program Drawer::draw(uint64_t seed) {
  Session session(*this, seed);
  if (is_tiny_) return session.run_tiny();
  return seed % 4 == 3 ? session.run_loop() : session.run();
}

}  // namespace nitinol::fuzz
