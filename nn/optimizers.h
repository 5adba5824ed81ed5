// Optimizers: step() moves parameters against their gradients.
//
// All state, the rate included, is in Variables, so a step inside compile() is part of its Plan,
// and changing the rate compiles nothing.
//
//     nn::Adam optimizer(nn::parameters(model), {.rate = 1e-3});
//     optimizer.zero_grad(); loss.backward(); optimizer.step();
#pragma once

#include "core/variable.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// Moves parameters against their gradients, in groups that have settings of their own. All state,
/// the rate included, is in Variables.
///
/// Making a group throws Error(value) for no parameters, for one that tracks no gradient, and for
/// settings that make no sense: rates, decays, momentum and eps are finite and not negative, beta1
/// and beta2 less than 1, RmsProp's decay at most 1; Nesterov's method needs momentum.
///
/// A thread may add a group while another one steps, which then moves the groups there were.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer& other) : groups_(other.groups()) {}
  Optimizer& operator=(const Optimizer& other) {
    replace(other.groups());
    return *this;
  }

  /// Forgets all gradients. Call it before backward(), or gradients of several calls add up.
  void zero_grad() const;
  /// Updates every parameter that has a gradient.
  void step() const;

  /// The learning rate of a group, a float64 number. Throws Error(value) if there is no such group.
  [[nodiscard]] Variable rate(std::size_t group = 0) const;
  /// Sets the learning rate of all groups. Throws Error(value) unless it is finite and not
  /// negative.
  void set_rate(double rate) const;

  /// For named_variables(), save() and load(): rate, step counts and running averages.
  template <class V>
  void fields(V&& visit) {
    auto replaced = std::make_shared<Groups>(*groups());
    visit("groups", *replaced);
    replace(std::move(replaced));
  }
  template <class V>
  void fields(V&& visit) const {
    const std::shared_ptr<const Groups> present = groups();
    visit("groups", *present);
  }

 protected:
  /// A parameter that has a gradient.
  struct Item {
    const Variable& parameter;
    const std::vector<Variable>& state;
    Tensor value, gradient;
  };
  /// Updates items; `rate` and `steps` (this one included) are float64.
  using Rule =
      std::function<void(const std::vector<Item>& items, const Tensor& rate, const Tensor& steps)>;

  Optimizer() = default;
  /// Adds a group whose parameters each have `states` Variables of their shape, zeros at first.
  void add_group(std::vector<Variable> parameters, double rate, int states, Rule rule);

 private:
  struct Group {
    Variable rate;                             ///< float64
    Variable steps;                            ///< float64: how many were made
    std::vector<std::vector<Variable>> state;  ///< per parameter
    std::vector<Variable> parameters;
    Rule rule;
  };
  using Groups = std::vector<Group>;

  [[nodiscard]] std::shared_ptr<const Groups> groups() const;
  void replace(std::shared_ptr<const Groups> groups);

  mutable std::mutex mutex_;  ///< guards which groups there are: a list of them never changes
  std::shared_ptr<const Groups> groups_ = std::make_shared<Groups>();
};

/// Takes the place of a setting that has another name elsewhere: to give it does not compile, and
/// the message says what to write.
struct LearningRate {
  LearningRate() = default;
  template <class T>
  LearningRate(T) {  // NOLINT(google-explicit-constructor): so that `{.lr = 1e-3}` gets here
    static_assert(sizeof(T) == 0, "the learning rate is the setting `rate`: write {.rate = ...}");
  }
};

struct SgdOptions {
  double rate = 1e-2, momentum = 0, weight_decay = 0;
  bool is_nesterov = false;
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// Stochastic gradient descent, with momentum as in PyTorch: v = momentum v + g; p -= rate v.
class Sgd final : public Optimizer {
 public:
  explicit Sgd(std::vector<Variable> parameters, const SgdOptions& options = {});
  void add(std::vector<Variable> parameters, const SgdOptions& options);
};

struct AdamOptions {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// D. Kingma, J. Ba, arXiv:1412.6980; weight decay is added to the gradient.
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Variable> parameters, const AdamOptions& options = {});
  void add(std::vector<Variable> parameters, const AdamOptions& options);

 protected:
  /// `is_decoupled`: weight decay is not added to the gradient.
  Adam(std::vector<Variable> parameters, const AdamOptions& options, bool is_decoupled);

 private:
  bool is_decoupled_;
};
/// I. Loshchilov, F. Hutter, arXiv:1711.05101: weight decay is apart from the gradient.
class AdamW final : public Adam {
 public:
  explicit AdamW(std::vector<Variable> parameters,
                 const AdamOptions& options = {.weight_decay = 1e-2});
};

struct RmsPropOptions {
  double rate = 1e-2, decay = 0.99, eps = 1e-8, momentum = 0, weight_decay = 0;
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// T. Tieleman, G. Hinton, lecture 6.5 (2012), as in PyTorch.
class RmsProp final : public Optimizer {
 public:
  explicit RmsProp(std::vector<Variable> parameters, const RmsPropOptions& options = {});
  void add(std::vector<Variable> parameters, const RmsPropOptions& options);
};

/// Scales all gradients so that their common 2-norm is at most `largest`; returns what it was: a
/// float64 if a gradient is one, else a float32. Squares are summed in float64: those of float32
/// neither overflow nor vanish.
/// Throws Error(value) if `largest` is negative or NaN.
Tensor clip_gradient_norm(const std::vector<Variable>& parameters, double largest);
/// Limits each gradient's elements to [-largest, largest]. Throws Error(value) if `largest` is
/// negative or NaN.
void clip_gradient_value(const std::vector<Variable>& parameters, double largest);

/// The learning rate of step 0, 1, 2, ...: `optimizer.set_rate(schedule(i))`. Making one throws
/// Error(value) for rates or factors that are negative or not finite and for numbers of steps below
/// 1 (0, for warm_up); calling one, for a negative step.
using Schedule = std::function<double(int64_t step)>;
/// rate * factor^(step / every), rounded down.
[[nodiscard]] Schedule step_decay(double rate, int64_t every, double factor = 0.1);
/// From `rate` to `last` along half a cosine over `steps` (arXiv:1608.03983), then `last`.
[[nodiscard]] Schedule cosine_decay(double rate, int64_t steps, double last = 0);
/// Rises linearly to `then`'s first rate during `steps` steps, then follows it from its beginning.
[[nodiscard]] Schedule warm_up(int64_t steps, Schedule then);

}  // namespace nitinol::nn

#pragma GCC visibility pop
