// Running: one run of a Program.
#pragma once

#include "core/memory_notes.h"
#include "core/scalar_value.h"
#include "core/short_array.h"
#include "core/step_times.h"
#include "program/program.h"
#include "program/replays.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace nitinol::program {

/// Finds memory for what a run makes and launches the steps. Who runs the program first says where
/// its inputs lie.
class Running {
 public:
  explicit Running(const Program& program)
      : program_(program), addresses_(program.addresses), made_(program.memory.size()) {}

  /// Where a value lies: to be set of inputs, but for numbers that no step loads.
  [[nodiscard]] std::byte*& address(Value v) { return addresses_[v]; }

  /// Allocates temporaries and outputs. `donated` gives, for a donation, the memory or an undefined
  /// tensor.
  template <class Donated>
  [[gnu::always_inline]] void allocate(const Donated& donated) {
    if (program_.arena_bytes > 0) {  // else temporaries are of no elements
      arena_ = program_.device->allocate(program_.arena_bytes);
      for (const Value v : program_.temporaries)
        addresses_[v] = static_cast<std::byte*>(arena_->data) + program_.places[v].offset;
    }
    for (std::size_t i = 0; i < program_.memory.size(); ++i) {
      const OutputMemory& memory = program_.memory[i];
      const bool is_lent = memory.donation >= 0 && (made_[i] = donated(memory)).is_defined();
      if (!is_lent) {
        made_[i] =
            make_tensor(memory.spec, memory.strides, 0, program_.device->allocate(memory.bytes));
      }
      addresses_[memory.value] = static_cast<std::byte*>(made_[i].internals().unsettled_address());
    }
  }

  /// The same where an earlier run has had it, if that can be: Program::replays is there.
  template <class Donated>
  void allocate_for_replay(const Donated& donated) {
    for (std::size_t i = 0; i < program_.memory.size(); ++i) {
      const OutputMemory& memory = program_.memory[i];
      if (memory.donation >= 0 && (made_[i] = donated(memory)).is_defined())
        addresses_[memory.value] =
            static_cast<std::byte*>(made_[i].internals().unsettled_address());
    }
    allocate_rest();
  }

  /// What steps are launched with beside addresses.
  struct Given {
    std::span<const Scalar* const> scalars = {};
    std::span<const uint64_t> number_bits = {};  ///< instead of scalars, if there are any
    Status* status = nullptr;
    bool is_gated = false;
  };
  /// Launches the steps that come before all that overwrites donated memory.
  [[gnu::always_inline]] void launch_safe(const Given& given) {
    launch(0, program_.safe_steps, given);
  }
  /// Launches the others.
  [[gnu::noinline]] void launch_rest(const Given& given) {
    launch(program_.safe_steps, program_.steps.size(), given);
  }

  /// All steps as one launch, with those that overwrite gated or not; false if none is launched:
  /// Program::replays is there.
  [[nodiscard]] bool replay(Given given, bool is_gated);

  /// The memory of Program::memory number `i`.
  [[nodiscard]] const Tensor& made(std::size_t i) { return made_[i]; }
  /// What is in memory that is no input's: a constant, an output or a temporary.
  [[nodiscard]] Tensor tensor_of(Value base) {
    const Node& node = program_.graph[base];
    const Place& place = program_.places[base];
    if (place.kind == Place::Kind::output) [[likely]]
      return made_[static_cast<std::size_t>(place.index)];
    if (place.kind == Place::Kind::constant) return node.constant;
    const auto offset = static_cast<int64_t>(place.offset / size_of(node.spec.dtype));
    return make_tensor(node.spec, strides_of(node.spec.shape), offset, arena_);
  }

 private:
  /// Memory for all that is not lent.
  void allocate_rest();

  [[gnu::always_inline]] void launch(std::size_t from, std::size_t to, const Given& given) {
    if (is_noted()) [[unlikely]]
      return launch_noted(from, to, given);
    if (program_.has_ordered) [[unlikely]]
      return launch_ordered(from, to, given);
    for (std::size_t s = from; s < to; s += program_.steps[s].together) {
      const ProgramStep& step = program_.steps[s];
      if (step.together == 1)
        launch(step, given);
      else
        launch_all(std::span(program_.steps).subspan(s, step.together), given);
    }
  }

  /// Whether somebody wants to know of steps, or of memory.
  [[nodiscard]] static bool is_noted() {
    constexpr uint32_t by = observed::by_profile | observed::by_memory;
    return (observed::by.load(std::memory_order_relaxed) & by) != 0;
  }

  /// Says who made what allocate() has.
  void note_memory();
  void note_output(Value written, std::size_t group);

