// The ends of a deferred call's segments: what is alive is computed.
#include "core/backend.h"
#include "core/host_access.h"
#include "core/parallel.h"
#include "core/result_check.h"
#include "tracer/deferred.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

namespace nitinol::tracer {
namespace {

/// Whether elements of this shape lie alike.
bool lie_alike(const Shape& shape, const Strides& a, const Strides& b) {
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1 && a[i] != b[i]) return false;
  }
  return true;
}

/// The elements of `from` become those of `to`, which is pending. Other threads may read its shape
/// and strides meanwhile, so these are left as they are.
void fill(TensorData& to, const TensorData& from) {
  to.storage = from.storage;
  to.offset = from.offset;
  if (!lie_alike(to.spec.shape, to.strides, from.strides)) to.strides = from.strides;
  to.memory.store(TensorData::Memory::here, std::memory_order_release);
}

/// Segments, at most, whose values are pending at a later cut: what they have taken and given is
/// kept for them.
constexpr std::size_t most_left = 3;

/// Whether others than the segment hold it.
bool is_shared(const Tensor& tensor) {
  return tensor.internals().references.load(std::memory_order_acquire) > 1;
}

}  // namespace

/// By an exception: what is held outside must not stay pending.
Deferred::~Deferred() {
  segments_->count(matched_, computed_);
  try {
    settle(0);
    if (now_.results.empty() || !is_following_) return;
    compute_values(live_values());
    fill_copies();
  } catch (...) {  // NOLINT(bugprone-empty-catch): who uses them is told
  }
}

void Deferred::finish() {
  settle(0);
  for (const Assignment& assignment : assignments()) note_use(assignment.value);
  cut(std::nullopt, replaced_values());
}

/// The number of a pending value of the segment.
std::optional<uint32_t> Deferred::result_of(const Tensor& value) const {
  if (!value.is_defined()) return std::nullopt;
  const TensorData& data = value.internals();
  const bool is_one = is_pending(data) && data.trace == epoch_ && data.segment == now_.number;
  return is_one ? std::optional(data.value) : std::nullopt;
}

namespace {

/// Whether both are the same elements of the same memory.
bool is_same_memory(const Tensor& a, const Tensor& b) {
  const TensorData& x = a.internals();
  const TensorData& y = b.internals();
  return x.storage && x.storage == y.storage && x.offset == y.offset && x.spec == y.spec &&
         x.strides == y.strides;
}

}  // namespace

/// Of Variables, if commit() can leave them to a program that overwrites the old ones. (Who looks
/// at a cell's value here and now sees a hint.)
std::vector<NewValue> Deferred::replaced_values() const {
  std::vector<NewValue> replaced;
  if (!is_ordered() || !device_ || backend(*device_).is_asynchronous()) return replaced;
  replaced.reserve(assignments().size());
  for (const Assignment& assignment : assignments()) {
    const std::optional<uint32_t> result = result_of(assignment.value);
    if (!result || std::ranges::find(replaced, *result, &NewValue::result) != replaced.end())
      continue;  // what two Variables become can be in one place only
    VariableCell& cell = assignment.variable.cell();
    const std::lock_guard lock(cell.mutex);
    if (!cell.value.is_defined()) continue;
    const auto import = std::ranges::find_if(
        now_.imports, [&](const Tensor& tensor) { return is_same_memory(tensor, cell.value); });
    if (import != now_.imports.end())
      replaced.push_back({*result, static_cast<uint32_t>(import - now_.imports.begin())});
  }
  return replaced;
}

