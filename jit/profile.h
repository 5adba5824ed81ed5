// Profile: where the time of a program goes, by ops, kernels and the user's lines.
#pragma once

#include "core/profiling.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

struct ProfileOptions {
  std::size_t most_events = 1'000'000;  ///< later ones are counted, and dropped
  bool lines = true;                    ///< ops that run eagerly know the user's lines
};

/// What one or more events are of. Sizes are of one event; 0 where they are not known, and of what
/// others inside it do.
struct ProfileLabel {
  EventKind kind = EventKind::op;
  std::string name;    ///< "matmul"; of a kernel, "mul x3, add"; of a call, the function's
  std::string detail;  ///< of an op "f32[64, 784] f32[784, 10] -> f32[64, 10]"; of a call how it
                       ///< ran; of code where it came from
  std::vector<std::string> places;  ///< the user's lines: "model.cpp:42"
  double bytes = 0;                 ///< that it reads and writes, each operand once
  double operations = 0;            ///< arithmetic ones: two for each product of a matmul
  double bound_s = 0;  ///< what the machine needs for these at least: DeviceRates, measured once
};

/// One thing that ran.
struct ProfileEvent {
  std::size_t label = 0;        ///< of ProfileReport::labels
  std::ptrdiff_t parent = -1;   ///< the event that it happened in, or -1
  std::ptrdiff_t forward = -1;  ///< of a way back: the event that went forward, if it was noted
  std::string_view tier;        ///< "eager", "recorded", "compiled", "in segments"
  int thread = 0;               ///< the one that opened the Profile is 0
  double begin_s = 0;           ///< since the Profile was opened
  double length_s = 0;
  double self_s = 0;         ///< without what happened in it
  uint64_t allocations = 0;  ///< blocks of memory that the process asked for meanwhile
  /// On a device that runs later, by its clock: when it began what was asked for, and how long that
  /// took; 0 elsewhere.
  double device_begin_s = 0, device_s = 0;
  Device device = {};
};

/// How much memory of a device was in use at a time.
struct ProfileMemory {
  double time_s = 0;
  std::size_t bytes = 0;  ///< of tensors, and of compiled functions that run
  Device device;
};

/// What a profile is listed by.
enum class ProfileBy : uint8_t {
  op,     ///< ops, kernels, calls: by what they are called
  shape,  ///< the same, by their operands, too
  line,   ///< lines of the user's code; a way back counts for where it went forward
};

/// A profile as data.
struct ProfileReport {
  std::vector<ProfileLabel> labels;
  std::vector<ProfileEvent> events;   ///< by thread, then by when they began
  std::vector<ProfileMemory> memory;  ///< when it changed
  double length_s = 0;
  uint64_t dropped = 0;  ///< events for which there was no room

  /// A page of text: what took longest by itself, at most so many rows.
  [[nodiscard]] std::string table(ProfileBy by = ProfileBy::op, std::size_t rows = 20) const;
  /// In the Trace Event Format, which Perfetto and chrome://tracing open: events by thread with
  /// lines, bytes and operations, arrows from a way forward to its way back, memory over time.
  [[nodiscard]] std::string to_json() const;
};

/// While it is open, from its construction to stop() or its destruction, notes what all threads
/// run: ops, calls of compiled functions and their steps, recording, compiling, ways back.
///
///     Profile profile;
///     train(model, data);
///     fmt::print("{}", profile.table());
///     profile.save("train.json");  // for ui.perfetto.dev
///
/// Profiles nest and overlap; each has what ran while it was open. A step costs about 0.05 us, an
/// op 0.3 us, and its line 1 us more, which counts for what called it; what is part of a composite
/// op or of a way back has the line that asked for it. On a device that runs later an event is
/// the time that the host took to ask for it, and has the device's beside that. A child of a fork
/// is not profiled. NITINOL_PROFILE=file.json is one of the whole process, saved at its end.
class Profile {
 public:
  explicit Profile(ProfileOptions options = {});
  ~Profile();
  Profile(Profile&&) noexcept;
  Profile& operator=(Profile&&) noexcept;

  /// Notes no more. What was noted stays.
  void stop();
  /// What was noted so far. Looks up lines, and at first measures what the machine can do, which
  /// takes a fraction of a second.
  [[nodiscard]] ProfileReport report() const;
  /// report().table(by, rows)
  [[nodiscard]] std::string table(ProfileBy by = ProfileBy::op, std::size_t rows = 20) const;
  /// report().to_json()
  [[nodiscard]] std::string to_json() const;
  /// Writes to_json() to a file. Throws Error(io) if that cannot be written.
  void save(const std::string& path) const;

 private:
  std::unique_ptr<profiling::Notes> notes_;
};

}  // namespace nitinol

#pragma GCC visibility pop
