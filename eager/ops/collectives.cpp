#include "eager/ops/collectives.h"

#include "dist/add_rows.h"
#include "dist/calls.h"
#include "dist/group_state.h"
#include "eager/apply.h"
#include "eager/infer.h"
#include "eager/ops/axes.h"
#include "eager/ops/cast.h"
#include "eager/ops/create.h"
#include "eager/ops/family.h"
#include "eager/ops/index.h"
#include "eager/ops/join.h"
#include "eager/ops/rearrange.h"
#include "eager/ops/reduce.h"
#include "eager/ops/statistics.h"
#include "eager/ops/view.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace nitinol {
namespace {

using Kind = Collective::Kind;

// Attributes of each: the group's number, how many members it has, a rank or a shift, and the
// user's call and the shape of what it was given, by which members see whether they do the same.
constexpr std::array<std::string_view, 5> collective_attrs = {"group", "ranks", "partner", "call",
                                                              "shape"};

int64_t ranks_of(const Attrs& attrs) {
  return attr<int64_t>(attrs, 1);
}

Spec strong_spec(const Tensor& x) {
  Spec spec = x.spec();
  spec.is_weak = false;
  return spec;
}

Spec infer_same(const Op&, Inputs inputs, const Attrs&) {
  return strong_spec(*inputs[0]);
}

Spec infer_exchange(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = strong_spec(*inputs[0]);
  if (spec.shape.size() == 0 || spec.shape[0] != ranks_of(attrs)) {
    throw Error(ErrorKind::shape, {.where = std::string(op.name),
                                   .what = "one part for each rank, of " + describe(*inputs[0]),
                                   .expected = fmt::format("{} along axis 0", ranks_of(attrs)),
                                   .got = {},
                                   .fix = {}});
  }
  return spec;
}

Spec infer_gather(const Op&, Inputs inputs, const Attrs& attrs) {
  Spec spec = strong_spec(*inputs[0]);
  Shape shape = {ranks_of(attrs)};
  for (const int64_t size : spec.shape) shape.push_back(size);
  spec.shape = shape;
  return spec;
}

template <Kind kind>
LibraryCall call_of(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  LibraryCall call = library_call(LibraryCall::Kind::collective, inputs, spec);
  call.collective = {.kind = kind,
                     .group = static_cast<int>(attr<int64_t>(attrs, 0)),
                     .partner = static_cast<int>(attr<int64_t>(attrs, 2)),
                     .call = attr<int64_t>(attrs, 3),
                     .shape = attr<Dims>(attrs, 4)};
  return call;
}

Tensor exchange_rule(const GradientCall& c, int);
Tensor gather_rule(const GradientCall& c, int);
Tensor broadcast_rule(const GradientCall& c, int);
Tensor permute_rule(const GradientCall& c, int);
Tensor reduce_rule(const GradientCall& c, int);

consteval Op collective(std::string_view name, Spec (*infer)(const Op&, Inputs, const Attrs&),
                        LibraryCall (*call)(Inputs, const Attrs&, const Spec&),
                        Tensor (*rule)(const GradientCall&, int), std::string_view summary,
                        DTypes accepts = any_dtype) {
  return {.name = name,
          .kind = OpKind::library,
          .accepts = accepts,
          .effect = Effect::ordered,
          .attr_names = collective_attrs,
          .infer = infer,
          .call = call,
          .gradient = {.rule = rule},
          .summary = summary};
}

constexpr auto collectives = family({
    collective("rank_exchange", infer_exchange, call_of<Kind::exchange>, exchange_rule,
               "Part r of each rank to rank r, and what the ranks send, in their order."),
    collective("rank_gather", infer_gather, call_of<Kind::gather>, gather_rule,
               "The tensors of all ranks, along a new first axis."),
    collective("rank_broadcast", infer_same, call_of<Kind::broadcast>, broadcast_rule,
               "The tensor of one rank."),
    collective("rank_permute", infer_same, call_of<Kind::permute>, permute_rule,
               "The tensor of the rank so many before."),
    collective("rank_reduce", infer_same, call_of<Kind::reduce>, reduce_rule,
               "The sum of the ranks' tensors, or their mean, by memory that they share.",
               dist::added_dtypes),
});

/// Whose call it is, for ops: `partner` is the third of their attributes.
Attrs attrs_of(const Attrs& attrs, int64_t partner) {
  return {attrs[0], attrs[1], partner, attrs[3], attrs[4]};
}

Tensor exchange(const Tensor& parts, const Attrs& attrs) {
  return apply(collectives["rank_exchange"], {&parts}, attrs);
}
Tensor gather(const Tensor& x, const Attrs& attrs) {
  return apply(collectives["rank_gather"], {&x}, attrs);
}

/// Along axis 0, in the order of ranks. Elements that lie alone in a row would be joined in lanes,
/// in another order than those of longer ones.
Tensor joined(const Tensor& parts, dist::Reduce how) {
  const Shape& shape = parts.shape();
  if (parts.size() == parts.shape()[0]) {
    const Tensor rows = reshape(parts, {shape[0], 1});
    const Tensor twice = joined(expand(rows, {shape[0], 2}), how);
    Shape rest;
    for (int i = 1; i < shape.size(); ++i) rest.push_back(1);
    return reshape(slice(twice, 0, {.start = 0, .stop = 1}), rest);
  }
  switch (how) {
    case dist::Reduce::sum:
      return sum(parts, 0);
    case dist::Reduce::mean:
      return mean(parts, 0);
    case dist::Reduce::max:
      return max(parts, 0);
    case dist::Reduce::min:
      return min(parts, 0);
    case dist::Reduce::prod:
      return prod(parts, 0);
  }
  return {};
}

Tensor joined_as(const Tensor& parts, dist::Reduce how, DType dtype) {
  Tensor result = joined(parts, how);
  const bool keeps = dtype != boolean && how != dist::Reduce::mean;
  return keeps && result.dtype() != dtype ? cast(result, dtype) : result;
}

// ---- gradients

Tensor exchange_rule(const GradientCall& c, int) {
  return exchange(c.gradient, c.attrs);
}
Tensor gather_rule(const GradientCall& c, int) {
  return joined(exchange(c.gradient, c.attrs), dist::Reduce::sum);
}
Tensor broadcast_rule(const GradientCall& c, int) {
  const auto group =
      dist::group_with(dist::the_world(), static_cast<int>(attr<int64_t>(c.attrs, 0)));
  const Tensor total = joined(gather(c.gradient, attrs_of(c.attrs, 0)), dist::Reduce::sum);
  return group->rank == attr<int64_t>(c.attrs, 2) ? total : zeros_like(total);
}
Tensor permute_rule(const GradientCall& c, int) {
  const int64_t ranks = ranks_of(c.attrs), shift = attr<int64_t>(c.attrs, 2);
  return apply(collectives["rank_permute"], {&c.gradient},
               attrs_of(c.attrs, (ranks - shift) % ranks));
}
Tensor reduce_rule(const GradientCall& c, int) {
  return apply(collectives["rank_reduce"], {&c.gradient}, c.attrs);
}

}  // namespace

