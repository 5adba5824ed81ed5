#include "tests/fuzz/programs/check.h"

#include "autograd/gradient.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/parallel.h"
#include "eager/ops/ops.h"
#include "jit/compile.h"
#include "jit/passes/pipeline.h"
#include "tests/bit_difference.h"
#include "tests/fuzz/programs/interpret.h"
#include "tests/fuzz/programs/values.h"
#include "tests/outside_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

namespace nitinol::fuzz {
namespace {

constexpr int value_sets = 3;

/// What one call did.
struct Outcome {
  std::vector<Tensor> results;
  std::vector<Tensor> variables;  ///< their values afterwards
  std::string error;
  std::vector<test::Note> notes = {};  ///< of what is ordered
};

/// The program as a function: what is given to compile().
struct Function {
  const Program* program;
  std::shared_ptr<Environment> environment;
  std::optional<uint64_t> looks = {};  ///< see run()
  std::vector<Tensor> operator()(const std::vector<Tensor>& tensors,
                                 const std::vector<Variable>& variables,
                                 const std::vector<Scalar>& scalars) const {
    return run(*program, environment->given(tensors, variables, scalars), looks);
  }
};

/// The values of the Variables of the latest call, and the state of the default generator.
std::vector<Tensor> state_of(const Environment& environment) {
  std::vector<Tensor> values;
  for (const Variable& variable : environment.variables())
    values.push_back(stop_gradient(variable.get()));
  values.push_back(default_generator().state().get());
  return values;
}

/// Calls `function` with fresh arguments.
template <class F>
Outcome outcome_of(Environment& environment, int set, const F& function) {
  const Arguments arguments = environment.arguments(set);
  manual_seed(static_cast<uint64_t>(set));
  static_cast<void>(test::take_notes());
  Outcome outcome;
  try {
    outcome.results = function(arguments.tensors, arguments.variables, arguments.scalars);
    synchronize();  // tells of a check that fails when the call has returned
  } catch (const Error& error) {
    outcome.results.clear();
    const std::string& text = error.message();
    outcome.error = text.substr(0, text.find("\nFound when the call of "));
  }
  outcome.notes = test::take_notes();
  outcome.variables = state_of(environment);
  return outcome;
}

/// What a function that is not compiled does, but that a call that throws changes nothing.
template <class F>
Outcome expected_of(Environment& environment, int set, const F& function) {
  Outcome outcome;
  const auto with_state_before = [&](const auto&... arguments) {
    outcome.variables = state_of(environment);
    return function(arguments...);
  };
  Outcome got = outcome_of(environment, set, with_state_before);
  if (!got.error.empty()) got.variables = outcome.variables;
  return got;
}

std::optional<std::string> difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b,
                                      const char* what) {
  if (a.size() != b.size()) return fmt::format("{} {}s, not {}", b.size(), what, a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (const auto found = bit_difference(b[i], a[i]))
      return fmt::format("{} {}: {}", what, i, *found);
    if (a[i].tracks_gradient() != b[i].tracks_gradient())
      return fmt::format("{} {} tracks gradients in one case only", what, i);
    const auto is_plain = [](const Tensor& t) {
      return is_contiguous(t.shape(), t.internals().strides);
    };
    if (is_plain(a[i]) != is_plain(b[i]))
      return fmt::format("{} {} is contiguous in one case only", what, i);
  }
  return std::nullopt;
}

std::optional<std::string> difference(const Outcome& expected, const Outcome& got) {
  if (expected.error != got.error) {
    return fmt::format("threw '{}', not '{}'", got.error, expected.error);
  }
  if (expected.notes != got.notes) {
    return fmt::format("did what is ordered {} times or otherwise, not {} times", got.notes.size(),
                       expected.notes.size());
  }
  if (const auto found = difference(expected.results, got.results, "result")) return found;
  return difference(expected.variables, got.variables, "Variable");
}

/// compile(function), recorded again by the number of calls alone, however long they take.
template <class F>
auto compiled_by_calls(const F& function) {
  return compile(function, {.check_interval = std::chrono::milliseconds(0)});
}

/// A loss to which each element of each floating result contributes: with a factor of its own, or,
/// for programs of odd seeds, with 1.
Tensor loss_of(const std::vector<Tensor>& results, bool is_weighted) {
  Tensor loss = zeros({});
  for (const Tensor& result : results) {
    if (!is_floating(result.dtype())) continue;
    const Tensor x = cast(result, f32);
    if (!is_weighted || x.size() == 0)
      loss = loss + sum(x);
    else
      loss = loss + sum(x * reshape(linspace(-1.0, 1.5, x.size(), f32), x.shape()));
  }
  return loss;
}

/// The gradients of the tensor arguments.
template <class F>
auto gradient_of(F function, bool is_weighted) {
  return [function, is_weighted](const std::vector<Tensor>& tensors,
                                 const std::vector<Variable>& variables,
                                 const std::vector<Scalar>& scalars) {
    std::vector<Tensor> gradients = grad([&](const std::vector<Tensor>& x) {
      return loss_of(function(x, variables, scalars), is_weighted);
    })(tensors);
    // Eager may give one number for many elements, a backward Plan writes them all.
    for (Tensor& gradient : gradients) gradient = copy(stop_gradient(gradient));
    return gradients;
  };
}

/// The gradients that parameters gather: a training step without its update.
template <class F>
auto step_of(F function, std::shared_ptr<Environment> environment, bool is_weighted) {
  return [function, environment, is_weighted](const std::vector<Tensor>& tensors,
                                              const std::vector<Variable>& variables,
                                              const std::vector<Scalar>& scalars) {
    const std::vector<Tensor> results = function(tensors, variables, scalars);
    const Tensor loss = loss_of(results, is_weighted);
    if (loss.tracks_gradient()) loss.backward();
    std::vector<Tensor> gradients = {stop_gradient(loss)};
    for (const auto& list : {variables, environment->captured_variables()}) {
      for (const Variable& variable : list) {
        if (!variable.tracks_gradient()) continue;
        const Tensor gradient = variable.grad();
        gradients.push_back(gradient.is_defined() ? copy(gradient) : zeros({}));
        variable.clear_grad();
      }
    }
    return gradients;
  };
}

class Checker {
 public:
  Checker(const Program& program, uint64_t seed) : program_(program), seed_(seed) {}

