// Training by several processes: each computes the gradients of its part of a batch.
//
//     dist::init();
//     Model model;
//     nn::broadcast(model);  // all begin with what rank 0 has
//     nn::DataLoader loader({x, y}, {.batch = 64, .shard = nn::shard_of(dist::world())});
//     for (const auto& [x, y] : loader) {
//       optimizer.zero_grad();
//       loss_of(model, x, y).backward();
//       nn::average_gradients(nn::parameters(model));
//       optimizer.step();  // the same on all ranks, to the bit
//     }
//     if (dist::world().rank() == 0) nn::save("model.safetensors", model);
//
// A mean over a batch is the mean over all ranks' parts of it where these are equally large.
// docs/distributed.md says what else differs from one process.
#pragma once

#include "dist/group.h"
#include "nn/loss_scale.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "nn/sampling.h"

#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// The part of all samples that this member of a group sees: DataLoaderOptions::shard.
[[nodiscard]] Shard shard_of(const dist::Group& group);

namespace module {
void broadcast(const std::vector<NamedVariable>& variables, Integer root, const dist::Group& group,
               std::source_location place);
}  // namespace module

/// Gives all parameters and buffers of a module, an optimizer or a struct of both the values that
/// rank `root` has. Throws Error(io) if the ranks' modules differ in a shape or dtype.
template <class M>
void broadcast(const M& module, Integer root = 0, const dist::Group& group = dist::world(),
               std::source_location place = std::source_location::current()) {
  module::broadcast(named_variables(module), root, group, place);
}

struct AverageGradientsOptions {
  /// Gradients are joined, in the order in which backward() makes them, and sent when there are as
  /// many bytes.
  Integer bucket_bytes = 8'000'000;
  dist::Group group = dist::world();
};
/// Replaces each parameter's gradient by the mean over all ranks, of which all must have the same
/// parameters with gradients. Call it after backward() and before what looks at gradients, such as
/// clip_gradient_norm(). Throws Error(io) if they differ.
void average_gradients(const std::vector<Variable>& parameters,
                       const AverageGradientsOptions& options = {},
                       std::source_location place = std::source_location::current());

/// Lets the default generator give other numbers on each rank from here on, as dropout needs; the
/// same seed gives the same ones. Initialise models before, from one seed, or broadcast() them.
void seed_ranks(uint64_t seed, const dist::Group& group = dist::world());

namespace sharded {

/// Parameters of one dtype as a line, of which each rank holds a part.
class Lines {
 public:
  /// Throws Error(value) for no parameters.
  Lines(std::vector<Variable> parameters, dist::Group group);
  /// This rank's parts: what the optimizer moves.
  [[nodiscard]] std::vector<Variable> parts() const;
  [[nodiscard]] const std::vector<Variable>& parameters() const { return parameters_; }
  [[nodiscard]] const dist::Group& group() const { return group_; }
  /// Gives the parts this rank's part of the mean of all gradients; those that are not there are
  /// zeros. Nothing if they have it already.
  void reduce_gradients(std::source_location place) const;
  /// Takes it from them.
  void clear_gradients() const;
  /// Gives the parameters what all parts hold now.
  void gather(std::source_location place) const;
  /// `whole`, of all parameters, gets the state of `part`, of the parts; or that, and the parts'
  /// values, become this rank's part of what is there.
  void gather_state(const Optimizer& part, const Optimizer& whole,
                    std::source_location place) const;
  void scatter_state(const Optimizer& whole, const Optimizer& part) const;
  /// Gives the parts what the parameters hold now.
  void take_parameters() const;

 private:
  struct Line {
    std::vector<std::size_t> members;  ///< of the parameters
    int64_t count = 0, part_count = 0;
    Variable part;
  };
  [[nodiscard]] Tensor joined(const Line& line, const std::vector<Tensor>& values) const;
  [[nodiscard]] Tensor own_part(const Line& line, const Tensor& joined) const;
  /// The values of a line's members out of what all parts hold.
  [[nodiscard]] std::vector<Tensor> members_of(const Line& line, const Tensor& part,
                                               const std::source_location& place) const;