std::span<const Op> collectives_ops() {
  return collectives.ops;
}

namespace dist {
namespace {

/// What a function needs of a group.
struct Members {
  Members(const Group& group, const char* function, const Shape& shape,
          const std::source_location& place)
      : state(state_of(group, function)),
        ranks(state.size()),
        attrs({int64_t{state.id}, ranks, int64_t{0},
               ranks > 1 ? number_of_call(function, place) : 0, shape}) {}
  GroupState& state;
  int64_t ranks;
  Attrs attrs;
};

/// x with n parts of an axis as a new first one.
Tensor in_parts(const Tensor& x, const char* function, Integer axis, int64_t ranks) {
  const int along = normalize_axis(function, axis, x.rank());
  const int64_t size = x.shape()[along];
  if (size % ranks != 0) {
    throw Error(ErrorKind::shape,
                {.where = function,
                 .what = fmt::format("axis {} of {} for {} ranks", along, describe(x), ranks),
                 .expected = fmt::format("a multiple of {}", ranks),
                 .got = fmt::format("{}", size),
                 .fix = "Pad it: all ranks get as much."});
  }
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i == along) shape.push_back(ranks);
    shape.push_back(i == along ? size / ranks : x.shape()[i]);
  }
  return moveaxis(reshape(x, shape), along, 0);
}

/// Its inverse.
Tensor in_line(const Tensor& parts, int along) {
  const Tensor moved = moveaxis(parts, 0, along);
  Shape shape;
  for (int i = 0; i < moved.rank(); ++i) {
    if (i == along + 1)
      shape[i - 1] *= moved.shape()[i];
    else
      shape.push_back(moved.shape()[i]);
  }
  return reshape(moved, shape);
}

/// Up to this many bytes each rank gets all and joins them itself, which takes one message each
/// instead of two.
constexpr int64_t gathered_bytes = 16384;

/// An all_reduce of much, whose second half waits for the first.
struct Halves {
  Tensor x, parts;
  Attrs attrs;
  int64_t padding = 0;
};

Halves begun(const Tensor& x, const Members& members) {
  const int64_t ranks = members.ranks, block = (x.size() + ranks - 1) / ranks;
  const int64_t padding = block * ranks - x.size();
  Tensor line = flatten(x);
  if (padding > 0) line = concat({line, zeros({padding}, x.dtype(), x.device())});
  return {x, exchange(reshape(line, {ranks, block}), members.attrs), members.attrs, padding};
}

