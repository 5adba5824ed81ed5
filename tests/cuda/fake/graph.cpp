// The functions of libcuda.so.1 for graphs: explicit nodes, captures, launches as one.
#include "tests/cuda/fake/graph.h"

#include "tests/cuda/fake/entry.h"
#include "tests/cuda/fake/fake.h"
#include "tests/cuda/fake/module.h"
#include "tests/cuda/fake/state.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace nitinol::test {

std::shared_ptr<ReadyNodes> ready_nodes(const Graph& graph) {
  std::vector<const GraphNode*> left, done;
  for (const GraphNode& node : graph.nodes) left.push_back(&node);
  auto ready = std::make_shared<ReadyNodes>();
  while (!left.empty()) {
    const auto next = std::find_if(left.rbegin(), left.rend(), [&](const GraphNode* node) {
      return std::ranges::all_of(node->after, [&](const GraphNode* before) {
        return std::ranges::find(done, before) != done.end();
      });
    });
    if (next == left.rend()) return nullptr;
    const GraphNode& node = **next;
    ReadyNode& made = ready->emplace_back();
    made = {.source = &node, .run = node.run, .module = node.module, .child = {}};
    if (node.child != nullptr) {
      const auto child = ready_nodes(*node.child);
      if (child == nullptr) return nullptr;
      made.child = *child;
    }
    done.push_back(&node);
    left.erase(std::next(next).base());
  }
  return ready;
}

bool run_nodes(const ReadyNodes& nodes) {
  static const bool is_idle = number_of("NITINOL_FAKE_IDLE", 0) != 0;
  if (is_idle) return true;
  return std::ranges::all_of(nodes, [](const ReadyNode& node) {
    return (node.run == nullptr || node.run()) && run_nodes(node.child);
  });
}

bool uses_module(const ReadyNodes& nodes, const Module& module) {
  return std::ranges::any_of(nodes, [&](const ReadyNode& node) {
    return node.module.get() == &module || uses_module(node.child, module);
  });
}

namespace {

/// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelParameters {
  void* function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};

int describe_kernel(const KernelParameters* given, GraphNode& node) {
  if (given == nullptr || given->grid_x == 0 || given->grid_y != 1 || given->grid_z != 1 ||
      given->block_x == 0 || given->block_y != 1 || given->block_z != 1 || given->shared != 0 ||
      given->parameters == nullptr || given->extra != nullptr || given->kernel != nullptr)
    return invalid_value;
  const LoadedFunction* const found = find(driver().functions, given->function);
  if (found == nullptr) return invalid_handle;
  if (given->block_x > found->function.module->threads[found->function.entry]) return invalid_value;
  node.module = found->function.module;
  node.is_kernel = true;
  node.run = [function = found->function, blocks = Blocks{given->grid_x, given->block_x},
              arguments = arguments_of(found->function, given->parameters[0])] {
    std::vector<std::byte> own = arguments;  // a launch's, as often as there is one
    return run_launch(function, blocks, own);
  };
  return success;
}

/// Adds a node behind those of `after`, which have to be of the graph.
int add(Graph& graph, GraphNode node, const void* const* after, std::size_t count, void** made) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto is_it = [&](const GraphNode& each) { return &each == after[i]; };
    const auto found = std::ranges::find_if(graph.nodes, is_it);
    if (found == graph.nodes.end()) return invalid_value;
    node.after.push_back(&*found);
  }
  graph.nodes.push_back(std::move(node));
  *made = &graph.nodes.back();
  return success;
}

/// The node of an executable graph, as a copy that later launches see; null if there is none.
ReadyNode* changed(GraphExec& exec, const void* node) {
  // Its graph has to be there still, by which the driver knows the node.
  const bool has_source = std::ranges::any_of(
      driver().graphs, [&](const auto& each) { return each.second.get() == exec.source; });
  if (!has_source) return nullptr;
  auto nodes = exec.nodes.use_count() == 1 ? std::const_pointer_cast<ReadyNodes>(exec.nodes)
                                           : std::make_shared<ReadyNodes>(*exec.nodes);
  const auto found = std::ranges::find(
      *nodes, node, [](const ReadyNode& each) { return static_cast<const void*>(each.source); });
  if (found == nodes->end()) return nullptr;
  exec.nodes = nodes;
  return &*found;
}

bool is_alike(const ReadyNodes& a, const ReadyNodes& b) {
  return std::ranges::equal(a, b, [](const ReadyNode& x, const ReadyNode& y) {
    return x.source->is_kernel == y.source->is_kernel && is_alike(x.child, y.child);
  });
}

}  // namespace
}  // namespace nitinol::test

using namespace nitinol::test;  // NOLINT: functions of C's

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): the driver's names

