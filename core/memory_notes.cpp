// One lock guards all. What asks the user's side of a binding, the place, is asked before it is
// taken.
#include "core/memory_notes.h"

#include "core/fork.h"
#include "core/function_ref.h"
#include "core/storage.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace nitinol::memory_notes {
namespace {

constexpr std::size_t most_points = 4096;
constexpr std::size_t most_makers = 100'000;  // what else makes blocks is one of them

int64_t now_ns() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

/// The most memory over time, in slots of equal length, which doubles when there are too many.
/// Whose it is is asked for where memory grows no more, which is where most of a slot is: while it
/// grows, nothing is.
class Curve {
 public:
  using Shares = FunctionRef<std::vector<Share>()>;

  void begin(int64_t time) {
    points_.clear();
    is_open_ = false;
    begin_ = time;
    slot_ = 1000;
  }
  /// Before what lives changes.
  void settle(int64_t time, bool grows, Shares shares) {
    if (points_.empty()) return;
    const int64_t slot = slot_of(time), last = points_.back().time_ns;
    if (slot != last || !grows) close(shares);
    if (last + slot_ < slot && points_.back().bytes != last_)
      points_.push_back({last + slot_, last_, shares()});
  }
  /// After that.
  void add(int64_t time, std::size_t bytes, Shares shares) {
    const int64_t slot = slot_of(time);
    last_ = bytes;
    if (points_.empty() || points_.back().time_ns != slot) {
      points_.push_back({slot, bytes, {}});
      is_open_ = true;
    } else if (bytes > points_.back().bytes) {
      points_.back().bytes = bytes;
      is_open_ = true;
    }
    if (points_.size() < most_points) return;
    close(shares);
    halve();
  }
  /// With what there is at the end.
  [[nodiscard]] std::vector<Point> points(int64_t time, Shares shares) {
    close(shares);
    std::vector<Point> all = points_;
    all.push_back({time, last_, shares()});
    return all;
  }

 private:
  [[nodiscard]] int64_t slot_of(int64_t time) const {
    return begin_ + std::max<int64_t>(time - begin_, 0) / slot_ * slot_;
  }
  void close(Shares shares) {
    if (is_open_) points_.back().shares = shares();
    is_open_ = false;
  }
  void halve() {
    slot_ *= 2;
    std::vector<Point> all = std::exchange(points_, {});
    for (Point& point : all) {
      point.time_ns = slot_of(point.time_ns);
      if (points_.empty() || points_.back().time_ns != point.time_ns)
        points_.push_back(std::move(point));
      else if (points_.back().bytes < point.bytes)
        points_.back() = std::move(point);
    }
  }

  std::vector<Point> points_;
  bool is_open_ =
      false;  ///< what lives now is the most of the last slot, whose shares are not known
  int64_t begin_ = 0, slot_ = 1000;
  std::size_t last_ = 0;
};

/// What is asked for when a block is new.
struct Made {
  std::string name;
  std::vector<CallSite> places;
  uint64_t since = UINT64_MAX;  ///< a block of this number or a later one is this maker's, too
};

class Registry {
 public:
  static Registry& instance() {
    static Registry& registry = *new Registry;  // never destroyed: blocks may outlive all else
    return registry;
  }

