// From notes to a report. Notes are in the order in which they ended; sorted by when they began, a
// note lies inside the one before it that has not ended.
#include "jit/profile.h"

#include "core/backend.h"
#include "core/error.h"
#include "core/parallel.h"
#include "io/file.h"
#include "jit/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

namespace nitinol {
namespace {

using profiling::Label;
using profiling::Note;

double bytes_of(const Spec& spec) {
  if (is_anywhere(spec)) return 0;
  return static_cast<double>(element_count(spec.shape)) * static_cast<double>(size_of(spec.dtype));
}

/// "f32[64, 784] f32[784, 10] -> f32[64, 10]".
std::string shapes_of(const Label& label) {
  std::string text;
  for (const Spec& input : label.inputs)
    text += fmt::format("{}{}", text.empty() ? "" : " ", describe(input));
  if (!label.results.empty()) text += text.empty() ? "->" : " ->";
  for (const Spec& result : label.results) text += fmt::format(" {}", describe(result));
  return text;
}

/// Text of places, each looked up once.
class Lines {
 public:
  void add(const CallSite& place, std::vector<std::string>& to) {
    std::string key;
    place.append_to(key);
    const auto [text, is_new] = texts_.try_emplace(std::move(key));
    if (is_new) text->second = place.text();
    const bool is_known = std::ranges::find(to, text->second) != to.end();
    if (!text->second.empty() && !is_known) to.push_back(text->second);
  }

 private:
  std::unordered_map<std::string, std::string> texts_;
};

ProfileLabel described(const Label& label, Lines& lines) {
  ProfileLabel out;
  out.kind = label.kind;
  if (label.steps) {
    const StepReport& step = label.steps->reports[label.step];
    out.name = list_of(step.ops);
    out.detail = step.how;
    out.bytes = static_cast<double>(step.bytes_read + step.bytes_written);
    out.operations = step.operations;
    const std::vector<CallSite>* const places = label.steps->places.get();
    for (const uint32_t origin : step.origins) {
      if (places != nullptr && origin < places->size()) lines.add((*places)[origin], out.places);
    }
    return out;
  }
  if (label.op == nullptr) {
    out.name = label.name;
    out.detail = label.detail;
    return out;
  }
  out.name = label.op->name;
  out.detail = shapes_of(label);
  lines.add(label.place, out.places);
  if (label.is_pending || label.results.empty() || label.op->kind == OpKind::view ||
      label.op->kind == OpKind::composite)
    return out;
  for (const Spec& spec : label.inputs) out.bytes += bytes_of(spec);
  for (const Spec& spec : label.results) out.bytes += bytes_of(spec);
  out.operations = jit::operations_of(*label.op, label.inputs, label.attrs, label.results);
  return out;
}

/// What the device needs at least; 0 if that is not known.
double bound_of(const Label& label, const ProfileLabel& described) {
  const Device device = label.steps             ? label.steps->device
                        : label.results.empty() ? Device{}
                                                : label.results.front().device;
  Backend& on = backend(device);
  if (described.bytes <= 0) return 0;
  const DeviceRates rates = on.rates(label.steps ? label.steps->threads : num_threads());
  return std::max(rates.move_s(described.bytes), rates.compute_s(described.operations));
}

class Reporting {
 public:
  explicit Reporting(const profiling::Notes::Content& content) : content_(content) {}

  ProfileReport run() {
    sort();
    Lines lines;
    for (const Label& label : content_.labels) {
      out_.labels.push_back(described(label, lines));
      out_.labels.back().bound_s = bound_of(label, out_.labels.back());
    }
    for (const std::size_t i : order_) add(content_.notes[i]);
    link();
    for (const profiling::MemoryNote& memory : content_.memory)
      out_.memory.push_back({seconds(memory.time_ns), memory.bytes, memory.device});
    out_.length_s = seconds(content_.end_ns);
    out_.dropped = content_.dropped;
    return std::move(out_);
  }

 private:
  [[nodiscard]] double seconds(int64_t time_ns) const {
    return static_cast<double>(std::max<int64_t>(0, time_ns - content_.begin_ns)) * 1e-9;
  }

