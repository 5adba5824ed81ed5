// Names for what is enqueued on a GPU, in tools that trace it.
#pragma once

#include <string_view>

namespace nitinol::cuda {

/// While it lives, what this thread enqueues is shown below "nitinol::<name>" by a tool that takes
/// NVTX's ranges, such as Nsight Systems. Costs a comparison where there is none.
class NamedRange {
 public:
  explicit NamedRange(std::string_view name) {
    if (is_shown()) begin(name);
  }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;
  ~NamedRange() {
    if (is_begun_) end();
  }

 private:
  static bool is_shown();
  void begin(std::string_view name);
  static void end();

  bool is_begun_ = false;
};

}  // namespace nitinol::cuda
