// Code that was made quickly, and is replaced while it runs.
#pragma once

#include "backends/cpu/code/stage_codes.h"
#include "backends/host/stage.h"
#include "core/isa.h"
#include "core/kernel.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace nitinol {
class CodeStore;
}  // namespace nitinol

namespace nitinol::cpu {

/// The code of one kernel, at first of Effort::least. When it is launched again, a thread of the
/// library's makes it with Effort::full, and that takes its place under the threads that run it.
/// Both give the same bits. To be held by a shared_ptr; any thread may run it.
class ImprovingCode : public std::enable_shared_from_this<ImprovingCode> {
 public:
  /// `quick`: the code of `kernel`. Better code is kept in `store`, unless that is null.
  ImprovingCode(const Kernel& kernel, Isa isa, StageCodes quick, CodeStore* store);
  ImprovingCode(const ImprovingCode&) = delete;
  ImprovingCode& operator=(const ImprovingCode&) = delete;
  ~ImprovingCode();

  /// Per stage.
  [[nodiscard]] const host::StageCode* stages() const { return stages_.data(); }
  /// To be called at each launch. Elementwise code, which may be launched by a copy of its
  /// StageCode, counts by itself.
  void note_launch() {
    if (kernel_.order != Order::none) count();
  }
  /// Makes the better code, if that is possible, and puts it in place.
  void improve();

 private:
  /// What a StageCode points to.
  struct Slot {
    std::atomic<host::StageFunction> function = nullptr;
    host::StageFunction quick = nullptr;
    ImprovingCode* owner = nullptr;
  };

  static void run(const void* slot, const host::StageCall& call);
  static void run_quick(const void* slot, const host::StageCall& call);
  static void run_counted(const void* slot, const host::StageCall& call);
  void count();

  const Kernel kernel_;
  const Isa isa_;
  CodeStore* const store_;
  StageCodes quick_;  ///< stays, as threads may be inside it
  std::optional<StageCodes> better_;
  std::vector<Slot> slots_;
  std::vector<host::StageCode> stages_;
  std::atomic<uint32_t> launches_ = 0;
};

/// Waits until all that has been launched again has its better code. For tests and benchmarks.
void wait_for_better_code();

}  // namespace nitinol::cpu
