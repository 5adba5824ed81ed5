// Example: {t0 = x0 * x1, t1 = tanh(t0)}, both of [3], becomes {t0 = x2[0], t1 = x0 * t0,
// t2 = tanh(t1), t3 = x2[1], t4 = t2 * t3, t5 = tanh(t4)}, where x2 is of [2, 3].
#include "tests/fuzz/programs/unroll.h"

#include "core/error.h"
#include "core/shape.h"
#include "tests/fuzz/programs/chance.h"
#include "tests/fuzz/programs/values.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace nitinol::fuzz {
namespace {

constexpr int most_steps = 60;

Operand step_number(std::size_t i) {
  return {.kind = Operand::Kind::step, .index = static_cast<int>(i)};
}

/// What each step gives, or none if one throws.
std::optional<std::vector<Tensor>> values_of(const Program& program, uint64_t seed) {
  Program all = program;
  all.outputs.clear();
  for (std::size_t i = 0; i < all.steps.size(); ++i) all.outputs.push_back(step_number(i));
  try {
    Environment environment(all, seed);
    const Arguments arguments = environment.arguments(0);
    return run(all, environment.given(arguments.tensors, arguments.variables, arguments.scalars));
  } catch (const Error&) {
    return {};
  }
}

class Unroller : Chance {
 public:
  Unroller(const Program& body, uint64_t seed) : Chance(seed), body_(body), seed_(seed) {}

  std::optional<Program> run() {
    if (!choose_state()) return {};
    choose_parts();
    const int steps = static_cast<int>(body_.steps.size()) + (parts_ < 0 ? 0 : 2);
    const int times = std::min(2 + below(5), most_steps / steps);
    if (times < 2) return {};
    program_.inputs = body_.inputs;
    program_.scalars = body_.scalars;
    if (parts_ >= 0) {
      InputDecl parts;
      parts.dtype = body_.inputs[at(parts_)].dtype;
      parts.shape = body_.inputs[at(parts_)].shape;
      parts.shape.insert(0, times);
      parts.strides = strides_of(parts.shape);
      program_.inputs.push_back(parts);
    }
    for (int time = 0; time < times; ++time) add_body(time);
    for (const Operand& output : body_.outputs) program_.outputs.push_back(placed(output));
    if (!values_of(program_, seed_)) return {};
    return std::move(program_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  [[nodiscard]] bool reads(int input) const {
    const Operand wanted = {.kind = Operand::Kind::input, .index = input};
    return std::ranges::any_of(body_.steps, [&](const Step& step) {
      return std::ranges::find(step.operands, wanted) != step.operands.end();
    });
  }

  bool choose_state() {
    const std::optional<std::vector<Tensor>> values = values_of(body_, seed_);
    if (!values) return false;
    std::vector<std::pair<int, std::size_t>> found;
    for (int i = 0; i < std::ssize(body_.inputs); ++i) {
      const InputDecl& input = body_.inputs[at(i)];
      if (input.is_variable || !reads(i)) continue;
      for (std::size_t k = 0; k < values->size(); ++k) {
        const Spec& spec = (*values)[k].spec();
        if (spec.dtype == input.dtype && spec.shape == input.shape && !spec.is_weak)
          found.emplace_back(i, k);
      }
    }
    if (found.empty()) return false;
    std::tie(state_, end_) = one_of(found);
    return true;
  }

  /// Another input of which each time reads a part of its own.
  void choose_parts() {
    std::vector<int> found;
    for (int i = 0; i < std::ssize(body_.inputs); ++i) {
      const InputDecl& input = body_.inputs[at(i)];
      const bool fits = input.shape.size() < 6 && element_count(input.shape) < 50000;
      if (i != state_ && !input.is_variable && fits && reads(i)) found.push_back(i);
    }
    if (!found.empty() && below(3) != 0) parts_ = one_of(found);
  }

  /// An operand of the body as that of the time that is being added.
  [[nodiscard]] Operand placed(Operand operand) const {
    if (operand.kind == Operand::Kind::step) operand.index += static_cast<int>(first_);
    if (operand.kind != Operand::Kind::input) return operand;
    if (operand.index == state_ && before_) return *before_;
    return operand.index == parts_ ? part_ : operand;
  }

  void add_part(int time) {
    const int parts = static_cast<int>(body_.inputs.size());
    const Shape& shape = program_.inputs[at(parts)].shape;
    Dims starts = Dims::filled(shape.size(), 0), steps = Dims::filled(shape.size(), 1);
    Dims sizes = shape;
    starts[0] = time;
    sizes[0] = 1;
    program_.steps.push_back({.op = &op_named("slice"),
                              .operands = {{.kind = Operand::Kind::input, .index = parts}},
                              .attrs = {starts, sizes, steps}});
    program_.steps.push_back({.op = &op_named("reshape"),
                              .operands = {step_number(program_.steps.size() - 1)},
                              .attrs = {body_.inputs[at(parts_)].shape}});
    part_ = step_number(program_.steps.size() - 1);
  }

  void add_body(int time) {
    if (parts_ >= 0) add_part(time);
    if (time > 0) before_ = step_number(first_ + end_);
    first_ = program_.steps.size();
    for (Step step : body_.steps) {
      for (Operand& operand : step.operands) operand = placed(operand);
      program_.steps.push_back(std::move(step));
    }
    for (Update update : body_.updates) {
      update.value = placed(update.value);
      update.before += static_cast<int>(first_);
      program_.updates.push_back(update);
    }
    if (below(2) == 0) program_.outputs.push_back(step_number(first_ + end_));
  }

  const Program& body_;
  const uint64_t seed_;
  int state_ = -1;                 ///< the input that the time before gives,
  std::size_t end_ = 0;            ///< and the step of it that does
  int parts_ = -1;                 ///< the input of which each time reads a part, or -1
  std::size_t first_ = 0;          ///< the body's first step of the time that is being added
  std::optional<Operand> before_;  ///< what the time before has given
  Operand part_;
  Program program_;
};

}  // namespace

std::optional<Program> unrolled(const Program& body, uint64_t seed) {
  return body.steps.empty() ? std::nullopt : Unroller(body, seed).run();
}

}  // namespace nitinol::fuzz
