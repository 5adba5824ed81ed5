#include "jit/entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace nitinol::jit {
namespace {

/// A signature that has not been used for so many times as many calls as there may be signatures
/// makes room for a new one. Shorter, and a loop over a few more shapes than fit would throw away
/// each Plan just before its next use.
constexpr uint64_t idle_rounds = 4;

/// The first difference between two signatures, for people.
std::string difference(const Entry& before, const Entry& now) {
  const std::string words = first_difference(before.words, now.words);
  if (!words.empty()) return words;
  if (std::ranges::equal(before.key, now.key)) return "";
  if (default_device_of(before.key) != default_device_of(now.key)) {
    return fmt::format("the default device is {}, was {}", describe(default_device_of(now.key)),
                       describe(default_device_of(before.key)));
  }
  if (threads_of(before.key) != threads_of(now.key)) {
    return fmt::format("it runs on {} threads, was {}", threads_of(now.key),
                       threads_of(before.key));
  }
  if (autocast_dtype_of(before.key) != autocast_dtype_of(now.key)) {
    return fmt::format("autocast's dtype is {}, was {}", name_of(autocast_dtype_of(now.key)),
                       name_of(autocast_dtype_of(before.key)));
  }
  if (result_check_of(before.key) != result_check_of(now.key))
    return "what is checked of results (NaN, infinity, shadow) is something else";
  return "other arguments are the same tensor or Variable, or track gradients";
}

}  // namespace

void Gone::add(const Entry& entry) {
  calls += entry.calls;
  recorded_calls += entry.recorded_calls;
  plan_calls += entry.plan_calls;
  deferred_calls += entry.deferred_calls;
  eager_calls += std::accumulate(entry.eager_calls.begin(), entry.eager_calls.end(), uint64_t{0});
}

bool Entries::is_latest(const Leaves& leaves) const {
  if (!latest_) return false;
  const Guards* guards = latest_->now->guards.get();
  if (guards == nullptr) return latest_->is_alone && has_key(leaves, latest_->key);
  return has_key(leaves, latest_->key) && guards->match(leaves) == Guards::Match::yes;
}

Entries::Found Entries::find(const Leaves& leaves, std::span<const uint64_t> key) const {
  Found found;
  const auto bucket = buckets_.find(hash_of(key));
  if (bucket == buckets_.end()) return found;
  for (const std::shared_ptr<Entry>& entry : bucket->second) {
    if (!std::ranges::equal(entry->key, key)) continue;
    const std::shared_ptr<const Guards>& guards = entry->now->guards;
    const Guards::Match match = guards ? guards->match(leaves) : Guards::Match::yes;
    if (match == Guards::Match::yes) return {entry, match};
    if (match == Guards::Match::unproven && !found.entry) found = {entry, match};
  }
  return found;
}

std::shared_ptr<Entry> Entries::add(const Leaves& leaves, std::span<const uint64_t> key,
                                    std::vector<Word> words,
                                    std::shared_ptr<const Meaning> meaning) {
  ++clock_;  // also if there is no room: what is not used meanwhile grows old
  auto entry = std::make_shared<Entry>();
  entry->key.assign(key.begin(), key.end());
  entry->structure = without_sizes(leaves);
  entry->words = std::move(words);
  entry->meaning = std::move(meaning);
  if (latest_) {
    entry->cause = difference(*latest_, *entry);
    const std::shared_ptr<const Guards>& guards = latest_->now->guards;
    if (entry->cause.empty() && guards) entry->cause = guards->difference(leaves, entry->words);
  }
  return insert(entry) ? entry : nullptr;
}

std::shared_ptr<Entry> Entries::add(const Entry& like, std::string cause) {
  auto entry = std::make_shared<Entry>();
  entry->key = like.key;
  entry->structure = like.structure;
  entry->words = like.words;
  entry->meaning = like.meaning;
  entry->cause = std::move(cause);
  return insert(entry) ? entry : nullptr;
}

bool Entries::insert(const std::shared_ptr<Entry>& entry) {
  if (count_ >= limit_ && !make_room()) return false;
  Bucket& bucket = buckets_[hash_of(entry->key)];
  bucket.push_back(entry);
  for (const std::shared_ptr<Entry>& each : bucket) each->is_alone = bucket.size() == 1;
  ++count_;
  return true;
}

