#include "tests/fuzz/programs/check.h"

#include "autograd/gradient.h"
#include "core/error.h"
#include "core/parallel.h"
#include "eager/ops/ops.h"
#include "jit/compile.h"
#include "jit/passes/pipeline.h"
#include "tests/same_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace nitinol::fuzz {
namespace {

constexpr int value_sets = 3;

/// What one call did.
struct Outcome {
  std::vector<Tensor> results;
  std::vector<Tensor> variables;  ///< their values afterwards
  std::string error;
};

uint64_t seed_of_set(uint64_t seed, int set) {
  return seed + static_cast<uint64_t>(set) * 7919;
}

/// Calls `function` with fresh arguments.
template <class F>
Outcome outcome_of(const Program& program, uint64_t seed, const F& function, Device device = {}) {
  const Arguments arguments = arguments_of(program, seed, device);
  Outcome outcome;
  try {
    outcome.results = function(arguments.tensors, arguments.variables, arguments.scalars);
  } catch (const Error& error) {
    outcome.error = error.message();
  }
  for (const Variable& variable : arguments.variables) outcome.variables.push_back(variable.get());
  return outcome;
}

std::optional<std::string> difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b,
                                      const char* what) {
  if (a.size() != b.size()) return fmt::format("{} {}s, not {}", b.size(), what, a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) {
      return fmt::format("{} {} has other bits, or is {} instead of {}", what, i, describe(b[i]),
                         describe(a[i]));
    }
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
  if (const auto found = difference(expected.results, got.results, "result")) return found;
  return difference(expected.variables, got.variables, "Variable");
}

class Checker {
 public:
  Checker(const Program& program, uint64_t seed)
      : program_(program),
        seed_(seed),
        function_([&program](const std::vector<Tensor>& tensors,
                             const std::vector<Variable>& variables,
                             const std::vector<Scalar>& scalars) {
          return run(program, tensors, variables, scalars);
        }) {}

  std::optional<std::string> run_all() {
    std::vector<Outcome> single;
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      const std::vector<Outcome> eager = eager_outcomes();
      if (threads == 1)
        single = eager;
      else if (!has_library_call(program_))
        compare(single, eager, fmt::format("eager on {} threads", threads));
      check_compiled(eager, fmt::format("compiled on {} threads", threads));
      if (failure_) return failure_;
    }
    set_num_threads(1);
    check_unfused(single);
    check_gradients();
    check_reference(single);
    return failure_;
  }

 private:
  [[nodiscard]] std::vector<Outcome> eager_outcomes() const {
    std::vector<Outcome> outcomes;
    for (int set = 0; set < value_sets; ++set) {
      outcomes.push_back(outcome_of(program_, seed_of_set(seed_, set), function_));
    }
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
  void check_calls(const std::vector<Outcome>& eager, const F& function, const std::string& where) {
    constexpr int order[] = {0, 1, 2, 0, 1};
    std::vector<Outcome> got;
    for (const int set : order) {
      got.push_back(outcome_of(program_, seed_of_set(seed_, set), function));
    }
    for (std::size_t call = 0; call < got.size() && !failure_; ++call) {
      const auto found = difference(eager[static_cast<std::size_t>(order[call])], got[call]);
      if (found) failure_ = fmt::format("{}, call {}: {}", where, call + 1, *found);
    }
  }

  void check_compiled(const std::vector<Outcome>& eager, const std::string& where) {
    const auto compiled = compile(function_);
    check_calls(eager, compiled, where);
    const Explanation explanation = compiled.explain();
    const bool throws =
        std::ranges::any_of(eager, [](const Outcome& outcome) { return !outcome.error.empty(); });
    if (failure_ || throws || explanation.plan_calls > 0) return;
    failure_ = fmt::format("{}: no Plan ran. {}", where, to_string(explanation));
  }

  /// The gradients of all inputs: eagerly, traced, and through a compiled function.
  void check_gradients() {
    if (failure_) return;
    const auto loss_of = [](const std::vector<Tensor>& results) {
      Tensor loss = zeros({});
      for (const Tensor& result : results) {
        if (is_floating(result.dtype())) loss = loss + sum(cast(result, f32));
      }
      return loss;
    };
    const auto gradient_of = [&](const auto& function) {
      return [&](const std::vector<Tensor>& tensors, const std::vector<Variable>& variables,
                 const std::vector<Scalar>& scalars) {
        std::vector<Tensor> gradients = grad([&](const std::vector<Tensor>& x) {
          return loss_of(function(x, variables, scalars));
        })(tensors);
        // Eager may give one number for many elements, a backward Plan writes them all.
        for (Tensor& gradient : gradients) gradient = copy(gradient);
        return gradients;
      };
    };
    const auto eager_gradient = gradient_of(function_);
    std::vector<Outcome> eager;
    for (int set = 0; set < value_sets; ++set) {
      eager.push_back(outcome_of(program_, seed_of_set(seed_, set), eager_gradient));
    }
    const auto compiled = compile(function_);
    check_calls(eager, compile(eager_gradient), "gradient, compiled");
    check_calls(eager, gradient_of(compiled), "gradient through a compiled function");
  }

  void check_unfused(const std::vector<Outcome>& eager) {
    const jit::PassOptions before = jit::pass_options();
    jit::PassOptions options = before;
    options.disabled = {"fuse", "fold_constants", "simplify", "merge_duplicates", "remove_dead"};
    jit::set_pass_options(options);
    if (!failure_) check_compiled(eager, "compiled without passes");
    jit::set_pass_options(before);
  }

  /// Every op interpreted, one element after another. A third set of values would say little more.
  void check_reference(const std::vector<Outcome>& eager) {
    const auto is_small = [](const InputDecl& input) {
      return element_count(input.shape) <= 20000;
    };
    if (failure_ || has_library_call(program_) || !std::ranges::all_of(program_.inputs, is_small))
      return;
    const Device device = {.kind = Device::Kind::reference, .index = 0};
    const auto interpreted = [&](const auto& tensors, const auto& variables, const auto& scalars) {
      return run(program_, tensors, variables, scalars, device);
    };
    const Outcome got = outcome_of(program_, seed_of_set(seed_, 0), interpreted, device);
    compare({eager[0]}, {got}, "eager on the reference device");
  }

  const Program& program_;
  uint64_t seed_;
  std::function<std::vector<Tensor>(const std::vector<Tensor>&, const std::vector<Variable>&,
                                    const std::vector<Scalar>&)>
      function_;
  std::optional<std::string> failure_;
};

}  // namespace

std::optional<std::string> first_failure(const Program& program, uint64_t seed) {
  return Checker(program, seed).run_all();
}

uint64_t digest(const Program& program, uint64_t seed) {
  set_num_threads(1);
  const Outcome outcome = outcome_of(
      program, seed, [&program](const auto& tensors, const auto& variables, const auto& scalars) {
        return run(program, tensors, variables, scalars);
      });
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  };
  for (const auto* list : {&outcome.results, &outcome.variables}) {
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
  return std::ranges::any_of(program.steps, [](const Step& step) {
    return step.op->kind == OpKind::library || step.op->kind == OpKind::composite;
  });
}

bool same_results(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return !difference(a, b, "result");
}

}  // namespace nitinol::fuzz
