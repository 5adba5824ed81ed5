// Pack: a file of cases with the cubins of their kernels and of rows', made where NVRTC is and used
// where a GPU is.
#pragma once

#include "backends/cuda/runtime/compiler.h"
#include "tests/cuda/case.h"

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::test {

/// Cubins by the text that they were made of and the architecture they are for.
class Pack {
 public:
  /// Compiles for each architecture what is not there yet.
  void add(const Kernel& kernel, const cuda::Schedule& schedule,
           std::span<const int> architectures);
  /// The cubin for a GPU: of its own architecture, or of an earlier one of the same generation.
  /// Throws Error(device) if there is none.
  [[nodiscard]] const cuda::Cubin& find(const Kernel& kernel, const cuda::Schedule& schedule,
                                        int architecture) const;
  void write(std::ostream& out) const;
  void read(std::istream& in);
  [[nodiscard]] std::size_t size() const { return cubins_.size(); }

  /// Cases follow. What their operands hold is the same for many, and written once.
  void write(std::ostream& out, Case value);
  [[nodiscard]] std::optional<Case> read_case(std::istream& in);

 private:
  using Key = std::pair<std::string, int>;
  using Bytes = std::vector<std::byte>;
  void write_once(std::ostream& out, const Bytes& bytes);
  Bytes read_once(std::istream& in);
  std::map<Key, cuda::Cubin> cubins_;
  std::map<std::string, uint32_t> written_;
  std::vector<Bytes> read_;
};

}  // namespace nitinol::test
