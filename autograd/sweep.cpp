#include "autograd/sweep.h"

#include "core/autocast.h"
#include "core/error.h"
#include "core/place.h"
#include "core/profiling.h"
#include "eager/ops/ops.h"
#include "tracer/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace nitinol::autograd {
namespace {

[[noreturn]] void throw_freed(const Node& node) {
  throw Error(ErrorKind::value,
              {.where = "backward",
               .what = fmt::format("the tape of {} was freed by an earlier backward()",
                                   node.kind == Node::Kind::op ? node.op->name : node.custom->name),
               .expected = "one backward() for each time the value is computed",
               .got = "a second one",
               .fix = "Compute the value again, or add the losses and call backward() once."});
}

std::string_view name_of(const Node& node) {
  if (node.op != nullptr) return node.op->name;
  return node.custom ? std::string_view(node.custom->name) : "leaf";
}

}  // namespace

void throw_does_otherwise(const std::string& did) {
  throw Error(ErrorKind::value,
              {.where = "checkpoint",
               .what = "the function was run again to go back through it, and " + did,
               .expected = "a function that does the same both times",
               .got = "one that depends on what has changed meanwhile",
               .fix = "Pass what changes as an argument."});
}

Tensor reduced_to(const Tensor& gradient, const Spec& spec) {
  Tensor result = gradient;
  if (result.shape() != spec.shape) {
    const int extra = result.rank() - spec.shape.size();
    Dims axes;
    for (int i = 0; i < result.rank(); ++i) {
      if (i < extra || (spec.shape[i - extra] == 1 && result.shape()[i] != 1)) axes.push_back(i);
    }
    if (!axes.empty()) result = sum(result, Axes(axes), keepdims);
    if (extra > 0) result = reshape(result, spec.shape);
    // Smaller than the operand where the rule gave one number for all of it.
    if (result.shape() != spec.shape) result = expand(result, spec.shape);
  }
  return result.dtype() == spec.dtype ? result : cast(result, spec.dtype);
}

void Sweep::end_at(std::span<const Node* const> nodes) {
  for (const Node* node : nodes) at_leaves_[node] = {};
}

void Sweep::stop_at(std::span<const Node* const> leaves) {
  end_at(leaves);
  has_leaves_ = true;
  oldest_leaf_ = UINT64_MAX;
  for (const Node* leaf : leaves) {
    oldest_leaf_ = std::min(oldest_leaf_, leaf->sequence);
    leads_[leaf] = true;
  }
}

bool Sweep::leads_to_leaf(const Node* start) {
  const OfInputs<Handle<TensorSlot>> nothing;  // of a freed node
  std::vector<Pin> pins;                       // what is on the path stays
  std::vector<const Node*> path = {start};
  while (!path.empty()) {
    const Node* const node = path.back();
    if (leads_.contains(node)) {
      path.pop_back();
      continue;
    }
    bool leads = false, is_known = true;
    pins.emplace_back(*node);
    for (const Handle<TensorSlot>& input : pins.back() ? node->inputs : nothing) {
      const auto* const next = static_cast<const Node*>(input.get());
      if (next == nullptr || next->sequence < oldest_leaf_) continue;
      const auto found = leads_.find(next);
      if (found == leads_.end()) {
        path.push_back(next);
        is_known = false;
      } else {
        leads |= found->second;
      }
    }
    if (leads || is_known) leads_[node] = leads;
  }
  return leads_[start];
}

bool Sweep::wants(const Handle<TensorSlot>& node) {
  if (!node) return false;
  return !has_leaves_ || leads_to_leaf(static_cast<const Node*>(node.get()));
}

/// Whether the sweep does not go on from there.
bool Sweep::is_end(const Node& node) const {
  return at_leaves_.contains(&node) ||
         (node.kind == Node::Kind::leaf && node.variable.is_defined());
}

void Sweep::add(const Handle<TensorSlot>& handle, const Tensor& gradient) {
  if (!gradient.is_defined() || !wants(handle)) return;
  const auto& node = static_cast<const Node&>(*handle);
  (options_.keeps_parts && is_end(node) ? new_part(node) : at(handle)).add(gradient);
}

void Sweep::add(const Variable& variable, const Tensor& gradient) {
  (options_.keeps_parts ? new_part(nullptr, variable) : at(variable)).add(gradient);
}

