#include "jit/shadow_search.h"

#include "core/clock.h"
#include "core/log.h"
#include "jit/op_by_op.h"
#include "jit/passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace nitinol::jit {
namespace {

constexpr int most_trials = 400;
constexpr double most_seconds = 30;

/// Constants that the text of a graph does not show.
constexpr int64_t shown_elements = 16;

class Search {
 public:
  Search(Experiment experiment, Variation variation)
      : smallest_(std::move(experiment)), variation_(std::move(variation)) {}

  Finding run() {
    if (!still_differs()) {
      return {.cause = "nothing that could be found: run again, it was the same bits",
              .difference = {},
              .smallest = std::move(smallest_),
              .variation = std::move(variation_),
              .is_repeated = false};
    }
    cut_down();
    std::string cause = cause_of();
    return {.cause = std::move(cause),
            .difference = found_.text,
            .smallest = std::move(smallest_),
            .variation = std::move(variation_)};
  }

 private:
  // ---- trials

  [[nodiscard]] bool has_time() const {
    return trials_ < most_trials && precise_now() - start_ < most_seconds;
  }
  std::optional<Difference> tried(const Experiment& experiment, const Variation& variation) {
    ++trials_;
    return difference(experiment, variation);
  }
  bool differs(const Variation& variation) { return tried(smallest_, variation).has_value(); }
  bool still_differs() {
    constexpr int most_times = 3;  // threads may have to meet
    for (int i = 0; i < most_times; ++i) {
      if (auto found = tried(smallest_, variation_)) {
        found_ = std::move(*found);
        return true;
      }
    }
    return false;
  }
  /// Goes on with it if it differs, too.
  bool take(Experiment smaller) {
    if (!has_time()) return false;
    std::optional<Difference> found = tried(smaller, variation_);
    if (!found) return false;
    smallest_ = std::move(smaller);
    found_ = std::move(*found);
    return true;
  }

  // ---- cutting down

  using Cut = std::vector<bool>;  ///< per value

  [[nodiscard]] std::vector<Tensor> values() const {
    return values_op_by_op(smallest_.graph, smallest_.inputs);
  }
  [[nodiscard]] const Graph& graph() const { return smallest_.graph; }

  void cut_down() {
    variation_.updates_in_place = true;
    Variation apart = variation_;
    apart.updates_in_place = false;
    if (differs(apart)) variation_ = apart;
    if (found_.output >= graph().outputs.size()) return;  // of a check: there is no value to follow
    cut_constants();
    choose_outputs();
    if (graph().outputs.size() == 1) choose_output();
    cut_beginning();
    cut_each();
  }

  /// Constants become inputs, so that the graph's text says all of it.
  void cut_constants() {
    Cut cut(graph().nodes.size());
    for (Value v = 0; v < graph().nodes.size(); ++v) {
      const Node& node = graph()[v];
      cut[v] = node.kind == Node::Kind::constant && node.constant.size() > shown_elements;
    }
    if (std::ranges::find(cut, true) != cut.end())
      take(part_of(smallest_, values(), cut, graph().outputs));
  }

  /// The one that differs, or as few as do.
  void choose_outputs() {
    const std::vector<Tensor> known = values();
    const Cut none(graph().nodes.size());
    const Value differing = graph().outputs[found_.output];
    if (take(part_of(smallest_, known, none, {&differing, 1}))) return;
    for (std::size_t i = graph().outputs.size(); i-- > 0 && graph().outputs.size() > 1;) {
      std::vector<Value> fewer = graph().outputs;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      take(part_of(smallest_, values(), Cut(graph().nodes.size()), fewer));
    }
  }

  /// An earlier value that differs already, instead of the output.
  void choose_output() {
    std::vector<Value> candidates;
    for (Value v = 0; v < graph().nodes.size(); ++v) {
      const Node& node = graph()[v];
      const bool is_value = node.kind == Node::Kind::op || node.kind == Node::Kind::part;
      if (is_value && !has_parts(node)) candidates.push_back(v);
    }
    const Experiment whole = smallest_;
    const std::vector<Tensor> known = values();
    const Cut none(whole.graph.nodes.size());
    std::size_t low = 0, high = candidates.size();  // those from `high` on differ
    while (low + 1 < high && has_time()) {
      const std::size_t middle = (low + high) / 2;
      const bool is_wrong = take(part_of(whole, known, none, {&candidates[middle - 1], 1}));
      (is_wrong ? high : low) = middle;
    }
    if (low == 0 && !candidates.empty())
      take(part_of(whole, known, none, {&candidates.front(), 1}));
  }

