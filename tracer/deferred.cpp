#include "tracer/deferred.h"

#include "core/backend.h"
#include "core/place.h"

#include <algorithm>
#include <utility>

namespace nitinol::tracer {
namespace {

/// A longer segment is cut: what it keeps alive, and its program, grow with it.
constexpr std::size_t most_results = 4096;

/// What takes its dtype from what it meets. (A number that has one of its own is an import.)
bool is_weak_number(const TensorData& data) {
  return data.is_number() && data.spec.is_weak;
}
bool is_number(const Tensor* tensor) {
  return is_weak_number(tensor->internals());
}

}  // namespace

Deferred::Deferred(std::shared_ptr<Segments> segments, CutCompiler compile)
    : segments_(std::move(segments)),
      compiler_(compile),
      epoch_(begin_epoch()),
      at_(&segments_->root()) {
  begin_segment();
}

/// So that so many more need no memory, and those that are there do not move.
template <class T>
inline void Deferred::make_room(std::vector<T>& in, std::size_t count) {
  if (in.capacity() - in.size() >= count) [[likely]]
    return;
  constexpr std::size_t least = 128;
  const Lock lock(lock_);
  in.reserve(std::max(2 * in.size() + count, least));
}

/// For go_to().
inline void Deferred::make_room(std::span<const uint64_t> bits) {
  make_room(now_.results, 1);
  make_room(now_.numbers, bits.size());
}

/// Of the segment, pending or computed.
bool Deferred::is_result(const TensorData& data) const {
  return data.trace == epoch_ && data.segment == now_.number && !is_import(data.value);
}

/// One that may fail only if it can be checked at once.
bool Deferred::is_deferrable(const Op& op, Inputs inputs) const {
  if (op.effect == Effect::none) return op.kind != OpKind::transfer && op.kind != OpKind::composite;
  if (op.effect == Effect::ordered) return false;
  const Tensor* const checked = inputs[static_cast<std::size_t>(op.checked_input)];
  return checked != nullptr && !is_result(checked->internals()) &&
         !backend(checked->device()).is_asynchronous();
}

// ---- operands

/// The number of a tensor from outside of the segment, which has none.
OperandCode Deferred::add_import(const Tensor& tensor) {
  TensorData& data = tensor.internals();
  materialise(data);  // of another call
  make_room(now_.imports, 1);
  const auto position = static_cast<uint32_t>(now_.imports.size());
  now_.imports.push_back(tensor);
  if (data.trace == epoch_) {
    note_use(tensor);
    data.value = position | import_bit;
    data.segment = now_.number;
  } else {
    at_hand(data) = position;
  }
  return position | import_bit;
}

/// A tensor that the call has made carries its number; others belong to anybody, and are looked
/// for.
OperandCode Deferred::code_of(const Tensor& tensor) {
  const TensorData& data = tensor.internals();
  if (data.trace == epoch_) return data.segment == now_.number ? data.value : add_import(tensor);
  uint32_t& position = at_hand(data);
  if (is_import_at(position, data)) return position | import_bit;
  const auto is_it = [&](const Tensor& other) { return &other.internals() == &data; };
  const auto found = std::ranges::find_if(now_.imports, is_it);
  if (found == now_.imports.end()) return add_import(tensor);
  position = static_cast<uint32_t>(found - now_.imports.begin());
  return position | import_bit;
}

void Deferred::number_operands(Operands& operands) {
  for (const Tensor* const input : operands.inputs) {
    const bool is_one = input == nullptr || is_number(input);
    operands.codes.push_back(is_one ? number_code : code_of(*input));
    if (is_one)
      operands.bits.push_back(input == nullptr ? operands.number_bits : input->internals().number);
  }
}

void Deferred::drop_imports() noexcept {
  for (std::size_t i = covered_; i < now_.imports.size(); ++i) {
    TensorData& data = now_.imports[i].internals();
    if (data.trace == epoch_) data.segment = 0;
  }
  const Lock lock(lock_);
  now_.imports.resize(covered_);
}

// ---- following

/// But for the numbers among the operands.
bool Deferred::is_alike(const Step& step, const Op& op, const Attrs& attrs,
                        const Operands& operands) const {
  if (step.op != &op || step.imports.size() != now_.imports.size() - covered_ ||
      !std::ranges::equal(step.operands, operands.codes) || step.attrs != attrs)
    return false;
  for (std::size_t k = 0; k < step.imports.size(); ++k) {
    const TensorData& data = now_.imports[covered_ + k].internals();
    if (data.strides != step.imports[k].strides || data.spec != step.imports[k].spec) return false;
  }
  if (step.numbers.empty()) return true;
  auto place = step.numbers.begin();
  return std::ranges::all_of(operands.inputs, [&](const Tensor* input) {
    if (input == nullptr) return (place++)->spec == *operands.number;
    return !is_number(input) || (place++)->spec == input->spec();
  });
}

namespace {

bool has_numbers(const Step& step, std::span<const uint64_t> bits) {
  for (std::size_t k = 0; k < bits.size(); ++k) {
    const NumberPlace& place = step.numbers[k];
    if (place.bits != bits[k] && !place.is_run_time.load(std::memory_order_relaxed)) return false;
  }
  return true;
}

}  // namespace

/// The step after this one that is this application, or null. If only numbers differ, they are no
/// part of it from now on.
Step* Deferred::find(const Op& op, const Attrs& attrs, const Operands& operands) {
  const std::span<const uint64_t> bits(operands.bits.data(), operands.bits.size());
  Step* nearly = nullptr;
  Step* const latest = at_->latest.load(std::memory_order_acquire);
  if (latest != nullptr && is_alike(*latest, op, attrs, operands)) {
    if (has_numbers(*latest, bits)) return latest;
    nearly = latest;
  }
  for (Step* step = at_->first.load(std::memory_order_acquire); step != nullptr;
       step = step->next) {
    if (step == latest || !is_alike(*step, op, attrs, operands)) continue;
    if (has_numbers(*step, bits)) return step;
    nearly = step;
  }
  if (nearly != nullptr) segments_->widen(*nearly, bits);
  return nearly;
}

/// There is room.
inline void Deferred::go_to(Step& step, std::span<const uint64_t> bits, Tensor result) noexcept {
  if (at_->latest.load(std::memory_order_relaxed) != &step)
    at_->latest.store(&step, std::memory_order_release);
  at_ = &step;
  covered_ = now_.imports.size();
  device_ = step.spec.device;
  if (step.returned < 0)
    now_.results.push_back({std::move(result), &step, static_cast<uint32_t>(now_.numbers.size()),
                            static_cast<uint32_t>(covered_)});
  for (const uint64_t number : bits) now_.numbers.push_back(number);
}

/// Whether the operand is the import that the step is the first to use.
bool Deferred::is_new(const Step& step, OperandCode code, const Tensor& tensor,
                      NewImports& imports) const {
  const std::size_t number = (code & ~import_bit) - covered_;
  const TensorData& data = tensor.internals();
  if (number < imports.count) return &imports.tensors[number]->internals() == &data;
  if (number == NewImports::most) return false;
  const Layout& layout = step.imports[number];
  if (is_pending(data)) return false;  // its strides are not there yet
  if (data.strides != layout.strides || data.spec != layout.spec) return false;
  for (std::size_t k = 0; k < number; ++k) {
    if (&imports.tensors[k]->internals() == &data) return false;
  }
  imports.tensors[imports.count++] = &tensor;
  if (data.trace == epoch_) return true;  // it has no number
  return std::ranges::none_of(now_.imports,
                              [&](const Tensor& other) { return &other.internals() == &data; });
}

/// Whether `step` is this application, whose operands are in no list yet: all that most steps of
/// most calls cost.
bool Deferred::is_same(const Step& step, const Op& op, const Attrs& attrs, Inputs inputs,
                       const Spec* number, uint64_t bits, NewImports& imports) const {
  if (step.op != &op || step.operands.size() != inputs.size() || step.attrs != attrs) return false;
  const OperandCode* code = step.operands.data();
  const NumberPlace* place = step.numbers.data();
  for (const Tensor* const input : inputs) {
    const OperandCode expected = *code++;
    if (expected == number_code) {
      if (input != nullptr && !is_number(input)) return false;
      const Spec& spec = input != nullptr ? input->spec() : *number;
      const uint64_t given = input != nullptr ? input->internals().number : bits;
      const NumberPlace& known = *place++;
      if (known.bits != given && !known.is_run_time.load(std::memory_order_relaxed)) return false;
      if (known.spec != spec) return false;
      continue;
    }
    if (input == nullptr) return false;
    const TensorData& data = input->internals();
    const bool is_numbered = data.trace == epoch_ && data.segment == now_.number;
    const bool is_it = is_numbered            ? data.value == expected
                       : !is_import(expected) ? false
                       : (expected & ~import_bit) < covered_
                           ? is_import_at(expected & ~import_bit, data)
                           : is_new(step, expected, *input, imports);
    if (!is_it) return false;
  }
  return true;
}

inline Tensor Deferred::follow_same(Step& step, Inputs inputs, std::span<const uint64_t> bits,
                                    const NewImports& imports) {
  const ImportsOfStep scope(*this);
  for (std::size_t k = 0; k < imports.count; ++k) add_import(*imports.tensors[k]);
  return pending_result(step, inputs, bits);
}

Tensor Deferred::follow(const Op& op, const Attrs& attrs, Operands& operands) {
  if (now_.results.size() >= most_results) cut();
  const ImportsOfStep scope(*this);
  number_operands(operands);
  Step* const step = find(op, attrs, operands);
  if (step == nullptr) return {};
  return pending_result(*step, operands.inputs, {operands.bits.data(), operands.bits.size()});
}

/// Goes on to the step, whose result is that of this application.
Tensor Deferred::pending_result(Step& step, Inputs inputs, std::span<const uint64_t> bits) {
  if (step.op->effect == Effect::may_fail && element_count(step.spec.shape) > 0) [[unlikely]]
    step.op->fail(*step.op, inputs, step.attrs);  // (of nothing, eager checks nothing)
  make_room(bits);
  ++matched_;
  if (step.returned >= 0) {
    go_to(step, bits, {});
    return *inputs[static_cast<std::size_t>(step.returned)];
  }
  if (!entry_) [[unlikely]]
    entry_.emplace(epoch_, *this);
  Tensor result = make_tensor(step.spec, step.strides, 0, {});
  TensorData& data = result.internals();
  Tensor kept(share_fresh(&data));
  data.memory.store(TensorData::Memory::pending, std::memory_order_relaxed);
  data.trace = epoch_;
  data.segment = now_.number;
  data.value = static_cast<uint32_t>(now_.results.size());
  go_to(step, bits, std::move(kept));
  return result;
}

Tensor Deferred::match(const Op& op, Inputs inputs, const Attrs& attrs) {
  if (!is_following_) return {};
  Step* const latest = at_->latest.load(std::memory_order_acquire);
  NewImports imports;
  if (latest != nullptr && latest->numbers.empty() && now_.results.size() < most_results &&
      is_same(*latest, op, attrs, inputs, nullptr, 0, imports)) [[likely]]
    return follow_same(*latest, inputs, {}, imports);
  if (!is_deferrable(op, inputs)) return {};
  if (!inputs.empty() && std::ranges::all_of(inputs, is_number)) return {};
  Operands operands(inputs);
  return follow(op, attrs, operands);
}

Tensor Deferred::match(const Op& op, Inputs inputs, const Spec& number, uint64_t bits) {
  if (!is_following_) return {};
  static const auto& none = *new Attrs;
  Step* const latest = at_->latest.load(std::memory_order_acquire);
  NewImports imports;
  if (latest != nullptr && now_.results.size() < most_results &&
      is_same(*latest, op, none, inputs, &number, bits, imports)) [[likely]]
    return follow_same(*latest, inputs, {&bits, 1}, imports);
  if (!is_deferrable(op, inputs)) return {};
  Operands operands(inputs, &number, bits);
  return follow(op, none, operands);
}

// ---- what no earlier call did

/// Notes that the call has made the tensor, unless it is an operand.
Tensor Deferred::own(Tensor tensor, Inputs inputs) const {
  const auto is_it = [&](const Tensor* input) { return input->handle() == tensor.handle(); };
  if (std::ranges::any_of(inputs, is_it)) return tensor;
  TensorData& data = tensor.internals();
  data.trace = epoch_;
  data.segment = 0;
  return tensor;
}

/// An op that may fail does so where the user calls it; what acts on the outside does so in order;
/// a program runs on one device, and takes no weak tensors but numbers.
bool Deferred::ends_segment(const Op& op, Inputs inputs, const Spec& spec) const {
  if (!is_deferrable(op, inputs)) return true;
  if (device_ && spec.device != *device_) return true;
  return std::ranges::any_of(inputs, [&](const Tensor* input) {
    const TensorData& data = input->internals();
    if (data.is_number()) return false;
    return data.spec.device != spec.device || (data.spec.is_weak && !is_result(data));
  });
}

/// Of a segment before, which gives it from now on.
void Deferred::note_use(const Tensor& tensor) const {
  if (!tensor.is_defined()) return;
  const TensorData& data = tensor.internals();
  if (data.trace != epoch_ || data.segment == 0 || is_import(data.value)) return;
  const End& end = explored_[data.segment % explored_.size()];
  if (end.segment == data.segment) segments_->use(*end.step, data.value);
}

/// They are operands of what runs at once.
void Deferred::use(Inputs inputs) const {
  for (const Tensor* input : inputs) {
    note_use(*input);
    materialise(input->internals());
  }
}

Tensor Deferred::run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  if (is_anywhere(spec)) {  // a number, which the host computes
    use(inputs);
    return own(below().run(op, inputs, attrs, spec), inputs);
  }
  if (ends_segment(op, inputs, spec)) {
    cut();
    if (!is_deferrable(op, inputs) || std::ranges::any_of(inputs, [&](const Tensor* input) {
          return !is_number(input) &&
                 (input->spec().is_weak || input->spec().device != spec.device);
        })) {
      ++computed_;
      use(inputs);
      return own(below().run(op, inputs, attrs, spec), inputs);
    }
  }
  if (now_.results.size() >= most_results) cut();
  if (is_following_) {
    Operands operands(inputs);
    if (Tensor result = follow(op, attrs, operands); result.is_defined()) return result;
    diverge();
  }
  return explore(op, inputs, attrs, spec);
}

