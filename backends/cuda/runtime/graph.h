// Graph: launches as a graph of CUDA's, which the driver takes as one.
#pragma once

#include "backends/cuda/runtime/libraries.h"
#include "core/function_ref.h"
#include "core/sequence.h"
#include "core/storage.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::cuda {

class Gpu;

/// Nodes one after another, as the work of a stream: launches share a workspace. Kernels of our own
/// are added to it one by one, so that each can be given other arguments; what a library launches
/// is captured, as nobody else knows its kernels.
///
/// Memory that launches need beside their operands stays the graph's.
class Graph final : public Sequence {
 public:
  explicit Graph(Gpu& gpu);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() override;

  /// See Backend::record(). Once.
  void record(std::size_t parts, FunctionRef<void(std::size_t part)> launch);
  void run() override;
  bool replace(std::size_t part, FunctionRef<void()> launch) override;
  [[nodiscard]] bool is_costly(std::size_t part) const override;

  // ---- for what launches

  /// The one that notes what this thread launches on `gpu`, or null.
  [[nodiscard]] static Graph* noting(const Gpu& gpu);
  /// Throws Error(unsupported) if there is one: it would miss what is asked for.
  static void expect_none(const Gpu& gpu, const char* what);
  /// A launch, as Gpu::launch() makes it.
  void add(Driver::Function function, uint32_t blocks, uint32_t threads,
           std::span<const std::byte> arguments, const std::shared_ptr<const std::string>& label);
  /// What `call` puts on the stream that it is given, which is the same whenever its operands are.
  /// Throws Error(unsupported) unless it returns 0. Gpu::order() is held.
  using Operands = std::array<void*, 3>;
  void capture(FunctionRef<int(Driver::Stream)> call, const Operands& operands,
               const std::shared_ptr<const std::string>& label);
  /// Memory of any content, for one step.
  [[nodiscard]] StorageHandle scratch(std::size_t bytes);
  /// Memory that launches find as others have left it.
  void keep(const StorageHandle& memory);

 private:
  struct Captured {
    Operands operands;
    Driver::Graph graph;
  };
  struct Node {
    Driver::Node node = nullptr;
    Driver::Function function = nullptr;  ///< null: a library's work
    uint32_t blocks = 0, threads = 0;
    std::vector<std::byte> arguments;
    std::vector<Captured> captured = {};  ///< the latest last: addresses come again
  };
  class Noting;

  [[nodiscard]] static Driver::KernelNode parameters_of(Node& node, void** parameter);
  /// Where the next launch belongs, when a part is replaced; null if there is none.
  [[nodiscard]] Node* next();
  void append(Node node, const std::shared_ptr<const std::string>& label);
  [[nodiscard]] std::pair<const Driver::Node*, std::size_t> before_last() const;
  [[nodiscard]] Driver::Graph captured(FunctionRef<int(Driver::Stream)> call,
                                       const std::string& label) const;
  void set_label();

  Gpu& gpu_;
  Driver::Graph graph_ = nullptr;
  Driver::GraphExec exec_ = nullptr;  ///< when all is noted
  std::vector<Node> nodes_;
  std::vector<std::size_t> ends_;  ///< per part: of its nodes
  std::vector<StorageHandle> scratch_, kept_;
  std::size_t bytes_ = 0;  ///< of the budget
  std::vector<std::shared_ptr<const std::string>> labels_;
  std::shared_ptr<const std::string> label_;  ///< what a lost device is told by

  // While a part is replaced: its nodes that are still to come.
  std::size_t at_ = 0, end_ = 0;
  bool is_other_ = false;  ///< something else is launched
};

}  // namespace nitinol::cuda