int cuStreamBeginCapture_v2(void* handle, int mode) {
  FAKE_ENTRY_WITH_CONTEXT;
  constexpr int relaxed = 2;
  if (handle == nullptr) return capture_unsupported;  // the stream that all others wait for
  Stream* const stream = find(driver().streams, handle);
  if (stream == nullptr) return invalid_handle;
  if (mode < 0 || mode > relaxed) return invalid_value;
  if (stream->capture != nullptr) return illegal_state;
  stream->capture = std::make_unique<Capture>(Capture{
      .graph = std::make_shared<Graph>(), .thread = std::this_thread::get_id(), .mode = mode});
  stream->capture->graph->device = current_device();
  return success;
}
int cuStreamEndCapture(void* handle, void** graph) {
  const Entry entry(__func__, true);
  Stream* const stream = find(driver().streams, handle);
  if (entry.result != success) {  // the capture has ended all the same
    if (stream != nullptr) stream->capture.reset();
    return entry.result;
  }
  if (stream == nullptr) return invalid_handle;
  if (stream->capture == nullptr) return illegal_state;
  constexpr int relaxed = 2;
  if (stream->capture->mode != relaxed && stream->capture->thread != std::this_thread::get_id())
    return capture_wrong_thread;
  const std::unique_ptr<Capture> capture = std::move(stream->capture);
  *graph = nullptr;
  if (capture->is_broken) return capture_broken;
  auto made = std::make_unique<Graph>(std::move(*capture->graph));
  *graph = made.get();
  driver().graphs[*graph] = std::move(made);
  return success;
}
int cuGraphCreate(void** handle, unsigned flags) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (flags != 0) return invalid_value;
  auto graph = std::make_unique<Graph>();
  graph->device = current_device();
  *handle = graph.get();
  driver().graphs[*handle] = std::move(graph);
  return success;
}
int cuGraphDestroy(void* handle) {
  FAKE_ENTRY_WITH_CONTEXT;
  return driver().graphs.erase(handle) > 0 ? success : invalid_value;
}
int cuGraphAddKernelNode_v2(void** made, void* handle, const void* const* after, std::size_t count,
                            const KernelParameters* parameters) {
  FAKE_ENTRY_WITH_CONTEXT;
  Graph* const graph = find(driver().graphs, handle);
  if (graph == nullptr) return invalid_value;
  GraphNode node;
  if (const int result = describe_kernel(parameters, node); result != success) return result;
  return add(*graph, std::move(node), after, count, made);
}
int cuGraphAddChildGraphNode(void** made, void* handle, const void* const* after, std::size_t count,
                             void* child) {
  FAKE_ENTRY_WITH_CONTEXT;
  Graph* const graph = find(driver().graphs, handle);
  const Graph* const given = find(driver().graphs, child);
  if (graph == nullptr || given == nullptr || graph == given) return invalid_value;
  // A copy, whose edges are its own.
  auto copy = std::make_shared<Graph>();
  copy->device = given->device;
  std::map<const GraphNode*, const GraphNode*> copies;
  for (const GraphNode& node : given->nodes) {
    copy->nodes.push_back(node);
    for (const GraphNode*& before : copy->nodes.back().after) before = copies.at(before);
    copies[&node] = &copy->nodes.back();
  }
  GraphNode node;
  node.child = std::move(copy);
  return add(*graph, std::move(node), after, count, made);
}
int cuGraphInstantiateWithFlags(void** handle, void* graph, unsigned long long flags) {
  FAKE_ENTRY_WITH_CONTEXT;
  const Graph* const source = find(driver().graphs, graph);
  if (source == nullptr || flags != 0) return invalid_value;
  auto exec = std::make_unique<GraphExec>();
  exec->device = current_device();
  exec->source = source;
  exec->nodes = ready_nodes(*source);
  if (exec->nodes == nullptr) return invalid_value;
  *handle = exec.get();
  driver().execs[*handle] = std::move(exec);
  return success;
}
int cuGraphExecKernelNodeSetParams_v2(void* handle, void* node,
                                      const KernelParameters* parameters) {
  FAKE_ENTRY_WITH_CONTEXT;
  GraphExec* const exec = find(driver().execs, handle);
  if (exec == nullptr) return invalid_value;
  GraphNode described;
  if (const int result = describe_kernel(parameters, described); result != success) return result;
  ReadyNode* const found = changed(*exec, node);
  if (found == nullptr || !found->source->is_kernel) return invalid_value;
  found->run = std::move(described.run);
  found->module = std::move(described.module);
  return success;
}
int cuGraphExecChildGraphNodeSetParams(void* handle, void* node, void* child) {
  FAKE_ENTRY_WITH_CONTEXT;
  GraphExec* const exec = find(driver().execs, handle);
  const Graph* const given = find(driver().graphs, child);
  if (exec == nullptr || given == nullptr) return invalid_value;
  const std::shared_ptr<ReadyNodes> nodes = ready_nodes(*given);
  ReadyNode* const found = changed(*exec, node);
  if (found == nullptr || found->source->child == nullptr || nodes == nullptr) return invalid_value;
  if (!is_alike(found->child, *nodes)) return invalid_value;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    (*nodes)[i].source = found->child[i].source;  // the child is destroyed
  }
  found->child = *nodes;
  return success;
}
int cuGraphLaunch(void* handle, void* stream) {
  FAKE_ENTRY_WITH_CONTEXT;
  const GraphExec* const exec = find(driver().execs, handle);
  Stream* const found = find(driver().streams, stream);
  if (exec == nullptr) return invalid_value;
  if (found == nullptr) return invalid_handle;
  if (found->capture != nullptr) return broken(*found->capture, "a graph");
  ++driver().counts.graph_launches;
  found->has_launches = true;
  driver().queue.push_back({.stream = found,
                            .number = ++driver().last_number,
                            .run = [nodes = exec->nodes] { return run_nodes(*nodes); },
                            .module = nullptr,
                            .after = {},
                            .is_ready = {},
                            .nodes = exec->nodes});
  return success;
}
int cuGraphExecDestroy(void* handle) {
  FAKE_ENTRY_WITH_CONTEXT;
  if (find(driver().execs, handle) == nullptr) return invalid_value;
  driver().execs.erase(handle);  // what is queued keeps what it needs
  return success;
}

// NOLINTEND(readability-identifier-naming)

}  // extern "C"
