// One lock guards all notes: an uncontended one costs less than the look at the clock. What asks
// the user's side of a binding, the place, is asked before the lock is taken. What can wait until
// notes are read waits: times are ticks until then, and steps of a run are their times alone.
#include "core/profiling.h"

#include "core/backend.h"
#include "core/fork.h"
#include "core/function_ref.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/step_times.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <pthread.h>
#include <span>
#include <utility>

namespace nitinol {

std::string_view name_of(EventKind kind) {
  constexpr std::string_view names[] = {"call",   "record",  "compile",  "op",
                                        "kernel", "library", "backward", "wait"};
  return names[static_cast<std::size_t>(kind)];
}

namespace profiling {

constinit std::atomic<const DeviceQuestions*> device_questions = nullptr;

namespace {

/// What this thread is doing makes nodes of the tape: the latest one's number goes there.
constinit thread_local uint64_t* made_by_this = nullptr;
constinit thread_local int pauses = 0;
constinit std::atomic<bool> are_places_wanted = false;

uint32_t thread_number() {
  static constinit std::atomic<uint32_t> threads = 0;
  static constinit thread_local uint32_t own = 0;
  if (own == 0) own = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return own - 1;
}

/// Counts of a device, or of none.
MemoryStatistics counts_of(Device device) noexcept {
  const DeviceQuestions* const ask = device_questions.load(std::memory_order_acquire);
  return ask != nullptr ? ask->counts(device) : MemoryStatistics();
}

/// The device's backend, if what it is asked for runs later.
Backend* later(Device device) noexcept {
  if (device == Device{}) return nullptr;
  const DeviceQuestions* const ask = device_questions.load(std::memory_order_acquire);
  return ask != nullptr ? ask->later(device) : nullptr;
}

/// Notes when the device has done it, if it runs later.
void end_on_device(std::shared_ptr<DeviceTime>& time, Device device) noexcept {
  try {
    if (time) time->end = later(device)->mark();
  } catch (...) {  // the device has failed: whoever waits for it is told
    time.reset();
  }
}

void add_to(Hash& hash, const Spec& spec) {
  hash.add(spec.dtype);
  hash.add_all(spec.shape);
}

}  // namespace

/// Those that are open.
class Registry {
 public:
  static Registry& instance() {
    static Registry& registry = *new Registry;  // never destroyed
    return registry;
  }

  void open(Notes& notes) {
    const std::lock_guard lock(mutex_);
    open_.push_back(&notes);
    bases_.clear();  // near to what it will have
    set_flags();
  }

  void close(Notes& notes) noexcept {
    const std::lock_guard lock(mutex_);
    if (std::exchange(notes.is_stopped_, true)) return;
    notes.content_.end_ns = ticks();
    notes.scale_ = TickScale();
    std::erase(open_, &notes);
    set_flags();
  }

  [[nodiscard]] Notes::Content content(const Notes& notes) {
    const std::lock_guard lock(mutex_);
    Notes::Content content = with_steps(notes);
    if (!notes.is_stopped_) content.end_ns = ticks();
    in_nanoseconds(content, notes.is_stopped_ ? notes.scale_ : TickScale());
    return content;
  }

  /// A point of the device's clock that was taken not long ago.
  std::shared_ptr<const DeviceTime::Base> base_of(Backend& device) {
    {
      const std::lock_guard lock(mutex_);
      const auto known = bases_.find(&device);
      if (known != bases_.end()) return known->second;
    }
    auto base = std::make_shared<DeviceTime::Base>();
    device.synchronize();
    base->mark = device.mark();
    base->time_ns = TickScale().nanoseconds(ticks());
    const std::lock_guard lock(mutex_);
    return bases_[&device] = base;
  }

