// A call: find the memory, launch the steps, hand out results, commit Variables. No graph is
// touched.
//
// Everything that can fail comes before the first step that overwrites a Variable's buffer: memory
// is allocated first, and checks are looked at once more there: by the host, or by the steps
// themselves on a device that the host would have to wait for. There a call may return before
// anybody has looked (DeferredCall).
#include "jit/plan.h"

#include "core/host_access.h"
#include "core/interpreter.h"
#include "core/moment.h"
#include "core/short_array.h"
#include "core/unseen.h"
#include "eager/launch.h"
#include "jit/deferred_call.h"
#include "jit/plan_impl.h"
#include "program/running.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

namespace nitinol::jit {
namespace {

/// Everything of one call.
class Run {
 public:
  Run(const PlanImpl& plan, const CallInputs& inputs)
      : plan_(plan),
        program_(*plan.program),
        inputs_(inputs),
        running_(program_),
        values_(plan.inputs.size()) {}

  /// Nothing if it must begin anew when what() is known.
  [[gnu::always_inline]] std::optional<Plan::Outcome> run(std::span<Tensor> results) {
    if (plan_.has_updates && !is_held()) lock_cells();
    if (!plan_.is_plain) [[unlikely]]
      note_contents();
    if (!find_inputs()) [[unlikely]]
      return Plan::Outcome::layout_changed;
    Status* status = nullptr;  // of a call whose checks are made later
    if (!plan_.is_plain) [[unlikely]] {
      find_packed();
      if (program_.is_gated && !follow()) return std::nullopt;
      if (later_ && later_->call) status = later_->call->word();
      if (plan_.shadow) begin_shadow();
    }
    const bool may_be_replay = !plan_.is_plain && program_.replays != nullptr;
    allocate(may_be_replay);
    const bool is_checked = program_.can_fail && status == nullptr;
    StatusWord own(is_checked ? program_.device : nullptr);
    if (status == nullptr) status = own.get();
    const auto has_failed = [&] { return is_checked && own.has_failed(); };
    program::Running::Given given = {
        .scalars = inputs_.scalars, .number_bits = inputs_.number_bits, .status = status};
    if (!may_be_replay || !replay(status)) [[likely]] {
      running_.launch_safe(given);
      if (program_.safe_steps <
          program_.steps.size()) {  // something is overwritten, or acts on the outside
        given.is_gated = program_.is_gated && program_.can_fail && !program_.has_ordered;
        if (!given.is_gated && has_failed()) return failed();
        running_.launch_rest(given);
      }
    }
    if (has_failed()) return failed();
    if (!plan_.is_plain && has_found()) [[unlikely]]
      return Plan::Outcome::not_finite;
    for (std::size_t i = 0; i < results.size(); ++i)
      results[i] = make_result(program_.outputs[i], plan_.is_argument[i] != 0);
    if (later_) [[unlikely]]
      mark_outputs();
    if (plan_.has_updates) commit();
    return Plan::Outcome::done;
  }

  /// Whether a result or a new value has what is looked for. Throws if it has not the bits of its
  /// shadow.
  [[nodiscard, gnu::noinline]] bool has_found() {
    if (plan_.check == ResultCheck::none) return false;
    if (shadow_) {
      end_shadow([this] { shadow_->call->expect(all_outputs()); });
      return false;
    }
    return std::ranges::any_of(
        all_outputs(), [this](const Tensor& output) { return has_any(plan_.check, output); });
  }

  /// The calls on whose checks it depends that it cannot follow.
  [[nodiscard]] std::vector<Handle<DeferredCheck>> what() { return std::move(later_->earlier); }

 private:
  /// By itself: what it hands on would be in memory for others, too.
  [[nodiscard, gnu::noinline]] bool replay(Status* status) {
    return running_.replay(
        {.scalars = inputs_.scalars, .number_bits = inputs_.number_bits, .status = status},
        program_.can_fail);
  }

  [[nodiscard, gnu::noinline]] Plan::Outcome failed() {
    if (shadow_) end_shadow([this] { shadow_->call->expect_failure(); });
    return Plan::Outcome::check_failed;
  }

