// Body: what the texts of all shapes have in common.
#pragma once

#include "backends/cuda/text/arguments.h"
#include "backends/cuda/text/program.h"
#include "backends/cuda/text/writer.h"
#include "core/function_ref.h"
#include "core/kernel.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::cuda {

/// A kernel's text in the making. In it, `m<k>` is the address of operand k where the row begins,
/// `o<k>` the value of a position there, `s<k>` a scalar, `r<k>` the result of a reduction, `q<k>`
/// a row value, `e` an index along the last loop, `last` where it ends.
struct Body {
  const Kernel& kernel;
  const Schedule& schedule;
  Writer out = {};

  [[nodiscard]] int last_loop() const { return schedule.rank - 1; }
  [[nodiscard]] bool is_memory(std::size_t k) const {
    return kernel.operands[k].role != Role::scalar && kernel.operands[k].role != Role::position;
  }
};

/// The types, tables, joins and the struct that stand before the functions.
void write_head(Body& body);

/// "KERNEL(entry<number>, <threads>) {", and what each function does first.
void open_entry(Body& body, std::size_t number);

/// i<loop> of row number `row`, an expression, counted over `loops`, in order.
void write_indices(Body& body, const std::string& row, std::span<const int> loops);
/// m<k> and o<k> where the first `loops` loops are at i<loop>.
void write_operands(Body& body, int loops);
/// Both: m<k> and o<k> of row number `row`, counted over the first `loops` loops.
void write_row(Body& body, const std::string& row, int loops);

/// The operands in memory that a stage reads, each once; and the reductions that it accumulates.
[[nodiscard]] std::vector<uint16_t> memory_sources(const Body& body, const Stage& stage);
[[nodiscard]] std::vector<uint16_t> reductions_of(const Stage& stage);

/// How a piece is written: `width` neighbours from `e` on, of those before `last`.
struct PieceText {
  bool is_whole = false;  ///< none lies behind `last`
  /// "live &&", or nothing: when stores happen.
  std::string condition = {};
  /// The accumulator that neighbour j of reduction r joins: "sum<r>[j]" by "j".
  std::string accumulator = "j";
  /// If not empty: what stands for (chunk, piece) in the arrays keep<k>, of operands that are kept.
  std::string kept_at = {};
  std::vector<bool> is_kept = {};
};

/// A stage at the points of a piece.
void write_piece(Body& body, const Stage& stage, const PieceText& piece);

/// A stage at the point `e`, by the first thread of a warp for each result. Nothing is stored
/// before all have loaded what they read: a result may take its place.
void write_results_apart(Body& body, const Stage& stage);

/// Loads a piece of operand k into keep<k>.
void write_kept_load(Body& body, uint16_t k, const PieceText& piece);

/// A stage of Level::row, by all threads that share the row; `is_chosen`, of one of them, stores.
/// `barrier` stands between what they read and the stores, if a result takes the place of an
/// operand.
void write_row_stage(Body& body, const Stage& stage, const std::string& is_chosen,
                     const std::string& barrier);

/// Declares r<k> of a stage, or a row value.
void declare_results(Body& body, const Stage& stage);

/// The stages of an entry that computes whole rows. `is_chosen` and `barrier`: see
/// write_row_stage(); `sum`: what reduction {0} came to where `write_elements` has written a stage.
void write_stages(Body& body, const std::string& is_chosen, const std::string& barrier,
                  std::string_view sum, FunctionRef<void(const Stage&)> write_elements);

/// `result`, or what the reduction of no element gives.
[[nodiscard]] std::string empty_or(const Body& body, std::size_t r, const std::string& result);

}  // namespace nitinol::cuda