  /// Notes steps that have ended.
  void add_steps(StepTimes& times) noexcept {
    if (pauses > 0) return;
    const Device device = times.steps_->device;
    const MemoryStatistics counts = counts_of(device);
    const std::span<const int64_t> all = times.times();
    const uint32_t thread = thread_number();
    const std::lock_guard lock(mutex_);
    for (Notes* const open : open_) {
      const std::size_t count = std::min(times.count_, open->room());
      open->content_.dropped += times.count_ - count;
      if (count == 0) continue;
      try {
        const auto label = static_cast<uint32_t>(first_label(*open, times.steps_) + times.first_);
        const std::size_t first_time = open->step_times_.size();
        const std::span<const int64_t> noted = all.first(count + 1);
        open->step_times_.insert(open->step_times_.end(), noted.begin(), noted.end());
        open->runs_.push_back(
            {open->content_.notes.size(), first_time, label, thread, count, times.on_device_});
        open->step_count_ += count;
        add_to(open->content_, {all[times.count_], counts.in_use, device});
      } catch (...) {  // no memory
        open->content_.dropped += count;
      }
    }
  }

  /// Adds a note that ends now; `label_in` gives its label in each of those that are open.
  void add(FunctionRef<uint32_t(Notes&)> label_in, Note note, Device device) noexcept {
    note.end_ns = ticks();
    end_on_device(note.on_device, device);
    if (pauses > 0) return;
    const MemoryStatistics counts = counts_of(device);
    note.allocations = counts.allocations - note.allocations;
    const std::lock_guard lock(mutex_);
    for (Notes* const notes : open_) {
      if (notes->room() == 0) {
        ++notes->content_.dropped;
        continue;
      }
      if (note.begin_ns < notes->content_.begin_ns) note.allocations = 0;
      try {
        note.label = label_in(*notes);
        notes->content_.notes.push_back(note);
        add_to(notes->content_, {note.end_ns, counts.in_use, device});
      } catch (...) {  // no memory
        ++notes->content_.dropped;
      }
    }
  }

  /// The label of this hash that `is_it` is true of, made if there is none.
  template <class IsIt, class Make>
  static uint32_t label_of(Notes& notes, std::size_t hash, const IsIt& is_it, const Make& make) {
    std::deque<Label>& labels = notes.content_.labels;
    const auto [first, last] = notes.known_.equal_range(hash);
    const auto known =
        std::find_if(first, last, [&](const auto& each) { return is_it(labels[each.second]); });
    if (known != last) return known->second;
    const auto number = static_cast<uint32_t>(labels.size());
    make(labels);
    notes.known_.emplace(hash, number);
    return number;
  }

  /// A Span's, which is often that of the one before.
  static uint32_t label_of_span(Notes& notes, EventKind kind, std::string_view name,
                                std::string_view detail) {
    const auto is_it = [&](const Label& label) {
      return label.kind == kind && label.name == name && label.detail == detail;
    };
    const std::deque<Label>& all = notes.content_.labels;
    if (notes.latest_span_ < all.size() && is_it(all[notes.latest_span_]))
      return notes.latest_span_;
    Hash hash;
    hash.add(kind);
    hash.add(std::hash<std::string_view>()(name));
    hash.add(std::hash<std::string_view>()(detail));
    return notes.latest_span_ =
               label_of(notes, hash.result(), is_it, [&](std::deque<Label>& labels) {
                 labels.push_back({.kind = kind, .name = std::string(name), .detail = detail});
               });
  }

 private:
  void set_flags() noexcept {
    if (open_.empty())
      observed::by.fetch_and(~observed::by_profile, std::memory_order_relaxed);
    else
      observed::by.fetch_or(observed::by_profile, std::memory_order_relaxed);
    const auto wants = [](const Notes* notes) { return notes->has_places_; };
    are_places_wanted.store(std::ranges::any_of(open_, wants), std::memory_order_relaxed);
  }

  Registry() { pthread_atfork(nullptr, nullptr, forget_in_child); }

  /// The lock is free: it is a ForkSafeMutex.
  static void forget_in_child() {
    Registry& registry = instance();
    for (Notes* const notes : registry.open_) {
      notes->is_stopped_ = true;
      notes->scale_ = TickScale();
    }
    registry.open_.clear();
    registry.set_flags();
  }