  [[nodiscard]] std::vector<Tensor> all_outputs() {
    std::vector<Tensor> outputs;
    for (const program::Output& output : program_.outputs)
      outputs.push_back(make_result(output, false));
    return outputs;
  }

  // ---- its shadow

  /// The inputs, of which the shadow keeps those that nothing is stored over, and copies of the
  /// others: a handle would keep them from being stored over.
  [[gnu::noinline]] void begin_shadow() {
    shadow_ = std::make_unique<ShadowState>();
    for (std::size_t i = 0; i < program_.memory.size(); ++i) {
      const program::OutputMemory& memory = program_.memory[i];
      if (memory.donation < 0) continue;
      const Tensor* const given = offered(static_cast<std::size_t>(memory.donation));
      if (given == nullptr || !fits(*given, memory.spec)) continue;
      const Unseen unseen;
      shadow_->saved.push_back({i, given, eager::transferred(*given, given->spec())});
    }
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
      Tensor input = input_tensor(i);
      for (const Saved& saved : shadow_->saved) {
        if (input.handle() == saved.tensor->handle()) input = saved.copy;
      }
      inputs.push_back(bare_copy(input));
    }
    shadow_->call.emplace(*plan_.shadow, std::move(inputs));
  }

  /// If it throws, what was stored over is what it was.
  template <class Check>
  void end_shadow(const Check& check) {
    try {
      check();
    } catch (...) {
      const Unseen unseen;
      for (const auto& [memory, tensor, copy] : shadow_->saved) {
        if (running_.made(memory).internals().storage == tensor->internals().storage)
          eager::copy_into(copy, *tensor);
      }
      throw;
    }
    shadow_.reset();
  }

  /// The cells that are assigned.
  struct Locks {
    std::vector<VariableCell*> cells;  ///< by id
    std::vector<std::unique_lock<CallOrder>> orders;
    std::vector<std::unique_lock<std::mutex>> mutexes;
    std::vector<std::unique_lock<std::mutex>> reading;  ///< of others, until all have been read
  };
  using Cells = std::vector<VariableCell*>;

  /// On a device that runs later: what this call has to do with checks that have not been made.
  struct Later {
    std::vector<Handle<DeferredCheck>> earlier;  ///< of calls that it depends on
    Handle<DeferredCheck> followed;              ///< the last of them
    Handle<DeferredCall> call;                   ///< itself, if its own are made later
  };

  /// What may be stored over, as it was.
  struct Saved {
    std::size_t memory = 0;  ///< of the program
    const Tensor* tensor = nullptr;
    Tensor copy;
  };
  /// Under ResultCheck::shadow.
  struct ShadowState {
    std::vector<Saved> saved;
    std::optional<ShadowCall> call;
  };

  /// An operand that stays packed, as this call finds it.
  struct Kept {
    std::optional<ValueId> contents;
    StorageHandle packed;  ///< or null: then it is read as it lies
  };

  [[nodiscard]] const Variable& variable_of(const tracer::TraceInput& input) const {
    const Variable& variable =
        input.leaf >= 0 ? *inputs_.variables[static_cast<std::size_t>(input.leaf)] : input.captured;
    return input.is_gradient ? *variable.cell().gradient : variable;
  }

  // ---- calls whose checks are made later

  [[nodiscard]] bool is_deferred() const {
    return plan_.may_defer && inputs_.deferring != nullptr && !is_held();
  }