  std::optional<std::string> run_all() {
    std::vector<Outcome> single;
    for (const int threads : thread_counts()) {
      set_num_threads(threads);
      const std::vector<Outcome> eager = eager_outcomes();
      if (threads == 1)
        single = eager;
      else if (!has_library_call(program_))
        compare(single, eager, fmt::format("eager on {} threads", threads));
      check_compiled(eager, fmt::format("compiled on {} threads", threads));
      if (failure_) break;
    }
    set_num_threads(1);
    check_without_passes(single);
    check_gradients();
    check_looks();
    check_reference(single);
    if (failure_) find_guilty_pass();
    return failure_;
  }

  std::optional<std::string> run_compiled() {
    set_num_threads(1);
    check_compiled(eager_outcomes(), "compiled");
    check_gradients();
    if (failure_) find_guilty_pass();
    return failure_;
  }

 private:
  [[nodiscard]] Function function() const {
    return {&program_, std::make_shared<Environment>(program_, seed_)};
  }

  /// Another device is given the same work by any number of the pool's threads.
  [[nodiscard]] static std::vector<int> thread_counts() {
    return default_device() == Device{} ? std::vector{1, 2, 3} : std::vector{1};
  }

  [[nodiscard]] std::vector<Outcome> eager_outcomes() const {
    const Function eager = function();
    std::vector<Outcome> outcomes;
    for (int set = 0; set < value_sets; ++set)
      outcomes.push_back(expected_of(*eager.environment, set, eager));
    return outcomes;
  }

  void compare(const std::vector<Outcome>& expected, const std::vector<Outcome>& got,
               const std::string& where) {
    for (std::size_t i = 0; i < expected.size() && !failure_; ++i) {
      if (const auto found = difference(expected[i], got[i]))
        failure_ = fmt::format("{}, values {}: {}", where, i, *found);
    }
  }

