// Example: an LSTM's backward pass multiplies by the same weight, transposed, at each of 50 time
// steps: pack(w -> p), then 50 times packed_matmul(g, p -> h). A value is never written again while
// a step reads it, so that what is packed before the first product is right for the last.
//
// The weight of a convolution is such an operand, too.
//
// A packed layout is made for one shape and layout of all three operands. Products of one b that
// differ in them, which are rare, are packings of their own.
#include "program/packing.h"

#include "core/executables.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

namespace nitinol::program {
namespace {

/// An operand b and all products that read it, which are alike.
struct Packing {
  LibraryCall product;
  StepOperand b;
  std::vector<std::size_t> steps;  ///< in their order
  std::size_t bytes = 0;           ///< of b once it is packed
  bool is_kept = false;            ///< from run to run; else each run packs b
};

std::vector<Packing> candidates(const std::vector<StepDraft>& steps) {
  std::vector<Packing> packings;
  std::map<std::pair<int64_t, int64_t>, std::vector<std::size_t>> of_operand;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (!steps[s].product) continue;
    const LibraryCall& product = *steps[s].product;
    const StepOperand& b = steps[s].out.operands[1];
    std::vector<std::size_t>& alternatives = of_operand[{b.value, b.byte_offset}];
    const auto same = std::ranges::find_if(
        alternatives, [&](std::size_t i) { return packings[i].product == product; });
    if (same != alternatives.end()) {
      packings[*same].steps.push_back(s);
      continue;
    }
    alternatives.push_back(packings.size());
    packings.push_back({.product = product, .b = b, .steps = {s}});
  }
  return packings;
}

/// Whether the next run may find the same there.
bool may_stay(const ProgramDraft& draft, Value value) {
  const Place& place = draft.out.places[value];
  if (place.kind == Place::Kind::constant) return true;
  return place.kind == Place::Kind::input && !draft.options.stays.empty() &&
         draft.options.stays[static_cast<std::size_t>(place.index)];
}

/// Whether packing pays: at each run, or if it is kept.
bool is_wanted(const ProgramDraft& draft, Packing& packing) {
  constexpr std::size_t always = SIZE_MAX;
  packing.bytes = draft.device.packed_bytes(packing.product, packing.steps.size());
  if (packing.bytes > 0 || !may_stay(draft, static_cast<Value>(packing.b.value)))
    return packing.bytes > 0;
  packing.bytes = draft.device.packed_bytes(packing.product, always);
  packing.is_kept = true;
  return packing.bytes > 0;
}

/// The calls that pack the operand, and that take it so.
struct Kinds {
  LibraryCall::Kind packs, takes_packed;
};
Kinds kinds_of(const Packing& packing) {
  using Kind = LibraryCall::Kind;
  if (packing.product.kind == Kind::conv2d) return {Kind::pack_filter, Kind::packed_conv2d};
  return {Kind::pack, Kind::packed_matmul};
}

/// What the packing makes, as a value beyond the graph's.
Value add_value(ProgramDraft& draft, const Packing& packing) {
  draft.out.places.emplace_back();
  draft.out.packed_bytes.push_back(packing.bytes);
  return static_cast<Value>(draft.out.places.size() - 1);
}

std::shared_ptr<const Executable> executable_of(const ProgramDraft& draft, LibraryCall call,
                                                LibraryCall::Kind kind) {
  call.kind = kind;
  return executable_for(draft.device, call);
}

/// The step that packs, which the products then read.
StepDraft packed_at_each_run(ProgramDraft& draft, const Packing& packing) {
  const auto packed = static_cast<int64_t>(add_value(draft, packing));
  const Kinds kinds = kinds_of(packing);
  const auto product = executable_of(draft, packing.product, kinds.takes_packed);
  for (const std::size_t s : packing.steps) {
    ProgramStep& step = draft.steps[s].out;
    step.executable = product;
    step.operands[1] = {packed, 0};
    step.reads[1] = static_cast<Value>(packed);
  }
  const OperandLayout& b = packing.product.operands[1];
  StepDraft step;
  step.out.executable = executable_of(draft, packing.product, kinds.packs);
  step.out.operands = {packing.b, {packed, 0}};
  step.out.reads = {static_cast<Value>(packing.b.value)};
  step.out.writes = {static_cast<Value>(packed)};
  step.report.kind = "library";
  step.report.ops = {"pack"};
  step.report.bytes_read = static_cast<std::size_t>(element_count(b.shape)) * size_of(b.dtype);
  step.report.bytes_written = packing.bytes;
  return step;
}

void keep(ProgramDraft& draft, const Packing& packing) {
  const Value packed = add_value(draft, packing);
  const Kinds kinds = kinds_of(packing);
  draft.out.kept.push_back(std::make_unique<KeptPacking>(
      packing.b, packed, executable_of(draft, packing.product, kinds.packs), packing.bytes));
  draft.report.kept_bytes += packing.bytes;
  const auto product = executable_of(draft, packing.product, kinds.takes_packed);
  for (const std::size_t s : packing.steps) {
    draft.steps[s].out.if_packed = product;
    draft.steps[s].out.packed_b = packed;
  }
}

}  // namespace

void pack_operands(ProgramDraft& draft) {
  std::vector<Packing> packings = candidates(draft.steps);
  if (packings.empty()) return;
  std::vector<std::vector<StepDraft>> before(draft.steps.size());
  for (Packing& packing : packings) {
    if (!is_wanted(draft, packing)) continue;
    if (packing.is_kept)
      keep(draft, packing);
    else
      before[packing.steps[0]].push_back(packed_at_each_run(draft, packing));
  }
  std::vector<StepDraft> steps;
  steps.reserve(draft.steps.size() + packings.size());
  for (std::size_t s = 0; s < draft.steps.size(); ++s) {
    std::ranges::move(before[s], std::back_inserter(steps));
    steps.push_back(std::move(draft.steps[s]));
  }
  draft.steps = std::move(steps);
}

}  // namespace nitinol::program
