// One lock guards all. What asks the user's side of a binding, the place, is asked before it is
// taken.
#include "core/memory_notes.h"

#include "core/fork.h"
#include "core/storage.h"

#include <algorithm>
#include <chrono>
#include <mutex>
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
class Curve {
 public:
  void begin(int64_t time) {
    points_.clear();
    begin_ = time;
    slot_ = 1000;
  }
  void add(int64_t time, std::size_t bytes) {
    const int64_t slot = slot_of(time);
    if (!points_.empty() && points_.back().time_ns == slot) {
      points_.back().bytes = std::max(points_.back().bytes, bytes);
    } else {
      const bool is_later = !points_.empty() && points_.back().time_ns + slot_ < slot;
      if (is_later && points_.back().bytes != last_)
        points_.push_back({points_.back().time_ns + slot_, last_});
      points_.push_back({slot, bytes});
    }
    last_ = bytes;
    if (points_.size() >= most_points) halve();
  }
  /// With what there is at the end.
  [[nodiscard]] std::vector<Point> points(int64_t time) const {
    std::vector<Point> all = points_;
    all.push_back({time, last_});
    return all;
  }

 private:
  [[nodiscard]] int64_t slot_of(int64_t time) const {
    return begin_ + std::max<int64_t>(time - begin_, 0) / slot_ * slot_;
  }
  void halve() {
    slot_ *= 2;
    std::vector<Point> all = std::exchange(points_, {});
    for (const Point& point : all) {
      const int64_t slot = slot_of(point.time_ns);
      if (!points_.empty() && points_.back().time_ns == slot)
        points_.back().bytes = std::max(points_.back().bytes, point.bytes);
      else
        points_.push_back({slot, point.bytes});
    }
  }

  std::vector<Point> points_;
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
    changed();
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
      known.number = numbers_++;
      known.block = {.bytes = storage.bytes, .device = device, .made_ns = now_ns()};
      known.block.maker = maker_of(made);
      // Nobody else can end the block meanwhile: its tensor has a handle.
      known.release = std::exchange(storage.release, release_noted);
      Maker& maker = makers_[known.block.maker];
      maker.bytes += storage.bytes, ++maker.blocks, ++maker.made;
      bytes_ += storage.bytes;
      changed();
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
                       .points = curve_.points(now_ns()),
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

  static void release_noted(Storage* storage) noexcept {
    instance().forget(*storage);
    storage->release(storage);
  }

  /// Gives the block its own release back.
  void forget(Storage& storage) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(&storage);
    storage.release = found->second.release;
    const Block& block = found->second.block;
    Maker& maker = makers_[block.maker];
    maker.bytes -= block.bytes, --maker.blocks;
    bytes_ -= block.bytes;
    blocks_.erase(found);
    if (open_ > 0) changed();
  }

  void move(Known& known, uint32_t to) {
    Maker &before = makers_[known.block.maker], &now = makers_[to];
    before.bytes -= known.block.bytes, --before.blocks, --before.made;
    now.bytes += known.block.bytes, ++now.blocks, ++now.made;
    if (known.block.made_ns <= peak_ns_ && before.at_peak >= known.block.bytes)
      before.at_peak -= known.block.bytes, now.at_peak += known.block.bytes;
    known.block.maker = to;
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
    makers_.push_back(std::move(maker));
    if (!is_full) makers_by_key_.emplace(std::move(key), number);
    return number;
  }

  /// Notes the time, and a peak if this is one that differs from the last by enough to say what it
  /// is made of.
  void changed() {
    const int64_t now = now_ns();
    curve_.add(now, bytes_);
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
  Curve curve_;
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
    const Made made = {std::string(op.name), {CallSite::here_or_default()}, since};
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
    if (Storage* const memory = memory_of(tensor))
      Registry::instance().add(*memory, tensor.device(),
                               {"from the program's memory", {CallSite::here_or_default()}});
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
