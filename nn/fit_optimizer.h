// What fit() does with an optimizer: with one of which each rank has all, and with a Sharded.
#pragma once

#include "nn/distributed.h"
#include "nn/fit_options.h"
#include "nn/fit_ranks.h"
#include "nn/module.h"
#include "nn/optimizer.h"

#include <optional>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn::fitting {

/// The ranks that train together, of what fit() was told.
inline std::optional<dist::Group> group_of(const Optimizer&, const FitOptions& options) {
  return options.group;
}
/// Throws Error(value) if the options say another group than the optimizer.
template <class O>
std::optional<dist::Group> group_of(const Sharded<O>& optimizer, const FitOptions& options) {
  check_group(options.group, optimizer.group());
  return optimizer.group();
}

/// Moves the parameters `learned` by the gradients of all ranks.
inline void update(const Optimizer& optimizer, const std::vector<Variable>& learned,
                   const Ranks& ranks, const FitOptions& options) {
  ranks.average_gradients(learned);
  std::optional<Tensor> is_finite;
  if (options.loss_scale) is_finite = options.loss_scale->unscale(learned);
  if (options.largest_norm) clip_gradient_norm(learned, *options.largest_norm);
  is_finite ? optimizer.step(*is_finite) : optimizer.step();
}
template <class O>
void update(const Sharded<O>& optimizer, const std::vector<Variable>&, const Ranks& ranks,
            const FitOptions& options) {
  std::optional<Tensor> is_finite;
  if (options.loss_scale) is_finite = optimizer.unscale(*options.loss_scale, ranks.place());
  if (options.largest_norm) optimizer.clip_gradient_norm(*options.largest_norm, ranks.place());
  is_finite ? optimizer.step(*is_finite, ranks.place()) : optimizer.step(ranks.place());
}

/// What a file holds: the optimizer of one process, which all ranks ask for together.
inline const Optimizer& whole_of(const Optimizer& optimizer, const Ranks&) {
  return optimizer;
}
template <class O>
O whole_of(const Sharded<O>& optimizer, const Ranks& ranks) {
  return optimizer.gathered(ranks.place());
}
/// Takes what was read into it.
inline void take(const Optimizer&, const Optimizer&) {}
template <class O>
void take(const Sharded<O>& optimizer, const O& whole) {
  optimizer.scatter(whole);
}

/// Gives all ranks what rank 0 has; of a Sharded, whose ranks have different parts, the rate.
inline void share(const Optimizer& optimizer, const Ranks& ranks) {
  ranks.broadcast(named_variables(optimizer));
}
template <class O>
void share(const Sharded<O>& optimizer, const Ranks& ranks) {
  ranks.broadcast({{"rate", optimizer.rate()}});
}

/// After parameters were set.
inline void take_parameters(const Optimizer&) {}
template <class O>
void take_parameters(const Sharded<O>& optimizer) {
  optimizer.take_parameters();
}

}  // namespace nitinol::nn::fitting

#pragma GCC visibility pop