void Sweep::add_slice(const Handle<TensorSlot>& handle, const Tensor& gradient, const Dims& starts,
                      const Spec& whole) {
  const auto& node = static_cast<const Node&>(*handle);
  const bool is_listed = options_.keeps_parts && is_end(node);
  Gathered& gathered = is_listed ? part_beside(node, starts, gradient.shape()) : at(handle);
  gathered.add_slice(gradient, starts, whole);
}

/// An entry of the list for one of the ends.
Gathered& Sweep::new_part(const Node& node) {
  return at_leaves_.contains(&node) ? new_part(&node, {}) : new_part(nullptr, node.variable);
}

Gathered& Sweep::new_part(const Node* node, const Variable& variable) {
  last_part_[node != nullptr ? static_cast<const void*>(node) : &variable.cell()] = parts_.size();
  parts_.push_back({node, variable, {}});
  return at_parts_.emplace_back();
}

/// The last entry for the same end, if it is of slices and this one is apart from all of them: to
/// add them up first changes no bit. Else a new one.
Gathered& Sweep::part_beside(const Node& node, const Dims& starts, const Shape& sizes) {
  const auto last = last_part_.find(at_leaves_.contains(&node) ? static_cast<const void*>(&node)
                                                               : &node.variable.cell());
  if (last == last_part_.end()) return new_part(node);
  Gathered& gathered = at_parts_[last->second];
  return gathered.is_apart_from(starts, sizes) ? gathered : new_part(node);
}

/// Where gradients of the value gather.
Gathered& Sweep::at(const Handle<TensorSlot>& handle) {
  auto* const node = static_cast<Node*>(handle.get());
  if (const auto leaf = at_leaves_.find(node); leaf != at_leaves_.end()) return leaf->second;
  if (is_end(*node)) return at(node->variable);
  if (node->sequence < options_.first) {
    throw_does_otherwise(
        fmt::format("used a tensor {} that it did not use at first", describe(node->spec)));
  }
  if (node->is_freed()) throw_freed(*node);
  const std::size_t output = node->kind == Node::Kind::output ? node->output : 0;
  const Handle<TensorSlot>& maker = node->kind == Node::Kind::output ? node->inputs[0] : handle;
  auto* const made = static_cast<Node*>(maker.get());
  const auto [place, is_new] = arrived_.try_emplace(made);
  if (is_new) {
    place->second.node = maker;
    place->second.pin = Pin(*made);
    if (!place->second.pin) throw_freed(*made);
    place->second.gradients.resize(static_cast<std::size_t>(made->output_count));
    waiting_.push(made);
  }
  return place->second.gradients[output];
}

Gathered& Sweep::at(const Variable& variable) {
  const auto [place, is_new] = variable_index_.try_emplace(&variable.cell(), at_variables_.size());
  if (is_new) at_variables_.emplace_back(variable, Gathered());
  return at_variables_[place->second].second;
}

bool Sweep::has_arrived(const Handle<TensorSlot>& handle) const {
  const auto* const node = static_cast<const Node*>(handle.get());
  if (node == nullptr) return false;
  if (const auto leaf = at_leaves_.find(node); leaf != at_leaves_.end()) {
    return !leaf->second.is_empty();
  }
  if (node->kind == Node::Kind::leaf && node->variable.is_defined()) {
    return variable_index_.contains(&node->variable.cell());
  }
  const bool is_output = node->kind == Node::Kind::output;
  const auto found =
      arrived_.find(is_output ? static_cast<const Node*>(node->inputs[0].get()) : node);
  return found != arrived_.end() &&
         !found->second.gradients[is_output ? static_cast<std::size_t>(node->output) : 0]
              .is_empty();
}

void Sweep::run() {
  const EnabledScope scope(options_.builds_tape);
  const AutocastScope as_usual(f32);
  std::vector<Tensor> gradients;
  std::optional<CallSite> place;  // of what rules of ops do: where the way back was asked for
  while (!waiting_.empty()) {
    Node* const node = waiting_.top();
    waiting_.pop();
    std::optional<OnePlaceScope> of_library;
    if (node->kind != Node::Kind::custom) of_library.emplace(place);
    Arrived here = std::move(arrived_.extract(node).mapped());
    gradients.clear();
    const tracer::OriginScope origin(node->trace, node->value);
    for (Gathered& gathered : here.gradients) gradients.push_back(gathered.sum());
    {
      profiling::Span span(EventKind::backward, name_of(*node));
      span.set_node(node->sequence);
      visit(*node, gradients);
    }
    if (!options_.keeps_tape && node->kind != Node::Kind::leaf) node->free();
  }
  for (auto& [variable, gathered] : at_variables_)
    variables_.emplace_back(variable, gathered.sum());
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].gradient = at_parts_[i].sum();
}