  /// The calls that made what this one reads or assigns, if they may have failed. All cells are
  /// locked that are going to be, or none.
  [[gnu::noinline]] void note_earlier() {
    later_ = std::make_unique<Later>();
    std::vector<Handle<DeferredCheck>>& earlier = later_->earlier;
    // Of one call they often are all, whose handle need not be taken again and again.
    const auto is_noted = [&](const DeferredCheck* check) {
      const auto is_it = [&](const Handle<DeferredCheck>& noted) { return noted.get() == check; };
      return check == nullptr || std::ranges::any_of(earlier, is_it);
    };
    const auto add = [&](const Tensor& tensor) {
      const bool has_memory = tensor.is_defined() && tensor.internals().storage;
      if (!has_memory) return;
      const Storage& storage = *tensor.internals().storage;
      if (is_noted(storage.check.load(std::memory_order_acquire))) return;
      Handle<DeferredCheck> check = check_of(storage);  // which may be another one by now
      if (!is_noted(check.get())) earlier.push_back(std::move(check));
    };
    const auto add_cell = [&](const tracer::TraceInput& input) {
      VariableCell& cell = variable_of(input).cell();
      std::unique_lock lock(cell.mutex, std::defer_lock);
      if (!locks_) lock.lock();
      if (!is_noted(cell.check.get())) earlier.push_back(cell.check);
      add(cell.value);
    };
    for (const Tensor* tensor : inputs_.tensors) add(*tensor);
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) add(values_[i]);
    for (const tracer::TraceInput& input : plan_.read) add_cell(input);
    for (const tracer::TraceInput& input : plan_.cleared) add_cell(input);
    for (const Update& update : plan_.updates) add_cell(update.variable);
    std::erase_if(earlier, [](const Handle<DeferredCheck>& check) {
      return check->state() == DeferredCheck::State::passed;
    });
  }

  /// False if it depends on calls that it cannot follow. Else its own checks are made later, too,
  /// if they may.
  [[nodiscard, gnu::noinline]] bool follow() {
    if (!later_) note_earlier();
    Later& later = *later_;
    if (!later.earlier.empty()) {
      if (!plan_.may_follow && !is_deferred()) return false;
      const auto can_be_followed = [&](const Handle<DeferredCheck>& check) {
        return check->state() == DeferredCheck::State::open && &check->device() == program_.device;
      };
      if (!std::ranges::all_of(later.earlier, can_be_followed)) return false;
      later.followed = DeferredCheck::last_of(later.earlier);
      if (!later.followed) return false;
    }
    if (is_deferred()) {
      Deferring& deferring = *inputs_.deferring;
      later.call =
          adopt(new DeferredCall(*program_.device, later.followed, std::move(deferring.made_with)));
      deferring.call = later.call;
    }
    return true;
  }

  [[gnu::noinline]] void mark_outputs() {
    if (later_->call) later_->call->post();
    DeferredCheck* const check =
        later_->call ? static_cast<DeferredCheck*>(later_->call.get()) : later_->followed.get();
    if (check == nullptr) return;
    ShortArray<Storage*, 32> filled(program_.memory.size());
    for (std::size_t i = 0; i < program_.memory.size(); ++i)
      filled[i] = running_.made(i).internals().storage.get();
    mark(filled.span(), *check);
    if (later_->call && !plan_.has_updates) later_->call->enlist();  // else when it has committed
  }

  // ---- memory

  /// Cells that the plan assigns stay locked until they have their new values, so that none is seen
  /// half-way and a buffer is not handed out while it is overwritten. Under an outer recording or
  /// transaction nothing is assigned yet.
  void lock_cells() {
    Cells cells;
    cells.reserve(plan_.updates.size() + plan_.cleared.size());
    for (const Update& update : plan_.updates)
      cells.push_back(&variable_of(update.variable).cell());
    for (const tracer::TraceInput& cleared : plan_.cleared)
      cells.push_back(&variable_of(cleared).cell());
    sort(cells);
    Locks& locks = locks_.emplace();
    locks.orders.reserve(cells.size());
    for (VariableCell* cell : cells) locks.orders.emplace_back(cell->order);
    locks.cells = std::move(cells);
    lock_what_is_read(locks);
    keep_past(locks.cells);
  }

  /// And what is assigned.
  void lock_what_is_read(Locks& locks) {
    Cells cells;
    cells.reserve(locks.cells.size() + plan_.read.size());
    cells = locks.cells;
    for (const tracer::TraceInput& input : plan_.read) cells.push_back(&variable_of(input).cell());
    sort(cells);
    locks.mutexes.reserve(locks.cells.size());
    locks.reading.reserve(cells.size() - locks.cells.size());
    for (VariableCell* cell : cells) {
      (is_locked(*cell) ? locks.mutexes : locks.reading).emplace_back(cell->mutex);
    }
  }

