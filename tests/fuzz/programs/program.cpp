#include "tests/fuzz/programs/program.h"

#include "core/error.h"
#include "eager/apply.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"
#include "tests/fuzz/programs/extra_ops.h"
#include "tests/fuzz/programs/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>

namespace nitinol::fuzz {
namespace {

std::string name_of(const Program& program, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::input:
      return program.inputs[static_cast<std::size_t>(operand.index)].is_variable
                 ? fmt::format("in{}", operand.index)
                 : fmt::format("x{}", operand.index);
    case Operand::Kind::cell:
      return fmt::format("x{}.get()", operand.index);
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

std::string_view view_name(View view) {
  static constexpr std::string_view names[] = {"View::same",        "View::flipped",
                                               "View::transposed",  "View::first_half",
                                               "View::second_half", "View::every_second"};
  return names[static_cast<std::size_t>(view)];
}

}  // namespace

namespace {

/// A branch, a number that is read and used, a loop: each on the first element.
Tensor looked_at(const Tensor& x, uint64_t kind) {
  if (x.size() == 0) return x;
  const Tensor flat = reshape(x, {-1});
  const double first = cast(slice(flat, 0, {0, 1}), f64).item<double>();
  const double number = std::isfinite(first) ? std::fmod(first, 3.0) : 0.5;
  const bool is_real = is_floating(x.dtype());
  switch (kind) {
    case 0:
      return first > 0 ? reshape(flip(flat, 0), x.shape()) : flip(flip(x));
    case 1:
      return is_real ? x * number : where(x == x, x, x);
    case 2: {
      Tensor y = is_real ? x * 0.5 : x;
      for (int i = 0; i < static_cast<int>(std::abs(number)); ++i) y = is_real ? y + 1.0 : flip(y);
      return y;
    }
    default:
      return bool(any(cast(flat, boolean))) ? x : flip(x);
  }
}

}  // namespace

std::vector<Tensor> run(const Program& program, const Given& given, std::optional<uint64_t> looks) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    inputs.push_back(program.inputs[i].is_variable ? given.variables[i].get() : given.tensors[i]);
  std::vector<Tensor> results;
  const auto tensor = [&](const Operand& operand) -> Tensor {
    const auto index = static_cast<std::size_t>(operand.index);
    if (operand.kind == Operand::Kind::cell) return given.variables[index].get();
    return operand.kind == Operand::Kind::input ? inputs[index] : results[index];
  };
  auto update = program.updates.begin();
  const auto update_before = [&](int step) {
    for (; update != program.updates.end() && update->before <= step; ++update)
      given.variables[static_cast<std::size_t>(update->variable)].set(tensor(update->value));
  };
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    update_before(static_cast<int>(i));
    std::list<Argument> arguments;
    std::list<Promoted> promoted;
    std::list<Tensor> tensors;
    std::vector<const Tensor*> operands;
    for (const Operand& operand : step.operands) {
      const bool is_number = operand.kind == Operand::Kind::number;
      if (!is_number && operand.kind != Operand::Kind::scalar) {
        operands.push_back(&tensors.emplace_back(tensor(operand)));
        continue;
      }
      arguments.emplace_back(is_number ? Scalar(operand.number)
                                       : given.scalars[static_cast<std::size_t>(operand.index)]);
      operands.push_back(
          promoted.emplace_back(step.op->name, arguments.back(), operand.dtype).get());
    }
    results.push_back(apply(*step.op, operands, step.attrs));
    const uint64_t chance = looks ? (*looks + i) * 0x9e3779b97f4a7c15U >> 32U : 1;
    if (chance % 3 == 0) results.back() = looked_at(results.back(), chance / 3 % 4);
  }
  update_before(std::numeric_limits<int>::max());
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
    const char* made = !input.is_variable   ? "Tensor"
                       : input.is_parameter ? "parameter"
                                            : "Variable";
    for (const char* name : {"x", "y"}) {
      if (input.base < 0) {
        text += fmt::format("  const {} {}{} = {}(sample({}, {}, {}, {}, {}));\n", type, name, i,
                            made, text_of(input.dtype), braces(input.shape), braces(input.strides),
                            style_name(input.style), seed * 1000 + i);
      } else if (input.view == View::same) {
        text += fmt::format("  const {} {}{} = {}{};\n", type, name, i, name, input.base);
      } else {
        text += fmt::format("  const {} {}{} = {}(view_of({}{}, {}));\n", type, name, i, made, name,
                            input.base, view_name(input.view));
      }
    }
  }
  for (std::size_t i = 0; i < program.scalars.size(); ++i) {
    const Scalar value = sample_scalar(program.scalars[i], static_cast<int>(i), seed);
    text += fmt::format("  const Scalar s{} = {};\n", i,
                        value.kind() == Scalar::Kind::boolean   ? text_of(value.to_integer() != 0)
                        : value.kind() == Scalar::Kind::integer ? text_of(value.to_integer())
                                                                : text_of(value.to_double()));
  }
  return text;
}

