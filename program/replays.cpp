#include "program/replays.h"

#include "core/backend.h"
#include "core/error.h"
#include "core/hash.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <set>
#include <utility>

namespace nitinol::program {
namespace {

/// The first runs find out what is to be compiled, loaded and allocated.
constexpr uint64_t first_run = 3;
/// By then one is made even though no addresses have come again: perhaps few steps see that.
constexpr uint64_t patience = 8;
/// What takes as long as several runs is done at most once in so many.
constexpr uint64_t runs_to_repay = 16;

}  // namespace

Replays::Replays(const Program& program)
    : program_(program), is_kept_(*program.device, [this] { give_back(); }) {
  for (std::size_t s = 0; s < program.steps.size(); s += program.steps[s].together)
    firsts_.push_back(s);
  note_reads();
}

Replays::~Replays() {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<KeptBlocks>& blocks : kept_) blocks->close();
  if (temporaries_) temporaries_->close();
  if (status_ != nullptr) program_.device->give_status(status_, false);
}

void Replays::note_reads() {
  for (const ProgramStep& step : program_.steps) {
    for (const MemoryOperand& operand : step.memory) {
      const Place::Kind kind = program_.places[operand.value].kind;
      if (kind == Place::Kind::input || kind == Place::Kind::output)
        values_.push_back(operand.value);
    }
    for (const ScalarOperand& slot : step.run_scalars) {
      const auto is_it = [&](const Number& known) {
        return known.scalar == slot.scalar && known.dtype == slot.dtype;
      };
      if (std::ranges::none_of(numbers_, is_it)) numbers_.push_back({slot.scalar, slot.dtype});
    }
  }
  std::ranges::sort(values_);
  const auto repeated = std::ranges::unique(values_);
  values_.erase(repeated.begin(), repeated.end());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (program_.places[values_[i]].kind == Place::Kind::input) inputs_.push_back(i);
  }
  for (const OutputMemory& memory : program_.memory) {
    const auto found = std::ranges::lower_bound(values_, memory.value);
    const bool is_used = found != values_.end() && *found == memory.value;
    outputs_.push_back(is_used ? static_cast<std::size_t>(found - values_.begin())
                               : values_.size());
  }
  const std::size_t temporaries = values_.size();
  parts_.resize(temporaries + 1 + numbers_.size());
  words_.resize(firsts_.size());
  for (std::size_t part = 0; part < firsts_.size(); ++part) {
    const std::span all(program_.steps);
    for (const ProgramStep& step : all.subspan(firsts_[part], all[firsts_[part]].together)) {
      for (const MemoryOperand& operand : step.memory) {
        if (program_.places[operand.value].kind == Place::Kind::arena) note_read(temporaries, part);
        const auto found = std::ranges::lower_bound(values_, operand.value);
        if (found != values_.end() && *found == operand.value)
          note_read(static_cast<std::size_t>(found - values_.begin()), part);
      }
      for (std::size_t n = 0; n < numbers_.size(); ++n) {
        for (const ScalarOperand& slot : step.run_scalars) {
          if (numbers_[n].scalar == slot.scalar && numbers_[n].dtype == slot.dtype)
            note_read(temporaries + 1 + n, part);
        }
      }
    }
  }
}

void Replays::note_read(std::size_t word, std::size_t part) {
  std::vector<std::size_t>& parts = parts_[word];
  if (!parts.empty() && parts.back() == part) return;
  parts.push_back(part);
  words_[part].push_back(word);
}

uint64_t Replays::hash_of(std::size_t part, const Key& key) const {
  Hash hash;
  hash.add(part);
  for (const std::size_t word : words_[part]) hash.add(key[word]);
  return hash.result();
}

void Replays::note_costly(Known& known, std::size_t part) const {
  constexpr std::size_t most_a_part = 16;
  if (!known.sequence->is_costly(part)) return;
  if (known.noted.size() > most_a_part * firsts_.size()) known.noted.clear();
  known.noted.insert(hash_of(part, known.key));
}

void Replays::find_key(const Run& run, Key& key) const {
  key.clear();
  key.reserve(parts_.size());
  const auto add = [&](const std::byte* address) {
    key.push_back(std::bit_cast<uint64_t>(address));
  };
  for (const Value v : values_) add(run.addresses[v]);
  const bool has_temporaries = program_.arena_bytes > 0 && !program_.temporaries.empty();
  const Value first = has_temporaries ? program_.temporaries[0] : 0;
  add(has_temporaries ? run.addresses[first] - program_.places[first].offset : nullptr);
  for (const auto& [scalar, dtype] : numbers_) {
    const auto i = static_cast<std::size_t>(scalar);
    key.push_back(run.number_bits.empty() ? bits_of(*run.scalars[i], dtype) : run.number_bits[i]);
  }
}