  /// Recorded, recorded, Plan, recorded again (call 4), Plan. Results are compared only at the end:
  /// none may be overwritten by a later call.
  template <class F>
  void check_calls(const std::vector<Outcome>& eager, Environment& environment, const F& called,
                   const std::string& where) {
    constexpr int order[] = {0, 1, 2, 0, 1};
    std::vector<Outcome> got;
    for (const int set : order) got.push_back(outcome_of(environment, set, called));
    for (std::size_t call = 0; call < got.size() && !failure_; ++call) {
      const auto found = difference(eager[static_cast<std::size_t>(order[call])], got[call]);
      if (found) failure_ = fmt::format("{}, call {}: {}", where, call + 1, *found);
    }
  }

  void check_compiled(const std::vector<Outcome>& eager, const std::string& where) {
    if (failure_) return;
    const Function plain = function();
    const auto compiled = compiled_by_calls(plain);
    check_calls(eager, *plain.environment, compiled, where);
    const Explanation explanation = compiled.explain();
    const bool throws =
        std::ranges::any_of(eager, [](const Outcome& outcome) { return !outcome.error.empty(); });
    const auto acts = [](const SignatureReport& signature) {  // in a way that no Plan does
      return signature.reason.find("applied to what noted gives") != std::string::npos ||
             signature.reason.find("go back by noted") != std::string::npos ||
             signature.reason.find("applied to what rank_") != std::string::npos ||
             signature.reason.find("go back by rank_") != std::string::npos;
    };
    if (std::ranges::any_of(explanation.signatures, acts)) return;
    if (failure_ || throws || explanation.plan_calls > 0) return;
    failure_ = fmt::format("{}: no Plan ran. {}", where, to_string(explanation));
  }

  /// The gradients of all arguments and parameters: eagerly, traced, and through a compiled
  /// function.
  void check_gradients() {
    const bool is_weighted = seed_ % 2 == 0;
    check_derivative("gradient",
                     [&](const auto& f, const auto&) { return gradient_of(f, is_weighted); });
    const bool has_parameters = std::ranges::any_of(
        program_.inputs, [](const InputDecl& input) { return input.is_parameter; });
    if (!has_parameters) return;
    check_derivative("gradients of parameters", [&](const auto& f, const auto& environment) {
      return step_of(f, environment, is_weighted);
    });
  }

  /// The same program with looks at data in it, which runs in segments; and its gradients.
  void check_looks() {
    if (seed_ % 3 != 0) return;  // it takes as long as all else
    const auto looking = [&] {
      Function f = function();
      f.looks = seed_;
      return f;
    };
    const auto check = [&](const auto& derive, const char* where) {
      if (failure_) return;
      const Function plain = looking(), traced = looking();
      const auto eager_function = derive(plain, plain.environment);
      std::vector<Outcome> eager;
      for (int set = 0; set < value_sets; ++set)
        eager.push_back(expected_of(*plain.environment, set, eager_function));
      const auto compiled = compiled_by_calls(derive(traced, traced.environment));
      for (int round = 0; round < 3; ++round)
        check_calls(eager, *traced.environment, compiled, where);
    };
    check([](const Function& f, const auto&) { return f; }, "compiled, with looks");
    check([&](const Function& f, const auto&) { return gradient_of(f, seed_ % 2 == 0); },
          "gradient, compiled, with looks");
  }

  template <class Derive>
  void check_derivative(const std::string& what, const Derive& derive) {
    if (failure_) return;
    std::vector<Outcome> eager;
    const Function plain = function();
    const auto derivative = derive(plain, plain.environment);
    for (int set = 0; set < value_sets; ++set)
      eager.push_back(expected_of(*plain.environment, set, derivative));
    const Function traced = function();
    check_calls(eager, *traced.environment, compiled_by_calls(derive(traced, traced.environment)),
                what + ", compiled");
    const Function inner = function();
    check_calls(eager, *inner.environment, derive(compiled_by_calls(inner), inner.environment),
                what + " through a compiled function");
  }