std::string step_text(const Program& program, std::size_t number) {
  const Step& step = program.steps[number];
  std::vector<std::string> operands;
  for (const Operand& operand : step.operands) {
    const std::string name = name_of(program, operand);
    const bool is_number =
        operand.kind == Operand::Kind::number || operand.kind == Operand::Kind::scalar;
    operands.push_back(
        is_number ? fmt::format("Promoted(\"program\", {}, {}).get()", name, text_of(operand.dtype))
        : operand.kind == Operand::Kind::cell ? fmt::format("&static_cast<const Tensor&>({})", name)
                                              : "&" + name);
  }
  std::vector<std::string> attrs;
  for (const Attr& attr : step.attrs) attrs.push_back(text_of(attr));
  return fmt::format("      const Tensor t{} = apply(op_named(\"{}\"), {{{}}}, {{{}}});\n", number,
                     step.op->name, fmt::join(operands, ", "), fmt::join(attrs, ", "));
}

std::string updates_text(const Program& program, int from, int to) {
  std::string text;
  for (const Update& update : program.updates) {
    if (update.before < from || update.before >= to) continue;
    text += fmt::format("      x{}.set({});\n", update.variable, name_of(program, update.value));
  }
  return text;
}

}  // namespace

std::string to_cpp(const Program& program, uint64_t seed) {
  std::vector<std::string> captures, parameters, captured_by_f, captured_by_g, of_f, of_g;
  std::string body;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const InputDecl& input = program.inputs[i];
    const std::string declared =
        fmt::format("const {}& x{}", input.is_variable ? "Variable" : "Tensor", i);
    (input.is_captured ? captures : parameters).push_back(declared);
    (input.is_captured ? captured_by_f : of_f).push_back(fmt::format("x{}", i));
    (input.is_captured ? captured_by_g : of_g).push_back(fmt::format("y{}", i));
    if (input.is_variable) body += fmt::format("      const Tensor in{} = x{}.get();\n", i, i);
  }
  for (std::size_t i = 0; i < program.scalars.size(); ++i) {
    parameters.push_back(fmt::format("const Scalar& s{}", i));
    of_f.push_back(fmt::format("s{}", i));
    of_g.push_back(fmt::format("s{}", i));
  }
  int step = 0;
  for (; step < static_cast<int>(program.steps.size()); ++step) {
    body += updates_text(program, step, step + 1);
    body += step_text(program, static_cast<std::size_t>(step));
  }
  body += updates_text(program, step, std::numeric_limits<int>::max());
  std::vector<std::string> outputs;
  for (const Operand& output : program.outputs) outputs.push_back(name_of(program, output));
  return fmt::format(
      "{}  const auto make = []({}) {{\n    return [=]({}) {{\n{}"
      "      return std::vector<Tensor>{{{}}};\n    }};\n  }};\n"
      "  const auto f = make({});\n  const auto g = compile(make({}));\n"
      "  for (int call = 0; call < 3; ++call) CHECK(same_results(g({}), f({})));\n",
      inputs_text(program, seed), fmt::join(captures, ", "), fmt::join(parameters, ", "), body,
      fmt::join(outputs, ", "), fmt::join(captured_by_f, ", "), fmt::join(captured_by_g, ", "),
      fmt::join(of_g, ", "), fmt::join(of_f, ", "));
}

const Op& op_named(std::string_view name) {
  for (const auto& ops : {all_ops(), extra_ops()}) {
    const auto found = std::ranges::find(ops, name, &Op::name);
    if (found != ops.end()) return **found;
  }
  throw Error(
      ErrorKind::value,
      {.where = "op_named", .what = std::string(name), .expected = "an op", .got = {}, .fix = {}});
}

}  // namespace nitinol::fuzz
