#include "tests/fuzz/programs/values.h"

#include "core/host_access.h"
#include "eager/ops/ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace nitinol::fuzz {
namespace {

/// G. Steele, D. Lea, C. Flood: Fast splittable pseudorandom number generators (2014). One is
/// seeded for each tensor, which takes std::mt19937_64 longer than to fill most of them.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t operator()() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

double plain_number(DType dtype, Random& random) {
  if (dtype == boolean) return static_cast<double>(random() % 2);
  if (is_unsigned(dtype)) return static_cast<double>(random() % 8);
  if (is_integer(dtype)) return static_cast<double>(random() % 12) - 4;
  return static_cast<double>(random() % 4001) / 500 - 4;
}

double special_number(DType dtype, Random& random) {
  using Limits = std::numeric_limits<double>;
  static constexpr double floats[] = {0.0,
                                      -0.0,
                                      Limits::infinity(),
                                      -Limits::infinity(),
                                      1.0,
                                      -1.0,
                                      0.5,
                                      Limits::quiet_NaN(),
                                      1e-40,
                                      -1e-40,
                                      3e38,
                                      -3e38,
                                      88.75,
                                      -104.0,
                                      65504,
                                      1e-8,
                                      5e-324,
                                      1e300,
                                      16777216.5,
                                      -0.75};
  static constexpr double integers[] = {0, 1, 2, 3, 127, 63, 31, 7, 8, 100};
  if (is_floating(dtype)) return floats[random() % std::size(floats)];
  const double value = integers[random() % std::size(integers)];
  return is_unsigned(dtype) || random() % 2 == 0 ? value : -value;
}

uint64_t element_bits(DType dtype, Style style, Random& random) {
  if (style == Style::wild && dtype != boolean) return random();
  const bool is_special = style == Style::special && dtype != boolean && random() % 4 == 0;
  const double value = is_special ? special_number(dtype, random) : plain_number(dtype, random);
  if (dtype == f64) return std::bit_cast<uint64_t>(value);
  if (dtype == f32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  // Truncating is good enough to make 16-bit numbers; f16 by way of f32 scaled to its exponents.
  if (dtype == bf16) return std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16;
  if (dtype == f16) {
    const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value) * 0x1p-112F);
    const uint32_t magnitude = std::min<uint32_t>((bits & 0x7fffffffU) >> 13, 0x7bffU);
    return magnitude | (bits >> 16 & 0x8000U) | (std::isnan(value) ? 0x7e00U : 0U);
  }
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

/// The first of the inputs that are one Variable.
std::size_t first_of_cell(const Program& program, std::size_t input) {
  const InputDecl& decl = program.inputs[input];
  if (decl.base < 0 || decl.view != View::same) return input;
  const auto base = static_cast<std::size_t>(decl.base);
  return program.inputs[base].is_variable ? first_of_cell(program, base) : input;
}

}  // namespace

bool divides_integers(const Step& step, const std::vector<Tensor>& tensors) {
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

int64_t places_beside_none(Shape shape) {
  std::ranges::replace(shape, 0, 1);
  return element_count(shape);
}

Tensor sample(DType dtype, const Shape& shape, const Strides& strides, Style style, uint64_t seed) {
  int64_t below = 0;
  int64_t above = 0;
  for (int i = 0; i < shape.size() && element_count(shape) > 0; ++i) {
    if (shape[i] > 1) (strides[i] < 0 ? below : above) += (shape[i] - 1) * strides[i];
  }
  Spec spec = {
      .dtype = dtype, .shape = {above - below + 1}, .is_weak = false, .device = default_device()};
  Random random(seed);
  const std::size_t size = size_of(dtype);
  const Tensor buffer = filled_tensor(spec, [&](std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      const uint64_t bits = element_bits(dtype, style, random);
      std::memcpy(&bytes[at], &bits, size);
    }
  });
  spec.shape = shape;
  return make_tensor(spec, strides, -below, buffer.internals().storage);
}

Scalar sample_scalar(Scalar::Kind kind, int index, uint64_t seed) {
  Random random(seed * 31 + static_cast<uint64_t>(index));
  const auto number = static_cast<int64_t>(random() % 64);
  if (kind == Scalar::Kind::boolean) return number % 2 == 0;
  if (kind == Scalar::Kind::integer) return number % 9 - 3;
  return static_cast<double>(number) / 8 - 3;
}

