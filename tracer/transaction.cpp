#include "tracer/transaction.h"

#include "core/error.h"

#include <algorithm>
#include <cstddef>
#include <mutex>

namespace nitinol::tracer {
namespace {

/// Room for so many reads and assignments is made at once.
constexpr std::size_t at_first = 16;

}  // namespace

Transaction::Held::~Held() {
  for (const Variable& variable : owned) variable.cell().order.unlock();
}

Transaction::Held& Transaction::held() {
  if (!held_) held_ = std::make_unique<Held>();
  return *held_;
}

void Transaction::own_all(std::span<const Variable> variables) {
  std::vector<Variable>& owned = held().owned;
  owned.reserve(variables.size());
  for (const Variable& variable : variables) {
    CallOrder& order = variable.cell().order;
    if (order.is_mine()) continue;  // given twice
    order.lock();
    owned.push_back(variable);
  }
}

bool Transaction::own(const Variable& variable, bool is_sure) {
  CallOrder& order = variable.cell().order;
  if (name_.data() == nullptr || is_local(variable) || order.is_mine()) return true;
  std::vector<Variable>& owned = held().owned;
  owned.reserve(owned.size() + 1);
  const bool waits_long = is_sure && std::ranges::all_of(owned, [&](const Variable& mine) {
                            return mine.cell().id < variable.cell().id;
                          });
  if (!order.lock_within(waits_long ? CallOrder::long_patience : CallOrder::patience)) return false;
  owned.push_back(variable);
  return true;
}

Tensor Transaction::run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  return below_.run(op, inputs, attrs, spec);
}

std::vector<Tensor> Transaction::run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                                         std::span<const Spec> specs) {
  return below_.run_all(op, inputs, attrs, specs);
}

void Transaction::read(const Tensor& tensor, const ReadSite& site) {
  below_.read(tensor, site);
}

const Tensor* Transaction::assigned(const Variable& variable) const {
  for (const Assignment& assignment : assignments_) {
    if (assignment.variable == variable) return &assignment.value;
  }
  return nullptr;
}

Tensor Transaction::get(const Variable& variable) {
  if (const Tensor* value = assigned(variable)) return *value;
  return fetch(variable);
}

Tensor Transaction::fetch(const Variable& variable) {
  if (name_.data() == nullptr || is_local(variable)) return below_.get(variable);
  if (is_first_) own(variable);
  Held& mine = held();
  if (!mine.moment) {
    mine.moment.emplace();
    mine.reads.reserve(at_first);
  }
  PastValue read = mine.moment->value_of(variable);
  if (read.is_replaced) {
    mine.moment->move_on([this] { return are_reads_present(); });
    read = mine.moment->value_of(variable);
  }
  const Storage* const memory =
      read.value.is_defined() ? read.value.internals().storage.get() : nullptr;
  mine.reads.push_back({.variable = variable,
                        .version = read.is_replaced ? Read::replaced : read.version,
                        .memory = memory});
  return std::move(read.value);
}

/// Asked under the locks, for which a commit that has begun holds them to its end.
bool Transaction::are_reads_present() const {
  return std::ranges::all_of(held_->reads, [](const Read& read) {
    VariableCell& cell = read.variable.cell();
    const std::lock_guard lock(cell.mutex);
    return cell.version.load(std::memory_order_relaxed) == read.version;
  });
}

void Transaction::set(const Variable& variable, const Tensor& value) {
  for (Assignment& assignment : assignments_) {
    if (assignment.variable == variable) {
      assignment.value = value;
      return;
    }
  }
  own(variable);
  if (assignments_.empty()) assignments_.reserve(at_first);
  assignments_.push_back({variable, value});
}

void Transaction::created(const Tensor& tensor) {
  below_.created(tensor);
}

void Transaction::guard(const HostValueGuard& guard) {
  below_.guard(guard);
}

void Transaction::commit_all() {
  if (name_.data() != nullptr) return commit_ordered();
  for (const Assignment& assignment : assignments_)
    below_.set(assignment.variable, assignment.value);
  assignments_.clear();
}

/// Nothing that was read has changed, or nothing changes.
void Transaction::commit_ordered() {
  for (const Assignment& assignment : assignments_) settle(assignment.value);
  Held& mine = held();
  mine.moment.reset();
  std::ranges::sort(assignments_, {}, [](const Assignment& a) { return a.variable.cell().id; });
  std::vector<std::unique_lock<std::mutex>> locks;
  locks.reserve(assignments_.size());
  for (const Assignment& assignment : assignments_) {
    if (!own(assignment.variable)) throw_conflict(assignment.variable);
    locks.emplace_back(assignment.variable.cell().mutex);
  }
  for (const Read& read : mine.reads) {
    const VariableCell& cell = read.variable.cell();
    const bool is_replaced = cell.version.load(std::memory_order_relaxed) != read.version;
    if (is_replaced && assigned(read.variable) != nullptr) throw_conflict(read.variable);
  }
  std::vector<VariableCell*> cells;
  cells.reserve(assignments_.size());
  for (const Assignment& assignment : assignments_) cells.push_back(&assignment.variable.cell());
  keep_past(cells);
  complete();
  for (Assignment& assignment : assignments_)
    assignment.variable.cell().swap_value(assignment.value);
  locks.clear();
  assignments_.clear();  // with the old values, now that nothing is locked
}

void Transaction::throw_conflict(const Variable& variable) const {
  throw Error(ErrorKind::value,
              {.where = std::string(name_),
               .what = "a Variable " + describe(variable.spec()) +
                       " that this call read and assigns was assigned elsewhere while it ran",
               .expected = "calls that assign the same Variables one after the other",
               .got = "an assignment on another thread; this call has changed nothing",
               .fix = "Call again, or let one thread at a time assign it."});
}

}  // namespace nitinol::tracer