  /// By id, each once: the order in which cells are locked, by whom ever.
  static void sort(Cells& cells) {
    std::ranges::sort(cells, {}, &VariableCell::id);
    const auto repeated = std::ranges::unique(cells);
    cells.erase(repeated.begin(), repeated.end());
  }

  /// By a call no other order is owned: then somebody else answers for Variables (is_held()).
  [[nodiscard]] bool is_locked(const VariableCell& cell) const {
    return locks_ && cell.order.is_mine();
  }

  /// The Variable's value, perhaps undefined. Not settled, for which no cell may be locked: see
  /// follow().
  Tensor value_of(const Variable& variable) {
    VariableCell& cell = variable.cell();
    if (is_held()) return current().get(variable);
    if (locks_ && (!locks_->reading.empty() || is_locked(cell))) return cell.value;
    const std::lock_guard lock(cell.mutex);
    return cell.value;
  }

  bool find_inputs() { return plan_.read.empty() ? look_up_inputs() : find_variables_too(); }

  /// What is read of Variables is one state: all are locked, or none has been replaced when the
  /// last one has been read. (Who commits holds the locks of all that he replaces; so who sees one
  /// new value sees that the others are replaced.)
  [[gnu::noinline]] bool find_variables_too() {
    constexpr int most_tries = 3;
    const bool is_certain = plan_.read.size() == 1 || is_held();
    bool is_found = false;
    for (int tries = 0;; ++tries) {
      if (tries == most_tries) lock_what_is_read(locks_.emplace());
      const uint64_t before = versions_read();
      is_found = look_up_inputs();
      if (is_certain || locks_ || versions_read() == before) break;
    }
    if (program_.is_gated && is_found) [[unlikely]]
      note_earlier();
    if (locks_) locks_->reading.clear();
    if (!is_found || inputs_.read.empty()) return is_found;
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
      if (plan_.inputs[i].kind == tracer::TraceInput::Kind::variable)
        inputs_.read[i] = input_tensor(i);
    }
    return true;
  }

  /// The sum of all versions, which only grow.
  [[nodiscard]] uint64_t versions_read() const {
    uint64_t sum = 0;
    for (const tracer::TraceInput& input : plan_.read)
      sum += variable_of(input).cell().version.load(std::memory_order_acquire);
    return sum;
  }

  [[gnu::always_inline]] bool look_up_inputs() {
    for (const tracer::TraceInput& empty : plan_.empty) {
      if (value_of(variable_of(empty)).is_defined()) return false;
    }
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
      const tracer::TraceInput& input = plan_.inputs[i];
      if (input.kind == tracer::TraceInput::Kind::scalar) continue;
      const TensorData* data = nullptr;
      if (input.kind == tracer::TraceInput::Kind::tensor) {
        const Tensor& given = *inputs_.tensors[static_cast<std::size_t>(input.leaf)];
        data = &given.internals();
        if (data->is_number()) {  // kept for a gradient, for example
          values_[i] = in_memory(given);
          data = &values_[i].internals();
        }
      } else {
        VariableCell& cell = variable_of(input).cell();
        if (!is_locked(cell)) values_[i] = value_of(variable_of(input));
        if (!values_[i].is_defined() && !cell.value.is_defined()) return false;
        data = values_[i].is_defined() ? &values_[i].internals() : &cell.value.internals();
        const Node& recorded = program_.graph[program_.graph.inputs[i]];
        if (data->strides != recorded.strides || data->spec.device != recorded.spec.device)
          return false;
      }
      running_.address(program_.graph.inputs[i]) =
          static_cast<std::byte*>(data->unsettled_address());
    }
    return true;
  }

  /// What kept operands are; before they are found, so that find_packed() knows whether they were
  /// assigned meanwhile.
  [[gnu::noinline]] void note_contents() {
    if (program_.kept.empty()) return;
    kept_ = std::make_unique<Kept[]>(program_.kept.size());
    for (std::size_t i = 0; i < program_.kept.size(); ++i)
      kept_[i].contents = contents_of(*program_.kept[i]);
  }

  /// None under an interpreter that has values of its own for Variables.
  [[nodiscard]] std::optional<ValueId> contents_of(const program::KeptPacking& kept) const {
    const program::Place& place = program_.places[kept.operand()];
    if (place.kind == program::Place::Kind::constant) return ValueId{};
    const tracer::TraceInput& input = plan_.inputs[static_cast<std::size_t>(place.index)];
    if (input.kind == tracer::TraceInput::Kind::tensor) {
      if (inputs_.value_of == nullptr) return std::nullopt;
      return (*inputs_.value_of)(static_cast<std::size_t>(input.leaf));
    }
    const VariableCell& cell = variable_of(input).cell();
    if (is_held() || is_locked(cell)) return std::nullopt;
    return ValueId{.cell = cell.id, .version = cell.version.load(std::memory_order_acquire)};
  }

  [[gnu::noinline]] void find_packed() {
    for (std::size_t i = 0; i < program_.kept.size(); ++i) {
      const program::KeptPacking& kept = *program_.kept[i];
      const auto& [contents, packed] = kept_[i];
      if (!contents || contents_of(kept) != contents) continue;
      kept_[i].packed = kept.find(*contents, running_.address(kept.operand()), *program_.device,
                                  program_.threads);
      if (packed) running_.address(kept.packed()) = static_cast<std::byte*>(packed->data);
    }
  }

  [[gnu::noinline]] void allocate_for_replay() {
    running_.allocate_for_replay(
        [this](const program::OutputMemory& memory) { return lent(memory); });
  }
  [[gnu::always_inline]] void allocate(bool may_be_replay) {
    for (const std::size_t i : program_.numbers_in_memory) {
      values_[i] = in_memory(input_tensor(i));
      running_.address(program_.graph.inputs[i]) =
          static_cast<std::byte*>(values_[i].internals().address());
    }
    if (may_be_replay) [[unlikely]]
      return allocate_for_replay();
    running_.allocate([this](const program::OutputMemory& memory) { return lent(memory); });
  }

  /// The Variable's own memory, if nobody else sees it.
  [[nodiscard]] Tensor lent(const program::OutputMemory& memory) const {
    const Tensor* const given = offered(static_cast<std::size_t>(memory.donation));
    if (given == nullptr || !fits(*given, memory.spec) || !is_donatable(*given)) return {};
    if (given->shape() == memory.spec.shape) return *given;
    const TensorData& data = given->internals();
    return make_tensor(memory.spec, memory.strides, data.offset, data.storage);
  }

  /// What the run may store over, as far as the caller knows; or null.
  [[nodiscard]] const Tensor* offered(std::size_t donation) const {
    if (plan_.updates.empty()) return inputs_.lent.empty() ? nullptr : inputs_.lent[donation];
    const VariableCell& cell = variable_of(plan_.updates[donation].variable).cell();
    const bool is_own = is_locked(cell) && cell.value.is_defined();
    return is_own ? &cell.value : nullptr;
  }

  /// Whether the value takes the memory that `spec` describes, without gaps; in another shape, if
  /// a view of the result is assigned. (A Variable that the Plan does not read may be undefined or
  /// have gaps.)
  [[nodiscard]] static bool fits(const Tensor& value, const Spec& spec) {
    return value.is_defined() && value.dtype() == spec.dtype && value.device() == spec.device &&
           value.size() == element_count(spec.shape) &&
           is_contiguous(value.shape(), value.internals().strides);
  }

  /// A number as a tensor in the device's memory; other tensors as they are.
  [[nodiscard]] Tensor in_memory(const Tensor& tensor) const {
    return eager::in_memory(tensor, program_.device->device());
  }

  Tensor memory_of(Value base) {
    const program::Place& place = program_.places[base];
    return place.kind == program::Place::Kind::input
               ? input_tensor(static_cast<std::size_t>(place.index))
               : running_.tensor_of(base);
  }

  Tensor input_tensor(std::size_t i) {
    const tracer::TraceInput& input = plan_.inputs[i];
    if (input.kind == tracer::TraceInput::Kind::tensor)
      return *inputs_.tensors[static_cast<std::size_t>(input.leaf)];
    if (input.kind == tracer::TraceInput::Kind::variable) {
      return values_[i].is_defined() ? values_[i] : variable_of(input).cell().value;
    }
    const Spec& spec = program_.graph[program_.graph.inputs[i]].spec;
    const auto leaf = static_cast<std::size_t>(input.leaf);
    return make_number(spec, inputs_.number_bits.empty()
                                 ? program::bits_of(*inputs_.scalars[leaf], spec.dtype)
                                 : inputs_.number_bits[leaf]);
  }

  Tensor make_result(const program::Output& result, bool is_argument) {
    Tensor memory = memory_of(result.base);
    if (is_anywhere(result.spec)) {  // a number, as eager gives it
      if (!result.is_base) memory = view_of(result, memory);
      return memory.internals().is_number() ? memory
                                            : make_number(result.spec, first_element(memory));
    }
    if (result.is_base) {
      if (!is_argument && memory.tracks_gradient()) return bare_copy(memory);
      return memory;
    }
    return view_of(result, memory);
  }

  [[nodiscard]] Tensor view_of(const program::Output& result, const Tensor& memory) const {
    const Tensor placed = in_memory(memory);
    const TensorData& data = placed.internals();
    return make_tensor(result.spec, result.strides, data.offset + result.offset, data.storage);
  }

  /// All new values exist before the first is stored: two Variables may swap. The old ones may be
  /// borrowed memory, which is given back when no cell is locked.
  void commit() {
    std::vector<Tensor>& values = assigned_;
    values.reserve(plan_.updates.size() + plan_.cleared.size());
    if (later_ && later_->call) later_->call->expect_assigned(values.capacity());
    for (const Update& update : plan_.updates)
      values.push_back(make_result(program_.outputs[update.output], false));
    for (const tracer::TraceInput& cleared : plan_.cleared) {
      const Variable& variable = variable_of(cleared);
      if (!locks_) {
        current().set(variable, Tensor());
      } else {
        assign(variable, values.emplace_back());
      }
    }
    for (std::size_t i = 0; i < plan_.updates.size(); ++i) {
      const Variable& variable = variable_of(plan_.updates[i].variable);
      if (!locks_) {
        current().set(variable, values[i]);
      } else {
        assign(variable, values[i]);
      }
    }
    if (later_ && later_->call) later_->call->enlist();
  }

  /// `value` gets the old one.
  void assign(const Variable& variable, Tensor& value) {
    VariableCell& cell = variable.cell();
    if (!later_ || !later_->call) return cell.swap_value(value);
    Handle<DeferredCheck> earlier = cell.check;
    cell.swap_value(value);
    later_->call->note_assigned(variable, value, std::move(earlier));
  }

  const PlanImpl& plan_;
  const program::Program& program_;
  const CallInputs& inputs_;
  program::Running running_;
  ShortArray<Tensor, 32> values_;  ///< per input: the Variable's value, unless its cell is locked
  std::unique_ptr<Kept[]> kept_;   ///< per kept operand, if there are any
  std::vector<Tensor> assigned_;   ///< by commit(): new values, then the old ones
  std::unique_ptr<Later> later_;   ///< if the device is one
  std::unique_ptr<ShadowState> shadow_;
  std::optional<Locks> locks_;  ///< last: released before the rest goes
};

}  // namespace

Plan::Outcome Plan::run(const CallInputs& inputs, std::span<Tensor> results) const {
  for (;;) {
    std::vector<Handle<DeferredCheck>> unknown;
    {
      Run run(*impl_, inputs);
      if (const std::optional<Outcome> outcome = run.run(results)) [[likely]]
        return *outcome;
      unknown = run.what();
    }
    for (const Handle<DeferredCheck>& check : unknown) check->expect();
  }
}

}  // namespace nitinol::jit
