#include "tests/fuzz/programs/program.h"

#include "core/error.h"
#include "eager/apply.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <list>
#include <random>

namespace nitinol::fuzz {
namespace {

using Random = std::mt19937_64;

double plain_number(DType dtype, Random& random) {
  if (dtype == boolean) return static_cast<double>(random() % 2);
  if (dtype == u8) return static_cast<double>(random() % 8);
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
  return dtype == u8 || random() % 2 == 0 ? value : -value;
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

std::string name_of(const Program& program, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::input:
      return program.inputs[static_cast<std::size_t>(operand.index)].is_variable
                 ? fmt::format("in{}", operand.index)
                 : fmt::format("x{}", operand.index);
    case Operand::Kind::step:
      return fmt::format("t{}", operand.index);
    case Operand::Kind::scalar:
      return fmt::format("s{}", operand.index);
    case Operand::Kind::number:
      return fmt::format("Scalar({:#})", operand.number);
  }
  return {};
}

std::string braces(const Dims& dims) {
  return fmt::format("{{{}}}", fmt::join(dims.begin(), dims.end(), ", "));
}

std::string text_of(const Attr& attr) {
  struct Printer {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return fmt::format("int64_t{{{}}}", value); }
    std::string operator()(double value) const { return fmt::format("{:#}", value); }
    std::string operator()(DType value) const {
      return value == boolean ? "boolean" : std::string(short_name_of(value));
    }
    std::string operator()(const Dims& value) const { return "Dims" + braces(value); }
  };
  return std::visit(Printer{}, attr);
}

std::string_view style_name(Style style) {
  switch (style) {
    case Style::plain:
      return "Style::plain";
    case Style::special:
      return "Style::special";
    case Style::wild:
      return "Style::wild";
  }
  return {};
}

/// The same tensor on a device whose memory is the host's.
Tensor on_device(const Tensor& tensor, Device device) {
  const TensorData& data = tensor.internals();
  if (data.spec.device == device) return tensor;
  Spec spec = data.spec;
  spec.device = device;
  return make_tensor(spec, data.strides, data.offset, data.storage);
}

}  // namespace

Tensor sample(DType dtype, const Shape& shape, const Strides& strides, Style style, uint64_t seed) {
  int64_t below = 0;
  int64_t above = 0;
  for (int i = 0; i < shape.size() && element_count(shape) > 0; ++i) {
    if (shape[i] > 1) (strides[i] < 0 ? below : above) += (shape[i] - 1) * strides[i];
  }
  Spec spec = {.dtype = dtype, .shape = {above - below + 1}, .is_weak = false, .device = {}};
  const Tensor buffer = allocate_tensor(spec);
  Random random(seed);
  auto* bytes = static_cast<std::byte*>(buffer.internals().address());
  const std::size_t size = size_of(dtype);
  for (int64_t i = 0; i <= above - below; ++i) {
    const uint64_t bits = element_bits(dtype, style, random);
    std::memcpy(bytes + static_cast<std::size_t>(i) * size, &bits, size);
  }
  spec.shape = shape;
  return make_tensor(spec, strides, -below, buffer.internals().storage);
}

Scalar sample_scalar(int index, uint64_t seed) {
  Random random(seed * 31 + static_cast<uint64_t>(index));
  return static_cast<double>(random() % 64) / 8 - 3;
}

Arguments arguments_of(const Program& program, uint64_t seed, Device device) {
  Arguments arguments;
  std::vector<Tensor> tensors;
  std::vector<Variable> variables;  // per input
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const InputDecl& input = program.inputs[i];
    if (input.same_as >= 0) {
      tensors.push_back(tensors[static_cast<std::size_t>(input.same_as)]);
      variables.push_back(variables[static_cast<std::size_t>(input.same_as)]);
    } else {
      const Tensor tensor =
          sample(input.dtype, input.shape, input.strides, input.style, seed * 1000 + i);
      tensors.push_back(on_device(tensor, device));
      variables.push_back(input.is_variable ? Variable(tensors.back()) : Variable());
    }
    if (input.is_variable)
      arguments.variables.push_back(variables.back());
    else
      arguments.tensors.push_back(tensors.back());
  }
  for (int i = 0; i < program.scalars; ++i) arguments.scalars.push_back(sample_scalar(i, seed));
  return arguments;
}