  /// As many of the first values as possible become inputs.
  void cut_beginning() {
    const Experiment whole = smallest_;
    const std::vector<Tensor> known = values();
    std::size_t low = 0, high = whole.graph.nodes.size();
    while (low + 1 < high && has_time()) {
      const std::size_t middle = (low + high) / 2;
      const bool is_wrong =
          take(part_of(whole, known, cut_before(whole.graph, middle), whole.graph.outputs));
      (is_wrong ? low : high) = middle;
    }
  }
  [[nodiscard]] static Cut cut_before(const Graph& graph, std::size_t count) {
    Cut cut(graph.nodes.size());
    for (Value v = 0; v < count; ++v) cut[v] = can_be_cut(graph, v);
    return cut;
  }
  [[nodiscard]] static bool can_be_cut(const Graph& graph, Value v) {
    const Node& node = graph[v];
    return node.kind == Node::Kind::op && !has_parts(node) &&
           std::ranges::find(graph.outputs, v) == graph.outputs.end();
  }

  /// Each value that can be becomes an input.
  void cut_each() {
    for (auto v = static_cast<Value>(graph().nodes.size()); v-- > 0;) {
      v = std::min(v, static_cast<Value>(graph().nodes.size() - 1));
      if (!can_be_cut(graph(), v)) continue;
      Cut cut(graph().nodes.size());
      cut[v] = true;
      take(part_of(smallest_, values(), cut, graph().outputs));
    }
  }

  // ---- naming

  std::string cause_of() {
    if (variation_.updates_in_place)
      return "that results are stored over what they are made of: elsewhere, the bits are the same";
    if (variation_.threads > 1) {
      Variation alone = variation_;
      alone.threads = 1;
      if (!differs(alone)) {
        return fmt::format("{} threads: with one, the bits are the same", variation_.threads);
      }
    }
    std::vector<std::string> guilty, all;
    for (const std::string& name : optional_names()) {
      all.push_back(name);
      Variation without = variation_;
      without.left_out = {name};
      if (!differs(without)) guilty.push_back(name);
    }
    Variation bare = variation_;
    bare.left_out = all;
    const bool is_kernel = guilty == std::vector<std::string>{"fuse"};
    if (is_kernel || (guilty.empty() && differs(bare))) return cause_in_steps(is_kernel);
    if (guilty.empty()) return "several passes together: with all left out, the bits are the same";
    return fmt::format("the pass{} {}: left out, the bits are the same",
                       guilty.size() == 1 ? "" : "es (each of them)",
                       fmt::format("`{}`", fmt::join(guilty, "`, `")));
  }

  [[nodiscard]] static std::vector<std::string> optional_names() {
    std::vector<std::string> names;
    for (const std::string_view name : optional_passes()) names.emplace_back(name);
    for (const Pass& pass : pass_options().added) names.emplace_back(pass.name);
    return names;
  }

  /// What passes have nothing to do with.
  std::string cause_in_steps(bool is_fused) {
    std::string steps;
    bool are_kernels = true;
    for (const PlannedStep& step : planned_steps(smallest_, variation_)) {
      steps += fmt::format("{}the {} `{}`", steps.empty() ? "" : ", ", step.kind, step.ops);
      are_kernels &= step.kind == "kernel";
    }
    std::string text = steps;
    if (is_fused) text += ", where each op alone gives the same bits";
    if (!are_kernels) return text;
    const std::optional<Experiment> there = interpreted(smallest_);
    if (!there) return text;
    const std::optional<bool> is_right = gives_right_bits(*there);
    if (!is_right) return text;
    return text + (*is_right
                       ? ": interpreted it gives the right bits, so the code generated for it "
                         "is wrong"
                       : ": interpreted it gives wrong bits, too, so what it is made of is "
                         "wrong: fusion, or how an op is lowered");
  }

  /// Whether the interpreter's bits are those that eager's loops give here.
  std::optional<bool> gives_right_bits(const Experiment& there) {
    const std::optional<std::vector<Tensor>> got = plan_outputs(there, variation_);
    if (!got) return std::nullopt;
    const std::vector<Tensor> expected = outputs_op_by_op(graph(), smallest_.inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Tensor back = laid_out((*got)[i], expected[i].spec(), {});
      if (first_difference(back, expected[i])) return false;
    }
    return true;
  }

  Experiment smallest_;
  Variation variation_;
  Difference found_;
  int trials_ = 0;
  const double start_ = precise_now();
};

}  // namespace

Finding find_cause(const Experiment& experiment, const Variation& variation) {
  log(LogLevel::info, "shadow: bits differ; looks for the cause");
  return Search(experiment, variation).run();
}

}  // namespace nitinol::jit