  /// All notes, by when they ended.
  static Notes::Content with_steps(const Notes& notes) {
    Notes::Content content = notes.content_;
    content.notes.clear();
    auto next = notes.content_.notes.begin();
    const auto add_until = [&](std::size_t end) {
      while (next != notes.content_.notes.begin() + static_cast<std::ptrdiff_t>(end))
        content.notes.push_back(*next++);
    };
    for (const Notes::StepRun& run : notes.runs_) {
      add_until(run.notes_before);
      for (std::size_t i = 0; i < run.count; ++i) {
        Note& note = content.notes.emplace_back();
        note.begin_ns = notes.step_times_[run.first_time + i];
        note.end_ns = notes.step_times_[run.first_time + i + 1];
        note.label = static_cast<uint32_t>(run.first_label + i);
        note.thread = run.thread;
        if (!run.on_device.empty()) note.on_device = run.on_device[i];
      }
    }
    add_until(notes.content_.notes.size());
    return content;
  }

  /// Of ticks.
  static void in_nanoseconds(Notes::Content& content, const TickScale& scale) {
    const auto change = [&](int64_t& time) { time = scale.nanoseconds(time); };
    change(content.begin_ns), change(content.end_ns);
    for (Note& note : content.notes) change(note.begin_ns), change(note.end_ns);
    for (MemoryNote& memory : content.memory) change(memory.time_ns);
  }

  static void add_to(Notes::Content& content, const MemoryNote& memory) {
    const bool is_news = content.memory.empty() || content.memory.back().bytes != memory.bytes ||
                         content.memory.back().device != memory.device;
    if (is_news) content.memory.push_back(memory);
  }

  /// The label of the first of these steps; the others follow.
  static uint32_t first_label(Notes& notes, const std::shared_ptr<const Steps>& steps) {
    if (notes.latest_steps_ == steps) return notes.latest_label_;
    Hash hash;
    hash.add(reinterpret_cast<uintptr_t>(steps.get()));
    notes.latest_label_ = label_of(
        notes, hash.result(), [&](const Label& label) { return label.steps == steps; },
        [&](std::deque<Label>& labels) { add_labels(labels, steps); });
    notes.latest_steps_ = steps;
    return notes.latest_label_;
  }
  static void add_labels(std::deque<Label>& labels, const std::shared_ptr<const Steps>& steps) {
    for (std::size_t step = 0; step < steps->reports.size(); ++step) {
      Label& label = labels.emplace_back();
      label.kind = steps->reports[step].kind == "library" ? EventKind::library : EventKind::kernel;
      label.steps = steps;
      label.step = step;
    }
  }