/// Drops the signature that was used least recently, if that was long ago.
bool Entries::make_room() {
  Bucket* oldest_bucket = nullptr;
  Bucket::iterator oldest;
  for (auto& [hash, bucket] : buckets_) {
    const auto candidate = std::ranges::min_element(bucket, {}, &Entry::last_use);
    if (oldest_bucket != nullptr && (*candidate)->last_use >= (*oldest)->last_use) continue;
    oldest_bucket = &bucket;
    oldest = candidate;
  }
  if (oldest_bucket == nullptr || clock_ - (*oldest)->last_use < idle_rounds * limit_) return false;
  const uint64_t hash = hash_of((*oldest)->key);
  gone_.add(**oldest);
  dropped_ = std::move(*oldest);  // one at a time: each add() drops one at most
  oldest_bucket->erase(oldest);
  if (oldest_bucket->empty()) buckets_.erase(hash);
  --count_;
  return true;
}

std::vector<std::shared_ptr<Entry>> Entries::take_ended() {
  std::vector<std::shared_ptr<Entry>> ended;
  for (auto bucket = buckets_.begin(); bucket != buckets_.end();) {
    std::erase_if(bucket->second, [&](const std::shared_ptr<Entry>& entry) {
      if (!entry->meaning || !entry->meaning->has_ended()) return false;
      ended.push_back(entry);
      return true;
    });
    bucket = bucket->second.empty() ? buckets_.erase(bucket) : std::next(bucket);
  }
  for (const std::shared_ptr<Entry>& entry : ended) {
    gone_.add(*entry);
    if (latest_ == entry) latest_.reset();
  }
  gone_.ended += ended.size();
  count_ -= ended.size();
  return ended;
}

void Entries::touch(const std::shared_ptr<Entry>& entry) {
  entry->last_use = ++clock_;
  if (entry->first_use == 0) entry->first_use = clock_;
  if (latest_ != entry) latest_ = entry;
}

std::span<const std::shared_ptr<Entry>> Entries::with_key(std::span<const uint64_t> key) const {
  const auto bucket = buckets_.find(hash_of(key));
  if (bucket == buckets_.end()) return {};
  return bucket->second;  // keys of one hash are as good as equal: used for limits only
}

bool Entries::has_trusted_sibling(const Entry& entry, const tracer::Trace& trace) const {
  const tracer::Trace* longest = nullptr;  // has the most parts to compare with
  for (const auto& [hash, bucket] : buckets_) {
    for (const std::shared_ptr<Entry>& other : bucket) {
      const Snapshot& now = *other->now;
      if (now.tier != Tier::traced || other->structure != entry.structure) continue;
      if (tracer::differ_only_in_sizes(*now.trace, trace)) return true;
      if (longest == nullptr || longest->graph.nodes.size() < now.trace->graph.nodes.size())
        longest = now.trace.get();
    }
  }
  return longest != nullptr && repeats_parts_of(*longest, trace, tracer::HostNumbers::may_differ);
}

bool Entries::confirms_sibling(const Entry& entry, const tracer::Trace& trace) const {
  const Entry* latest = nullptr;
  for (const auto& [hash, bucket] : buckets_) {
    for (const std::shared_ptr<Entry>& other : bucket) {
      const bool is_sibling = other.get() != &entry && other->structure == entry.structure;
      if (is_sibling && (latest == nullptr || latest->last_use < other->last_use))
        latest = other.get();
    }
  }
  return latest != nullptr && latest->now->tier == Tier::recorded && latest->now->trace &&
         repeats_parts_of(*latest->now->trace, trace, tracer::HostNumbers::same);
}

std::vector<Entry> Entries::in_order() const {
  std::vector<Entry> entries;
  for (const auto& [hash, bucket] : buckets_) {
    for (const std::shared_ptr<Entry>& entry : bucket) entries.push_back(*entry);
  }
  std::ranges::sort(entries, {}, &Entry::first_use);
  return entries;
}

}  // namespace nitinol::jit
