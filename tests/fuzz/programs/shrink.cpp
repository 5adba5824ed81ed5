// Greedy: each kind of change is tried at each place; a change after which the program still fails
// stays. That is repeated until nothing helps. Changes may make programs that throw; those do not
// fail, since all ways of running them throw the same.
#include "tests/fuzz/programs/shrink.h"

#include "tests/fuzz/programs/values.h"

#include <algorithm>
#include <chrono>
#include <set>

namespace nitinol::fuzz {
namespace {

/// Calls visit(operand) for everything that reads a value.
template <class Visit>
void for_each_operand(Program& program, Visit visit) {
  for (Step& step : program.steps) std::ranges::for_each(step.operands, visit);
  std::ranges::for_each(program.outputs, visit);
  for (Update& update : program.updates) visit(update.value);
}

bool is_read(Program& program, Operand::Kind kind, int index) {
  bool found = false;
  for_each_operand(
      program, [&](const Operand& o) { found = found || (o.kind == kind && o.index == index); });
  return found;
}

/// Everything that reads step `index` reads `stand_in`, and the step is gone.
void replace_step(Program& program, int index, const Operand& stand_in) {
  for_each_operand(program, [&](Operand& operand) {
    if (operand.kind != Operand::Kind::step) return;
    if (operand.index == index)
      operand = stand_in;
    else if (operand.index > index)
      --operand.index;
  });
  program.steps.erase(program.steps.begin() + index);
  for (Update& update : program.updates) update.before -= update.before > index ? 1 : 0;
}

void remove_input(Program& program, int index) {
  for_each_operand(program, [&](Operand& operand) {
    const bool is_input =
        operand.kind == Operand::Kind::input || operand.kind == Operand::Kind::cell;
    if (is_input && operand.index > index) --operand.index;
  });
  for (Update& update : program.updates) update.variable -= update.variable > index ? 1 : 0;
  for (InputDecl& input : program.inputs) input.base -= input.base > index ? 1 : 0;
  program.inputs.erase(program.inputs.begin() + index);
}

bool is_needed(Program& program, int input) {
  const auto names = [input](const Update& update) { return update.variable == input; };
  const auto shares = [input](const InputDecl& other) { return other.base == input; };
  return is_read(program, Operand::Kind::input, input) ||
         is_read(program, Operand::Kind::cell, input) ||
         std::ranges::any_of(program.updates, names) || std::ranges::any_of(program.inputs, shares);
}

void remove_unused(Program& program) {
  for (int i = static_cast<int>(program.steps.size()) - 1; i >= 0; --i) {
    if (!is_read(program, Operand::Kind::step, i)) replace_step(program, i, {});
  }
  for (int i = static_cast<int>(program.inputs.size()) - 1; i >= 0; --i) {
    if (!is_needed(program, i)) remove_input(program, i);
  }
  for (int i = static_cast<int>(program.scalars.size()) - 1; i >= 0; --i) {
    if (is_read(program, Operand::Kind::scalar, i)) continue;
    for_each_operand(program, [i](Operand& operand) {
      if (operand.kind == Operand::Kind::scalar && operand.index > i) --operand.index;
    });
    program.scalars.erase(program.scalars.begin() + i);
  }
}

class Shrinker {
 public:
  Shrinker(Program program, FunctionRef<bool(const Program&)> fails, double seconds)
      : program_(std::move(program)),
        fails_(fails),
        end_(std::chrono::steady_clock::now() +
             std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000))) {}

  Program run() {
    bool is_smaller = true;
    while (is_smaller && std::chrono::steady_clock::now() < end_) {
      is_smaller = false;
      is_smaller |= attempt([](Program& p) { remove_unused(p); });
      is_smaller |= fewer_results();
      is_smaller |= fewer_steps();
      is_smaller |= plainer_inputs();
      is_smaller |= smaller_sizes();
    }
    return std::move(program_);
  }

 private:
  /// Keeps the change if it is one and the program still fails.
  template <class Change>
  bool attempt(Change change) {
    if (std::chrono::steady_clock::now() >= end_) return false;
    Program changed = program_;
    change(changed);
    if (to_cpp(changed, 0) == to_cpp(program_, 0) || !fails_(changed)) return false;
    program_ = std::move(changed);
    return true;
  }

  bool fewer_results() {
    bool any = false;
    for (std::size_t i = program_.updates.size(); i-- > 0;) {
      any |= attempt(
          [i](Program& p) { p.updates.erase(p.updates.begin() + static_cast<std::ptrdiff_t>(i)); });
    }
    for (std::size_t i = program_.outputs.size(); i-- > 0 && program_.outputs.size() > 1;) {
      any |= attempt(
          [i](Program& p) { p.outputs.erase(p.outputs.begin() + static_cast<std::ptrdiff_t>(i)); });
    }
    // What an earlier step makes may be enough.
    for (int i = 0; i < static_cast<int>(program_.steps.size()); ++i) {
      if (attempt([i](Program& p) {
            p.outputs = {{Operand::Kind::step, i}};
            p.updates.clear();
            remove_unused(p);
          })) {
        return true;
      }
    }
    return any;
  }