void Sweep::visit(Node& node, const std::vector<Tensor>& gradients) {
  switch (node.kind) {
    case Node::Kind::op:
      return visit_op(node, gradients);
    case Node::Kind::leaf:  // an argument of an inner differentiation: the value passes through it
      if (!node.inputs.empty()) add(node.inputs[0], gradients[0]);
      return;
    case Node::Kind::custom:
      return visit_custom(node, gradients);
    case Node::Kind::output:
      return;
  }
}

void Sweep::visit_op(Node& node, const std::vector<Tensor>& gradients) {
  const bool is_single = node.op->infer_all == nullptr;
  const Tensor none;
  const Tensor& gradient = is_single ? gradients[0] : none;
  if (node.op == &ops::slice() && visit_slice(node, gradient)) return;
  Tensor result = node.result;
  if (result.is_defined() && options_.builds_tape) {
    node.references.fetch_add(1, std::memory_order_relaxed);
    result = with_node(result, adopt<TensorSlot>(&node));
  }
  const GradientCall call = {.attrs = node.attrs,
                             .inputs = node.saved,
                             .input_specs = node.input_specs,
                             .result = result,
                             .result_spec = node.spec,
                             .gradient = gradient,
                             .gradients = gradients};
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!is_floating(node.input_specs[k].dtype) || !wants(node.inputs[k])) continue;
    pass(node, k, node.op->gradient.rule(call, static_cast<int>(k)));
  }
}

/// The rule would put the gradient into zeros of the operand's size. False for a slice with steps.
bool Sweep::visit_slice(Node& node, const Tensor& gradient) {
  const Dims& steps = std::get<Dims>(node.attrs[2]);
  if (std::ranges::any_of(steps, [](int64_t step) { return step != 1; })) return false;
  if (wants(node.inputs[0]))
    add_slice(node.inputs[0], gradient, std::get<Dims>(node.attrs[0]), node.input_specs[0]);
  return true;
}

void Sweep::visit_custom(Node& node, const std::vector<Tensor>& gradients) {
  const std::function<bool(std::size_t)> has_arrived_at = [&](std::size_t k) {
    return has_arrived(node.inputs[k]);
  };
  const std::vector<Contribution> contributions = node.custom->rule(
      {.gradients = gradients, .builds_tape = options_.builds_tape, .has_arrived = has_arrived_at});
  for (const Contribution& part : contributions) {
    if (part.variable.is_defined()) {
      if (!has_leaves_) add(part.variable, part.gradient);
    } else if (wants(node.inputs[part.input])) {
      pass(node, part.input, part.gradient);
    }
  }
}

void Sweep::pass(const Node& node, std::size_t k, const Tensor& gradient) {
  if (gradient.is_defined()) add(node.inputs[k], reduced_to(gradient, node.input_specs[k]));
}

Tensor Sweep::at(const Node* leaf) {
  const EnabledScope scope(options_.builds_tape);
  return at_leaves_.at(leaf).sum();
}

bool depends_on_more(const Tensor& result, std::span<const Node* const> leaves) {
  std::unordered_set<const Node*> seen(leaves.begin(), leaves.end());
  std::vector<Pin> pins;
  std::vector<const Node*> path = {node_of(result)};
  for (const Node* leaf : leaves) {
    if (!leaf->inputs.empty()) return true;
  }
  while (!path.empty()) {
    const Node* const node = path.back();
    path.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    if (node->kind == Node::Kind::leaf || (node->custom && node->custom->reads_variables))
      return true;
    pins.emplace_back(*node);
    if (!pins.back()) continue;
    for (const Handle<TensorSlot>& input : node->inputs)
      path.push_back(static_cast<const Node*>(input.get()));
  }
  return false;
}

}  // namespace nitinol::autograd
