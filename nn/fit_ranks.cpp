#include "nn/fit_ranks.h"

#include "autograd/gradient.h"
#include "core/error.h"
#include "core/log.h"
#include "dist/group_state.h"
#include "eager/ops/ops.h"
#include "nn/distributed.h"

#include <algorithm>

namespace nitinol::nn::fitting {
namespace {

using dist::Reduce;

Tensor tensor_of(bool value) {
  return tensor(value, boolean);
}

}  // namespace

Ranks::Ranks(const std::optional<dist::Group>& group, std::source_location place) : place_(place) {
  // A program that has not asked for others trains alone, whoever has started it.
  if (!group && !dist::has_joined()) return;
  group_ = group ? *group : dist::world();
  rank_ = group_.rank();
  size_ = group_.size();
}

bool Ranks::first_says(bool own) const {
  return are_several() ? dist::broadcast(tensor_of(own), 0, group_, place_).item<bool>() : own;
}

bool Ranks::all_say(bool own) const {
  if (!are_several()) return own;
  return dist::all_reduce(tensor_of(own), Reduce::min, group_, place_).item<bool>();
}

Tensor Ranks::sum(const Tensor& x) const {
  return are_several() ? dist::all_reduce(x, Reduce::sum, group_, place_) : x;
}

Tensor Ranks::mean(const Tensor& x) const {
  return are_several() ? dist::all_reduce(x, Reduce::mean, group_, place_) : x;
}

Tensor Ranks::rows(const std::vector<Tensor>& own) const {
  const NoGradients scope;
  const Tensor all = own.empty() ? Tensor() : concat(own);
  if (!are_several()) return all;
  const int64_t count = own.empty() ? 0 : all.shape()[0];
  const std::vector<int64_t> counts =
      dist::all_gather(tensor(count, i64), 0, group_, place_).to_vector<int64_t>();
  const int64_t most = std::ranges::max(counts);
  if (most == 0) return {};
  if (std::ranges::min(counts) == 0) {
    throw Error(ErrorKind::value, {.where = "fit",
                                   .what = "samples of a pass, of which metrics are made",
                                   .expected = "some on each rank",
                                   .got = "none on one",
                                   .fix = "Give each rank a part of them: .shard = "
                                          "nn::shard_of(dist::world())."});
  }
  Shape padding = all.shape();
  padding[0] = most - count;
  const Tensor padded =
      padding[0] > 0 ? concat({all, zeros(padding, all.dtype(), all.device())}) : all;
  const Tensor gathered = dist::all_gather(padded, 0, group_, place_);
  std::vector<Tensor> parts;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const int64_t begin = static_cast<int64_t>(r) * most;
    parts.push_back(slice(gathered, 0, {.start = begin, .stop = begin + counts[r]}));
  }
  return concat(parts);
}

void Ranks::average_gradients(const std::vector<Variable>& parameters) const {
  if (are_several()) nn::average_gradients(parameters, {.group = group_}, place_);
}

void Ranks::broadcast(const std::vector<NamedVariable>& variables) const {
  if (are_several()) module::broadcast(variables, 0, group_, place_);
}

void Ranks::average_buffers(const std::vector<NamedVariable>& variables) const {
  if (!are_several()) return;
  const NoGradients scope;
  for (const NamedVariable& named : variables) {
    const Variable& buffer = named.variable;
    if (buffer.tracks_gradient() || !is_floating(buffer.dtype())) continue;
    const Tensor value = buffer;
    // A mean of equal numbers may be rounded to another.
    const Tensor least = dist::all_reduce(value, Reduce::min, group_, place_);
    const Tensor most = dist::all_reduce(value, Reduce::max, group_, place_);
    buffer.set(where(least == most, value, mean(value)));
  }
}

void Ranks::wait() const {
  if (are_several()) dist::barrier(group_, place_);
}

void Ranks::check_parts(const Batch& batch) const {
  if (!are_several()) return;
  const Tensor mark = nitinol::sum(cast(stop_gradient(batch[0]), f64));
  const std::vector<double> marks = dist::all_gather(mark, 0, group_, place_).to_vector<double>();
  const bool are_same = std::ranges::all_of(marks, [&](double one) { return one == marks[0]; });
  if (are_same && is_first()) {
    log(LogLevel::warning,
        "fit: all ranks have got the same samples, of which each is to have a part: give the "
        "DataLoader its shard of dist's world");
  }
}

Tensor Ranks::first_state(const Variable& random) const {
  return are_several() ? dist::broadcast(random, 0, group_, place_) : random.get();
}

void Ranks::keep_key(const Variable& random, const Tensor& own, const Tensor& of_first) const {
  const std::vector<int64_t> before = own.to_vector<int64_t>(),
                             there = of_first.to_vector<int64_t>();
  if (before[0] == there[0]) return;
  random.set(concat(
      {slice(own, 0, {.start = 0, .stop = 1}), slice(random.get(), 0, {.start = 1, .stop = 2})}));
}

void check_group(const std::optional<dist::Group>& told, const dist::Group& of_optimizer) {
  if (!told || *told == of_optimizer) return;
  throw Error(ErrorKind::value, {.where = "fit",
                                 .what = "the option `group`",
                                 .expected = "the group of the Sharded optimizer",
                                 .got = "another",
                                 .fix = "Leave it out: fit() trains by the optimizer's."});
}

Pass::Pass(DataLoader& loader, const Ranks& ranks)
    : loader_(loader), ranks_(ranks), at_(loader.begin()) {
  if (!ranks.are_several()) return;
  const auto count = static_cast<double>(loader.has_size() ? loader.size() : -1);
  is_even_ = count >= 0 && ranks.mean(tensor(count, f64)).item<double>() == count;
  is_even_ = ranks.all_say(is_even_);
}

bool Pass::goes_on() {
  const bool is_here = at_ != DataLoader::end();
  if (is_even_) return is_here;
  if (ranks_.all_say(is_here)) return true;
  if (is_here) loader_.end_pass();
  return false;
}

}  // namespace nitinol::nn::fitting
