#include "nn/distributed.h"

#include "autograd/gradient.h"
#include "core/autocast.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/hash.h"
#include "core/place.h"
#include "eager/ops/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace nitinol::nn {
namespace {

int64_t bytes_of(const Variable& variable) {
  return element_count(variable.shape()) * static_cast<int64_t>(size_of(variable.dtype()));
}

/// Tensors of one dtype as a line.
Tensor line_of(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return flatten(parts[0]);
  std::vector<Tensor> lines;
  for (const Tensor& part : parts) lines.push_back(flatten(part));
  return concat(lines);
}

/// The next `shape` of a line, from `begin` on.
Tensor taken(const Tensor& line, int64_t& begin, const Shape& shape) {
  const int64_t end = begin + element_count(shape);
  return reshape(slice(line, 0, {.start = std::exchange(begin, end), .stop = end}), shape);
}

}  // namespace

Shard shard_of(const dist::Group& group) {
  return {.number = group.rank(), .of = group.size()};
}

void module::broadcast(const std::vector<NamedVariable>& variables, Integer root,
                       const dist::Group& group, std::source_location place) {
  const NoGradients scope;
  for (const NamedVariable& named : variables)
    named.variable.set(dist::broadcast(named.variable.get(), root, group, place));
}

void average_gradients(const std::vector<Variable>& parameters,
                       const AverageGradientsOptions& options, std::source_location place) {
  if (options.bucket_bytes < 1) {
    throw Error(ErrorKind::value, {.where = "average_gradients",
                                   .what = "bucket_bytes",
                                   .expected = "at least 1",
                                   .got = fmt::format("{}", int64_t{options.bucket_bytes}),
                                   .fix = {}});
  }
  if (options.group.size() == 1) return;
  const NoGradients scope;
  const AutocastScope as_usual(f32);
  const OnePlaceScope one_place;
  std::vector<std::vector<Variable>> buckets;
  std::vector<Tensor> lines, gradients;
  int64_t bytes = 0;
  const auto close = [&] {
    if (!gradients.empty()) lines.push_back(line_of(std::exchange(gradients, {})));
    bytes = 0;
  };
  // backward() comes to the last ones first.
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    const Tensor gradient = parameter->grad();
    if (!gradient.is_defined()) continue;
    if (!gradients.empty() && gradients[0].dtype() != gradient.dtype()) close();
    if (gradients.empty()) buckets.emplace_back();
    gradients.push_back(gradient);
    buckets.back().push_back(*parameter);
    bytes += bytes_of(*parameter);
    if (bytes >= options.bucket_bytes) close();
  }
  close();
  const std::vector<Tensor> means =
      dist::all_reduce(std::span<const Tensor>(lines), dist::Reduce::mean, options.group, place);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    int64_t begin = 0;
    for (const Variable& parameter : buckets[i])
      parameter.set_grad(taken(means[i], begin, parameter.shape()));
  }
}

void seed_ranks(uint64_t seed, const dist::Group& group) {
  Hash hash;  // seeds that follow each other, on ranks that do, are to differ
  hash.add(seed);
  hash.add(group.rank());
  default_generator().manual_seed(hash.result());
}

namespace sharded {
namespace {

/// f(states of the parameters of both) and g(other Variables of both) of two optimizers of one
/// group.
template <class F, class G>
void for_states(const Optimizer& a, const Optimizer& b, const F& f, const G& g) {
  a.fields([&](const char*, const auto& groups) {
    b.fields([&](const char*, const auto& others) {
      g(groups[0].rate, others[0].rate);
      g(groups[0].steps, others[0].steps);
      for (std::size_t i = 0; i < groups[0].group_state.size(); ++i)
        g(groups[0].group_state[i], others[0].group_state[i]);
      f(groups[0].state, others[0].state);
    });
  });
}

void assign(const Variable& from, const Variable& to) {
  to.set(from.get());
}

}  // namespace

Lines::Lines(std::vector<Variable> parameters, dist::Group group)
    : parameters_(std::move(parameters)), group_(std::move(group)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Variable& parameter = parameters_[i];
    const auto is_alike = [&](const Line& line) {
      return parameters_[line.members[0]].dtype() == parameter.dtype();
    };
    auto line = std::ranges::find_if(lines_, is_alike);
    if (line == lines_.end()) line = lines_.insert(lines_.end(), Line{});
    line->members.push_back(i);
    line->count += element_count(parameter.shape());
  }
  for (Line& line : lines_) {
    line.part_count = (line.count + group_.size() - 1) / group_.size();
    std::vector<Tensor> values;
    for (const std::size_t i : line.members) values.push_back(parameters_[i].get());
    line.part = parameter(own_part(line, joined(line, values)));
  }
}

