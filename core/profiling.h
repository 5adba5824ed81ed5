// Profiling: who runs something says so, and notes of it are kept while a Profile is open
// (jit/profile.h).
//
// While none is, that costs a look at one flag for each op, each call and each run of a Program's
// steps. A note is a label, which says what ran and is kept once, and two times.
#pragma once

#include "core/device.h"
#include "core/device_mark.h"
#include "core/memory.h"
#include "core/observed.h"
#include "core/op.h"
#include "core/place.h"
#include "core/step_report.h"
#include "core/ticks.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

class Backend;

/// What an event of a profile is.
enum class EventKind : uint8_t {
  call,      ///< of a compiled function
  record,    ///< of its function, noting what happens
  compile,   ///< making a Plan, or a part of that: a pass, fusion, the code of a kernel
  op,        ///< an operation that is applied, eagerly or in a call that is recorded
  kernel,    ///< a step of compiled code that was generated
  library,   ///< one that a library does
  backward,  ///< backward(), or the way back through one node of the tape
  wait,      ///< of the host, for a device
};
/// "call", "record", …
[[nodiscard]] std::string_view name_of(EventKind kind);

namespace profiling {

/// Whether a Profile is open.
[[nodiscard]] inline bool is_on() {
  return (observed::by.load(std::memory_order_relaxed) & observed::by_profile) != 0;
}

/// What notes ask of devices, which core does not know. (backends/backends.cpp)
struct DeviceQuestions {
  Device (*default_device)() noexcept;
  MemoryStatistics (*counts)(Device device) noexcept;
  /// The device's backend, if what it is asked for runs later; else null.
  Backend* (*later)(Device device) noexcept;
};
extern constinit std::atomic<const DeviceQuestions*> device_questions;

/// The steps of a Program, by the groups that are launched at once.
struct Steps {
  std::vector<StepReport> reports;
  std::shared_ptr<const std::vector<CallSite>> places;  ///< by origin, or null
  Device device;
  int threads = 1;
};

/// What notes are of. Which fields mean something depends on the kind.
struct Label {
  EventKind kind = EventKind::op;
  std::string name = {};         ///< of others than ops and steps
  std::string_view detail = {};  ///< the same
  const Op* op = nullptr;
  std::vector<Spec> inputs = {};  ///< ops
  Attrs attrs = {};
  std::vector<Spec> results = {};
  bool is_pending = false;  ///< ops of segments: what it does is done by a step
  CallSite place = {};
  std::shared_ptr<const Steps> steps = nullptr;  ///< steps: and which of them
  std::size_t step = 0;
};

/// The same by the clock of a device that runs later.
struct DeviceTime {
  /// A point that both clocks know.
  struct Base {
    std::unique_ptr<DeviceMark> mark;
    int64_t time_ns = 0;
  };
  std::shared_ptr<const Base> base;
  std::unique_ptr<DeviceMark> begin, end;
};

struct Note {
  int64_t begin_ns = 0, end_ns = 0;  ///< of the steady clock; ticks() until they are read
  uint32_t label = 0;
  uint32_t thread = 0;       ///< by the order in which threads were first noted
  uint64_t allocations = 0;  ///< of host memory, by the whole process meanwhile
  uint64_t made = 0;         ///< the node of the tape that was made, or 0
  uint64_t came_from = 0;    ///< backward: the node that it goes back through, or 0
  std::shared_ptr<DeviceTime> on_device = nullptr;  ///< ops and steps there; null: the host's
};

/// How much memory of a device was in use.
struct MemoryNote {
  int64_t time_ns = 0;
  std::size_t bytes = 0;
  Device device;
};

/// What one Profile has. Begins with the constructor. A child of a fork has a copy that is stopped.
class Notes {
 public:
  /// At most so many notes, and as many of memory, are kept. `has_places`: ops say where they were
  /// asked for, which costs more than the rest.
  explicit Notes(std::size_t most, bool has_places = true);
  ~Notes();
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;
  /// Nothing more is added.
  void stop() noexcept;

