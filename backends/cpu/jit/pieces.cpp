#include "backends/cpu/jit/pieces.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace nitinol::cpu {
namespace {

/// Cycles from the first to the last instruction of a piece, about.
constexpr int longest = 72;
/// Instructions among which a processor looks for one that can start, about.
constexpr int window = 96;
/// Values between two pieces; more cost more than they are worth.
constexpr int most_between = 6;

/// Cycles until the value is there, about: no processor's own table.
int latency_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::div:
    case ScalarOp::sqrt:
    case ScalarOp::round_f16:
    case ScalarOp::round_bf16:
      return 16;
    case ScalarOp::int_div:
    case ScalarOp::int_rem:
    case ScalarOp::table:
    case ScalarOp::load:
      return 24;
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::fma:
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::trunc:
    case ScalarOp::round_even:
    case ScalarOp::mul_high:
    case ScalarOp::convert:
      return 4;
    case ScalarOp::begin_if:
    case ScalarOp::end_if:
    case ScalarOp::bitcast:
      return 0;
    default:
      return 1;
  }
}

/// A piece that grows.
struct Length {
  explicit Length(std::size_t count) : ready(count) {}
  int cycles = 0;          ///< from the first to the last instruction
  int instructions = 0;    ///< that are usually run
  std::vector<int> ready;  ///< per instruction: when its value is there
};

class Splitter {
 public:
  explicit Splitter(const WholeProgram& whole)
      : whole_(whole), instrs_(whole.program.instrs), count_(instrs_.size()) {}

  Pieces split() {
    find_steps();
    find_uses();
    cut();
    pieces_.piece_of.resize(count_, 0);
    for (std::size_t i = 0; i < count_; ++i) pieces_.piece_of[i] = piece_at(i);
    pieces_.pieces.resize(begins_.size());
    if (begins_.size() > 1) connect();
    return std::move(pieces_);
  }

 private:
  /// What instruction `i` reads while it is emitted.
  template <class F>
  void for_operands(std::size_t i, F f) const {
    const ScalarInstr& instr = instrs_[i];
    const std::array<uint32_t, 3> operands = {instr.a, instr.b, instr.c};
    const int count = instr.op == ScalarOp::end_if ? 2 : operand_count(instr.op);
    for (int k = 0; k < count; ++k) f(operands[static_cast<std::size_t>(k)]);
    // Of a negated condition the branch asks the condition itself.
    if (instr.op == ScalarOp::begin_if && instrs_[instr.a].op == ScalarOp::bit_not)
      f(instrs_[instr.a].a);
  }

  /// Steps that stay whole: an instruction; all from a begin_if to its end_if; and at the end what
  /// joins accumulators, which each vector finds as the one before has left them.
  void find_steps() {
    step_of_.resize(count_);
    int nesting = 0;
    bool joins = false;
    for (std::size_t i = 0; i < count_; ++i) {
      if (nesting == 0 && !joins) steps_.push_back(i);
      joins = joins || (whole_.is_input[i] && whole_.is_accumulator[instrs_[i].imm]);
      step_of_[i] = steps_.size() - 1;
      if (instrs_[i].op == ScalarOp::begin_if) ++nesting;
      if (instrs_[i].op == ScalarOp::end_if) --nesting;
    }
    steps_.push_back(count_);
  }

