// MetricLog: training curves, on disk while training goes on.
//
//     nn::MetricLog log("runs/first");
//     for (int64_t step = 0; step < steps; ++step)
//       log.add("loss", train_step(x, y), step);
//
// `tensorboard --logdir runs` shows them. The same stand in runs/first/metrics.jsonl, an object a
// line: {"step":0,"time":1764288813.25,"loss":2.302585}.
#pragma once

#include "core/integer.h"
#include "core/tensor.h"

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// What a MetricLog may be told.
struct MetricLogOptions {
  double flush_seconds = 10;  ///< add() writes when the last time is longer ago; 0: always
};

/// Writes numbers, texts and histograms by name and step: for TensorBoard a file
/// events.out.tfevents.<time>.<host>.<process>, and numbers and texts to metrics.jsonl, where those
/// of one step that are written together are one line, and NaN and infinity are null.
///
/// What is added waits in memory and is written every ten seconds, when 1,000 wait, at flush() and
/// at the end: a crash loses no more. A tensor is kept and read when it is written, so that
/// add() waits for no device. Inside a compiled function it is read at once, as by item(), and the
/// function runs in segments from then on: rather add what it returns.
///
/// A folder that has a log already gets another event file, which TensorBoard reads as one with the
/// first, and lines at the end of metrics.jsonl. When nothing can be written any more, a full disk
/// say, the program goes on: a warning says so, and another at the end how many values were lost.
/// Any thread may add; the child of a fork writes an event file of its own.
class MetricLog {
 public:
  /// Makes the folder, and those around it. Throws Error(io) if files cannot be written there.
  explicit MetricLog(const std::filesystem::path& folder, const MetricLogOptions& options = {});
  /// Writes what was added.
  ~MetricLog();
  MetricLog(MetricLog&&) noexcept;
  MetricLog& operator=(MetricLog&&) noexcept;

  /// One number of any dtype. Slashes in names group curves: "validation/loss". Throws Error(value)
  /// for a name that is empty, has control characters, or is "step" or "time", and for a negative
  /// step; Error(shape) unless there is one element.
  void add(const std::string& name, const Tensor& value, Integer step,
           std::source_location place = std::source_location::current());
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(const std::string& name, T value, Integer step) {
    add_number(name, static_cast<double>(value), step);
  }
  /// A text, which TensorBoard shows as Markdown.
  void add_text(const std::string& name, const std::string& text, Integer step);
  /// How the elements are distributed, in 30 equal parts from the least to the greatest; the
  /// elements that are not finite are left out. Reads the tensor at once. Not in metrics.jsonl.
  void add_histogram(const std::string& name, const Tensor& values, Integer step);

  /// Writes what was added so far, waiting for what computes it. Throws what that failed with.
  void flush();
  /// How many values could not be written.
  [[nodiscard]] uint64_t lost() const;
  /// Where it writes.
  [[nodiscard]] const std::filesystem::path& folder() const;

 private:
  class Files;
  void add_number(const std::string& name, double value, Integer step);

  std::unique_ptr<Files> files_;
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