  struct Content {
    std::deque<Note> notes;  ///< by when they ended
    std::deque<Label> labels;
    std::deque<MemoryNote> memory;
    uint64_t dropped = 0;  ///< for which there was no room
    int64_t begin_ns = 0, end_ns = 0;
    uint32_t thread = 0;  ///< that opened it
  };
  /// All that was noted so far.
  [[nodiscard]] Content content() const;

 private:
  friend class Registry;
  /// Steps that ran one after the other. Of most only the time is news, and a note of each would be
  /// eight times as much to write, which small steps feel.
  struct StepRun {
    std::size_t notes_before = 0;  ///< that there were when these had ended
    std::size_t first_time = 0;    ///< of step_times_: when each began, then when the last ended
    uint32_t first_label = 0;
    uint32_t thread = 0;
    std::size_t count = 0;
    std::vector<std::shared_ptr<DeviceTime>> on_device;  ///< of each; empty: the host's
  };
  /// For how many notes.
  [[nodiscard]] std::size_t room() const { return most_ - content_.notes.size() - step_count_; }

  const std::size_t most_;
  const bool has_places_;
  Content content_;  ///< in ticks(), and notes are those of others than steps
  std::deque<StepRun> runs_;
  std::vector<int64_t> step_times_;  ///< ticks()
  std::size_t step_count_ = 0;
  TickScale scale_;  ///< of when it was stopped, so that what it says stays the same
  std::unordered_multimap<std::size_t, uint32_t> known_;  ///< labels by a hash of them
  std::shared_ptr<const Steps> latest_steps_;             ///< whose labels begin with latest_label_
  uint32_t latest_label_ = 0;
  uint32_t latest_span_ = 0;  ///< the label of the latest Span, if there was one
  bool is_stopped_ = false;
};

/// What runs on this thread from its construction to its destruction. Nests.
class Span {
 public:
  /// `name` is read at the end.
  Span(EventKind kind, std::string_view name) : kind_(kind), name_(name) {
    if (is_on()) [[unlikely]]
      begin();
  }
  ~Span() {
    if (is_begun_) [[unlikely]]
      end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  void set_name(std::string_view name) { name_ = name; }
  /// Text that lives for ever: the tier of a call, where code came from.
  void set_detail(std::string_view detail) { detail_ = detail; }
  /// backward: the node that it goes back through.
  void set_node(uint64_t node) {
    if (is_begun_) note_->came_from = node;
  }

 private:
  void begin() noexcept;
  void end() noexcept;

  EventKind kind_;
  bool is_begun_ = false;
  std::string_view name_, detail_ = {};
  std::optional<Note> note_;
  uint64_t* made_before_ = nullptr;
};

/// An op that is applied, while a Profile is open.
class OpSpan {
 public:
  OpSpan(const Op& op, Inputs inputs, const Attrs& attrs) noexcept;
  ~OpSpan();
  OpSpan(const OpSpan&) = delete;
  OpSpan& operator=(const OpSpan&) = delete;
  /// What it has given.
  void end(std::span<const Tensor> results) noexcept;

 private:
  [[nodiscard]] Device device() const;

  const Op& op_;
  Inputs inputs_;
  const Attrs& attrs_;
  std::optional<CallSite> own_place_;
  const CallSite* place_ = nullptr;      ///< that, or another's; null: it is not wanted
  std::optional<OnePlaceScope> inside_;  ///< its place is that of all that a composite consists of
  Note note_;
  uint64_t* made_before_;
  bool is_noted_ = false;
};

/// The tape has got a node of what this thread is doing, while a Profile is open.
void note_node(uint64_t node) noexcept;

/// While one lives, nothing that this thread does is noted.
class Pause {
 public:
  Pause();
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
};

}  // namespace profiling
}  // namespace nitinol

#pragma GCC visibility pop