/// Cells are locked and nothing can fail any more but the program, before it overwrites something.
/// What is lent is held by its cell alone: this call lets its imports go.
void Deferred::complete() {
  if (!last_) return;
  const std::shared_ptr<const Cut::Compiled> last = std::move(last_);
  ShortArray<const Tensor*, 16> imports(now_.imports.size());
  for (std::size_t i = 0; i < now_.imports.size(); ++i) imports[i] = &now_.imports[i];
  ShortArray<const Tensor*, 8> lent(last->replaced.size());
  for (const Assignment& assignment : assignments()) {
    const std::optional<uint32_t> result = result_of(assignment.value);
    const auto of = std::ranges::find(last->replaced, result, &NewValue::result);
    if (of == last->replaced.end()) continue;
    const Tensor& old = assignment.variable.cell().value;
    if (!old.is_defined() || !is_same_memory(now_.imports[of->import], old)) continue;
    imports[of->import] = &old;
    lent[static_cast<std::size_t>(of - last->replaced.begin())] = &old;
  }
  const auto let_go = [&](bool goes) {
    const Lock lock(lock_);
    is_overwriting_ = goes;
    for (std::size_t k = 0; k < last->replaced.size(); ++k) {
      if (lent[k] != nullptr) now_.imports[last->replaced[k].import] = goes ? Tensor() : *lent[k];
    }
  };
  let_go(true);
  bool has_run = false;
  try {
    has_run = run_program(*last, imports.span(), lent.span(), nullptr);
  } catch (...) {
    let_go(false);
    throw;
  }
  if (has_run) {
    segments_->cuts_by_plan.fetch_add(1, std::memory_order_relaxed);
  } else {  // what had passed its check has been written by somebody since
    let_go(false);
    compute_values(live_values());
  }
  fill_copies();
  is_following_ = false;  // nothing is pending any more
  const Lock lock(lock_);
  is_overwriting_ = false;
}

void Deferred::read(const Tensor& tensor, const ReadSite& site) {
  const TensorData& data = tensor.internals();
  if (is_result(data)) {
    Step& end = *at_;
    cut(data.value, {});
    note_look(end, tensor, site);
  } else {
    note_use(tensor);
    materialise(data);
  }
  below().read(tensor, site);
}

/// For explain(): where, and what came of it.
void Deferred::note_look(Step& end, const Tensor& tensor, const ReadSite& site) {
  if (end.op == nullptr) return;  // of a segment that is not noted
  const bool is_bool = tensor.dtype() == boolean && tensor.size() == 1;
  const bool is_true = is_bool && first_element(tensor) != 0;
  segments_->look(end, site, is_bool ? std::optional(is_true) : std::nullopt);
}

ResultSet Deferred::live_values() const {
  ResultSet live(now_.results.size());
  for (std::size_t v = 0; v < now_.results.size(); ++v)
    live.add_if(v, is_shared(now_.results[v].tensor));
  for (const Copy& copy : now_.copies) live.add_if(copy.value, is_shared(copy.tensor));
  return live;
}

/// `looked_at`: by host code; without, all that somebody holds is needed. `replaced`: of the last
/// cut. It stays undone if its program can overwrite some of them.
void Deferred::cut(std::optional<uint32_t> looked_at, std::span<const NewValue> replaced) {
  settle(most_left);
  bool leaves_values = false;
  if (is_following_ && !now_.results.empty()) {
    const ResultSet held = live_values();
    ResultSet live = held;
    if (!live.is_empty()) {
      std::shared_ptr<const Cut::Compiled> compiled = program_for(live, looked_at, replaced);
      if (!replaced.empty() && compiled && !compiled->replaced.empty()) {
        last_ = std::move(compiled);
        return;
      }
      run_cut(compiled.get(), live);
    }
    fill_copies();
    for (std::size_t v = 0; live != held && v < now_.results.size(); ++v)
      leaves_values |= held.contains(v) && is_pending(now_.results[v].tensor.internals());
  } else if (!is_crowded_ && !now_.results.empty()) {
    segments_->explored(*at_, now_.results.size());
    if (looked_at) explored_[now_.number % explored_.size()] = {now_.number, at_};
  }
  begin_segment(leaves_values);
}

