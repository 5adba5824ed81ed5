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

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

class Drawer::Session {
 public:
  Session(Drawer& drawer, uint64_t seed) : drawer_(drawer), random_(seed), seed_(seed) {}

  Program run() {
    is_large_ = below(10) == 0;
    const int inputs = 1 + below(3);
    for (int i = 0; i < inputs; ++i) add_input(random_dtype(), random_shape());
    const int steps = 1 + below(below(4) == 0 ? 24 : 8);
    for (int i = 0; i < steps && !must_throw_; ++i) add_step();
    choose_outputs();
    return std::move(program_);
  }

 private:
  // ---- chance

  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[random_() % list.size()];
  }

  DType random_dtype() {
    static const std::vector<DType> dtypes = {f32,  f32, f32, f32, f64, f64, f16,
                                              bf16, i32, i64, u8,  i8,  i16, boolean};
    return one_of(dtypes);
  }

  int64_t random_size() {
    static const std::vector<int64_t> sizes = {1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 65, 130};
    return below(60) == 0 ? 0 : one_of(sizes);
  }

  Shape random_shape() {
    if (is_large_) {
      static const std::vector<Shape> shapes = {
          {70001}, {300, 257}, {5, 9000}, {9000, 5}, {3, 64, 300}};
      return one_of(shapes);
    }
    static const std::vector<int> ranks = {0, 1, 1, 2, 2, 2, 3, 3, 4, 5};
    Shape shape;
    const int rank = below(50) == 0 ? max_rank : one_of(ranks);
    for (int i = 0; i < rank; ++i) {
      const int64_t size = random_size();
      shape.push_back(element_count(shape) * size > 20000 ? 1 : size);
    }
    return shape;
  }

  // ---- inputs

  Strides random_strides(const Shape& shape) {
    Strides strides = strides_of(shape);
    switch (below(8)) {
      case 0: {  // as if permuted
        Dims order = permutation(shape.size());
        int64_t step = 1;
        for (const int64_t axis : order) {
          strides[static_cast<int>(axis)] = step;
          step *= std::max<int64_t>(shape[static_cast<int>(axis)], 1);
        }
        break;
      }
      case 1:  // every second, or every third
        for (int64_t& stride : strides) stride *= 2 + below(2);
        break;
      case 2:  // repeated or reversed along an axis
        if (shape.size() > 0) {
          int64_t& stride = strides[below(shape.size())];
          stride = below(2) == 0 ? 0 : -stride;
        }
        break;
      default:
        break;
    }
    return strides;
  }

  const Known& add_input(DType dtype, Shape shape) {
    while (element_count(shape) > largest_tensor) {
      *std::max_element(shape.begin(), shape.end()) = 1;
    }
    const int index = static_cast<int>(program_.inputs.size());
    InputDecl input = {.dtype = dtype, .shape = shape, .strides = random_strides(shape)};
    input.style = below(4) != 0 ? Style::plain : below(3) == 0 ? Style::wild : Style::special;
    input.is_variable = below(6) == 0;
    if (index > 0 && below(12) == 0) {
      const int other = below(index);
      input = program_.inputs[static_cast<std::size_t>(other)];
      input.same_as = input.same_as >= 0 ? input.same_as : other;
    }
    program_.inputs.push_back(input);
    const uint64_t seed =
        seed_ * 1000 + static_cast<uint64_t>(input.same_as >= 0 ? input.same_as : index);
    known_.push_back({{Operand::Kind::input, index},
                      sample(input.dtype, input.shape, input.strides, input.style, seed)});
    return known_.back();
  }

  /// A shape related to `shape`: the same, broadcast to it, transposed, or sharing a size.
  Shape related_shape(const Shape& shape) {
    Shape related = shape;
    switch (below(7)) {
      case 0:
      case 1:
        return shape;
      case 5:  // small windows on it, if it is a batch of images
        if (related.size() == 4) return {1 + below(5), shape.back(), 1 + below(3), 1 + below(2)};
        return shape;
      case 2:
        for (int64_t& size : related) size = below(2) == 0 ? 1 : size;
        return related;
      case 3:
        while (!related.empty() && below(2) == 0) related.erase(0);
        return related;
      case 4:
        if (related.size() >= 2)
          std::swap(related[related.size() - 1], related[related.size() - 2]);
        return related;
      default:
        if (related.size() >= 2) {
          related[related.size() - 2] = related.back();
          related[related.size() - 1] = is_large_ ? 3 : std::max<int64_t>(random_size(), 1);
        }
        return related;
    }
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
      const Program before = program_;
      const std::size_t known = known_.size();
      if (try_step(*op)) {
        ++drawer_.counts_[op];
        return;
      }
      program_ = before;
      known_.resize(known);
    }
  }

  bool try_step(const Op& op) {
    Step step = {.op = &op, .operands = {}, .attrs = {}};
    std::vector<Tensor> tensors;
    const int arity = op.arity >= 0 ? op.arity : 1 + below(3);
    const bool takes_numbers = op.kind == OpKind::create;
    const DType number_dtype = below(2) == 0 ? i64 : f64;
    for (int k = 0; k < arity; ++k) {
      Known chosen = takes_numbers ? random_number(number_dtype) : choose_operand(tensors, k);
      // As a width it may divide.
      while (takes_numbers && number_dtype == i64 && chosen.operand.number <= 0) {
        chosen = random_number(i64);
      }
      step.operands.push_back(chosen.operand);
      tensors.push_back(chosen.tensor);
    }
    Spec like;
    if (tensors.empty())
      like.shape = random_shape();
    else
      like = tensors.front().spec();
    choose_window(like.shape);
    for (const std::string_view name : op.attr_names)
      step.attrs.push_back(random_attr(name, like, tensors.size()));
    use_numbers(step, tensors);
    if (divides_integers(step, tensors)) {
      if (!check_divisor(step, tensors)) return false;
      if (must_throw_) return true;
    }
    return is_accepted(step, tensors);
  }

  Known choose_operand(const std::vector<Tensor>& others, int k) {
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
    return static_cast<std::size_t>(
        below(static_cast<int>(std::min<std::size_t>(known_.size(), 3))));
  }

  /// A host number, or a Scalar argument.
  Known random_number(DType dtype) {
    const bool is_scalar = is_floating(dtype) && below(2) == 0;
    Operand operand = {is_scalar ? Operand::Kind::scalar : Operand::Kind::number, 0, 0, dtype};
    if (is_scalar)
      operand.index = program_.scalars < 3 ? program_.scalars++ : below(3);
    else
      operand.number = (below(9) - (dtype == u8 ? 0 : 3)) * (is_floating(dtype) ? 0.75 : 1);
    const Scalar number = is_scalar ? sample_scalar(operand.index, seed_) : Scalar(operand.number);
    return {operand, constant(number, dtype, true)};
  }

  /// Now and then an operand of a binary op becomes a host number or a Scalar argument.
  void use_numbers(Step& step, std::vector<Tensor>& tensors) {
    if (step.op->kind != OpKind::elementwise || step.operands.size() < 2 || below(4) != 0) return;
    const auto k = static_cast<std::size_t>(below(static_cast<int>(step.operands.size())));
    const DType dtype = tensors[k].dtype();
    if (dtype == boolean) return;
    const Known number = random_number(dtype);
    step.operands[k] = number.operand;
    tensors[k] = number.tensor;
  }

  /// True if the formula divides integers: its divisor, the last operand, must have been checked.
  static bool divides_integers(const Step& step, const std::vector<Tensor>& tensors) {
    if (step.op->kind != OpKind::elementwise || tensors.size() != 2) return false;
    if (!is_integer(tensors[0].dtype()) || tensors[0].dtype() != tensors[1].dtype()) return false;
    if (!step.op->accepts.contains(tensors[0].dtype())) return false;
    ScalarProgram program;
    const ScalarType type = compute_type(tensors[0].dtype());
    const std::array arguments = {argument(program, type, 0), argument(program, type, 1)};
    static_cast<void>(step.op->formula.emit(arguments));
    return std::ranges::any_of(program.instrs, [](const ScalarInstr& instr) {
      return instr.op == ScalarOp::int_div || instr.op == ScalarOp::int_rem;
    });
  }

  /// Puts the vocabulary's check in front of the divisor, as the public functions do.
  bool check_divisor(Step& step, std::vector<Tensor>& tensors) {
    if (step.operands[1].kind == Operand::Kind::number) return step.operands[1].number != 0;
    const auto& index_ops = drawer_.ops_[OpKind::index];
    const auto check = std::ranges::find_if(
        index_ops, [](const Op* op) { return op->has_checks && op->arity == 1; });
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
      const auto is_bad = [](int64_t size) { return size < 0 || size > largest_tensor; };
      if (std::ranges::any_of(shape, is_bad) || element_count(shape) > largest_tensor) return false;
    } catch (const std::exception&) {
      return false;
    }
    Tensor result;
    try {
      result = apply(*step.op, operands, step.attrs);
    } catch (const Error& error) {
      // A check of elements failed: sometimes that is what the program shall do.
      if (!step.op->has_checks || error.kind() != ErrorKind::value || below(6) != 0) return false;
      must_throw_ = true;
    } catch (const std::bad_variant_access&) {
      return false;
    }
    program_.steps.push_back(std::move(step));
    if (!must_throw_) {
      known_.push_back(
          {{Operand::Kind::step, static_cast<int>(program_.steps.size()) - 1}, result});
    }
    return true;
  }

  // ---- attributes

  Dims permutation(int rank) {
    Dims order;
    for (int i = 0; i < rank; ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

  Dims random_dims(const Shape& shape) {
    const int rank = shape.size();
    Dims dims;
    switch (below(8)) {
      case 0:
        return permutation(rank);
      case 1:
      case 2: {  // some axes
        const Dims order = permutation(rank);
        for (int i = 0; i < rank && (i == 0 || below(2) == 0); ++i) {
          dims.push_back(below(3) == 0 ? order[i] - rank : order[i]);
        }
        return dims;
      }
      case 3: {  // a shape of as many elements
        int64_t left = element_count(shape);
        while (dims.size() < 4 && left > 1) {
          int64_t factor = 1 + below(static_cast<int>(std::min<int64_t>(left, 64)));
          while (left % factor != 0) --factor;
          dims.push_back(factor);
          left /= factor;
        }
        if (dims.size() < max_rank) dims.push_back(left);
        std::shuffle(dims.begin(), dims.end(), random_);
        return dims;
      }
      case 4: {  // sizes that are at most these
        for (const int64_t size : shape)
          dims.push_back(size == 0 ? 0 : 1 + below(static_cast<int>(size)));
        return dims;
      }
      case 5: {  // something to broadcast to
        dims = shape;
        for (int64_t& size : dims) size = size == 1 ? 1 + below(5) : size;
        if (rank < max_rank && below(2) == 0) dims.insert(0, 1 + below(3));
        return dims;
      }
      case 6:  // small numbers for each axis
        for (int i = 0; i < rank; ++i) dims.push_back(below(3));
        return dims;
      default:  // steps
        for (int i = 0; i < rank; ++i) dims.push_back(below(3) == 0 ? 2 : 1);
        return dims;
    }
  }

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
  Attr random_attr(std::string_view name, const Spec& like, std::size_t operands) {
    if (name == "keepdims" || name == "weak" || name == "is_remainder") return below(2) == 0;
    if (name == "has_weight") return operands > 1;
    if (name == "has_bias") return operands > 2;
    if (name == "eps") return 1e-5 * below(3);
    if (name == "ddof" || name == "normalized_axes") return static_cast<int64_t>(below(3));
    if (name == "dtype") return random_dtype();
    if (name == "axis") return static_cast<int64_t>(below(6) - 2);
    if (name == "rows") return static_cast<int64_t>(1 + below(5));
    if (name == "groups") return static_cast<int64_t>(1 + below(2));
    if (name == "stride" || name == "dilation" || name == "kernel") {
      return Dims{1 + below(3), 1 + below(2)};
    }
    if (name == "padding") return Dims{below(2), below(2)};
    if (name == "image") return Dims{1 + below(9), 1 + below(9)};
    if (name == "starts") return starts_;
    if (name == "sizes") return sizes_;
    if (name == "steps") return steps_;
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
      if (!input.is_variable || input.same_as >= 0) continue;
      for (auto known = known_.rbegin(); known != known_.rend(); ++known) {
        const Spec& spec = known->tensor.spec();
        if (spec.dtype != input.dtype || spec.shape != input.shape || spec.is_weak) continue;
        program_.updates.push_back({static_cast<int>(i), known->operand});
        break;
      }
    }
  }

  Drawer& drawer_;
  std::mt19937_64 random_;
  uint64_t seed_;
  bool is_large_ = false;
  bool must_throw_ = false;
  Dims starts_, sizes_, steps_;  ///< of the window that the next step may want
  Program program_;
  std::vector<Known> known_;
};

Drawer::Drawer(std::span<const Op* const> ops) {
  for (const Op* op : ops) ops_[op->kind].push_back(op);
}

Program Drawer::draw(uint64_t seed) {
  return Session(*this, seed).run();
}

}  // namespace nitinol::fuzz