  std::vector<Variable> parameters_;
  dist::Group group_;
  std::vector<Line> lines_;
};

}  // namespace sharded

/// An optimizer whose state is cut over the ranks (S. Rajbhandari et al., ZeRO, arXiv:1910.02054,
/// stage 1): each holds and updates its part of all parameters, of which it needs the gradients
/// alone. A step is a reduce_scatter of gradients, which need not be averaged before, and an
/// all_gather of parameters, and gives the bits that average_gradients() and O give. For optimizers
/// whose formulas are of one element: Sgd, Adam, AdamW, Adamax, NAdam, RAdam, RmsProp, Adagrad,
/// Adadelta, Lion.
///
///     nn::Sharded<nn::Adam> optimizer(nn::parameters(model), {.rate = 1e-3});
///
/// A parameter without a gradient counts as one whose gradient is zero. Functions of all gradients
/// have their place here, between backward() and step(), and are those of the mean over ranks:
/// clip_gradient_norm() of the parameters would see this rank's own.
template <class O>
class Sharded {
 public:
  /// Throws what O throws. All ranks give the same parameters, with the same values.
  explicit Sharded(std::vector<Variable> parameters, const typename O::Options& options = {},
                   const dist::Group& group = dist::world())
      : options_(options), lines_(std::move(parameters), group), part_(lines_.parts(), options) {}

  /// Forgets all gradients.
  void zero_grad() const {
    for (const Variable& parameter : lines_.parameters()) parameter.clear_grad();
    lines_.clear_gradients();
  }
  /// Updates every parameter. All ranks call it.
  void step(std::source_location place = std::source_location::current()) const {
    lines_.reduce_gradients(place);
    part_.step();
    lines_.clear_gradients();
    lines_.gather(place);
  }
  /// The same if `when`, one boolean that is equal on all ranks, holds: what unscale() gives.
  void step(const Tensor& when,
            std::source_location place = std::source_location::current()) const {
    lines_.reduce_gradients(place);
    part_.step(when);
    lines_.clear_gradients();
    lines_.gather(place);
  }

  /// nn::clip_gradient_norm() of the mean of all ranks' gradients. All ranks call it.
  Tensor clip_gradient_norm(double largest,
                            std::source_location place = std::source_location::current()) const {
    lines_.reduce_gradients(place);
    return nn::clip_gradient_norm(lines_.parts(), largest, lines_.group(), place);
  }
  /// nn::clip_gradient_value() of the same. All ranks call it.
  void clip_gradient_value(double largest,
                           std::source_location place = std::source_location::current()) const {
    lines_.reduce_gradients(place);
    nn::clip_gradient_value(lines_.parts(), largest);
  }
  /// LossScale::unscale() of the same, for step(). All ranks call it.
  [[nodiscard]] Tensor unscale(const LossScale& scale,
                               std::source_location place = std::source_location::current()) const {
    lines_.reduce_gradients(place);
    return scale.unscale(lines_.parts(), lines_.group(), place);
  }

  [[nodiscard]] Variable rate() const { return part_.rate(); }
  void set_rate(double rate) const { part_.set_rate(rate); }

  /// The optimizer of one process with all state, as it is now: for save(). All ranks call it.
  [[nodiscard]] O gathered(std::source_location place = std::source_location::current()) const {
    O whole(lines_.parameters(), options_);
    lines_.gather_state(part_, whole, place);
    return whole;
  }
  /// Takes this rank's part of such state, and of the parameters' values: after load(). The number
  /// of ranks may be another than where it was saved.
  void scatter(const O& whole) const { lines_.scatter_state(whole, part_); }
  /// Takes this rank's part of the parameters' values alone: after something else has set them,
  /// such as broadcast(). The next step() would undo that.
  void take_parameters() const { lines_.take_parameters(); }
  /// The ranks that it is cut over.
  [[nodiscard]] const dist::Group& group() const { return lines_.group(); }

 private:
  typename O::Options options_;
  sharded::Lines lines_;
  O part_;
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