/// Null if there is none yet. Of `live`, what is needed remains.
std::shared_ptr<const Cut::Compiled> Deferred::program_for(ResultSet& live,
                                                           std::optional<uint32_t> looked_at,
                                                           std::span<const NewValue> replaced) {
  const bool may_compile = num_threads() == segments_->threads();
  Segments::Visit visit = segments_->visit(*at_, live, looked_at, may_compile);
  if (!may_compile) visit.compiled.reset();
  if (visit.compiles) visit.compiled = compile(visit, replaced);
  const bool is_enough = visit.compiled && visit.compiled->live.contains_all(live);
  return is_enough ? visit.compiled : nullptr;
}

/// Which Variable's value it is, if that still has it: what is imported is not written over, so it
/// is that value if it lies there.
std::optional<ValueId> Deferred::value_id(const Tensor& import) const {
  const Storage* const memory = import.internals().storage.get();
  for (const Read& read : std::views::reverse(reads())) {
    if (read.memory != memory || memory == nullptr) continue;
    VariableCell& cell = read.variable.cell();
    const std::lock_guard lock(cell.mutex);
    if (cell.value.is_defined() && is_same_memory(import, cell.value))
      return ValueId{.cell = cell.id, .version = cell.version.load(std::memory_order_relaxed)};
  }
  return std::nullopt;
}

/// By the program, if there is one.
void Deferred::run_cut(const Cut::Compiled* compiled, const ResultSet& live) {
  ShortArray<const Tensor*, 16> imports(now_.imports.size());
  for (std::size_t i = 0; i < now_.imports.size(); ++i) imports[i] = &now_.imports[i];
  const auto id_of = [&](std::size_t import) { return value_id(now_.imports[import]); };
  const ValueOf value_of = id_of;
  if (compiled != nullptr && run_program(*compiled, imports.span(), {}, &value_of))
    segments_->cuts_by_plan.fetch_add(1, std::memory_order_relaxed);
  else
    compute_values(live);
}

/// Null if that takes place later.
std::shared_ptr<const Cut::Compiled> Deferred::compile(const Segments::Visit& visit,
                                                       std::span<const NewValue> replaced) {
  const InterpreterScope scope(below());  // passes compute, too
  try {
    auto compiled = std::make_shared<Cut::Compiled>(visit.live);
    compiled->replaced.assign(replaced.begin(), replaced.end());
    Trace trace = trace_of(*at_, visit.live, *compiled);
    for (std::size_t i = 0; i < now_.imports.size(); ++i) {
      if (value_id(now_.imports[i])) trace.values.push_back(static_cast<int>(i));
    }
    compiler_(std::move(trace), [segments = segments_, cut = visit.cut,
                                 compiled](std::shared_ptr<const CutProgram> program) {
      compiled->program = std::move(program);
      segments->compiled(*cut, compiled->program ? compiled : nullptr);
    });
  } catch (...) {
    segments_->not_compiled(*visit.cut);
    throw;
  }
  std::shared_ptr<const Cut::Compiled> compiled = segments_->compiled_of(*visit.cut);
  const bool is_of_now = compiled && compiled->run_time_numbers == run_time_numbers(*at_);
  return is_of_now ? compiled : nullptr;
}

bool Deferred::run_program(const Cut::Compiled& compiled, std::span<const Tensor* const> imports,
                           std::span<const Tensor* const> lent, const ValueOf* value_of) {
  ShortArray<uint64_t, 16> numbers(compiled.numbers.size());
  for (std::size_t i = 0; i < compiled.numbers.size(); ++i)
    numbers[i] = now_.numbers[compiled.numbers[i]];
  ShortArray<Tensor, 8> results(compiled.results.size());
  {
    const InterpreterScope scope(below());
    if (!compiled.program->run({imports, numbers.span(), lent, value_of}, results.span()))
      return false;
  }
  const Lock lock(lock_);
  for (std::size_t k = 0; k < compiled.results.size(); ++k) {
    TensorData& to = now_.results[compiled.results[k]].tensor.internals();
    if (is_pending(to)) fill(to, results[k].internals());
  }
  return true;
}

