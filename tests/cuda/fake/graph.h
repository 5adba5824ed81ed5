// Graphs as the fake driver holds them, and what a stream notes while it is captured.
#pragma once

#include "tests/cuda/fake/module.h"

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <vector>

namespace nitinol::test {

struct Graph;

/// A launch, work of a library, or a graph.
struct GraphNode {
  std::vector<const GraphNode*> after;
  std::function<bool()> run;
  std::shared_ptr<Module> module;  ///< of a launch
  bool is_kernel = false;          ///< added as one
  std::shared_ptr<const Graph> child;
};

struct Graph {
  int device = 0;
  std::list<GraphNode> nodes;  ///< in the order in which they were added
};

/// What a graph does, in an order that its edges allow: of the nodes that may come next always the
/// one that was added last, so that an edge that is missing is seen.
struct ReadyNode {
  const GraphNode* source = nullptr;
  std::function<bool()> run;
  std::shared_ptr<Module> module;
  std::vector<ReadyNode> child;
};
using ReadyNodes = std::vector<ReadyNode>;

struct GraphExec {
  int device = 0;
  const Graph* source = nullptr;
  std::shared_ptr<const ReadyNodes> nodes;  ///< a launch keeps those that it was asked for with
};

/// Of a stream, from the beginning of a capture to its end.
struct Capture {
  std::shared_ptr<Graph> graph;
  std::thread::id thread;
  int mode = 0;
  bool is_broken = false;
};

/// Empty if a dependency leads nowhere.
[[nodiscard]] std::shared_ptr<ReadyNodes> ready_nodes(const Graph& graph);
[[nodiscard]] bool run_nodes(const ReadyNodes& nodes);
[[nodiscard]] bool uses_module(const ReadyNodes& nodes, const Module& module);

}  // namespace nitinol::test