  /// While a Profile is open, or memory is noted.
  [[gnu::noinline]] void launch_noted(std::size_t from, std::size_t to, const Given& given) {
    const std::span<const ProgramStep> steps = program_.steps;
    if (from == 0 && memory_notes::is_on()) note_memory();
    std::size_t first_group = 0;
    for (std::size_t s = 0; s < from; s += steps[s].together) ++first_group;
    profiling::StepTimes times(program_.described, first_group);
    for (std::size_t s = from; s < to; s += steps[s].together) {
      times.begin();
      launch_step(s, given);
    }
    wait_for(SIZE_MAX);
  }

  /// Of a Program whose steps may go on beside others.
  [[gnu::noinline]] void launch_ordered(std::size_t from, std::size_t to, const Given& given) {
    for (std::size_t s = from; s < to; s += program_.steps[s].together) launch_step(s, given);
    wait_for(SIZE_MAX);
  }

  void launch_step(std::size_t s, const Given& given) {
    const ProgramStep& step = program_.steps[s];
    wait_for(s);
    if (step.together > 1)
      return launch_all(std::span(program_.steps).subspan(s, step.together), given);
    if (step.until == 0) return launch(step, given);
    ShortArray<void*, 24> buffers(step.operands.size());
    auto underway = step.executable->begin(arguments(step, buffers.data(), nullptr, given));
    if (underway) rare().underway.push_back({step.until, std::move(underway)});
  }
  /// Waits for what step `s` needs.
  void wait_for(std::size_t s) {
    if (rare_ == nullptr) return;
    std::vector<Begun>& underway = rare_->underway;
    const auto is_needed = [s](const Begun& begun) { return begun.until <= s; };
    while (std::ranges::any_of(underway, is_needed)) {
      const std::unique_ptr<Underway> first = std::move(underway.front().underway);
      underway.erase(underway.begin());  // they come to their ends in their order
      first->wait();
    }
  }

  void launch(const ProgramStep& step, const Given& given) {
    ShortArray<void*, 24> buffers(step.operands.size());
    ShortArray<uint64_t, 24> scalars(step.run_scalars.empty() ? 0 : step.scalars.size());
    const Launch launch = arguments(step, buffers.data(), scalars.data(), given);
    if (step.may_be_needless && buffers[0] == buffers[1]) return;
    const Executable* executable =
        step.specialised ? step.specialised.get() : step.executable.get();
    if (step.if_packed) [[unlikely]]
      executable = with_packed(step, buffers.data());
    executable->launch(launch);
  }

  /// The product, of b as it is packed if it is.
  [[gnu::noinline]] const Executable* with_packed(const ProgramStep& step, void** buffers) {
    std::byte* const packed = addresses_[step.packed_b];
    if (packed == nullptr) return step.executable.get();
    buffers[1] = packed;
    return step.if_packed.get();
  }

  [[gnu::noinline]] void launch_all(std::span<const ProgramStep> steps, const Given& given) {
    std::size_t operands = 0;
    for (const ProgramStep& step : steps) operands += step.operands.size();
    std::vector<void*> buffers(operands);
    std::vector<uint64_t> scalars(operands);
    std::vector<Launch> launches;
    std::size_t at = 0;
    for (const ProgramStep& step : steps) {
      launches.push_back(arguments(step, &buffers[at], &scalars[at], given));
      at += step.operands.size();
    }
    const ProgramStep& first = steps[0];
    (first.specialised ? *first.specialised : *first.executable).launch_all(launches);
  }

  /// What a step is launched with. Addresses go to `buffers`, which are null, and the numbers to
  /// `scalars` if some of them come with the run.
  Launch arguments(const ProgramStep& step, void** buffers, uint64_t* scalars, const Given& given) {
    for (const MemoryOperand& operand : step.memory)
      buffers[operand.operand] = addresses_[operand.value] + operand.byte_offset;
    Launch launch = step.launch;
    launch.buffers = {buffers, step.operands.size()};
    launch.status = given.status;
    launch.is_gated = given.is_gated;
    if (step.run_scalars.empty()) return launch;
    std::ranges::copy(step.scalars, scalars);
    for (const ScalarOperand& slot : step.run_scalars) {
      const auto i = static_cast<std::size_t>(slot.scalar);
      scalars[slot.operand] =
          given.number_bits.empty() ? bits_of(*given.scalars[i], slot.dtype) : given.number_bits[i];
    }
    launch.scalars = {scalars, step.scalars.size()};
    return launch;
  }

  /// A step that goes on.
  struct Begun {
    std::size_t until = 0;
    std::unique_ptr<Underway> underway;
  };
  /// What few runs have.
  struct Rare {
    Replays::Taken taken;         ///< of a Program that may be replayed
    std::vector<Begun> underway;  ///< the last member, as below
  };
  Rare& rare() {
    if (rare_ == nullptr) rare_ = std::make_unique<Rare>();
    return *rare_;
  }

  const Program& program_;
  ShortArray<std::byte*, 64> addresses_;  ///< per value
  ShortArray<Tensor, 32> made_;
  StorageHandle arena_;
  std::unique_ptr<Rare> rare_;  ///< the last member: what is underway ends before its memory does
};

}  // namespace nitinol::program