  bool fewer_steps() {
    bool any = false;
    for (int i = static_cast<int>(program_.steps.size()) - 1; i >= 0; --i) {
      if (i >= static_cast<int>(program_.steps.size())) continue;
      const Step step = program_.steps[static_cast<std::size_t>(i)];
      bool is_gone = false;
      for (std::size_t k = 0; k < step.operands.size() && !is_gone; ++k) {
        const Operand operand = step.operands[k];
        if (operand.kind != Operand::Kind::input && operand.kind != Operand::Kind::step) continue;
        is_gone = attempt([&](Program& p) {
          replace_step(p, i, operand);
          remove_unused(p);
        });
      }
      if (!is_gone) is_gone = attempt([&](Program& p) { replace_by_input(p, i); });
      any |= is_gone;
    }
    return any;
  }

  /// Puts a new input of the same dtype and shape in the place of a step.
  static void replace_by_input(Program& program, int index) {
    Program prefix = program;
    prefix.outputs = {{Operand::Kind::step, index}};
    prefix.updates.clear();
    prefix.steps.resize(static_cast<std::size_t>(index) + 1);
    Tensor value;
    try {
      Environment environment(prefix, 1);
      const Arguments arguments = environment.arguments(0);
      value = fuzz::run(
          prefix, environment.given(arguments.tensors, arguments.variables, arguments.scalars))[0];
    } catch (const std::exception&) {
      return;
    }
    program.inputs.push_back(
        {.dtype = value.dtype(), .shape = value.shape(), .strides = strides_of(value.shape())});
    replace_step(program, index,
                 {Operand::Kind::input, static_cast<int>(program.inputs.size()) - 1});
    remove_unused(program);
  }

  bool plainer_inputs() {
    bool any = false;
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      any |= attempt([i](Program& p) { p.inputs[i].base = -1; });
      any |= attempt([i](Program& p) { p.inputs[i].is_captured = false; });
      any |= attempt([i](Program& p) { p.inputs[i].is_parameter = false; });
      any |= attempt([i](Program& p) { p.inputs[i].strides = strides_of(p.inputs[i].shape); });
      any |= attempt([i](Program& p) { p.inputs[i].style = Style::plain; });
      const auto names = [i](const Update& update) {
        return update.variable == static_cast<int>(i);
      };
      any |= attempt([i](Program& p) {
        for_each_operand(p, [i](Operand& operand) {
          if (operand.kind == Operand::Kind::cell && operand.index == static_cast<int>(i))
            operand.kind = Operand::Kind::input;
        });
      });
      if (std::ranges::any_of(program_.updates, names)) continue;
      if (is_read(program_, Operand::Kind::cell, static_cast<int>(i))) continue;
      any |= attempt([i](Program& p) { p.inputs[i].is_variable = false; });
    }
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      for (std::size_t k = 0; k < program_.steps[s].operands.size(); ++k) {
        if (program_.steps[s].operands[k].kind != Operand::Kind::scalar) continue;
        any |= attempt([&](Program& p) {
          Operand& operand = p.steps[s].operands[k];
          operand = {Operand::Kind::number, 0, 1.5, operand.dtype};
        });
      }
    }
    return any;
  }

  /// One size everywhere, in shapes and in attributes, becomes a smaller one.
  bool smaller_sizes() {
    bool any = false;
    std::set<int64_t> sizes;
    for (const InputDecl& input : program_.inputs)
      sizes.insert(input.shape.begin(), input.shape.end());
    for (const int64_t size : sizes) {
      for (const int64_t smaller : {int64_t{1}, int64_t{2}, int64_t{3}, size / 2}) {
        if (smaller >= size || smaller < 1) continue;
        if (attempt([&](Program& p) { resize(p, size, smaller); })) {
          any = true;
          break;
        }
      }
    }
    return any;
  }

  static void resize(Program& program, int64_t from, int64_t to) {
    for (InputDecl& input : program.inputs) {
      const bool is_plain = input.strides == strides_of(input.shape);
      std::replace(input.shape.begin(), input.shape.end(), from, to);
      if (is_plain) input.strides = strides_of(input.shape);
    }
    for (Step& step : program.steps) {
      for (Attr& attr : step.attrs) {
        if (auto* dims = std::get_if<Dims>(&attr))
          std::replace(dims->begin(), dims->end(), from, to);
      }
    }
  }

  Program program_;
  FunctionRef<bool(const Program&)> fails_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace

Program shrunk(Program program, FunctionRef<bool(const Program&)> fails, double seconds) {
  return Shrinker(std::move(program), fails, seconds).run();
}

}  // namespace nitinol::fuzz