  /// Threads by number, but first the one that opened the Profile.
  [[nodiscard]] uint32_t rank(uint32_t thread) const {
    if (thread == content_.thread) return 0;
    return thread < content_.thread ? thread + 1 : thread;
  }

  void sort() {
    order_.resize(content_.notes.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::sort(order_, [this](std::size_t i, std::size_t j) {
      const Note &a = content_.notes[i], &b = content_.notes[j];
      if (a.thread != b.thread) return rank(a.thread) < rank(b.thread);
      if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
      if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
      return i > j;  // of two that took no time, the outer one ended later
    });
  }

  void add(const Note& note) {
    const int thread = static_cast<int>(rank(note.thread));
    while (!open_.empty() &&
           (out_.events[open_.back()].thread != thread || ends_[open_.back()] < note.end_ns ||
            ends_[open_.back()] <= note.begin_ns))
      open_.pop_back();
    ProfileEvent event;
    event.label = note.label;
    event.thread = thread;
    event.begin_s = seconds(note.begin_ns);
    event.length_s = event.self_s = seconds(note.end_ns) - event.begin_s;
    event.allocations = note.allocations;
    event.tier = "eager";
    add_device_time(note, event);
    if (!open_.empty()) {
      ProfileEvent& parent = out_.events[open_.back()];
      event.parent = static_cast<std::ptrdiff_t>(open_.back());
      event.tier = parent.tier;
      parent.self_s = std::max(0.0, parent.self_s - event.length_s);
    }
    const Label& label = content_.labels[note.label];
    if (label.kind == EventKind::call) event.tier = label.detail;
    const std::size_t number = out_.events.size();
    if (note.made != 0) makers_[note.made] = number;
    came_from_.push_back(note.came_from);
    out_.events.push_back(event);
    ends_.push_back(note.end_ns);
    open_.push_back(number);
  }

  /// Waits for the device.
  void add_device_time(const Note& note, ProfileEvent& event) const {
    const profiling::DeviceTime* const time = note.on_device.get();
    if (time == nullptr || !time->end) return;
    try {
      event.device_s = time->end->seconds_since(*time->begin);
      event.device_begin_s =
          seconds(time->base->time_ns) + time->begin->seconds_since(*time->base->mark);
      const Label& label = content_.labels[note.label];
      event.device = label.steps ? label.steps->device : label.results.at(0).device;
    } catch (const std::exception&) {  // the device has failed
      event.device_s = event.device_begin_s = 0;
    }
  }

  /// Ways back to their ways forward.
  void link() {
    for (std::size_t i = 0; i < out_.events.size(); ++i) {
      if (came_from_[i] == 0) continue;
      const auto maker = makers_.find(came_from_[i]);
      if (maker != makers_.end())
        out_.events[i].forward = static_cast<std::ptrdiff_t>(maker->second);
    }
  }

  const profiling::Notes::Content& content_;
  ProfileReport out_;
  std::vector<std::size_t> order_;
  std::vector<std::size_t> open_;  ///< events that contain the present one
  std::vector<int64_t> ends_;
  std::vector<uint64_t> came_from_;
  std::unordered_map<uint64_t, std::size_t> makers_;  ///< of nodes of the tape
};

}  // namespace

Profile::Profile(ProfileOptions options)
    : notes_(std::make_unique<profiling::Notes>(options.most_events, options.lines)) {}

Profile::~Profile() = default;
Profile::Profile(Profile&&) noexcept = default;
Profile& Profile::operator=(Profile&&) noexcept = default;

void Profile::stop() {
  notes_->stop();
}

ProfileReport Profile::report() const {
  const profiling::Notes::Content content = notes_->content();
  const profiling::Pause pause;
  return Reporting(content).run();
}

std::string Profile::table(ProfileBy by, std::size_t rows) const {
  return report().table(by, rows);
}

std::string Profile::to_json() const {
  return report().to_json();
}

void Profile::save(const std::string& path) const {
  io::write_text("Profile::save", path, to_json());
}

}  // namespace nitinol