  ForkSafeMutex mutex_;
  std::vector<Notes*> open_;
  std::map<Backend*, std::shared_ptr<const DeviceTime::Base>> bases_;
};

namespace {

/// Notes when a device that runs later begins; null if it does not, or has failed.
std::shared_ptr<DeviceTime> begun_on_device(Device device) noexcept {
  Backend* const on = pauses == 0 ? later(device) : nullptr;
  if (on == nullptr) return nullptr;
  try {
    auto time = std::make_shared<DeviceTime>();
    time->base = Registry::instance().base_of(*on);
    time->begin = on->mark();
    return time;
  } catch (...) {
    return nullptr;
  }
}

Note begun(Device device) noexcept {
  Note note;
  note.thread = thread_number();
  note.allocations = counts_of(device).allocations;
  note.on_device = begun_on_device(device);
  note.begin_ns = ticks();
  return note;
}

}  // namespace

// ---- one Profile's

Notes::Notes(std::size_t most, bool has_places) : most_(most), has_places_(has_places) {
  content_.thread = thread_number();
  content_.begin_ns = ticks();
  Registry::instance().open(*this);
}

Notes::~Notes() {
  stop();
}

void Notes::stop() noexcept {
  Registry::instance().close(*this);
}

Notes::Content Notes::content() const {
  return Registry::instance().content(*this);
}

// ---- what runs

void Span::begin() noexcept {
  if (pauses > 0) return;
  note_ = begun({});
  made_before_ = std::exchange(made_by_this, &note_->made);
  is_begun_ = true;
}

void Span::end() noexcept {
  made_by_this = made_before_;
  const auto label = [this](Notes& notes) {
    return Registry::label_of_span(notes, kind_, name_, detail_);
  };
  Registry::instance().add(label, *note_, {});
}

OpSpan::OpSpan(const Op& op, Inputs inputs, const Attrs& attrs) noexcept
    : op_(op), inputs_(inputs), attrs_(attrs) {
  try {
    if (are_places_wanted.load(std::memory_order_relaxed))
      place_ = &CallSite::here_or_default(own_place_);
    // One that is open already goes on.
    if (own_place_ && op.kind == OpKind::composite) inside_.emplace(own_place_);
  } catch (...) {  // no memory
    place_ = nullptr;
  }
  note_ = begun(device());
  made_before_ = std::exchange(made_by_this, &note_.made);
}

Device OpSpan::device() const {
  if (!inputs_.empty()) return inputs_[0]->spec().device;
  const DeviceQuestions* const ask = device_questions.load(std::memory_order_acquire);
  return ask != nullptr ? ask->default_device() : Device{};
}

OpSpan::~OpSpan() {
  end({});
}

void OpSpan::end(std::span<const Tensor> results) noexcept {
  if (std::exchange(is_noted_, true)) return;
  inside_.reset();
  made_by_this = made_before_;
  try {
    const bool is_pending =
        !results.empty() && results[0].internals().memory.load(std::memory_order_relaxed) ==
                                TensorData::Memory::pending;
    Hash hash;
    hash.add(reinterpret_cast<uintptr_t>(&op_));
    for (const Tensor* input : inputs_) add_to(hash, input->spec());
    for (const Tensor& result : results) add_to(hash, result.spec());
    static const CallSite nowhere;
    const CallSite& place = place_ != nullptr ? *place_ : nowhere;
    hash.add(place.hash());
    const auto is_it = [&](const Label& label) {
      return label.op == &op_ && label.is_pending == is_pending && label.place == place &&
             std::ranges::equal(label.inputs, inputs_, {}, {}, &Tensor::spec) &&
             std::ranges::equal(label.results, results, {}, {}, &Tensor::spec);
    };
    const auto make = [&](std::deque<Label>& labels) {
      Label& label = labels.emplace_back();
      label.op = &op_;
      label.attrs = attrs_;
      label.is_pending = is_pending;
      label.place = place;
      for (const Tensor* input : inputs_) label.inputs.push_back(input->spec());
      for (const Tensor& result : results) label.results.push_back(result.spec());
    };
    const auto label = [&](Notes& notes) {
      return Registry::label_of(notes, hash.result(), is_it, make);
    };
    Registry::instance().add(label, note_, device());
  } catch (...) {  // no memory
    return;
  }
}

StepTimes::StepTimes(const std::shared_ptr<const Steps>& steps, std::size_t first)
    : steps_(steps), first_(first), times_(steps->reports.size() - first + 1) {}

StepTimes::~StepTimes() {
  if (count_ == 0) return;
  end();
  Registry::instance().add_steps(*this);
}

void StepTimes::end() noexcept {
  times_[count_] = ticks();
  if (!on_device_.empty()) end_on_device(on_device_.back(), steps_->device);
}

void StepTimes::begin() noexcept {
  end();
  ++count_;
  if (steps_->device == Device{}) return;
  try {
    on_device_.resize(count_);
    on_device_.back() = begun_on_device(steps_->device);
  } catch (...) {  // no memory
    on_device_.clear();
  }
}
void note_node(uint64_t node) noexcept {
  if (made_by_this != nullptr) *made_by_this = node;
}

Pause::Pause() {
  ++pauses;
}

Pause::~Pause() {
  --pauses;
}

}  // namespace profiling
}  // namespace nitinol
