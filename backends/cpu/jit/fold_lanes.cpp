#include "backends/cpu/jit/fold_lanes.h"

#include "backends/cpu/jit/lower.h"
#include "backends/cpu/jit/program.h"

#include <llvm/IR/IRBuilder.h>

#include <cstddef>
#include <vector>

namespace nitinol::cpu {
namespace {

using llvm::Value;

/// Emits how vectors of lanes join.
class LaneJoiner {
 public:
  LaneJoiner(const EmitContext& context, const Reduction& reduction)
      : join_(lower_join(reduction)),
        program_(context, join_.program, std::vector<Depth>(4, Depth::inner)) {}

  Folded join(const Folded& left, const Folded& right) {
    program_.set_argument(0, left.value);
    program_.set_argument(1, right.value);
    program_.set_argument(2, left.position);
    program_.set_argument(3, right.position);
    program_.emit(Depth::inner);
    return {program_.value(join_.value),
            left.position == nullptr ? nullptr : program_.value(join_.position)};
  }

 private:
  const LaneJoin join_;
  ProgramEmitter program_;
};

class LaneFolder {
 public:
  LaneFolder(const EmitContext& context, StreamEmitter& streams, const Lanes& lanes,
             LaneJoiner& joiner)
      : context_(context), ir_(context.ir), streams_(streams), lanes_(lanes), joiner_(joiner) {}

  Folded fold(Value* size) {
    Folded folded = load(0);
    if (lanes_.values.lanes > context_.width) folded = join_vectors(folded, size);
    for (int half = context_.width / 2; half > 0; half /= 2) {
      folded = joiner_.join(folded, upper(folded, half));
    }
    return {element(folded.value), element(folded.position)};
  }

 private:
  /// The other vectors join the first one, if they have more than neutral lanes.
  Folded join_vectors(Folded first, Value* size) {
    llvm::Function* const function = ir_.GetInsertBlock()->getParent();
    llvm::BasicBlock* const before = ir_.GetInsertBlock();
    auto* const many = llvm::BasicBlock::Create(ir_.getContext(), "many", function);
    auto* const after = llvm::BasicBlock::Create(ir_.getContext(), "joined", function);
    Value* const width = ir_.getInt64(static_cast<uint64_t>(context_.width));
    ir_.CreateCondBr(ir_.CreateICmpSGT(size, width), many, after);
    ir_.SetInsertPoint(many);
    std::vector<Folded> vectors = {first};
    for (int lane = context_.width; lane < lanes_.values.lanes; lane += context_.width) {
      vectors.push_back(load(lane));
    }
    for (std::size_t half = vectors.size() / 2; half > 0; half /= 2) {
      for (std::size_t v = 0; v < half; ++v)
        vectors[v] = joiner_.join(vectors[v], vectors[v + half]);
    }
    llvm::BasicBlock* const last = ir_.GetInsertBlock();
    ir_.CreateBr(after);
    ir_.SetInsertPoint(after);
    const auto either = [&](Value* few, Value* all) -> Value* {
      if (few == nullptr) return nullptr;
      llvm::PHINode* const phi = ir_.CreatePHI(few->getType(), 2);
      phi->addIncoming(few, before);
      phi->addIncoming(all, last);
      return phi;
    };
    return {either(first.value, vectors[0].value), either(first.position, vectors[0].position)};
  }

  Folded load(int lane) {
    const Chunk chunk{.index = ir_.getInt64(static_cast<uint64_t>(lane))};
    return {streams_.load(lanes_.values, chunk),
            lanes_.positions == nullptr ? nullptr : streams_.load(*lanes_.positions, chunk)};
  }

  /// Lane l + half in lane l; what is in lanes from `half` on is of no use.
  Folded upper(const Folded& vectors, int half) {
    std::vector<int> lanes(static_cast<std::size_t>(context_.width));
    for (int lane = 0; lane < context_.width; ++lane) {
      lanes[static_cast<std::size_t>(lane)] = (lane + half) % context_.width;
    }
    const auto shuffle = [&](Value* vector) {
      return vector == nullptr ? nullptr : ir_.CreateShuffleVector(vector, lanes);
    };
    return {shuffle(vectors.value), shuffle(vectors.position)};
  }

  Value* element(Value* vector) {
    return vector == nullptr ? nullptr : ir_.CreateExtractElement(vector, uint64_t{0});
  }

  const EmitContext& context_;
  llvm::IRBuilderBase& ir_;
  StreamEmitter& streams_;
  const Lanes& lanes_;
  LaneJoiner& joiner_;
};

}  // namespace

Folded fold_lanes(const EmitContext& context, StreamEmitter& streams, const Reduction& reduction,
                  const Lanes& lanes, Value* size) {
  LaneJoiner joiner(context, reduction);
  return LaneFolder(context, streams, lanes, joiner).fold(size);
}

void join_runs(const EmitContext& context, StreamEmitter& streams, const RunLanes& lanes,
               const Run& run) {
  llvm::IRBuilderBase& ir = context.ir;
  llvm::Function* const function = ir.GetInsertBlock()->getParent();
  Stream runs = lanes.own;
  runs.start = runs.row = lanes.runs;
  LaneJoiner joiner(context, run.reduction);
  const auto unless = [&](Value* condition, auto visit) {
    auto* const otherwise = llvm::BasicBlock::Create(ir.getContext(), "otherwise", function);
    auto* const after = llvm::BasicBlock::Create(ir.getContext(), "after", function);
    ir.CreateCondBr(condition, after, otherwise);
    ir.SetInsertPoint(otherwise);
    for (int lane = 0; lane < lanes.own.lanes; lane += context.width) {
      visit(Chunk{.index = ir.getInt64(static_cast<uint64_t>(lane))});
    }
    ir.CreateBr(after);
    ir.SetInsertPoint(after);
  };
  unless(run.is_first, [&](const Chunk& chunk) {
    const Folded before = {streams.load(runs, chunk), nullptr};
    const Folded own = {streams.load(lanes.own, chunk), nullptr};
    streams.store(lanes.own, chunk, joiner.join(before, own).value);
  });
  unless(run.is_last,
         [&](const Chunk& chunk) { streams.store(runs, chunk, streams.load(lanes.own, chunk)); });
}

}  // namespace nitinol::cpu
