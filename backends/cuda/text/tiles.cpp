// Order::none where some operands do not lie along the innermost loop, but along another: a
// transposed copy. A block of threads takes a square of both loops. Neighbouring threads load
// neighbours along the other loop into shared memory, and then visit neighbours along the innermost
// one, whose results lie side by side. One more element a line puts what a warp stores at once into
// different banks.
#include "backends/cuda/text/instruction.h"
#include "backends/cuda/text/shapes.h"

#include <algorithm>
#include <vector>

namespace nitinol::cuda {
namespace {

bool is_read_across(const Operand& operand) {
  return operand.role == Role::input && operand.inner == StrideClass::any;
}

/// From how many instructions on the text of a point is not written out several times.
constexpr std::size_t most_unrolled = 60;

class TilesWriter {
 public:
  explicit TilesWriter(Body& body)
      : body_(body), out_(body.out), side_(tile_side(body.kernel)), last_(body.last_loop()) {
    for (const Operand& operand : body.kernel.operands) is_kept_.push_back(is_read_across(operand));
  }

  void write() {
    open_entry(body_, 0);
    for (std::size_t k = 0; k < is_kept_.size(); ++k) {
      if (is_kept_[k])
        out_.line("SHARED {} keep{}[{}];", stored_word(body_.kernel.operands[k].dtype), k,
                  side_ * line());
    }
    write_square();
    write_loads();
    out_.line("barrier();");
    write_points_of_square();
    out_.close();
  }

 private:
  [[nodiscard]] int line() const { return side_ + 1; }

  /// Where the square of this block of threads begins, and the other loops' indices.
  void write_square() {
    const int across = body_.schedule.across;
    out_.line("const Index last = a.n{}, lines = a.n{};", last_, across);
    out_.line("const Index squares = (last + {}) / {};", side_ - 1, side_);
    out_.line("const Index squares_across = (lines + {}) / {};", side_ - 1, side_);
    out_.line("const Index square = (Index)block_index();");
    out_.line("const Index first_e = square % squares * {};", side_);
    out_.line("const Index first_line = square / squares % squares_across * {};", side_);
    std::vector<int> others;
    for (int loop = 0; loop < last_; ++loop) {
      if (loop != across) others.push_back(loop);
    }
    write_indices(body_, "square / squares / squares_across", others);
    out_.line("const int lane = (int)(thread_index() % {0}), team = (int)(thread_index() / {0});",
              side_);
  }

  /// The places of a thread in the square, side by side with those of its neighbours.
  void open_places() {
    out_.open("for (int p = 0; p < {}; ++p)", side_ * side_ / block_threads);
    out_.line("const int place = p * {} + team;", block_threads / side_);
  }

  void write_loads() {
    out_.open("");
    out_.line("const Index i{} = first_line + lane;", body_.schedule.across);
    write_operands(body_, last_);
    out_.line("UNROLL");
    open_places();
    out_.line("const Index e = first_e + place;");
    out_.open("if (i{} < lines && e < last)", body_.schedule.across);
    for (std::size_t k = 0; k < is_kept_.size(); ++k) {
      if (is_kept_[k])
        out_.line("keep{0}[lane * {1} + place] = m{0}[e * a.t{0}_{2}];", k, line(), last_);
    }
    out_.close();
    out_.close();
    out_.close();
  }

  void write_points_of_square() {
    const Stage& stage = body_.kernel.stages[0];
    out_.line("const Index e = first_e + lane;");
    out_.line("if (e >= last) return;");
    out_.line("_Pragma(\"unroll {}\")", stage.program.instrs.size() < most_unrolled ? 4 : 1);
    open_places();
    out_.line("const Index i{} = first_line + place;", body_.schedule.across);
    out_.line("if (i{} >= lines) return;", body_.schedule.across);
    write_operands(body_, last_);
    write_piece(body_, stage,
                {.is_whole = true,
                 .kept_at = fmt::format("place * {} + lane", line()),
                 .is_kept = is_kept_});
    out_.close();
  }

  Body& body_;
  Writer& out_;
  const int side_, last_;
  std::vector<bool> is_kept_;
};

}  // namespace

int tile_side(const Kernel& kernel) {
  const bool has_long = std::ranges::any_of(kernel.operands, [](const Operand& operand) {
    return is_read_across(operand) && size_of(operand.dtype) > sizeof(float);
  });
  return has_long ? 32 : 64;
}

int64_t tile_bytes(const Kernel& kernel, std::size_t k) {
  const int64_t side = tile_side(kernel);
  return side * (side + 1) * static_cast<int64_t>(size_of(kernel.operands[k].dtype));
}

void write_tiles(Body& body) {
  TilesWriter(body).write();
}

}  // namespace nitinol::cuda
