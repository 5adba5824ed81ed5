#include "backends/host/blocks_abreast.h"

#include "backends/host/copy_apart.h"
#include "core/kernel.h"

#include <algorithm>
#include <bit>

namespace nitinol::host {
namespace {

/// More make whole vectors by themselves.
constexpr int64_t most_rows = 16;
/// Of one operand, in a call.
constexpr int64_t most_points = 8192;

const Steps& row_steps(const Domain& domain) {
  return domain.steps[static_cast<std::size_t>(domain.rank - 1)];
}

int64_t rows_of(const Domain& domain) {
  return domain.sizes[static_cast<std::size_t>(domain.rank - 1)];
}

bool is_copied(const Operand& operand) {
  return operand.role == Role::input && operand.inner != StrideClass::zero;
}

}  // namespace

int64_t blocks_abreast(const Kernel& kernel, const Domain& domain) {
  if (kernel.order != Order::sequential || rows_of(domain) > most_rows) return 1;
  const int64_t block = block_of(kernel);
  const int64_t most = std::min(
      {most_blocks_at_once, most_points / (block * rows_of(domain)), domain.reduced_size / block});
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(most, 1))));
}

bool takes_blocks_abreast(const Kernel& kernel, const Domain& domain, const Stage& stage) {
  return std::ranges::all_of(stage.sources,
                             [&](const Source& source) {
                               if (source.kind != Source::Kind::operand) return false;
                               const Operand& operand = kernel.operands[source.index];
                               if (operand.role == Role::scalar || is_copied(operand)) return true;
                               return domain.reduced_steps[source.index] == 0 &&
                                      row_steps(domain)[source.index] == 0;
                             }) &&
         std::ranges::all_of(stage.sinks, [&](const Sink& sink) {
           return sink.kind == Sink::Kind::accumulate &&
                  !is_arg(kernel.reductions[sink.index].combine);
         });
}

BlocksAbreast::BlocksAbreast(const Kernel& kernel, const Domain& domain, int64_t most,
                             Scratch& scratch)
    : kernel_(kernel),
      domain_(domain),
      rows_(rows_of(domain)),
      length_(block_of(kernel)),
      most_(most),
      memory_(scratch.take<char*>(domain.operands)) {
  for (int64_t half = most / 2, known = 1; half > 0; half /= 2, known *= 2) {
    for (int64_t i = 0; i < known; ++i) {
      const auto at = static_cast<std::size_t>(i);
      places_[at + static_cast<std::size_t>(known)] = places_[at] + half;
    }
  }
  for (std::size_t k = 0; k < domain.operands; ++k) {
    const Operand& operand = kernel.operands[k];
    const auto points = static_cast<std::size_t>(rows_ * most * length_);
    memory_[k] = is_copied(operand) ? scratch.take<char>(points * size_of(operand.dtype)) : nullptr;
  }
}

Piece BlocksAbreast::load(const Stage& stage, int64_t count, Pointers& pointers,
                          TileSteps& steps) const {
  for (std::size_t k = 0; k < domain_.operands; ++k) {
    steps.reduced[k] = domain_.reduced_steps[k];
    steps.rows[k] = row_steps(domain_)[k];
  }
  for (const Source& source : stage.sources) {
    const std::size_t k = source.index;
    if (memory_[k] == nullptr) continue;
    const auto size = static_cast<int64_t>(size_of(kernel_.operands[k].dtype));
    copy(k, count, pointers[k]);
    pointers[k] = memory_[k];
    steps.rows[k] = size;
    steps.reduced[k] = domain_.reduced_steps[k] == 0 ? 0 : size * rows_ * count;
  }
  return {.reduced = steps.reduced.data(),
          .rows = steps.rows.data(),
          .length = length_,
          .row_count = rows_ * count};
}

void BlocksAbreast::copy(std::size_t operand, int64_t count, const char* from) const {
  const auto size = static_cast<int64_t>(size_of(kernel_.operands[operand].dtype));
  const int64_t step = domain_.reduced_steps[operand], row_step = row_steps(domain_)[operand];
  const int64_t length = step == 0 ? 1 : length_;
  const int fewer = std::countr_zero(static_cast<uint64_t>(most_ / count));
  // Elements of all rows are one piece, where they are neighbours.
  const int64_t pieces = row_step == size ? 1 : rows_;
  const CopyApart copy_pieces = copy_apart_of(rows_ / pieces * size);
  for (int64_t block = 0; block < count; ++block) {
    const int64_t place = places_[static_cast<std::size_t>(block)] >> fewer;
    char* const to = memory_[operand] + place * rows_ * size;
    const char* const first = from + block * length_ * step;
    for (int64_t i = 0; i < pieces; ++i)
      copy_pieces(first + i * row_step, step, to + i * size, rows_ * count * size, length);
  }
}

}  // namespace nitinol::host
