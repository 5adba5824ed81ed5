#include "backends/cuda/runtime/graph.h"

#include "backends/cuda/runtime/call.h"
#include "backends/cuda/runtime/gpu.h"
#include "backends/cuda/runtime/loaded.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace nitinol::cuda {
namespace {

/// What the driver may hold of a node, roughly: it does not say.
constexpr std::size_t node_bytes = 4096;

thread_local Graph* noting_graph = nullptr;
thread_local const Gpu* noting_gpu = nullptr;

[[noreturn]] void refuse(std::string why) {
  throw Error(ErrorKind::unsupported,
              {.where = "record", .what = std::move(why), .expected = {}, .got = {}, .fix = {}});
}

/// Why no graph is made in this process; empty if they are.
std::string no_graphs_because() {
  if (waits_after_each()) return "NITINOL_CUDA_WAIT is 1";
  return nvtx() != nullptr ? "a tool takes ranges, which are around launches" : "";
}

}  // namespace

void Graph::expect_none(const Gpu& gpu, const char* what) {
  if (noting(gpu) != nullptr) refuse(fmt::format("{} is no part of a graph", what));
}

/// While it lives, launches of this thread are a graph's.
class Graph::Noting {
 public:
  explicit Noting(Graph& graph) {
    noting_graph = &graph;
    noting_gpu = &graph.gpu_;
  }
  Noting(const Noting&) = delete;
  Noting& operator=(const Noting&) = delete;
  ~Noting() {
    noting_graph = nullptr;
    noting_gpu = nullptr;
  }
};

Graph* Graph::noting(const Gpu& gpu) {
  return noting_gpu == &gpu ? noting_graph : nullptr;
}

Graph::Graph(Gpu& gpu) : gpu_(gpu) {}

Graph::~Graph() {
  gpu_.give_back_to_graphs(bytes_);
  if (graph_ == nullptr) return;
  try {
    const Entered entered = gpu_.enter();
    for (const Node& node : nodes_) {
      for (const Captured& captured : node.captured) driver().cuGraphDestroy(captured.graph);
    }
    // One that still runs stays until it has.
    if (exec_ != nullptr) driver().cuGraphExecDestroy(exec_);
    driver().cuGraphDestroy(graph_);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a lost device has no graphs
  }
}

void Graph::record(std::size_t parts, FunctionRef<void(std::size_t part)> launch) {
  if (std::string why = no_graphs_because(); !why.empty()) refuse(std::move(why));
  const Entered entered = gpu_.enter();
  gpu_.check(driver().cuGraphCreate(&graph_, 0), "making a graph");
  {
    const Noting noting(*this);
    for (std::size_t part = 0; part < parts; ++part) {
      launch(part);
      ends_.push_back(nodes_.size());
    }
  }
  for (const StorageHandle& block : scratch_) bytes_ += block->bytes;
  bytes_ += nodes_.size() * node_bytes;
  if (!gpu_.take_for_graphs(bytes_)) {
    refuse(fmt::format("{} bytes more are beyond the budget of graphs",
                       std::exchange(bytes_, std::size_t{0})));
  }
  gpu_.check(driver().cuGraphInstantiateWithFlags(&exec_, graph_, 0), "making a graph ready");
  set_label();
}

void Graph::set_label() {
  std::string text = fmt::format("a graph of {} launches:", labels_.size());
  for (std::size_t i = 0, times = 1; i < labels_.size(); i += times) {
    times = 1;
    while (i + times < labels_.size() && *labels_[i + times] == *labels_[i]) ++times;
    text += fmt::format("\n    {}", *labels_[i]);
    if (times > 1) text += fmt::format(", {} times", times);
  }
  label_ = std::make_shared<const std::string>(std::move(text));
  labels_.clear();
}

void Graph::run() {
  const Entered entered = gpu_.enter();
  // What others launch in several pieces is not to be torn apart: it shares the workspace.
  const std::lock_guard order(gpu_.order());
  gpu_.check(driver().cuGraphLaunch(exec_, gpu_.stream()), "launching a graph");
  gpu_.note(label_);
}

bool Graph::replace(std::size_t part, FunctionRef<void()> launch) {
  const Entered entered = gpu_.enter();
  at_ = part == 0 ? 0 : ends_[part - 1];
  end_ = ends_[part];
  is_other_ = false;
  const Noting noting(*this);
  launch();
  return !is_other_ && at_ == end_;
}

bool Graph::is_costly(std::size_t part) const {
  const std::span all(nodes_);
  const std::size_t first = part == 0 ? 0 : ends_[part - 1];
  return std::ranges::any_of(all.subspan(first, ends_[part] - first),
                             [](const Node& node) { return node.function == nullptr; });
}

Graph::Node* Graph::next() {
  if (at_ == end_) is_other_ = true;
  return is_other_ ? nullptr : &nodes_[at_++];
}