std::vector<Tensor> Deferred::run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                                      std::span<const Spec> specs) {
  cut();
  ++computed_;
  use(inputs);
  std::vector<Tensor> results = below().run_all(op, inputs, attrs, specs);
  for (Tensor& result : results) result = own(std::move(result), inputs);
  return results;
}

/// From here to the next cut the call does what no earlier one did: it computes, and notes that.
void Deferred::diverge() {
  compute_values(live_values());
  fill_copies();
  is_following_ = false;
  // What nobody else needs goes, as it does eagerly.
  std::vector<Result> computed(now_.results.size());
  const Lock lock(lock_);
  computed.swap(now_.results);
  now_.copies.clear();
}

Tensor Deferred::explore(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  use(inputs);
  Tensor result = below().run(op, inputs, attrs, spec);
  ++computed_;
  if (is_crowded_) return own(std::move(result), inputs);
  const ImportsOfStep scope(*this);
  Operands operands(inputs);
  number_operands(operands);
  Step* step = find(op, attrs, operands);
  if (step == nullptr) step = add_step(op, inputs, attrs, operands, result);
  if (step == nullptr) {
    is_crowded_ = true;
    return own(std::move(result), inputs);
  }
  const std::span<const uint64_t> bits(operands.bits.data(), operands.bits.size());
  make_room(bits);
  if (step->returned < 0) {
    TensorData& data = result.internals();
    data.trace = epoch_;
    data.segment = now_.number;
    data.value = static_cast<uint32_t>(now_.results.size());
  }
  go_to(*step, bits, {});
  return result;
}

Step* Deferred::add_step(const Op& op, Inputs inputs, const Attrs& attrs, const Operands& operands,
                         const Tensor& result) {
  auto step = std::make_unique<Step>();
  step->op = &op;
  step->attrs = attrs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    step->operands.push_back(operands.codes[i]);
    if (is_number(inputs[i]))
      step->numbers.emplace_back(inputs[i]->spec(), inputs[i]->internals().number);
    if (inputs[i]->handle() == result.handle()) step->returned = static_cast<int>(i);
  }
  for (std::size_t k = covered_; k < now_.imports.size(); ++k)
    step->imports.push_back({now_.imports[k].spec(), now_.imports[k].internals().strides});
  step->spec = result.spec();
  step->strides = result.internals().strides;
  step->place = CallSite::here();
  return segments_->add(*at_, std::move(step));
}

void Deferred::created(const Tensor& tensor) {
  below().created(tensor);
  tensor.internals().trace = epoch_;
  tensor.internals().segment = 0;
}

}  // namespace nitinol::tracer
