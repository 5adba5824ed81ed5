// Commits are numbered. A moment is the number of the last one before it; a value that is replaced
// is kept, with the number of the commit that did, if a moment lies between that and the commit
// before.
//
// Nobody is missed: a moment says that it exists before it asks for the number, and a commit takes
// its number before it asks whether there are moments. So either the commit sees the moment, or the
// moment is after the commit, whose locks it then waits for where it reads.
#include "core/moment.h"

#include "core/fork.h"
#include "core/variable.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

std::atomic<uint64_t> commits = 0;
std::atomic<int> moments = 0;  ///< that exist

struct Kept {
  uint64_t until = 0;  ///< the commit that replaced the value
  Tensor value;
};

struct Past {
  ForkSafeMutex mutex;
  std::vector<uint64_t> times;                           ///< of the moments that exist
  std::unordered_map<uint64_t, std::vector<Kept>> kept;  ///< by the cell's id, in order

  [[nodiscard]] bool has_moment(uint64_t from, uint64_t before) const {
    return std::ranges::any_of(times, [=](uint64_t t) { return t >= from && t < before; });
  }
};

Past& past() {
  static Past& shared = *new Past;  // never destroyed: threads may outlive static objects
  return shared;
}

/// Takes out what no moment sees any more.
void prune(const Past& from, std::vector<Kept>& list, std::vector<Tensor>& dropped) {
  uint64_t since = 0;
  std::erase_if(list, [&](Kept& kept) {
    const bool is_seen = from.has_moment(std::exchange(since, kept.until), kept.until);
    if (!is_seen) dropped.push_back(std::move(kept.value));
    return !is_seen;
  });
}

}  // namespace

Moment::Moment() : time_(begin()) {}

Moment::~Moment() {
  end(time_);
}

uint64_t Moment::begin() {
  Past& shared = past();
  const std::lock_guard lock(shared.mutex);
  shared.times.push_back(0);
  moments.fetch_add(1);
  return shared.times.back() = commits.load();
}

void Moment::end(uint64_t time) {
  std::vector<Tensor> dropped;  // destroyed after the lock: borrowed memory is given back
  Past& shared = past();
  const std::lock_guard lock(shared.mutex);
  shared.times.erase(std::ranges::find(shared.times, time));
  moments.fetch_sub(1);
  if (shared.kept.empty()) return;
  for (auto& [id, list] : shared.kept) prune(shared, list, dropped);
  std::erase_if(shared.kept, [](const auto& each) { return each.second.empty(); });
}

PastValue Moment::value_of(const Variable& variable) const {
  VariableCell& cell = variable.cell();
  const std::lock_guard lock(cell.mutex);
  const PastValue present = {.value = cell.value,
                             .version = cell.version.load(std::memory_order_relaxed)};
  if (commits.load() == time_) return present;
  Past& shared = past();
  const std::lock_guard past_lock(shared.mutex);
  const auto found = shared.kept.find(cell.id);
  if (found == shared.kept.end()) return present;
  const auto kept = std::ranges::upper_bound(found->second, time_, {}, &Kept::until);
  if (kept == found->second.end()) return present;
  return {.value = kept->value, .is_replaced = true};
}

void keep_past(std::span<VariableCell* const> cells) {
  const uint64_t commit = commits.fetch_add(1) + 1;
  if (moments.load() == 0) return;
  Past& shared = past();
  const std::lock_guard lock(shared.mutex);
  for (VariableCell* cell : cells) {
    const auto before = shared.kept.find(cell->id);
    const uint64_t since = before == shared.kept.end() ? 0 : before->second.back().until;
    if (shared.has_moment(since, commit)) shared.kept[cell->id].push_back({commit, cell->value});
  }
}

}  // namespace nitinol