bool Replays::run(const Run& run, Launch launch) {
  Status* const status = program_.can_fail ? run.status : nullptr;
  std::unique_lock lock(mutex_);
  if (is_noting_) return false;
  ++runs_;
  Key& key = key_;
  find_key(run, key);
  const auto found =
      std::ranges::find_if(known_, [&](const auto& each) { return each->key == key; });
  if (found != known_.end()) {
    std::rotate(found, found + 1, known_.end());
    replay(*known_.back(), status);
    return true;
  }
  const bool is_again = run.taken->is_again;
  if (runs_ < first_run) return false;
  const bool is_due =
      (is_again && !are_addresses_known(key)) || (known_.empty() && runs_ >= patience);
  bool is_ready = false;
  if (is_due && known_.size() < most_known && why_not_.empty() && may_take_long()) {
    is_ready = make(std::move(key), run, launch, lock);
  } else if (const auto cheap = cheapest(key); cheap != known_.end()) {
    is_ready = update(cheap, std::move(key), run, launch, lock);
  } else if (is_again && !known_.empty() && may_take_long()) {
    ++long_ones_;
    is_ready = update(known_.begin(), std::move(key), run, launch, lock);
  }
  if (is_ready) replay(*known_.back(), status);
  return is_ready;
}

bool Replays::fits(const Known& known, std::span<std::byte* const> addresses,
                   std::span<const Tensor> lent) const {
  const auto lies_there = [&](std::size_t word) {
    return known.key[word] == std::bit_cast<uint64_t>(addresses[values_[word]]);
  };
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const bool is_used = outputs_[i] < values_.size();
    if (is_used && lent[i].is_defined() && !lies_there(outputs_[i])) return false;
  }
  return std::ranges::all_of(inputs_, lies_there);
}

/// The blocks by which a run is a replay, or else those that have lain unused for the longest time:
/// what one run gives the next one takes, so their order has to come again. Null if all are in use.
std::shared_ptr<KeptBlocks> Replays::free_blocks(std::span<std::byte* const> addresses,
                                                 std::span<const Tensor> lent) {
  const auto is_free = [](const auto& blocks) { return blocks->is_free(); };
  auto found = std::ranges::find_if(kept_, is_free);
  for (const std::unique_ptr<Known>& known : known_) {
    if (!known->blocks || !known->blocks->is_free() || !fits(*known, addresses, lent)) continue;
    const auto own = std::ranges::find(kept_, known->blocks);
    if (own != kept_.end()) {
      found = own;
      break;
    }
  }
  if (found == kept_.end()) return nullptr;
  std::rotate(found, found + 1, kept_.end());
  return kept_.back();
}

/// For a run more that is on its way; null if they are too many, or too large.
std::shared_ptr<KeptBlocks> Replays::more_blocks(std::span<const Tensor> lent,
                                                 std::unique_lock<std::mutex>& lock) {
  if (kept_.size() >= most_known) {  // their results live on
    if (!may_take_long()) return nullptr;
    kept_.front()->close();
    kept_.erase(kept_.begin());
  }
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const bool is_wanted = outputs_[i] < values_.size() && !lent[i].is_defined();
    sizes.push_back(is_wanted ? program_.memory[i].bytes : 0);
  }
  std::shared_ptr<KeptBlocks> made = make_blocks(sizes, lock);
  if (made) kept_.push_back(made);
  return made;
}

/// Without the lock: what is short of memory asks for what is kept here, too.
std::shared_ptr<KeptBlocks> Replays::make_blocks(std::span<const std::size_t> sizes,
                                                 std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::shared_ptr<KeptBlocks> made = KeptBlocks::make(*program_.device, sizes);
  lock.lock();
  return made;
}

void Replays::give_back() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // a thread is at a run
  if (!is_noting_) known_.clear();
  const auto close_if_free = [](const std::shared_ptr<KeptBlocks>& blocks) {
    if (!blocks || !blocks->is_free()) return false;
    blocks->close();
    return true;
  };
  std::erase_if(kept_, close_if_free);
  if (close_if_free(temporaries_)) temporaries_ = nullptr;
}

Replays::Taken Replays::take(std::span<std::byte* const> addresses, std::span<const Tensor> lent) {
  Taken taken;
  std::unique_lock lock(mutex_);
  taken.is_again = is_seen_again(addresses);
  const bool is_given_up = known_.empty() && !why_not_.empty();
  if (is_noting_ || is_given_up || runs_ + 1 < first_run) return taken;
  taken.from = free_blocks(addresses, lent);
  if (!taken.from) taken.from = more_blocks(lent, lock);
  if (taken.from) taken.storages = taken.from->lend();
  if (program_.arena_bytes == 0) return taken;
  if (!temporaries_) {
    std::shared_ptr<KeptBlocks> made = make_blocks({&program_.arena_bytes, 1}, lock);
    if (!temporaries_) temporaries_ = std::move(made);
  }
  // Another thread may be at a run just now.
  if (temporaries_ && temporaries_->is_free()) taken.temporaries = temporaries_->lend()[0];
  return taken;
}

