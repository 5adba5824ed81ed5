#include "backends/cpu/jit/fold_lanes.h"

#include "backends/cpu/jit/lower.h"
#include "backends/cpu/jit/program.h"

#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace nitinol::cpu {
namespace {

using llvm::Value;

class LaneFolder {
 public:
  LaneFolder(const EmitContext& context, StreamEmitter& streams, const Reduction& reduction,
             const Lanes& lanes)
      : context_(context),
        streams_(streams),
        lanes_(lanes),
        join_(lower_join(reduction)),
        joiner_(context, join_.program, std::vector<Depth>(4, Depth::inner)),
        values_(load(lanes.values)) {
    if (lanes.positions != nullptr) positions_ = load(*lanes.positions);
  }

  void fold() {
    for (std::size_t half = values_.size() / 2; half > 0; half /= 2) {
      for (std::size_t v = 0; v < half; ++v) {
        join(v, values_[v + half], has_positions() ? positions_[v + half] : nullptr);
      }
    }
    for (int half = context_.width / 2; half > 0; half /= 2) {
      join(0, upper(values_[0], half), has_positions() ? upper(positions_[0], half) : nullptr);
    }
    const Chunk first{.index = context_.ir.getInt64(0)};
    streams_.store(lanes_.values, first, values_[0]);
    if (has_positions()) streams_.store(*lanes_.positions, first, positions_[0]);
  }

 private:
  [[nodiscard]] bool has_positions() const { return lanes_.positions != nullptr; }

  std::vector<Value*> load(const Stream& stream) {
    std::vector<Value*> vectors;
    for (int lane = 0; lane < stream.lanes; lane += context_.width) {
      Value* const index = context_.ir.getInt64(static_cast<uint64_t>(lane));
      vectors.push_back(streams_.load(stream, {.index = index}));
    }
    return vectors;
  }

  void join(std::size_t into, Value* value, Value* position) {
    joiner_.set_argument(0, values_[into]);
    joiner_.set_argument(1, value);
    if (has_positions()) {
      joiner_.set_argument(2, positions_[into]);
      joiner_.set_argument(3, position);
    }
    joiner_.emit(Depth::inner);
    values_[into] = joiner_.value(join_.value);
    if (has_positions()) positions_[into] = joiner_.value(join_.position);
  }

  /// Lane l + half of a vector in lane l; what is in lanes from `half` on is of no use.
  Value* upper(Value* vector, int half) {
    std::vector<int> lanes(static_cast<std::size_t>(context_.width));
    for (int lane = 0; lane < context_.width; ++lane) {
      lanes[static_cast<std::size_t>(lane)] = (lane + half) % context_.width;
    }
    return context_.ir.CreateShuffleVector(vector, lanes);
  }

  const EmitContext& context_;
  StreamEmitter& streams_;
  const Lanes& lanes_;
  const LaneJoin join_;
  ProgramEmitter joiner_;
  std::vector<Value*> values_, positions_;
};

}  // namespace

void fold_lanes(const EmitContext& context, StreamEmitter& streams, const Reduction& reduction,
                const Lanes& lanes) {
  LaneFolder(context, streams, reduction, lanes).fold();
}

}  // namespace nitinol::cpu