std::vector<Variable> Lines::parts() const {
  std::vector<Variable> parts;
  for (const Line& line : lines_) parts.push_back(line.part);
  return parts;
}

/// With zeros, so that all parts are equally long.
Tensor Lines::joined(const Line& line, const std::vector<Tensor>& values) const {
  const Tensor all = line_of(values);
  const int64_t padding = line.part_count * group_.size() - line.count;
  return padding == 0 ? all : concat({all, zeros({padding}, all.dtype(), all.device())});
}

Tensor Lines::own_part(const Line& line, const Tensor& joined) const {
  const int64_t begin = line.part_count * group_.rank();
  return copy(slice(joined, 0, {.start = begin, .stop = begin + line.part_count}));
}

std::vector<Tensor> Lines::members_of(const Line& line, const Tensor& part,
                                      const std::source_location& place) const {
  const Tensor all = dist::all_gather(part, 0, group_, place);
  std::vector<Tensor> values;
  int64_t begin = 0;
  for (const std::size_t i : line.members)
    values.push_back(taken(all, begin, parameters_[i].shape()));
  return values;
}

void Lines::reduce_gradients(std::source_location place) const {
  if (lines_[0].part.grad().is_defined()) return;
  const NoGradients scope;
  const AutocastScope as_usual(f32);
  for (const Line& line : lines_) {
    std::vector<Tensor> gradients;
    for (const std::size_t i : line.members) {
      const Tensor gradient = parameters_[i].grad();
      gradients.push_back(gradient.is_defined() ? gradient : zeros_like(parameters_[i].get()));
    }
    line.part.set_grad(
        dist::reduce_scatter(joined(line, gradients), dist::Reduce::mean, 0, group_, place));
  }
}

void Lines::clear_gradients() const {
  for (const Line& line : lines_) line.part.clear_grad();
}

void Lines::gather(std::source_location place) const {
  const NoGradients scope;
  for (const Line& line : lines_) {
    const std::vector<Tensor> values = members_of(line, line.part.get(), place);
    for (std::size_t k = 0; k < values.size(); ++k) parameters_[line.members[k]].set(values[k]);
  }
}

void Lines::take_parameters() const {
  const NoGradients scope;
  for (const Line& line : lines_) {
    std::vector<Tensor> values;
    for (const std::size_t i : line.members) values.push_back(parameters_[i].get());
    line.part.set(own_part(line, joined(line, values)));
  }
}

void Lines::gather_state(const Optimizer& part, const Optimizer& whole,
                         std::source_location place) const {
  const NoGradients scope;
  const auto gather = [&](const auto& parts, const auto& all) {
    for (std::size_t l = 0; l < lines_.size(); ++l) {
      const Line& line = lines_[l];
      for (std::size_t k = 0; k < parts[l].size(); ++k) {
        const Variable& own = parts[l][k];
        if (own.shape() != line.part.shape()) {  // of a parameter as a whole
          for (const std::size_t i : line.members) assign(own, all[i][k]);
          continue;
        }
        const std::vector<Tensor> values = members_of(line, own.get(), place);
        for (std::size_t m = 0; m < values.size(); ++m) all[line.members[m]][k].set(values[m]);
      }
    }
  };
  for_states(part, whole, gather, assign);
}

void Lines::scatter_state(const Optimizer& whole, const Optimizer& part) const {
  take_parameters();
  const NoGradients scope;
  const auto scatter = [&](const auto& all, const auto& parts) {
    for (std::size_t l = 0; l < lines_.size(); ++l) {
      const Line& line = lines_[l];
      for (std::size_t k = 0; k < parts[l].size(); ++k) {
        const Variable& own = parts[l][k];
        if (own.shape() != line.part.shape()) {
          assign(all[line.members[0]][k], own);
          continue;
        }
        std::vector<Tensor> values;
        for (const std::size_t i : line.members) values.push_back(all[i][k].get());
        own.set(own_part(line, joined(line, values)));
      }
    }
  };
  for_states(whole, part, scatter, assign);
}

}  // namespace sharded
}  // namespace nitinol::nn