/// Whether inputs lie where they lay in one of the latest runs.
bool Replays::is_seen_again(std::span<std::byte* const> addresses) {
  Hash hash;
  for (const std::size_t word : inputs_)
    hash.add(std::bit_cast<uint64_t>(addresses[values_[word]]));
  const uint64_t now = hash.result();
  const auto found = std::ranges::find(seen_, now);
  const bool is_again = found != seen_.end();
  std::rotate(seen_.begin(), is_again ? found : seen_.end() - 1,
              is_again ? found + 1 : seen_.end());
  seen_[0] = now;
  return is_again;
}

/// Whether one is known that differs in numbers alone.
bool Replays::are_addresses_known(const Key& key) const {
  const std::size_t count = values_.size() + 1;
  return std::ranges::any_of(known_, [&](const std::unique_ptr<Known>& known) {
    return std::equal(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(count),
                      known->key.begin());
  });
}

bool Replays::may_take_long() const {
  return long_ones_ < most_known + replays_ / runs_to_repay;
}

template <class Visit>
void Replays::for_changed_parts(const Key& from, const Key& to, const Visit& visit) const {
  std::set<std::size_t> parts;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != to[i]) parts.insert(parts_[i].begin(), parts_[i].end());
  }
  for (const std::size_t part : parts) {
    if (!visit(part)) return;
  }
}

bool Replays::is_cheap(const Known& known, const Key& key) const {
  bool is_cheap = true;
  for_changed_parts(known.key, key, [&](std::size_t part) {
    return is_cheap = !known.sequence->is_costly(part) || known.noted.contains(hash_of(part, key));
  });
  return is_cheap;
}

/// The one with the fewest other addresses, of which no library sees any for the first time; or
/// the end.
Replays::AllKnown::iterator Replays::cheapest(const Key& key) {
  auto best = known_.end();
  std::size_t fewest = 0;
  for (auto known = known_.begin(); known != known_.end(); ++known) {
    std::size_t others = 0;
    for (std::size_t i = 0; i < key.size(); ++i) others += (*known)->key[i] != key[i] ? 1 : 0;
    if ((best == known_.end() || others < fewest) && is_cheap(**known, key)) {
      best = known;
      fewest = others;
    }
  }
  return best;
}

void Replays::replay(Known& known, Status* status) {
  // The word is one of all replays: those that other words, of other runs, begin with and end in.
  if (status != nullptr) program_.device->copy_status(status, status_);
  known.sequence->run();
  if (status != nullptr) program_.device->copy_status(status_, status);
  ++replays_;
}

Status* Replays::word() {
  if (program_.can_fail && status_ == nullptr) status_ = program_.device->take_status(nullptr);
  return status_;
}

/// False, with the reason noted, if it cannot be made.
bool Replays::make(Key key, const Run& run, Launch launch, std::unique_lock<std::mutex>& lock) {
  is_noting_ = true;
  lock.unlock();
  auto made = std::make_unique<Known>(
      Known{.key = std::move(key), .sequence = nullptr, .blocks = run.taken->from});
  std::string why_not;
  try {
    Status* const status = word();
    made->sequence = program_.device->record(
        firsts_.size(), [&](std::size_t part) { launch(firsts_[part], status); });
  } catch (const Error& error) {
    why_not = error.report().what;
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  lock.lock();
  is_noting_ = false;
  why_not_ = std::move(why_not);
  if (!made->sequence) return false;
  for (std::size_t part = 0; part < firsts_.size(); ++part) note_costly(*made, part);
  known_.push_back(std::move(made));
  ++made_;
  ++long_ones_;
  return true;
}

/// False, and it is gone, if this run launches something else.
bool Replays::update(AllKnown::iterator known, Key key, const Run& run, Launch launch,
                     std::unique_lock<std::mutex>& lock) {
  std::rotate(known, known + 1, known_.end());
  Known& last = *known_.back();
  is_noting_ = true;
  lock.unlock();
  bool is_same = true;
  std::string why_not;
  try {
    for_changed_parts(last.key, key, [&](std::size_t part) {
      return is_same = last.sequence->replace(part, [&] { launch(firsts_[part], status_); });
    });
  } catch (const Error& error) {
    is_same = false;
    why_not = error.report().what;
  } catch (const std::exception& error) {
    is_same = false;
    why_not = error.what();
  }
  lock.lock();
  is_noting_ = false;
  if (!is_same) {
    known_.pop_back();
    if (!why_not.empty()) why_not_ = std::move(why_not);
    return false;
  }
  last.blocks = run.taken->from;
  std::swap(last.key, key);
  for_changed_parts(key, last.key, [&](std::size_t part) {
    note_costly(last, part);
    return true;
  });
  ++updated_;
  return true;
}

ReplayReport Replays::report() const {
  const std::lock_guard lock(mutex_);
  ReplayReport report = {
      .replays = replays_, .made = made_, .updated = updated_, .why_not = why_not_};
  if (made_ == 0 && why_not_.empty()) {
    report.why_not = runs_ < first_run ? "it is made from the third run on"
                                       : "no run has found the memory of an earlier one";
  }
  return report;
}

}  // namespace nitinol::program
