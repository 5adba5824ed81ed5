// First fit over the gaps between blocks. They are sorted, and stand on shelves of some tens that
// each know their largest, so that a block passes whole shelves that have no place for it: among
// 10,000 gaps it looks at 150 shelves and one shelf's gaps.
#include "program/arena.h"

#include <algorithm>
#include <iterator>

namespace nitinol::program {
namespace {

/// Gaps on a shelf; with more it becomes two.
constexpr std::size_t most_gaps = 64;

}  // namespace

std::size_t Arena::place(std::size_t bytes) {
  if (bytes == 0) return 0;
  const auto shelf =
      std::ranges::find_if(shelves_, [=](const Shelf& each) { return each.largest >= bytes; });
  if (shelf == shelves_.end()) {
    top_ += bytes;
    bytes_ = std::max(bytes_, top_);
    return top_ - bytes;
  }
  const auto found =
      std::ranges::find_if(shelf->gaps, [=](const Gap& gap) { return gap.bytes >= bytes; });
  const Gap gap = *found;
  remove(shelf, found);
  if (gap.bytes > bytes) insert({.offset = gap.offset + bytes, .bytes = gap.bytes - bytes});
  return gap.offset;
}

void Arena::free(std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return;
  const Gap below = take_up_to(offset);
  const Gap above = take_from(offset + bytes);
  const Gap gap = {.offset = offset - below.bytes, .bytes = below.bytes + bytes + above.bytes};
  if (gap.offset + gap.bytes == top_)
    top_ = gap.offset;
  else
    insert(gap);
}

/// The shelf of the first gap at `offset` or above.
Arena::Shelves::iterator Arena::shelf_at(std::size_t offset) {
  return std::ranges::lower_bound(shelves_, offset, {},
                                  [](const Shelf& shelf) { return shelf.gaps.back().offset; });
}

void Arena::insert(const Gap& gap) {
  if (shelves_.empty()) {
    shelves_.push_back({.gaps = {gap}, .largest = gap.bytes});
    return;
  }
  auto shelf = shelf_at(gap.offset);
  if (shelf == shelves_.end()) --shelf;
  std::vector<Gap>& gaps = shelf->gaps;
  gaps.insert(std::ranges::lower_bound(gaps, gap.offset, {}, &Gap::offset), gap);
  shelf->largest = std::max(shelf->largest, gap.bytes);
  if (gaps.size() <= most_gaps) return;
  const auto largest_of = [](const std::vector<Gap>& some) {
    return std::ranges::max(some, {}, &Gap::bytes).bytes;
  };
  const auto middle = gaps.begin() + most_gaps / 2;
  Shelf upper = {.gaps = {middle, gaps.end()}};
  gaps.erase(middle, gaps.end());
  upper.largest = largest_of(upper.gaps);
  shelf->largest = largest_of(gaps);
  shelves_.insert(std::next(shelf), std::move(upper));
}

void Arena::remove(Shelves::iterator shelf, std::vector<Gap>::iterator gap) {
  const bool was_largest = gap->bytes == shelf->largest;
  shelf->gaps.erase(gap);
  if (shelf->gaps.empty())
    shelves_.erase(shelf);
  else if (was_largest)
    shelf->largest = std::ranges::max(shelf->gaps, {}, &Gap::bytes).bytes;
}

/// Takes out the gap that begins at `offset`, or gives one of no bytes.
Arena::Gap Arena::take_from(std::size_t offset) {
  const auto shelf = shelf_at(offset);
  if (shelf == shelves_.end()) return {};
  const auto found = std::ranges::lower_bound(shelf->gaps, offset, {}, &Gap::offset);
  if (found->offset != offset) return {};
  const Gap gap = *found;
  remove(shelf, found);
  return gap;
}

/// Takes out the gap that ends at `offset`, or gives one of no bytes.
Arena::Gap Arena::take_up_to(std::size_t offset) {
  auto shelf = shelf_at(offset);
  const bool is_lowest = shelf == shelves_.end() || shelf->gaps.front().offset >= offset;
  if (is_lowest && shelf == shelves_.begin()) return {};
  if (is_lowest) --shelf;
  const auto found = std::prev(std::ranges::lower_bound(shelf->gaps, offset, {}, &Gap::offset));
  const Gap gap = *found;
  if (gap.offset + gap.bytes != offset) return {};
  remove(shelf, found);
  return gap;
}

}  // namespace nitinol::program