Driver::KernelNode Graph::parameters_of(Node& node, void** parameter) {
  *parameter = node.arguments.data();  // the one that all kernels have; the driver copies it
  return {.function = node.function,
          .grid_x = node.blocks,
          .grid_y = 1,
          .grid_z = 1,
          .block_x = node.threads,
          .block_y = 1,
          .block_z = 1,
          .shared = 0,
          .parameters = parameter,
          .extra = nullptr,
          .kernel = nullptr,
          .context = nullptr};
}

void Graph::append(Node node, const std::shared_ptr<const std::string>& label) {
  nodes_.push_back(std::move(node));
  labels_.push_back(label);
}

/// What the last node comes after.
std::pair<const Driver::Node*, std::size_t> Graph::before_last() const {
  if (nodes_.size() < 2) return {nullptr, 0};
  return {&nodes_[nodes_.size() - 2].node, 1};
}

void Graph::add(Driver::Function function, uint32_t blocks, uint32_t threads,
                std::span<const std::byte> arguments,
                const std::shared_ptr<const std::string>& label) {
  void* parameter = nullptr;
  if (exec_ == nullptr) {
    append({.function = function,
            .blocks = blocks,
            .threads = threads,
            .arguments = {arguments.begin(), arguments.end()}},
           label);
    const Driver::KernelNode parameters = parameters_of(nodes_.back(), &parameter);
    const auto [after, count] = before_last();
    return gpu_.check(
        driver().cuGraphAddKernelNode_v2(&nodes_.back().node, graph_, after, count, &parameters),
        "adding a kernel to a graph");
  }
  Node* const node = next();
  if (node == nullptr) return;
  if (node->function != function || node->blocks != blocks || node->threads != threads) {
    is_other_ = true;
    return;
  }
  if (std::ranges::equal(node->arguments, arguments)) return;
  node->arguments.assign(arguments.begin(), arguments.end());
  const Driver::KernelNode parameters = parameters_of(*node, &parameter);
  gpu_.check(driver().cuGraphExecKernelNodeSetParams_v2(exec_, node->node, &parameters),
             "changing a kernel of a graph");
}

Driver::Graph Graph::captured(FunctionRef<int(Driver::Stream)> call,
                              const std::string& label) const {
  const Driver::Stream stream = gpu_.captures();
  gpu_.check(driver().cuStreamBeginCapture_v2(stream, Driver::relaxed), "beginning a capture");
  Driver::Graph graph = nullptr;
  int status = 0;
  try {
    status = call(stream);
  } catch (...) {
    if (driver().cuStreamEndCapture(stream, &graph) == 0) driver().cuGraphDestroy(graph);
    throw;
  }
  gpu_.check(driver().cuStreamEndCapture(stream, &graph), "capturing a library's work");
  if (status == 0) return graph;
  driver().cuGraphDestroy(graph);
  // Without an error the call would run by other means from now on, with other bits.
  refuse(fmt::format("{} is refused by its library in a graph", label));
}

void Graph::capture(FunctionRef<int(Driver::Stream)> call, const Operands& operands,
                    const std::shared_ptr<const std::string>& label) {
  constexpr std::size_t most_captured = 16;
  const bool is_new = exec_ == nullptr;
  if (is_new) append({}, label);
  Node* const node = is_new ? &nodes_.back() : next();
  is_other_ = is_other_ || (node != nullptr && node->function != nullptr);
  if (node == nullptr || is_other_) return;
  std::vector<Captured>& all = node->captured;
  const auto known = std::ranges::find(all, operands, &Captured::operands);
  if (known != all.end()) {
    std::rotate(known, known + 1, all.end());
  } else {
    if (all.size() == most_captured) {
      driver().cuGraphDestroy(all.front().graph);
      all.erase(all.begin());
    }
    all.reserve(all.size() + 1);
    all.push_back({operands, captured(call, *label)});
  }
  if (is_new) {
    const auto [after, count] = before_last();
    gpu_.check(
        driver().cuGraphAddChildGraphNode(&node->node, graph_, after, count, all.back().graph),
        "adding a library's work to a graph");
  } else {
    gpu_.check(driver().cuGraphExecChildGraphNodeSetParams(exec_, node->node, all.back().graph),
               "changing a library's work in a graph");
  }
}

StorageHandle Graph::scratch(std::size_t bytes) {
  // Of steps that come one after another one block may serve all.
  for (const StorageHandle& block : scratch_) {
    if (is_unique(block) && block->bytes >= bytes) return block;
  }
  return scratch_.emplace_back(gpu_.memory().allocate(bytes));
}

void Graph::keep(const StorageHandle& memory) {
  if (std::ranges::find(kept_, memory.get(), [](const auto& kept) { return kept.get(); }) ==
      kept_.end())
    kept_.push_back(memory);
}

}  // namespace nitinol::cuda
