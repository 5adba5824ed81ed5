// Entries: the signatures that a compiled function has met, and what it knows of each.
#pragma once

#include "jit/compiled_function.h"
#include "jit/derivative.h"
#include "jit/describe.h"
#include "jit/explain.h"
#include "jit/guards.h"
#include "jit/race.h"
#include "jit/stance.h"

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nitinol::jit {

/// How a signature's calls run at present. Immutable: it is replaced as a whole, and a call uses
/// the one it has got to its end.
struct Snapshot {
  Tier tier = Tier::recorded;
  std::shared_ptr<const tracer::Trace> trace;  ///< the last recording that counts, or null
  std::shared_ptr<const Guards> guards;        ///< of that; null: none, so every call matches
  std::vector<uint64_t> result_fixed;          ///< fixed leaves of the recorded result
  std::shared_ptr<const void> form;            ///< the result without its tensors
  std::shared_ptr<const Plan> plan;  ///< also while it is measured to be slower than eager
  std::shared_ptr<const Derivative> derivative;  ///< if results track gradients
  double compile_s = 0;
  std::string reason, place;  ///< tier deferred or eager
  /// Why it runs in segments, also while they are measured to be slower than eager; empty: it
  /// does not.
  std::string segments_because;
};

/// Why single calls of a signature ran eagerly, though the signature as a whole does not.
enum class Eagerly : uint8_t {
  for_good,        ///< it does: Snapshot::reason
  while_recorded,  ///< by another thread
  while_compiled,  ///< in the background
  unrepaid,        ///< a Plan would not repay yet
  compared,        ///< with the Plan, which may be slower
  check_failed,    ///< a check inside a kernel
  not_finite,      ///< the Plan gave NaN, or infinity, which is looked for
  layout_changed,  ///< a Variable's value has other strides than when it was recorded
  differentiated_twice,
  acts_within,  ///< on the outside, within another call, which may run it again
  count,
};

/// A flag that a thread of this process sets for a time. In the child of a fork it is not set: the
/// thread that would clear it is not there.
class OfProcess {
 public:
  OfProcess& operator=(bool is_set) {
    process_ = is_set ? getpid() : 0;
    return *this;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): reads as the flag that it is
  operator bool() const { return process_ != 0 && process_ == getpid(); }

 private:
  pid_t process_ = 0;
};

/// One signature. All but the snapshot's target is guarded by the function's mutex.
struct Entry {
  std::vector<uint64_t> key;
  std::vector<uint64_t> structure;  ///< the key without its sizes
  std::vector<Word> words;
  std::shared_ptr<const Meaning> meaning;  ///< of its fixed leaves, or null
  std::string cause;
  uint64_t first_use = 0, last_use = 0;
  bool is_alone = false;  ///< no other has had its key

  std::shared_ptr<const Snapshot> now = std::make_shared<const Snapshot>();
  OfProcess is_recording;
  OfProcess is_queued;      ///< its Plan is being made in the background
  bool is_waiting = false;  ///< trusted, and compiled when that will repay
  uint64_t calls = 0, recorded_calls = 0, plan_calls = 0, deferred_calls = 0;
  std::array<uint64_t, static_cast<std::size_t>(Eagerly::count)> eager_calls = {};
  int disagreements = 0;

  static constexpr uint64_t largest_check_interval = 1024;
  uint64_t next_check = 4;          ///< the call that is recorded again, or compared
  int64_t last_check = 0;           ///< by coarse_now()
  uint64_t checked_plan_calls = 0;  ///< plan_calls at the last check
  uint64_t trusted_since = 0;       ///< the call after which the Plan was made
  Race race;
  double recording_s = std::numeric_limits<double>::infinity();  ///< the fastest one
  double plan_s = std::numeric_limits<double>::infinity();
  int plan_times = 0;     ///< how often plan_s was taken
  double timed_plan = 0;  ///< the Plan's half of a pair for the race, or 0
};

/// Whether it is compared with eager calls, and runs eagerly if it is slower: not if calls by a
/// Plan are what somebody wants.
[[nodiscard]] inline bool may_compare(const Entry& entry, Stance stance) {
  return stance != Stance::fail_on_fallback && result_check_of(entry.key) != ResultCheck::shadow;
}

/// A changed copy of an entry's snapshot takes its place.
template <class Change>
void replace(Entry& entry, Change change) {
  auto next = std::make_shared<Snapshot>(*entry.now);
  change(*next);
  entry.now = std::move(next);
}

/// What signatures that are no longer kept have counted.
struct Gone {
  uint64_t calls = 0, recorded_calls = 0, plan_calls = 0, deferred_calls = 0, eager_calls = 0;
  uint64_t ended = 0;  ///< signatures whose meaning has ended
  void add(const Entry& entry);
};

class Entries {
 public:
  /// Entries of one key: their recordings differ in the numbers that were looked at, or in which
  /// Variables were the same.
  static constexpr std::size_t most_variants = 8;

  explicit Entries(std::size_t limit) : limit_(limit) {}

  struct Found {
    std::shared_ptr<Entry> entry;  ///< or null
    Guards::Match match = Guards::Match::yes;
  };
  /// Whether the call is one of latest(), as calls mostly are.
  [[nodiscard]] bool is_latest(const Leaves& leaves) const;
  [[nodiscard]] Found find(const Leaves& leaves, std::span<const uint64_t> key) const;
  /// A new entry, which explains itself by what differs from the one used last. Null if there are
  /// as many as may be, and all are in use.
  std::shared_ptr<Entry> add(const Leaves& leaves, std::span<const uint64_t> key,
                             std::vector<Word> words, std::shared_ptr<const Meaning> meaning);
  /// One more entry for the key of `like`.
  std::shared_ptr<Entry> add(const Entry& like, std::string cause);
  /// Notes that `entry` is used now.
  void touch(const std::shared_ptr<Entry>& entry);

  /// Entries with this key: they differ in what their recordings looked at.
  [[nodiscard]] std::span<const std::shared_ptr<Entry>> with_key(
      std::span<const uint64_t> key) const;
  /// Whether a signature that differs from `entry` only in sizes, and whose recording differs from
  /// `trace` only in sizes and in how often parts are repeated, is trusted.
  [[nodiscard]] bool has_trusted_sibling(const Entry& entry, const tracer::Trace& trace) const;
  /// Whether the call before this one, which was recorded as `trace` just now, was recorded for
  /// such a signature too, and both agree: with the very same numbers made by host code.
  [[nodiscard]] bool confirms_sibling(const Entry& entry, const tracer::Trace& trace) const;
  /// What add() has made room by. Destroying it may run the user's code (borrowed memory is given
  /// back), so that is left to whom holds no lock.
  [[nodiscard]] std::shared_ptr<Entry> take_dropped() { return std::move(dropped_); }
  /// Those whose meaning has ended, which are dropped; likewise.
  [[nodiscard]] std::vector<std::shared_ptr<Entry>> take_ended();
  [[nodiscard]] const Gone& gone() const { return gone_; }
  /// Null before the first use.
  [[nodiscard]] const std::shared_ptr<Entry>& latest() const { return latest_; }
  /// Copies of all, in the order of their first use.
  [[nodiscard]] std::vector<Entry> in_order() const;

 private:
  using Bucket = std::vector<std::shared_ptr<Entry>>;

  bool insert(const std::shared_ptr<Entry>& entry);
  bool make_room();

  std::size_t limit_;
  std::size_t count_ = 0;
  uint64_t clock_ = 0;                            ///< uses
  std::unordered_map<uint64_t, Bucket> buckets_;  ///< by hash of the key
  std::shared_ptr<Entry> latest_, dropped_;
  Gone gone_;
};

}  // namespace nitinol::jit
