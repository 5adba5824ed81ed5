// Order: what kernels cannot express is rewritten first, so that the others see graphs whose
// layouts are known. Folding makes constants of what the rest would look at; simplify then reads
// past nodes, which makes more of them equal, and so do sinking and hoisting; merging leaves the
// unused ones to remove_dead. fail_first comes last, as all others keep the program's order.
#include "jit/passes/pipeline.h"

#include "core/environment.h"
#include "core/fork.h"
#include "core/log.h"
#include "core/profiling.h"
#include "jit/passes/fail_first.h"
#include "jit/passes/fill_empty.h"
#include "jit/passes/fold_constants.h"
#include "jit/passes/hoist_views.h"
#include "jit/passes/materialise_views.h"
#include "jit/passes/merge_duplicates.h"
#include "jit/passes/remove_dead.h"
#include "jit/passes/simplify.h"
#include "jit/passes/sink_concats.h"
#include "jit/passes/sink_reshapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <utility>

namespace nitinol::jit {
namespace {

constexpr Pass passes[] = {
    {"fill_empty", fill_empty, Pass::Need::required},
    {"materialise_views", materialise_views, Pass::Need::required},
    {"fold_constants", fold_constants},
    {"simplify", simplify},
    {"sink_reshapes", sink_reshapes},
    {"sink_concats", sink_concats},
    {"hoist_views", hoist_views},
    {"merge_duplicates", merge_duplicates},
    {"remove_dead", remove_dead},
    {"fail_first", fail_first, Pass::Need::required},
};

/// What the planner does after the passes and can leave out too.
constexpr std::array<std::string_view, 6> planning = {
    "trim_images", "fuse", "pack_operands", "horizontal_fusion", "overlap", "cuda_graph"};

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// "llvm" and "asm" are the code generator's.
std::vector<std::string_view> dumpable_names() {
  std::vector<std::string_view> names = {"graph", "all", "llvm", "asm"};
  for (const Pass& pass : passes) names.push_back(pass.name);
  return names;
}

void note_unknown(const std::vector<std::string>& given, const std::vector<std::string_view>& known,
                  std::string_view use) {
  for (const std::string& name : given) {
    if (std::ranges::find(known, name) != known.end()) continue;
    log(LogLevel::warning, fmt::format("there is no pass '{}' to {}; there are {}", name, use,
                                       fmt::join(known, ", ")));
  }
}

/// The process's options with the lock that guards them.
struct SharedOptions {
  ForkSafeMutex mutex;
  PassOptions options{.disabled = environment_list("NITINOL_DISABLE_PASSES", optional_passes()),
                      .dumped = environment_list("NITINOL_DUMP", dumpable_names())};
};

SharedOptions& shared_options() {
  static SharedOptions& shared = *new SharedOptions;  // static destructors may compile
  return shared;
}

void dump(std::string_view title, std::string graph_text) {
  const std::string page = fmt::format("-- {}\n{}\n", title, by_lines(std::move(graph_text)));
  std::fwrite(page.data(), 1, page.size(), stderr);
}

void check([[maybe_unused]] const Graph& graph, [[maybe_unused]] std::string_view stage) {
#ifndef NDEBUG
  verify(graph, stage);
#endif
}

}  // namespace

std::span<const Pass> all_passes() {
  return passes;
}

std::vector<std::string_view> optional_passes() {
  std::vector<std::string_view> names(planning.begin(), planning.end());
  for (const Pass& pass : passes) {
    if (pass.need == Pass::Need::optional) names.push_back(pass.name);
  }
  return names;
}

PassOptions pass_options() {
  SharedOptions& shared = shared_options();
  const std::lock_guard lock(shared.mutex);
  return shared.options;
}

void set_pass_options(PassOptions options) {
  note_unknown(options.disabled, optional_passes(), "switch off");
  note_unknown(options.dumped, dumpable_names(), "print");
  SharedOptions& shared = shared_options();
  const std::lock_guard lock(shared.mutex);
  shared.options = std::move(options);
}

bool PassOptions::has(std::string_view name) const {
  return !contains(disabled, name);
}

Graph run_passes(Graph graph, const PassOptions& options) {
  const bool dumps_all = contains(options.dumped, "all");
  const bool dumps_graph = dumps_all || contains(options.dumped, "graph");
  check(graph, "recording");
  if (dumps_graph) dump("recorded", to_string(graph));
  std::vector<Pass> all(std::begin(passes), std::end(passes));
  all.insert(all.end(), options.added.begin(), options.added.end());
  for (const Pass& pass : all) {
    const bool is_enabled = pass.need == Pass::Need::required || options.has(pass.name);
    const bool is_dumped = dumps_all || contains(options.dumped, pass.name);
    const std::string before = is_dumped ? to_string(graph) : "";
    if (is_enabled) {
      const profiling::Span span(EventKind::compile, pass.name);
      graph = pass.run(std::move(graph));
    }
    check(graph, pass.name);
    if (!is_dumped) continue;
    if (std::string after = to_string(graph); after != before) dump(pass.name, std::move(after));
  }
  if (dumps_graph) dump("after the passes", to_string(graph));
  return graph;
}

}  // namespace nitinol::jit