std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& tensors,
                        const std::vector<Variable>& variables, const std::vector<Scalar>& scalars,
                        Device device) {
  std::vector<Tensor> inputs;
  std::vector<const Variable*> cells;
  std::size_t next_tensor = 0;
  std::size_t next_variable = 0;
  for (const InputDecl& input : program.inputs) {
    cells.push_back(input.is_variable ? &variables[next_variable++] : nullptr);
    inputs.push_back(input.is_variable ? cells.back()->get() : tensors[next_tensor++]);
  }
  std::vector<Tensor> results;
  const auto tensor = [&](const Operand& operand) -> const Tensor& {
    const auto index = static_cast<std::size_t>(operand.index);
    return operand.kind == Operand::Kind::input ? inputs[index] : results[index];
  };
  for (const Step& step : program.steps) {
    std::list<Argument> arguments;
    std::list<Promoted> promoted;
    std::list<Tensor> moved;
    std::vector<const Tensor*> operands;
    for (const Operand& operand : step.operands) {
      const bool is_number = operand.kind == Operand::Kind::number;
      if (!is_number && operand.kind != Operand::Kind::scalar) {
        operands.push_back(&tensor(operand));
        continue;
      }
      arguments.emplace_back(is_number ? Scalar(operand.number)
                                       : scalars[static_cast<std::size_t>(operand.index)]);
      const Tensor& number = *promoted.emplace_back(arguments.back(), operand.dtype).get();
      operands.push_back(&moved.emplace_back(on_device(number, device)));
    }
    results.push_back(apply(*step.op, operands, step.attrs));
  }
  for (const Update& update : program.updates) {
    cells[static_cast<std::size_t>(update.variable)]->set(tensor(update.value));
  }
  std::vector<Tensor> outputs;
  for (const Operand& output : program.outputs) outputs.push_back(tensor(output));
  return outputs;
}

namespace {

/// Declarations of the inputs; those of f are x0, x1, ..., those of g y0, y1, ...
std::string inputs_text(const Program& program, uint64_t seed) {
  std::string text;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const InputDecl& input = program.inputs[i];
    const char* type = input.is_variable ? "Variable" : "Tensor";
    if (input.same_as >= 0) {
      text += fmt::format("  const {0} x{1} = x{2}, y{1} = y{2};\n", type, i, input.same_as);
      continue;
    }
    text += fmt::format("  const {} x{}(sample({}, {}, {}, {}, {}));\n", type, i,
                        text_of(input.dtype), braces(input.shape), braces(input.strides),
                        style_name(input.style), seed * 1000 + i);
    text +=
        fmt::format("  const {0} y{1} = x{1}{2};\n", type, i, input.is_variable ? ".clone()" : "");
  }
  for (int i = 0; i < program.scalars; ++i) {
    text += fmt::format("  const Scalar s{} = {:#};\n", i, sample_scalar(i, seed).to_double());
  }
  return text;
}

std::string step_text(const Program& program, std::size_t number) {
  const Step& step = program.steps[number];
  std::vector<std::string> operands;
  for (const Operand& operand : step.operands) {
    const std::string name = name_of(program, operand);
    const bool is_tensor =
        operand.kind == Operand::Kind::input || operand.kind == Operand::Kind::step;
    operands.push_back(is_tensor
                           ? "&" + name
                           : fmt::format("Promoted({}, {}).get()", name, text_of(operand.dtype)));
  }
  std::vector<std::string> attrs;
  for (const Attr& attr : step.attrs) attrs.push_back(text_of(attr));
  return fmt::format("    const Tensor t{} = apply(op_named(\"{}\"), {{{}}}, {{{}}});\n", number,
                     step.op->name, fmt::join(operands, ", "), fmt::join(attrs, ", "));
}

}  // namespace

std::string to_cpp(const Program& program, uint64_t seed) {
  std::vector<std::string> parameters;
  std::vector<std::string> plain;
  std::vector<std::string> compiled;
  std::string body;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const bool is_variable = program.inputs[i].is_variable;
    parameters.push_back(fmt::format("const {}& x{}", is_variable ? "Variable" : "Tensor", i));
    plain.push_back(fmt::format("x{}", i));
    compiled.push_back(fmt::format("y{}", i));
    if (is_variable) body += fmt::format("    const Tensor in{} = x{}.get();\n", i, i);
  }
  for (int i = 0; i < program.scalars; ++i) {
    parameters.push_back(fmt::format("const Scalar& s{}", i));
    plain.push_back(fmt::format("s{}", i));
    compiled.push_back(fmt::format("s{}", i));
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) body += step_text(program, i);
  for (const Update& update : program.updates) {
    body += fmt::format("    x{}.set({});\n", update.variable, name_of(program, update.value));
  }
  std::vector<std::string> outputs;
  for (const Operand& output : program.outputs) outputs.push_back(name_of(program, output));
  return fmt::format(
      "{}  const auto f = []({}) {{\n{}    return std::vector<Tensor>{{{}}};\n  }};\n"
      "  const auto g = compile(f);\n"
      "  for (int call = 0; call < 3; ++call) CHECK(same_results(g({}), f({})));\n",
      inputs_text(program, seed), fmt::join(parameters, ", "), body, fmt::join(outputs, ", "),
      fmt::join(compiled, ", "), fmt::join(plain, ", "));
}

const Op& op_named(std::string_view name) {
  for (const Op* op : all_ops()) {
    if (op->name == name) return *op;
  }
  throw Error(
      ErrorKind::value,
      {.where = "op_named", .what = std::string(name), .expected = "an op", .got = {}, .fix = {}});
}

}  // namespace nitinol::fuzz
