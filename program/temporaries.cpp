// A temporary's place is free again after the last launch that reads it; each is put at the lowest
// free place that is large enough, in the order of definition. Where that leaves gaps that take
// more than is in use at any time, the largest are placed first instead (Pisarchyk and Lee,
// "Efficient Memory Management for Deep Neural Net Inference", 2020: greedy by size), if it is
// better: 19 % of a transformer block's training step were gaps.
//
// Several threads cut a value in as many parts, one after the other. In a place that a value of
// another size had, they would find lines that another core wrote, which are slow to come where
// cores do not share a cache: a CNN's call on two cores took 3.2 ms so, and takes 1.7 (Zen 4,
// November 2026, nitinol_bench --rows W4iv.infer). So as long as all fits the caches a place is
// taken again by values of its size alone.
#include "program/temporaries.h"

#include "core/round_up.h"
#include "program/arena.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nitinol::program {
namespace {

constexpr std::size_t alignment = 64;
/// Threads share the work on what has as many bytes.
constexpr std::size_t least_shared = std::size_t{64} << 10;
/// What may be spent so that threads find their own lines.
constexpr std::size_t most_apart = std::size_t{16} << 20;
/// Of what is in use: more in gaps is worth another try,
constexpr std::size_t worst_share_of_gaps = 16;
/// whose work is the square of the number of steps.
constexpr std::size_t most_by_size = 1024;

/// What launches define and use for the last time, each by its first step; of those that lie where
/// another one did, that one.
struct Lives {
  std::vector<std::vector<Value>> first, last;
};

/// Marks the temporaries, too.
Lives lives_of(ProgramDraft& draft) {
  const std::size_t steps = draft.steps.size();
  Lives lives = {.first = std::vector<std::vector<Value>>(steps),
                 .last = std::vector<std::vector<Value>>(steps)};
  std::vector<Value> temporaries;
  std::vector<std::size_t> last_use(draft.out.places.size(), 0);
  std::size_t launch = 0;
  for (std::size_t s = 0; s < steps; ++s) {
    if (s == launch + draft.steps[launch].out.together) launch = s;
    const ProgramStep& step = draft.steps[s].out;
    const std::size_t end = std::min(step.until, steps - 1);  // until it has been waited for
    for (const std::vector<Value>* touched : {&step.reads, &step.writes}) {
      for (const Value v : *touched) {
        const Value place = draft.place_of[v];
        last_use[place] = std::max(last_use[place], std::max(launch, end));
        if (draft.place(v).kind != Place::Kind::none) continue;
        draft.place(v).kind = Place::Kind::arena;
        if (place != v) continue;
        lives.first[launch].push_back(v);
        temporaries.push_back(v);
      }
    }
  }
  for (const Value v : temporaries) lives.last[last_use[v]].push_back(v);
  return lives;
}

/// An Arena whose places keep their sizes.
class Places {
 public:
  std::size_t place(std::size_t bytes) {
    std::vector<std::size_t>& free = free_[bytes];
    if (free.empty()) return std::exchange(bytes_, bytes_ + bytes);
    const std::size_t offset = free.back();
    free.pop_back();
    return offset;
  }
  void free(std::size_t offset, std::size_t bytes) { free_[bytes].push_back(offset); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::unordered_map<std::size_t, std::vector<std::size_t>> free_;  ///< offsets by size
  std::size_t bytes_ = 0;
};

std::size_t size_in_arena(const ProgramDraft& draft, Value v) {
  const std::size_t nodes = draft.graph.nodes.size();
  const std::size_t bytes =
      v < nodes ? bytes_of(draft.graph[v].spec) : draft.out.packed_bytes[v - nodes];
  return round_up(bytes, alignment);
}

/// The most memory that is in use at a time.
std::size_t most_in_use(const ProgramDraft& draft, const Lives& lives) {
  std::size_t now = 0, most = 0;
  for (std::size_t s = 0; s < draft.steps.size(); ++s) {
    for (const Value v : lives.first[s]) now += size_in_arena(draft, v);
    most = std::max(most, now);
    for (const Value v : lives.last[s]) now -= size_in_arena(draft, v);
  }
  return most;
}

/// Places temporaries as defined; how much memory they need.
std::size_t place_in_order(ProgramDraft& draft, const Lives& lives) {
  Arena arena;
  for (std::size_t s = 0; s < draft.steps.size(); ++s) {
    for (const Value v : lives.first[s])
      draft.place(v).offset = arena.place(size_in_arena(draft, v));
    for (const Value v : lives.last[s]) arena.free(draft.place(v).offset, size_in_arena(draft, v));
  }
  return arena.bytes();
}

/// A temporary with a place, or that wants one.
struct Block {
  Value value = 0;
  std::size_t bytes = 0, first = 0, last = 0, offset = 0;
};

std::vector<Block> blocks_of(const ProgramDraft& draft, const Lives& lives) {
  std::vector<Block> blocks;
  std::unordered_map<Value, std::size_t> at;
  for (std::size_t s = 0; s < draft.steps.size(); ++s) {
    for (const Value v : lives.first[s]) {
      at[v] = blocks.size();
      blocks.push_back({.value = v, .bytes = size_in_arena(draft, v), .first = s});
    }
    for (const Value v : lives.last[s]) blocks[at.at(v)].last = s;
  }
  return blocks;
}

/// The lowest offset at which there is room beside `placed`, which are sorted by offset.
std::size_t lowest_room(const std::vector<Block>& placed, const Block& block) {
  std::size_t end = 0;
  for (const Block& other : placed) {
    if (other.last < block.first || block.last < other.first) continue;
    if (other.offset >= end + block.bytes) break;
    end = std::max(end, other.offset + other.bytes);
  }
  return end;
}

/// Places the largest first if that needs less than `bytes`; how much memory is needed.
std::size_t place_by_size(ProgramDraft& draft, const Lives& lives, std::size_t bytes) {
  std::vector<Block> blocks = blocks_of(draft, lives);
  std::ranges::stable_sort(blocks, std::ranges::greater(), &Block::bytes);
  std::vector<Block> placed;
  std::size_t needed = 0;
  for (Block& block : blocks) {
    block.offset = lowest_room(placed, block);
    needed = std::max(needed, block.offset + block.bytes);
    if (needed >= bytes) return bytes;
    placed.insert(std::ranges::upper_bound(placed, block.offset, {}, &Block::offset), block);
  }
  for (const Block& block : placed) draft.place(block.value).offset = block.offset;
  return needed;
}

/// Places all temporaries; how much memory they need.
std::size_t place_tightly(ProgramDraft& draft, const Lives& lives) {
  const std::size_t bytes = place_in_order(draft, lives), least = most_in_use(draft, lives);
  const bool has_gaps = bytes - least > least / worst_share_of_gaps;
  return has_gaps && draft.steps.size() <= most_by_size ? place_by_size(draft, lives, bytes)
                                                        : bytes;
}

/// The same with those that threads share in places of their sizes, and the others behind them.
std::size_t place_apart(ProgramDraft& draft, const Lives& lives) {
  Places shared;
  Arena others;
  std::vector<Value> behind;
  for (std::size_t s = 0; s < draft.steps.size(); ++s) {
    for (const Value v : lives.first[s]) {
      const std::size_t size = size_in_arena(draft, v);
      const bool is_shared = size >= least_shared;
      draft.place(v).offset = is_shared ? shared.place(size) : others.place(size);
      if (!is_shared) behind.push_back(v);
    }
    for (const Value v : lives.last[s]) {
      const std::size_t size = size_in_arena(draft, v);
      const std::size_t offset = draft.place(v).offset;
      size >= least_shared ? shared.free(offset, size) : others.free(offset, size);
    }
  }
  for (const Value v : behind) draft.place(v).offset += shared.bytes();
  return shared.bytes() + others.bytes();
}

}  // namespace

void place_temporaries(ProgramDraft& draft) {
  const Lives lives = lives_of(draft);
  std::size_t& bytes = draft.out.arena_bytes;
  if (draft.out.threads > 1) bytes = place_apart(draft, lives);
  if (draft.out.threads == 1 || bytes > most_apart) bytes = place_tightly(draft, lives);
  for (Value v = 0; v < draft.place_of.size(); ++v) {
    if (draft.place_of[v] == v) continue;
    draft.place(v).offset = draft.place(draft.place_of[v]).offset;
    draft.place(v).takes_over = true;
  }
}

}  // namespace nitinol::program
