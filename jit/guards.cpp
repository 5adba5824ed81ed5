#include "jit/guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace nitinol::jit {

Guards::Guards(const tracer::Trace& trace, const Leaves& leaves)
    : hosts_(trace.guards), numbers_(trace.numbers) {
  const auto add = [&](const tracer::TraceInput& input) {
    if (input.kind == tracer::TraceInput::Kind::variable && input.leaf < 0)
      captured_.push_back(input.captured.cell().id);
  };
  std::ranges::for_each(trace.inputs, add);
  std::ranges::for_each(trace.assigned, add);
  std::ranges::for_each(trace.empty, add);
  std::ranges::for_each(trace.cleared, add);
  if (trace.backward) {
    for (const tracer::Backward::Part& part : trace.backward->parts) add(part.target);
  }
  std::ranges::sort(captured_);
  for (const Variable* variable : leaves.variables) arguments_.push_back(variable->cell().id);
}

bool Guards::is_captured(const Variable& argument) const {
  const VariableCell& cell = argument.cell();
  return std::ranges::binary_search(captured_, cell.id) ||
         (cell.gradient != nullptr &&
          std::ranges::binary_search(captured_, cell.gradient->cell().id));
}

const HostValueGuard* Guards::changed_host() const {
  const auto changed = std::ranges::find_if(hosts_, [](const HostValueGuard& guard) {
    return !guard.same(guard.object.get(), guard.bits);
  });
  return changed == hosts_.end() ? nullptr : &*changed;
}

Guards::Match Guards::match(const Leaves& leaves) const {
  if (changed_host() != nullptr) return Match::no;
  for (const tracer::NumberGuard& guard : numbers_) {
    if (leaves.scalars[static_cast<std::size_t>(guard.leaf)]->bits() != guard.bits)
      return Match::no;
  }
  Match match = Match::yes;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const Variable& argument = *leaves.variables[i];
    if (!captured_.empty() && is_captured(argument)) return Match::no;
    if (arguments_[i] != 0 && arguments_[i] != argument.cell().id) match = Match::unproven;
  }
  return match == Match::unproven && is_bound_ ? Match::no : match;
}

std::string Guards::difference(const Leaves& leaves, std::span<const Word> words) const {
  if (const HostValueGuard* host = changed_host())
    return fmt::format("{} changed", host->name.empty() ? "a HostValue" : host->name);
  for (const tracer::NumberGuard& guard : numbers_) {
    const Scalar& number = *leaves.scalars[static_cast<std::size_t>(guard.leaf)];
    if (number.bits() == guard.bits) continue;
    const auto text = [&](uint64_t bits) {
      return number.kind() == Scalar::Kind::real ? describe_leaf(std::bit_cast<double>(bits))
                                                 : describe_leaf(static_cast<int64_t>(bits));
    };
    int scalars_before = guard.leaf;
    const auto word = std::ranges::find_if(words, [&](const Word& each) {
      return each.kind == Word::Kind::scalar && scalars_before-- == 0;
    });
    return fmt::format("{} is {}, was {}, and host code looks at it by {}{}",
                       word != words.end() ? subject(*word) : "a Scalar", text(number.bits()),
                       text(guard.bits), guard.what,
                       guard.place.empty() ? "" : " at " + guard.place);
  }
  return "a Variable is both an argument and captured, or no longer is";
}

Guards Guards::widened(const Leaves& leaves) const {
  Guards wider = *this;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i] != leaves.variables[i]->cell().id) wider.arguments_[i] = 0;
  }
  return wider;
}

Guards Guards::bound() const {
  Guards bound = *this;
  bound.is_bound_ = true;
  return bound;
}

}  // namespace nitinol::jit