  void begin() {
    const std::lock_guard lock(mutex_);
    if (open_++ > 0) return;
    begin_ns_ = now_ns();
    curve_.begin(begin_ns_);
    for (Maker& maker : makers_) maker.at_peak = maker.made = 0;
    peak_ = 0;
    changed(begin_ns_);
    observed::by.fetch_or(observed::by_memory, std::memory_order_relaxed);
  }
  void end() noexcept {
    const std::lock_guard lock(mutex_);
    if (--open_ == 0) observed::by.fetch_and(~observed::by_memory, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t number_now() noexcept {
    const std::lock_guard lock(mutex_);
    return numbers_;
  }

  void add(Storage& storage, Device device, const Made& made) noexcept {
    if (storage.is_borrowed || storage.bytes == 0) return;
    const std::lock_guard lock(mutex_);
    if (open_ == 0) return;
    try {
      const auto [found, is_new] = blocks_.try_emplace(&storage);
      Known& known = found->second;
      if (!is_new) {
        if (known.number < made.since) return;  // an input, or a view of one
        move(known, maker_of(made));
        return;
      }
      const int64_t now = now_ns();
      settle(now, true);
      known.number = numbers_++;
      known.block = {.bytes = storage.bytes, .device = device, .made_ns = now};
      known.block.maker = maker_of(made);
      // Nobody else can end the block meanwhile: its tensor has a handle.
      known.release = std::exchange(storage.release, release_noted);
      count(known.block, true);
      ++makers_[known.block.maker].made;
      bytes_ += storage.bytes;
      changed(now);
    } catch (...) {  // no memory for the note
      blocks_.erase(&storage);
    }
  }

  /// One Variable more has it, or less.
  void hold(const Tensor& tensor, int change) noexcept {
    if (!tensor.is_defined() || !tensor.internals().storage) return;
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(tensor.internals().storage.get());
    if (found == blocks_.end()) return;
    Block& block = found->second.block;
    block.holders = std::max(block.holders + change, 0);
  }

  [[nodiscard]] Content content() {
    const std::lock_guard lock(mutex_);
    Content content = {.makers = makers_,
                       .blocks = {},
                       .points = curve_.points(now_ns(), shares_),
                       .bytes = bytes_,
                       .peak = peak_,
                       .begin_ns = begin_ns_,
                       .peak_ns = peak_ns_,
                       .now_ns = now_ns()};
    for (const auto& [storage, known] : blocks_) content.blocks.push_back(known.block);
    return content;
  }

 private:
  struct Known {
    Block block;
    uint64_t number = 0;
    void (*release)(Storage*) noexcept = nullptr;  ///< the block's own
  };

  struct SharesNow {
    const Registry& of;
    std::vector<Share> operator()() const { return of.shares(); }
  };

  static void release_noted(Storage* storage) noexcept {
    instance().forget(*storage);
    storage->release(storage);
  }

  /// Gives the block its own release back.
  void forget(Storage& storage) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(&storage);
    storage.release = found->second.release;
    const Block block = found->second.block;
    blocks_.erase(found);
    const int64_t now = now_ns();
    if (open_ > 0) settle(now, false);
    count(block, false);
    bytes_ -= block.bytes;
    if (open_ > 0) changed(now);
  }

  void move(Known& known, uint32_t to) {
    count(known.block, false);
    Maker &before = makers_[known.block.maker], &now = makers_[to];
    --before.made, ++now.made;
    if (known.block.made_ns <= peak_ns_ && before.at_peak >= known.block.bytes)
      before.at_peak -= known.block.bytes, now.at_peak += known.block.bytes;
    known.block.maker = to;
    count(known.block, true);
  }

  /// That the block is its maker's, or no more. There is room in `living_` for all makers.
  void count(const Block& block, bool is_added) noexcept {
    Maker& maker = makers_[block.maker];
    if (is_added) {
      if (maker.blocks++ == 0) living_.push_back(block.maker);
      maker.bytes += block.bytes;
      return;
    }
    maker.bytes -= block.bytes;
    if (--maker.blocks == 0) std::erase(living_, block.maker);
  }

  /// Of the makers of living blocks those that have most.
  [[nodiscard]] std::vector<Share> shares() const {
    constexpr std::size_t most = 24;
    std::vector<Share> all;
    all.reserve(living_.size());
    for (const uint32_t maker : living_) all.push_back({maker, makers_[maker].bytes});
    if (all.size() <= most) return all;
    std::ranges::nth_element(all, all.begin() + most, std::greater<>(), &Share::bytes);
    return {all.begin(), all.begin() + most};
  }

  uint32_t maker_of(const Made& made) {
    std::string key = made.name + '\0';
    for (const CallSite& place : made.places) place.append_to(key);
    if (const auto known = makers_by_key_.find(key); known != makers_by_key_.end())
      return known->second;
    const bool is_full = makers_.size() >= most_makers;
    if (is_full && makers_.size() > most_makers) return most_makers;
    const auto number = static_cast<uint32_t>(makers_.size());
    Maker maker;
    maker.name = is_full ? "others" : made.name;
    if (!is_full) maker.places = made.places;
    if (living_.capacity() <= makers_.size()) living_.reserve(2 * makers_.size() + 16);
    makers_.push_back(std::move(maker));
    if (!is_full) makers_by_key_.emplace(std::move(key), number);
    return number;
  }

  /// Before what lives changes.
  void settle(int64_t now, bool grows) noexcept {
    try {
      curve_.settle(now, grows, shares_);
    } catch (...) {  // no memory: a point is missing
      return;
    }
  }
  /// Notes the time, and a peak if this is one that differs from the last by enough to say what it
  /// is made of.
  void changed(int64_t now) noexcept {
    try {
      curve_.add(now, bytes_, shares_);
    } catch (...) {  // no memory: a point is missing
      return;
    }
    if (bytes_ <= peak_) return;
    const bool is_news = bytes_ > peak_detailed_ + peak_detailed_ / 128 || peak_ == 0;
    peak_ = bytes_;
    if (!is_news) return;
    peak_detailed_ = bytes_;
    peak_ns_ = now;
    for (Maker& maker : makers_) maker.at_peak = maker.bytes;
  }

  Registry() = default;

  ForkSafeMutex mutex_;
  int open_ = 0;
  std::unordered_map<const Storage*, Known> blocks_;
  std::vector<Maker> makers_;
  std::unordered_map<std::string, uint32_t> makers_by_key_;
  std::vector<uint32_t> living_;  ///< makers of blocks that live
  Curve curve_;
  const SharesNow shares_{*this};
  std::size_t bytes_ = 0, peak_ = 0, peak_detailed_ = 0;
  int64_t begin_ns_ = 0, peak_ns_ = 0;
  uint64_t numbers_ = 0;
};

Storage* memory_of(const Tensor& tensor) {
  if (!tensor.is_defined()) return nullptr;
  const TensorData& data = tensor.internals();
  const bool is_here = data.memory.load(std::memory_order_acquire) == TensorData::Memory::here;
  return is_here ? data.storage.get() : nullptr;
}

std::vector<CallSite> places_of(const profiling::Steps& steps, std::size_t step) {
  std::vector<CallSite> places;
  for (const uint32_t origin : steps.reports[step].origins) {
    if (steps.places != nullptr && origin < steps.places->size())
      places.push_back((*steps.places)[origin]);
  }
  return places;
}

}  // namespace

void begin() {
  Registry::instance().begin();
}

void end() noexcept {
  Registry::instance().end();
}

uint64_t number_now() noexcept {
  return Registry::instance().number_now();
}

void note(const Op& op, std::span<const Tensor> results, uint64_t since) noexcept {
  if (op.kind == OpKind::view) return;
  try {
    std::optional<CallSite> own;
    const Made made = {std::string(op.name), {CallSite::here_or_default(own)}, since};
    for (const Tensor& result : results) {
      if (Storage* const memory = memory_of(result))
        Registry::instance().add(*memory, result.device(), made);
    }
  } catch (...) {  // no memory
    return;
  }
}

void note_step(const std::shared_ptr<const profiling::Steps>& steps, std::size_t step,
               Storage& block) noexcept {
  try {
    if (step >= steps->reports.size()) return note_temporaries(steps, block);
    Registry::instance().add(block, steps->device,
                             {list_of(steps->reports[step].ops), places_of(*steps, step)});
  } catch (...) {  // no memory
    return;
  }
}

void note_temporaries(const std::shared_ptr<const profiling::Steps>& steps,
                      Storage& block) noexcept {
  try {
    Made made = {.name = "temporaries", .places = {}};
    if (!steps->reports.empty()) made.places = places_of(*steps, 0);
    Registry::instance().add(block, steps->device, made);
  } catch (...) {  // no memory
    return;
  }
}

void note_copied(const Tensor& tensor) noexcept {
  try {
    std::optional<CallSite> own;
    if (Storage* const memory = memory_of(tensor))
      Registry::instance().add(*memory, tensor.device(),
                               {"from the program's memory", {CallSite::here_or_default(own)}});
  } catch (...) {  // no memory
    return;
  }
}

void note_assigned(const Tensor& before, const Tensor& now) noexcept {
  Registry::instance().hold(before, -1);
  Registry::instance().hold(now, 1);
}

Content content() {
  return Registry::instance().content();
}

}  // namespace nitinol::memory_notes