Tensor view_of(const Tensor& base, View view) {
  if (base.rank() == 0) return base;
  const int64_t half = base.shape()[0] / 2;
  Dims reversed;
  for (int i = base.rank() - 1; i >= 0; --i) reversed.push_back(i);
  switch (view) {
    case View::same:
      return base;
    case View::flipped:
      return flip(base);
    case View::transposed:
      return permute(base, reversed);
    case View::first_half:
      return slice(base, 0, {.stop = half});
    case View::second_half:
      return slice(base, 0, {.start = half});
    case View::every_second:
      return slice(base, -1, {.step = 2});
  }
  return base;
}

Environment::Environment(const Program& program, uint64_t seed)
    : program_(program),
      seed_(seed),
      fixed_(program.inputs.size()),
      cells_(program.inputs.size()) {}

std::size_t Environment::root_of(std::size_t input) const {
  while (program_.inputs[input].base >= 0)
    input = static_cast<std::size_t>(program_.inputs[input].base);
  return input;
}

bool Environment::has_fixed_memory(std::size_t input) const {
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const InputDecl& other = program_.inputs[i];
    if (other.is_captured && !other.is_variable && root_of(i) == root_of(input)) return true;
  }
  return false;
}

bool Environment::has_fixed_cell(std::size_t input) const {
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const InputDecl& other = program_.inputs[i];
    if (other.is_captured && other.is_variable &&
        first_of_cell(program_, i) == first_of_cell(program_, input))
      return true;
  }
  return false;
}

Tensor Environment::value_of(std::size_t input, const std::vector<Tensor>& before, int set) {
  if (fixed_[input].is_defined()) return fixed_[input];
  const InputDecl& decl = program_.inputs[input];
  const bool is_fixed = has_fixed_memory(input);
  const uint64_t seed = seed_ + (is_fixed ? 0 : static_cast<uint64_t>(set) * 7919);
  const Tensor value =
      decl.base >= 0
          ? view_of(before[static_cast<std::size_t>(decl.base)], decl.view)
          : sample(decl.dtype, decl.shape, decl.strides, decl.style, seed * 1000 + input);
  if (is_fixed) fixed_[input] = value;
  return value;
}

Variable Environment::variable_of(std::size_t input, const Tensor& value,
                                  const std::vector<Variable>& before) {
  const InputDecl& decl = program_.inputs[input];
  const std::size_t first = first_of_cell(program_, input);
  if (first != input) return before[first];
  const auto fresh = [&] { return decl.is_parameter ? parameter(value) : Variable(value); };
  if (!has_fixed_cell(input)) return fresh();
  if (cells_[input].is_defined())
    cells_[input].set(value);
  else
    cells_[input] = fresh();
  return cells_[input];
}

Arguments Environment::arguments(int set) {
  Arguments arguments;
  std::vector<Tensor> tensors;
  present_.clear();
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const InputDecl& input = program_.inputs[i];
    tensors.push_back(value_of(i, tensors, set));
    present_.push_back(input.is_variable ? variable_of(i, tensors[i], present_) : Variable());
    if (input.is_captured) continue;
    if (input.is_variable)
      arguments.variables.push_back(present_[i]);
    else
      arguments.tensors.push_back(tensors[i]);
  }
  for (std::size_t i = 0; i < program_.scalars.size(); ++i) {
    arguments.scalars.push_back(sample_scalar(program_.scalars[i], static_cast<int>(i),
                                              seed_ + static_cast<uint64_t>(set) * 7919));
  }
  return arguments;
}

Given Environment::given(const std::vector<Tensor>& tensors, const std::vector<Variable>& variables,
                         const std::vector<Scalar>& scalars) const {
  Given given = {.tensors = {}, .variables = {}, .scalars = scalars};
  std::size_t next_tensor = 0;
  std::size_t next_variable = 0;
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const InputDecl& input = program_.inputs[i];
    Tensor tensor;
    Variable variable;
    if (input.is_variable)
      variable = input.is_captured ? present_[i] : variables[next_variable++];
    else
      tensor = input.is_captured ? fixed_[i] : tensors[next_tensor++];
    given.tensors.push_back(tensor);
    given.variables.push_back(variable);
  }
  return given;
}

std::vector<Variable> Environment::variables() const {
  std::vector<Variable> variables;
  for (const Variable& variable : present_) {
    if (variable.is_defined()) variables.push_back(variable);
  }
  return variables;
}

std::vector<Variable> Environment::captured_variables() const {
  std::vector<Variable> variables;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    if (program_.inputs[i].is_captured && present_[i].is_defined())
      variables.push_back(present_[i]);
  }
  return variables;
}

}  // namespace nitinol::fuzz