Tensor ended(const Halves& halves, Reduce how) {
  const Tensor& x = halves.x;
  const Tensor all = flatten(gather(joined_as(halves.parts, how, x.dtype()), halves.attrs));
  const int64_t size = x.size();
  return reshape(halves.padding > 0 ? slice(all, 0, {.start = 0, .stop = size}) : all, x.shape());
}

bool is_much(const Tensor& x) {
  return x.size() * static_cast<int64_t>(size_of(x.dtype())) > gathered_bytes;
}

/// Whether one step does it all, which writes and reads the least.
bool goes_by_memory(const Tensor& x, Reduce how, const Members& members) {
  return members.state.memory != nullptr && (how == Reduce::sum || how == Reduce::mean) &&
         x.device().kind == Device::Kind::cpu && is_much(x) && added_dtypes.contains(x.dtype()) &&
         members.ranks <= most_added;
}

}  // namespace

Tensor all_reduce(const Tensor& x, Reduce how, const Group& group, std::source_location place) {
  const Members members(group, "all_reduce", x.shape(), place);
  const int64_t ranks = members.ranks;
  const bool is_same_type =
      how == Reduce::mean ? floating.contains(x.dtype()) : x.dtype() != boolean;
  if (ranks == 1) return is_same_type ? x : joined_as(unsqueeze(x, 0), how, x.dtype());
  if (!is_much(x)) return joined_as(gather(x, members.attrs), how, x.dtype());
  if (goes_by_memory(x, how, members)) {
    return apply(collectives["rank_reduce"], {&x},
                 attrs_of(members.attrs, how == Reduce::mean ? 1 : 0));
  }
  return ended(begun(x, members), how);
}

std::vector<Tensor> all_reduce(std::span<const Tensor> list, Reduce how, const Group& group,
                               std::source_location place) {
  std::vector<Tensor> results;
  std::optional<Halves> before;  // the first half of the next one comes before its second half
  const auto end = [&] {
    if (before) results.push_back(ended(*std::exchange(before, std::nullopt), how));
  };
  for (const Tensor& x : list) {
    const Members members(group, "all_reduce", x.shape(), place);
    if (members.ranks == 1 || !is_much(x) || goes_by_memory(x, how, members)) {
      end();
      results.push_back(all_reduce(x, how, group, place));
      continue;
    }
    Halves now = begun(x, members);
    end();
    before = std::move(now);
  }
  end();
  return results;
}

Tensor all_gather(const Tensor& x, Integer axis, const Group& group, std::source_location place) {
  const Members members(group, "all_gather", x.shape(), place);
  if (x.rank() == 0) {
    if (members.ranks == 1) return reshape(x, {1});
    return gather(x, members.attrs);
  }
  const int along = normalize_axis("all_gather", axis, x.rank());
  return members.ranks == 1 ? x : in_line(gather(x, members.attrs), along);
}

Tensor reduce_scatter(const Tensor& x, Reduce how, Integer axis, const Group& group,
                      std::source_location place) {
  const Members members(group, "reduce_scatter", x.shape(), place);
  const Tensor parts = in_parts(x, "reduce_scatter", axis, members.ranks);
  return joined_as(members.ranks == 1 ? parts : exchange(parts, members.attrs), how, x.dtype());
}

Tensor broadcast(const Tensor& x, Integer root, const Group& group, std::source_location place) {
  const Members members(group, "broadcast", x.shape(), place);
  if (root < 0 || root >= members.ranks)
    throw_value("broadcast", "the root", fmt::format("0 <= root < {}", members.ranks),
                fmt::format("{}", int64_t{root}));
  if (members.ranks == 1) return x;
  return apply(collectives["rank_broadcast"], {&x}, attrs_of(members.attrs, root));
}

Tensor all_to_all(const Tensor& x, Integer axis, const Group& group, std::source_location place) {
  const Members members(group, "all_to_all", x.shape(), place);
  const Tensor parts = in_parts(x, "all_to_all", axis, members.ranks);
  if (members.ranks == 1) return x;
  return in_line(exchange(parts, members.attrs), normalize_axis("all_to_all", axis, x.rank()));
}

Tensor permute(const Tensor& x, Integer shift, const Group& group, std::source_location place) {
  const Members members(group, "permute", x.shape(), place);
  const int64_t steps = (shift % members.ranks + members.ranks) % members.ranks;
  if (members.ranks == 1) return x;
  return apply(collectives["rank_permute"], {&x}, attrs_of(members.attrs, steps));
}

void barrier(const Group& group, std::source_location place) {
  const Members members(group, "barrier", Shape{}, place);
  if (members.ranks == 1) return;
  static_cast<void>(gather(zeros({0}, u8, Device{}), members.attrs));
}

}  // namespace dist
}  // namespace nitinol
