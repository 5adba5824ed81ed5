// Threads count what is true in pieces of the mask; from the sums each knows where the results of a
// piece begin. Within a piece every element is written, and the next one over it unless the mask
// was true: no branch depends on data.
#include "backends/host/compress.h"

#include "backends/host/rows.h"
#include "backends/host/split.h"
#include "core/copy_bytes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace nitinol::host {
namespace {

constexpr int64_t piece = 16384;

/// Calls write(first, last, place, wanted) for pieces of the mask: what is true from `first` on
/// goes to `place` and after it, `wanted` at most. Returns how many were true, up to `room`.
template <class Write>
int64_t for_each_piece(const OperandLayout& layout, const void* data, int64_t room, int threads,
                       const Write& write) {
  const auto* const mask = static_cast<const uint8_t*>(data);
  const int64_t size = layout.shape[0], step = layout.strides[0];
  const int64_t pieces = (size + piece - 1) / piece;
  std::vector<int64_t> starts(static_cast<std::size_t>(pieces) + 1);
  split(pieces, 4, threads, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t count = 0;
      const int64_t last = std::min((p + 1) * piece, size);
      if (step == 1) {
        for (int64_t i = p * piece; i < last; ++i) count += mask[i];
      } else {
        for (int64_t i = p * piece; i < last; ++i) count += mask[i * step];
      }
      starts[static_cast<std::size_t>(p) + 1] = count;
    }
  });
  for (std::size_t p = 1; p < starts.size(); ++p) starts[p] += starts[p - 1];
  split(pieces, 4, threads, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t place = starts[static_cast<std::size_t>(p)];
      const int64_t next = std::min(starts[static_cast<std::size_t>(p) + 1], room);
      if (place < next) write(p * piece, std::min((p + 1) * piece, size), place, next - place);
    }
  });
  return std::min(starts.back(), room);
}

/// Writes value(i) for what is true, without branches until the last one wanted is written.
template <class T, class Value>
void write_chosen(const uint8_t* mask, int64_t step, int64_t first, int64_t last, T* to,
                  int64_t to_step, int64_t wanted, const Value& value) {
  T* const end = to + wanted * to_step;
  for (int64_t i = first; i < last && to != end; ++i) {
    *to = value(i);
    to += to_step & -static_cast<int64_t>(mask[i * step] != 0);  // a choice became a branch
  }
}

template <class T>
void compress_line(const LibraryCall& call, const Launch& launch) {
  const OperandLayout &x = call.operands[0], &mask = call.operands[1], &out = call.operands[2];
  const auto* const from = static_cast<const T*>(launch.buffers[0]);
  const auto* const chosen = static_cast<const uint8_t*>(launch.buffers[1]);
  auto* const to = static_cast<T*>(launch.buffers[2]);
  const int64_t step = x.strides[0], to_step = out.strides[0];
  const int64_t count =
      for_each_piece(mask, chosen, out.shape[0], launch.threads,
                     [&](int64_t first, int64_t last, int64_t place, int64_t wanted) {
                       write_chosen(chosen, mask.strides[0], first, last, to + place * to_step,
                                    to_step, wanted, [&](int64_t i) { return from[i * step]; });
                     });
  for (int64_t i = count; i < out.shape[0]; ++i) to[i * to_step] = T{0};
}

/// Rows of several elements.
void compress_rows(const LibraryCall& call, const Launch& launch) {
  const OperandLayout& mask = call.operands[1];
  const Rows x(call.operands[0], launch.buffers[0], 1), out(call.operands[2], launch.buffers[2], 1);
  const auto* const chosen = static_cast<const uint8_t*>(launch.buffers[1]);
  const int64_t room = call.operands[2].shape[0];
  const auto size = static_cast<std::size_t>(x.bytes());
  const auto copy_row = [&](int64_t from, int64_t to) {
    if (x.is_together() && out.is_together()) {
      copy_bytes(out.at(to, 0), x.at(from, 0), static_cast<std::size_t>(x.elements()) * size);
      return;
    }
    for (int64_t j = 0; j < x.elements(); ++j) std::memcpy(out.at(to, j), x.at(from, j), size);
  };
  const int64_t count =
      for_each_piece(mask, chosen, room, launch.threads,
                     [&](int64_t first, int64_t last, int64_t place, int64_t wanted) {
                       const int64_t end = place + wanted;
                       for (int64_t i = first; i < last && place < end; ++i) {
                         if (chosen[i * mask.strides[0]] != 0) copy_row(i, place++);
                       }
                     });
  for (int64_t i = count; i < room; ++i) {
    for (int64_t j = 0; j < out.elements(); ++j) std::memset(out.at(i, j), 0, size);
  }
}

}  // namespace

void compress(const LibraryCall& call, const Launch& launch) {
  if (element_count(call.operands[2].shape) == 0) return;
  if (call.operands[0].shape.size() > 1) return compress_rows(call, launch);
  switch (size_of(call.operands[0].dtype)) {
    case 1:
      return compress_line<uint8_t>(call, launch);
    case 2:
      return compress_line<uint16_t>(call, launch);
    case 4:
      return compress_line<uint32_t>(call, launch);
    default:
      return compress_line<uint64_t>(call, launch);
  }
}

void positions(const LibraryCall& call, const Launch& launch) {
  const OperandLayout& mask = call.operands[0];
  const auto* const chosen = static_cast<const uint8_t*>(launch.buffers[0]);
  auto* const to = static_cast<int64_t*>(launch.buffers[1]);
  const int64_t room = call.operands[1].shape[0], step = call.operands[1].strides[0];
  const int64_t count =
      for_each_piece(mask, chosen, room, launch.threads,
                     [&](int64_t first, int64_t last, int64_t place, int64_t wanted) {
                       write_chosen(chosen, mask.strides[0], first, last, to + place * step, step,
                                    wanted, [](int64_t i) { return i; });
                     });
  for (int64_t i = count; i < room; ++i) to[i * step] = -1;
}

}  // namespace nitinol::host