namespace {

/// Which results an application of these operands needs.
template <class Needs>
void for_results(const Step& step, const Needs& needs) {
  for (const OperandCode code : step.operands) {
    if (code != number_code && !is_import(code)) needs(code);
  }
}

Tensor computed(const Step& step, std::span<const Tensor> imports,
                std::span<const uint64_t> numbers, Interpreter& by,
                FunctionRef<const Tensor&(OperandCode)> result) {
  std::vector<Tensor> made;  // of numbers
  made.reserve(step.numbers.size());
  auto place = step.numbers.begin();
  std::vector<const Tensor*> inputs;
  for (const OperandCode code : step.operands) {
    if (code == number_code) {
      made.push_back(make_number((place++)->spec, numbers[made.size()]));
      inputs.push_back(&made.back());
    } else {
      inputs.push_back(is_import(code) ? &imports[code & ~import_bit] : &result(code));
    }
  }
  Tensor value = by.run(*step.op, inputs, step.attrs, step.spec);
  if (const ResultCheck check = result_check_as_set(); looks_at_elements(check)) [[unlikely]]
    check_result(check, *step.op, inputs, value, &step.place);
  return value;
}

}  // namespace

/// One by one, as eager does, with what they depend on.
void Deferred::compute_values(ResultSet needed) {
  for (std::size_t v = now_.results.size(); v-- > 0;) {
    if (!needed.contains(v)) continue;
    if (!is_pending(now_.results[v].tensor.internals())) {
      needed.remove(v);
      continue;
    }
    for_results(*now_.results[v].step, [&](OperandCode code) { needed.add(code); });
  }
  const InterpreterScope scope(below());
  for (std::size_t v = 0; v < now_.results.size(); ++v) {
    if (!needed.contains(v)) continue;
    const Result& result = now_.results[v];
    ++computed_;
    const Tensor value = computed(
        *result.step, now_.imports, std::span(now_.numbers).subspan(result.first_number), below(),
        [&](OperandCode code) -> const Tensor& { return now_.results[code].tensor; });
    const Lock lock(lock_);
    if (is_pending(result.tensor.internals())) fill(result.tensor.internals(), value.internals());
  }
}

void Deferred::fill_copies() {
  const Lock lock(lock_);
  for (const Copy& copy : now_.copies) {
    const TensorData& of = now_.results[copy.value].tensor.internals();
    TensorData& data = copy.tensor.internals();
    if (is_pending(data) && !is_pending(of)) fill(data, of);
  }
}

void Deferred::begin_segment(bool leaves_values) {
  std::list<Segment> before;
  if (spare_.empty())
    before.emplace_back();
  else
    before.splice(before.end(), spare_, spare_.begin());
  {
    const Lock lock(lock_);
    std::swap(before.front(), now_);
    now_.number = before.front().number + 1;
    before.front().end = at_;
    if (leaves_values) left_.splice(left_.end(), before);
  }
  release(before);
  at_ = &segments_->root();
  device_.reset();
  is_following_ = true;
  is_crowded_ = false;
  covered_ = 0;
}

// ---- what segments before have left

/// Its memory is for the next one.
void Deferred::release(std::list<Segment>& gone) {
  for (Segment& segment : gone) {
    segment.results.clear();  // may run code of the user's, who gets borrowed memory back
    segment.imports.clear();
    segment.numbers.clear();
    segment.copies.clear();
    segment.end = nullptr;
  }
  spare_.splice(spare_.end(), gone);
}

/// Null if nothing of it is pending any more.
Deferred::Segment* Deferred::segment_at(uint32_t number) {
  if (number == now_.number) return &now_;
  const auto left = std::ranges::find(left_, number, &Segment::number);
  return left != left_.end() ? &*left : nullptr;
}

