// StepTimes: when the steps of a Program ran, for profiles (profiling.cpp).
#pragma once

#include "core/profiling.h"
#include "core/short_array.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace nitinol::profiling {

/// Groups of a Program's steps that are launched one after the other, while a Profile is open. They
/// are noted together, at the end: a step may take less than a note.
class StepTimes {
 public:
  /// From number `first` on.
  StepTimes(const std::shared_ptr<const Steps>& steps, std::size_t first);
  ~StepTimes();
  StepTimes(const StepTimes&) = delete;
  StepTimes& operator=(const StepTimes&) = delete;
  /// The one before has ended, and the next begins.
  void begin() noexcept;

 private:
  friend class Registry;
  /// The latest one has ended, or there is none.
  void end() noexcept;
  /// ticks() when each has begun, and the last has ended.
  [[nodiscard]] std::span<const int64_t> times() { return times_.span().first(count_ + 1); }

  const std::shared_ptr<const Steps>& steps_;
  const std::size_t first_;
  std::size_t count_ = 0;          ///< that have begun
  ShortArray<int64_t, 64> times_;  ///< ticks() when each has begun, and the latest has ended
  std::vector<std::shared_ptr<DeviceTime>> on_device_;  ///< of each; empty: the host's
};

}  // namespace nitinol::profiling