  void check_without_passes(const std::vector<Outcome>& eager) {
    if (failure_) return;
    const std::vector<std::string_view> names = jit::optional_passes();
    const jit::PassOptions before = jit::pass_options();
    jit::set_pass_options({.disabled = {names.begin(), names.end()}, .dumped = {}});
    check_compiled(eager, "compiled without passes");
    const std::string_view one = names[seed_ / 7 % names.size()];
    jit::set_pass_options({.disabled = {std::string(one)}, .dumped = {}});
    check_compiled(eager, fmt::format("compiled without {}", one));
    jit::set_pass_options(before);
  }

  /// Says which pass must be left out for the failure to go away, if one is enough.
  void find_guilty_pass() {
    const std::string found = *failure_;
    if (found.find("compiled") == std::string::npos || found.find("without") != std::string::npos)
      return;
    const jit::PassOptions before = jit::pass_options();
    std::string guilty;
    for (const std::string_view name : jit::optional_passes()) {
      jit::set_pass_options({.disabled = {std::string(name)}, .dumped = {}});
      failure_.reset();
      for (const int threads : thread_counts()) {
        set_num_threads(threads);
        check_compiled(eager_outcomes(), "");
      }
      set_num_threads(1);
      check_gradients();
      if (!failure_) guilty += fmt::format(" {}", name);
    }
    jit::set_pass_options(before);
    failure_ = found;
    if (!guilty.empty()) *failure_ += "\n  (it does not happen without:" + guilty + ")";
  }

  /// Every op interpreted, one element after another. A second set of values would say little more.
  void check_reference(const std::vector<Outcome>& eager) {
    const auto is_small = [](const InputDecl& input) {
      return element_count(input.shape) <= 20000;
    };
    if (failure_ || has_library_call(program_) || !std::ranges::all_of(program_.inputs, is_small) ||
        !eager[0].error.empty())
      return;
    const Function plain = function();
    const Arguments arguments = plain.environment->arguments(0);
    manual_seed(0);
    std::vector<Tensor> got = interpreted(plain, arguments);
    std::vector<Tensor> expected;
    // What has moved between memories lies densely.
    const bool has_moved = !backend(default_device()).is_host_memory();
    const auto seen = [&](const Tensor& result) {
      return has_moved ? Tensor(copy(stop_gradient(result))) : stop_gradient(result);
    };
    for (const Tensor& result : eager[0].results) expected.push_back(seen(result));
    if (has_moved) std::ranges::transform(got, got.begin(), seen);
    compare({{.results = expected, .variables = {}, .error = {}}},
            {{.results = got, .variables = {}, .error = {}}}, "interpreted by the reference");
  }

  const Program& program_;
  uint64_t seed_;
  std::optional<std::string> failure_;
};

}  // namespace

std::optional<std::string> first_failure(const Program& program, uint64_t seed) {
  return Checker(program, seed).run_all();
}

std::optional<std::string> first_compiled_failure(const Program& program, uint64_t seed) {
  return Checker(program, seed).run_compiled();
}

uint64_t digest(const Program& program, uint64_t seed) {
  set_num_threads(1);
  const Function function = {&program, std::make_shared<Environment>(program, seed)};
  const Outcome outcome = outcome_of(*function.environment, 0, function);
  const Outcome derivative =
      outcome_of(*function.environment, 0, gradient_of(function, seed % 2 == 0));
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  };
  for (const auto* list : {&outcome.results, &outcome.variables, &derivative.results}) {
    for (const Tensor& tensor : *list) {
      if (is_floating(tensor.dtype())) {  // any NaN is as good as another
        for (const double value : tensor.to(f64).to_vector<double>()) {
          const double canonical =
              std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
          add(std::as_bytes(std::span(&canonical, 1)));
        }
      } else {
        for (const int64_t value : tensor.to(i64).to_vector<int64_t>())
          add(std::as_bytes(std::span(&value, 1)));
      }
    }
  }
  return hash;
}

bool has_library_call(const Program& program) {
  return std::ranges::any_of(program.steps,
                             [](const Step& step) { return step.op->kind == OpKind::library; });
}

bool same_results(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return !difference(a, b, "result");
}

}  // namespace nitinol::fuzz
