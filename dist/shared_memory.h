// SharedMemory: memory that the members of a group share, if they run on one machine.
//
// What is too long for a first message goes through it: a member copies what it has for others into
// its slot, and they copy from there when they have heard, by messages, that it is there. Members
// write to their own slots alone, of which they have two, and use them in turns: whoever begins a
// round has copied what the one before brought, so that a slot is free in the next but one.
#pragma once

#include "core/function_ref.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nitinol::dist {

class SharedMemory {
 public:
  /// Bytes that a member gives in one round.
  static constexpr std::size_t slot_bytes = std::size_t{1} << 21;
  /// Where nothing is computed of what a member gives, it goes sooner by messages if it is more
  /// than this: the system copies those from process to process.
  static constexpr std::size_t most_copied = std::size_t{1} << 20;

  /// Each member's bytes, in the order of members.
  using Gather = FunctionRef<std::vector<std::byte>(std::span<const std::byte>)>;
  /// Of `size` members, all of which call it; member 0 makes the memory, and `gather` tells the
  /// others where it is, and whether all have it. Null on all of them if not; on a member that has
  /// failed itself `reason` says why. One that has a reason before does not try.
  [[nodiscard]] static std::unique_ptr<SharedMemory> open(int rank, int size, Gather gather,
                                                          std::string& reason);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// All members have come to this round, and will meet in it.
  void begin_round() { turn_ = 1 - turn_; }
  /// A member's slot in this round, to be read when they have met.
  [[nodiscard]] const std::byte* slot(int member) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return memory_.data() + begin_of(member);
  }
  /// Copies to this member's, before they meet.
  void put(std::size_t place, const std::byte* from, std::size_t bytes);

 private:
  SharedMemory(std::span<std::byte> memory, int rank) : memory_(memory), rank_(rank) {}
  [[nodiscard]] std::size_t begin_of(int member) const;

  std::span<std::byte> memory_;
  int rank_;
  std::size_t turn_ = 0;
  static constexpr int most_slow_stores = 4;  // one alone was a thread that was interrupted
  int slow_stores_ = 0;                       ///< how many more were slow lately than not
};

}  // namespace nitinol::dist
