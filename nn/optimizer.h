// Optimizer: what all optimizers share, and what one of your own is made of.
//
// All state, the rate included, is in Variables, so a step inside compile() is part of its Plan,
// and changing the rate compiles nothing.
//
//     nn::Adam optimizer(nn::parameters(model), {.rate = 1e-3});
//     optimizer.zero_grad(); loss.backward(); optimizer.step();
#pragma once

#include "core/variable.h"
#include "dist/group.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <source_location>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// Moves parameters against their gradients, in groups that have settings of their own. All state,
/// the rate included, is in Variables.
///
/// Making a group throws Error(value) for no parameters, for one that tracks no gradient, and for
/// settings that make no sense: rates, decays, momentum and eps are finite and not negative, beta1
/// and beta2 less than 1, the decay of an average at most 1; Nesterov's method needs momentum.
///
/// A thread may add a group while another one steps, which then moves the groups there were.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer& other) : groups_(other.groups()) {}
  Optimizer& operator=(const Optimizer& other) {
    if (this != &other) replace(other.groups());
    return *this;
  }

  /// Forgets all gradients. Call it before backward(), or gradients of several calls add up.
  void zero_grad() const;
  /// Updates every parameter that has a gradient.
  void step() const;
  /// The same if `when`, one boolean, holds; else nothing changes. It is not read on the host: a
  /// step whose gradients overflowed is left out within a Plan (nn/loss_scale.h). Throws
  /// Error(value) for anything but one boolean.
  void step(const Tensor& when) const;

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
  /// Of a group at one step.
  struct Step {
    Tensor rate, count;                  ///< float64; `count`: of steps, this one included
    const std::vector<Variable>& state;  ///< the group's own, beside its parameters'
  };
  /// A parameter that has a gradient.
  struct Item {
    const Variable& parameter;
    const std::vector<Variable>& state;
    Tensor value;     ///< the parameter's, after weight decay that is apart from the gradient
    Tensor gradient;  ///< of what shall become less, with weight decay that is a part of it
  };
  enum class Decay : uint8_t { in_gradient, apart, by_formula };
  /// How a group is updated.
  struct Rule {
    const char* where;  ///< what the user called, for errors
    double rate, weight_decay = 0;
    Decay decay = Decay::in_gradient;
    bool is_maximizing = false;
    std::vector<Tensor> group_state = {};  ///< Variables of the group: their first values
    /// Variables of each parameter: their first values.
    std::function<std::vector<Tensor>(const Variable& parameter)> state;
    /// What the formula takes, float64: computed once, for all parameters.
    std::function<std::vector<Tensor>(const Step& step)> shared;
    /// The parameter's new value. `shared` has the dtype of the parameter.
    std::function<Tensor(const Item& item, const std::vector<Tensor>& shared)> formula;
    /// If given: replaces gradients, of which those that are not there are zeros, by directions.
    std::function<void(const Step& step, std::vector<Item>& items)> directions = {};
  };

  struct Group {
    Variable rate;   ///< float64
    Variable steps;  ///< float64: how many were made
    std::vector<Variable> group_state;
    std::vector<std::vector<Variable>> state;  ///< per parameter
    std::vector<Variable> parameters;
    std::shared_ptr<const Rule> rule;
  };
  using Groups = std::vector<Group>;

  Optimizer() = default;
  void add_group(std::vector<Variable> parameters, Rule rule);
  [[nodiscard]] std::shared_ptr<const Groups> groups() const;

 private:
  /// False if no parameter has a gradient.
  static bool step(const Group& group);
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

/// Scales all gradients so that their common 2-norm is at most `largest`; returns what it was: a
/// float64 if a gradient is one, else a float32. Squares are summed in float64: those of float32
/// neither overflow nor vanish.
/// Throws Error(value) if `largest` is negative or NaN.
Tensor clip_gradient_norm(const std::vector<Variable>& parameters, double largest);
/// The same of gradients of which each member of a group has a part, such as the experts of a model
/// that lie on different ranks: the norm is that of all parts together. All members call it.
Tensor clip_gradient_norm(const std::vector<Variable>& parameters, double largest,
                          const dist::Group& group,
                          std::source_location place = std::source_location::current());
/// Limits each gradient's elements to [-largest, largest]. Throws Error(value) if `largest` is
/// negative or NaN.
void clip_gradient_value(const std::vector<Variable>& parameters, double largest);

}  // namespace nitinol::nn

#pragma GCC visibility pop