/// Lets go what nobody holds any more, and computes what is held of all but the latest `most`.
void Deferred::settle(std::size_t most) {
  if (left_.empty()) [[likely]]
    return;
  std::list<Segment> gone;
  for (auto next = left_.begin(); next != left_.end();) {
    const auto left = next++;
    const bool is_late = left_.size() > most;
    bool is_held = false;
    const auto settle_one = [&](const Tensor& tensor) {
      if (!is_pending(tensor.internals()) || !is_shared(tensor)) return;
      is_held = true;
      if (is_late) compute(tensor.internals());
    };
    for (std::size_t v = left->results.size(); v-- > 0;) settle_one(left->results[v].tensor);
    for (const Copy& copy : left->copies) settle_one(copy.tensor);
    if (is_held && !is_late) continue;
    const Lock lock(lock_);
    gone.splice(gone.end(), left_, left);
  }
  release(gone);
}

Tensor Deferred::copy(const Tensor& tensor) {
  const TensorData& data = tensor.internals();
  Tensor copy = make_tensor(data.spec, data.strides, 0, {});
  TensorData& to = copy.internals();
  to.memory.store(TensorData::Memory::pending, std::memory_order_relaxed);
  to.birth = data.birth;
  to.trace = data.trace;
  to.segment = data.segment;
  to.value = data.value;
  Segment& segment = *segment_at(data.segment);
  const Lock lock(lock_);
  segment.copies.push_back({copy, data.value});
  return copy;
}

void Deferred::compute(const TensorData& data) {
  if (data.segment == now_.number) return cut();
  const InterpreterScope scope(below());
  computed_ += compute_apart(data);
}

void Deferred::compute_elsewhere(const TensorData& data) {
  compute_apart(data);
}

/// Computes what `data` needs once more, from imports, which do not change, while the call's own
/// thread goes on. Returns how many ops that took.
uint64_t Deferred::compute_apart(const TensorData& data) {
  Segment part;  // what of the value's is needed
  for (;; std::this_thread::yield()) {
    const Lock lock(lock_);
    const Segment* const segment = is_pending(data) ? segment_at(data.segment) : nullptr;
    if (segment == nullptr) return 0;  // it has been cut meanwhile
    if (is_overwriting_) continue;
    part.number = segment->number;
    part.end = segment->end;
    const auto first = [](const auto& of, std::size_t count) {
      return std::vector(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(count));
    };
    part.results = first(segment->results, data.value + 1);
    const Result& last = part.results.back();
    part.imports = first(segment->imports, last.import_count);
    part.numbers = first(segment->numbers, last.first_number + last.step->numbers.size());
    break;
  }
  const std::size_t count = part.results.size();
  if (part.end != nullptr) segments_->use(*part.end, static_cast<uint32_t>(count - 1));
  std::vector<bool> needed(count);
  needed.back() = true;
  std::vector<Tensor> values(count);
  for (std::size_t v = count; v-- > 0;) {
    const Result& result = part.results[v];
    if (!needed[v]) continue;
    if (is_pending(result.tensor.internals()))
      for_results(*result.step, [&](OperandCode code) { needed[code] = true; });
    else
      values[v] = result.tensor;
  }
  uint64_t computed_ops = 0;
  for (std::size_t v = 0; v < count; ++v) {
    if (!needed[v] || values[v].is_defined()) continue;
    const Result& result = part.results[v];
    ++computed_ops;
    values[v] = computed(*result.step, part.imports,
                         std::span(part.numbers).subspan(result.first_number), base_interpreter(),
                         [&](OperandCode code) -> const Tensor& { return values[code]; });
  }
  const Lock lock(lock_);
  const auto fill_if_pending = [&](TensorData& to, const Tensor& value) {
    if (is_pending(to)) fill(to, value.internals());
  };
  for (std::size_t v = 0; v < count; ++v) {
    if (needed[v]) fill_if_pending(part.results[v].tensor.internals(), values[v]);
  }
  const Segment* const segment = segment_at(part.number);
  if (segment == nullptr) return computed_ops;
  for (const Copy& copy : segment->copies) {
    if (copy.value < count && needed[copy.value])
      fill_if_pending(copy.tensor.internals(), values[copy.value]);
  }
  return computed_ops;
}

}  // namespace nitinol::tracer
