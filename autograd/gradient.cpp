#include "autograd/gradient.h"

#include "autograd/sweep.h"
#include "core/error.h"
#include "eager/ops/ops.h"

#include <fmt/format.h>

namespace nitinol {

Tensor stop_gradient(const Tensor& x) {
  return x.tracks_gradient() ? bare_copy(x) : x;
}

Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& argument) {
  check_callable("hessian", f);
  const auto [gradient, pull] = vjp(grad(f), argument);
  const int64_t n = argument.size();
  Shape rows_of = argument.shape();
  rows_of.insert(0, n);
  const Tensor units = reshape(eye(n, {}, 0, argument.dtype(), argument.device()), rows_of);
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < n; ++i) rows.push_back(pull(units[i]));
  Shape shape = argument.shape();
  for (const int64_t size : argument.shape()) shape.push_back(size);
  return rows.empty() ? zeros(shape, argument.dtype(), argument.device())
                      : reshape(stack(rows), shape);
}

namespace autograd {

Tensor Arguments::add(const Tensor& value) {
  if (!is_floating(value.dtype())) {
    leaves_.push_back(value);
    return value;
  }
  const Tensor* const used = &value;
  note_use({&used, 1});
  Node* node = nullptr;
  Handle<TensorSlot> handle = make_node(Node::Kind::leaf, node);
  node->spec = value.spec();
  node->input_specs.push_back(value.spec());
  if (value.internals().gradient) node->inputs.push_back(value.internals().gradient);
  leaves_.push_back(with_node(value, std::move(handle)));
  return leaves_.back();
}

std::vector<Tensor> Arguments::gradients(std::span<const Tensor> results,
                                         std::span<const Tensor> seeds, bool keep) {
  if (seeds.size() != results.size()) {
    throw Error(ErrorKind::value,
                {.where = "vjp",
                 .what = "the seed or tangent does not fit what it is for",
                 .expected = fmt::format("{} defined tensors", results.size()),
                 .got = fmt::format("{}", seeds.size()),
                 .fix = "Give one tensor for each of the result's (of the argument's, for jvp)."});
  }
  std::vector<const Node*> leaves;
  for (const Tensor& leaf : leaves_) {
    if (leaf.internals().gradient) leaves.push_back(node_of(leaf));
  }
  bool builds = false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    builds = builds || depends_on_more(results[i], leaves) || seeds[i].tracks_gradient();
  }
  Sweep sweep({.keeps_tape = keep || builds, .builds_tape = builds});
  sweep.stop_at(leaves);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const EnabledScope scope(builds);
    if (results[i].tracks_gradient())
      sweep.add(results[i].internals().gradient, reduced_to(seeds[i], results[i].spec()));
  }
  sweep.run();
  std::vector<Tensor> gradients;
  for (const Tensor& leaf : leaves_) {
    Tensor gradient = leaf.internals().gradient ? sweep.at(node_of(leaf)) : Tensor();
    gradients.push_back(gradient.is_defined() ? gradient : zeros_like(leaf));
  }
  return gradients;
}

Tensor Arguments::released(const Tensor& result) const {
  std::vector<const Node*> leaves;
  for (const Tensor& leaf : leaves_) {
    if (leaf.internals().gradient) leaves.push_back(node_of(leaf));
  }
  return depends_on_more(result, leaves) ? result : stop_gradient(result);
}

std::vector<Tensor> push_forward(Arguments& arguments, std::span<const Tensor> results,
                                 std::span<const Tensor> tangents) {
  const EnabledScope scope(true);
  Arguments seeds;
  std::vector<Tensor> seed_tensors;
  for (const Tensor& result : results) seed_tensors.push_back(seeds.add(zeros_like(result)));
  const std::vector<Tensor> pulled = arguments.gradients(results, seed_tensors);
  return seeds.gradients(pulled, tangents);
}

void check_scalar(const char* where, const Tensor& result) {
  if (result.size() == 1 && is_floating(result.dtype())) return;
  throw Error(result.size() == 1 ? ErrorKind::dtype : ErrorKind::shape,
              {.where = where,
               .what = "the function's result is not a loss",
               .expected = "one floating element",
               .got = describe(result),
               .fix = "Reduce it (sum, mean), or use vjp() with a seed."});
}

std::vector<Tensor> ones_for(std::span<const Tensor> results) {
  std::vector<Tensor> seeds;
  for (const Tensor& result : results) seeds.push_back(ones_like(result));
  return seeds;
}

}  // namespace autograd
}  // namespace nitinol