  /// The last step that uses a value.
  void find_uses() {
    last_use_.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      for_operands(i, [&](uint32_t from) { last_use_[from] = step_of_[i]; });
    }
    for (const uint32_t result : whole_.results) last_use_[result] = steps_.size();
  }

  /// The values, in those of f32, that steps from `step` on use of those before.
  [[nodiscard]] std::vector<int> values_before_steps() const {
    std::vector<int> change(steps_.size() + 1);
    for (std::size_t i = 0; i < count_; ++i) {
      if (!whole_.is_inner[i] || last_use_[i] <= step_of_[i]) continue;
      const int weight = instrs_[i].type == ScalarType::pred ? 2 : 1;
      change[step_of_[i] + 1] += weight;
      if (last_use_[i] + 1 < change.size()) change[last_use_[i] + 1] -= weight;
    }
    for (std::size_t step = 1; step < change.size(); ++step) change[step] += change[step - 1];
    return change;
  }

  /// From each begin on, looks at as many steps as a processor does: if they are a chain, cuts
  /// before that is too long, where the least is between the pieces.
  void cut() {
    const std::vector<int> between = values_before_steps();
    begins_ = {0};
    std::size_t begin = 0;
    while (true) {
      Length length(count_);
      int best = most_between;
      std::size_t next = 0, step = begin;
      for (; step + 1 < steps_.size() && length.instructions < window; ++step) {
        const bool may_cut = 2 * length.cycles >= longest && between[step] <= best;
        if (may_cut && (next == 0 || length.cycles <= longest)) {
          best = between[step];
          next = step;
        }
        add(step, length);
      }
      const bool is_chain = 4 * length.cycles > 5 * longest && length.cycles > length.instructions;
      if (is_chain && next > 0) begins_.push_back(next);
      if (step + 1 == steps_.size() && !(is_chain && next > 0)) return;
      begin = next > 0 ? next : step;
    }
  }

  /// Adds `step` to a piece, as it runs if no branch that is rarely taken is.
  void add(std::size_t step, Length& length) const {
    std::vector<bool> is_rare;  // of the branches around the instruction
    for (std::size_t i = steps_[step]; i < steps_[step + 1]; ++i) {
      const ScalarInstr& instr = instrs_[i];
      bool joins_rare = false;
      if (instr.op == ScalarOp::begin_if) is_rare.push_back(instr.imm == 0);
      if (instr.op == ScalarOp::end_if) {
        joins_rare = is_rare.back();
        is_rare.pop_back();
      }
      if (std::ranges::find(is_rare, true) != is_rare.end() || !whole_.is_inner[i]) continue;
      int& ready = length.ready[i];
      if (joins_rare)
        ready = length.ready[instr.a];
      else
        for_operands(i, [&](uint32_t from) { ready = std::max(ready, length.ready[from]); });
      ready += latency_of(instr.op);
      length.cycles = std::max(length.cycles, ready);
      ++length.instructions;
    }
  }

  [[nodiscard]] uint16_t piece_at(std::size_t i) const {
    const auto after = std::ranges::upper_bound(begins_, step_of_[i]);
    return static_cast<uint16_t>(after - begins_.begin() - 1);
  }

  static void add(std::vector<uint32_t>& list, uint32_t item) {
    if (std::ranges::find(list, item) == list.end()) list.push_back(item);
  }

  void use(std::size_t piece, uint32_t from) {
    if (whole_.is_input[from]) {
      add(pieces_.pieces[piece].inputs, static_cast<uint32_t>(instrs_[from].imm));
    } else if (whole_.is_inner[from] && pieces_.piece_of[from] != piece) {
      add(pieces_.pieces[piece].taken, from);
      add(pieces_.pieces[pieces_.piece_of[from]].kept, from);
    }
  }

  void connect() {
    for (std::size_t i = 0; i < count_; ++i) {
      if (whole_.is_inner[i])
        for_operands(i, [&](uint32_t from) { use(pieces_.piece_of[i], from); });
    }
    for (const uint32_t result : whole_.results) use(begins_.size() - 1, result);
    find_places();
  }

  /// A place is free for what a piece keeps once nobody after that piece takes what is in it: of
  /// each vector the piece takes first.
  void find_places() {
    std::vector<std::size_t> last_taken(count_);
    for (std::size_t p = 0; p < pieces_.pieces.size(); ++p)
      for (const uint32_t value : pieces_.pieces[p].taken) last_taken[value] = p;
    pieces_.place_of.resize(count_);
    std::vector<std::size_t> taken_until;
    for (std::size_t p = 0; p < pieces_.pieces.size(); ++p) {
      for (const uint32_t value : pieces_.pieces[p].kept) {
        const auto bytes = static_cast<uint8_t>(size_of(instrs_[value].type));
        std::size_t place = 0;
        while (place < taken_until.size() &&
               (taken_until[place] > p || pieces_.places[place] != bytes))
          ++place;
        if (place == taken_until.size()) {
          taken_until.push_back(0);
          pieces_.places.push_back(bytes);
        }
        taken_until[place] = last_taken[value];
        pieces_.place_of[value] = static_cast<uint16_t>(place);
      }
    }
  }

  const WholeProgram& whole_;
  std::span<const ScalarInstr> instrs_;
  std::size_t count_;
  std::vector<std::size_t> steps_;    ///< where each begins, and the end
  std::vector<std::size_t> step_of_;  ///< per instruction
  std::vector<std::size_t> last_use_;
  std::vector<std::size_t> begins_;  ///< of pieces, in steps
  Pieces pieces_;
};

}  // namespace

Pieces split(const WholeProgram& whole) {
  return Splitter(whole).split();
}

}  // namespace nitinol::cpu
