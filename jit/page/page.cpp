// The page of an Explanation. It has no script, and its policy lets none run: names, lines and code
// are the user's, and whatever they contain is shown and no more. A link to what stands in closed
// <details> opens them; browsers do that by themselves.
#include "core/error.h"
#include "io/file.h"
#include "jit/explain.h"
#include "jit/figures.h"
#include "jit/page/drawing.h"
#include "jit/page/html.h"
#include "jit/same_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

using jit::bytes;
using jit::counted;
using jit::escaped;
using jit::PlanReport;
using jit::seconds;
using jit::text_of;
using program::StepReport;

std::string folded(std::string_view title, std::string_view text) {
  return fmt::format("<details><summary>{}</summary><pre>{}</pre></details>\n", escaped(title),
                     escaped(text));
}

std::string calls_text(uint64_t recorded, uint64_t by_plan, uint64_t in_segments, uint64_t eager) {
  std::string text = fmt::format("{} recorded, {} by a plan", recorded, by_plan);
  if (in_segments > 0) text += fmt::format(", {} in segments", in_segments);
  return text + fmt::format(", {} eager", eager);
}

/// Of small steps no more is known than that.
std::string bound_text(double time_s) {
  constexpr double least = 1e-8;
  return time_s < least ? "&lt; 0.01 us" : seconds(time_s);
}

/// Writes the parts of one page.
class Page {
 public:
  Page(const Explanation& explanation, const PageOptions& options)
      : explanation_(explanation), options_(options) {}

  [[nodiscard]] std::string text() {
    const Explanation& e = explanation_;
    add("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
        "<title>{} - explain()</title>\n<style>{}</style></head>\n<body>\n<h1>{}</h1>\n",
        escaped(e.name), jit::page_style, escaped(e.name));
    add("<p>{} in {}: {}</p>\n", counted(e.calls, "call"),
        counted(e.signatures.size(), "signature"),
        calls_text(e.recorded_calls, e.plan_calls, e.deferred_calls, e.eager_calls));
    if (e.failed_checks > 0) {
      add("<p class=\"warn\">{} discarded: a check inside a kernel failed</p>\n",
          counted(e.failed_checks, "plan run"));
    }
    for (const std::string& remark : e.remarks) add("<p class=\"warn\">{}</p>\n", escaped(remark));
    add_signatures();
    if (e.segments) add_segments(*e.segments);
    add("</body></html>\n");
    return std::move(text_);
  }

 private:
  template <class... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(values)...);
  }

  // ---- signatures

  void add_signatures() {
    const std::span<const SignatureReport> all = explanation_.signatures;
    if (all.empty()) return;
    const auto most_called = std::ranges::max_element(all, {}, &SignatureReport::calls);
    add("<h2>Signatures</h2>\n");
    for (std::size_t i = 0; i < all.size(); ++i)
      add_signature(i, &all[i] == &*most_called || all.size() == 1);
  }

  void add_signature(std::size_t number, bool is_open) {
    const std::span<const SignatureReport> all = explanation_.signatures;
    const SignatureReport& report = all[number];
    add("<details class=\"signature\"{}><summary><code>({})</code> <span class=\"tier\">{}</span> "
        "<span class=\"faint\">{}</span></summary>\n<div id=\"s{}\">\n",
        is_open ? " open" : "", escaped(report.signature), name_of(report.tier),
        counted(report.calls, "call"), number + 1);
    add("<p>{}</p>\n", calls_text(report.recorded_calls, report.plan_calls, report.deferred_calls,
                                  report.eager_calls));
    add("<p>recorded because {}</p>\n",
        report.cause.empty() ? "it was the first" : escaped(report.cause));
    for (const auto& [why, count] : report.eager_because)
      add("<p>{} eager: {}</p>\n", counted(count, "call"), escaped(why));
    if (!report.reason.empty()) {
      add("<p class=\"warn\">{} because {}{}</p>\n",
          report.tier == Tier::deferred ? "not one plan" : "eager", escaped(report.reason),
          report.place.empty() ? "" : " at <code>" + escaped(report.place) + "</code>");
    }
    if (report.tier == Tier::deferred && report.eager_s > 0) {
      add("<p>last compared: {} a call in segments, {} eagerly</p>\n", seconds(report.segments_s),
          seconds(report.eager_s));
    }
    if (report.tier == Tier::traced) {
      const SignatureReport* const like = jit::with_same_steps(report, all.first(number));
      add_plan("Plan", fmt::format("s{}p", number + 1), report.plan, report.compile_s, like);
      if (!report.graph.empty() && like == nullptr) add_ir(report.graph);
      if (report.backward) {
        add_plan("Backward", fmt::format("s{}b", number + 1), *report.backward,
                 report.backward->total_s, like);
      }
    }
    add("</div></details>\n");
  }

  void add_ir(const std::string& graph) {
    add("{}", folded("graph after the passes", by_lines(graph)));
  }

  // ---- plans

  void add_plan(std::string_view name, const std::string& id, const PlanReport& plan,
                double total_s, const SignatureReport* like) {
    add("<h3>{}: {}</h3>\n<p>made in {} (passes {}, fusion {}, kernels {}) for {}</p>\n", name,
        counted(plan.steps.size(), "step"), seconds(total_s), seconds(plan.passes_s),
        seconds(plan.fusion_s), seconds(plan.prepare_s), escaped(describe(plan.device)));
    add("<p>peak memory {}: {} temporary, {} of results; {} updated in place{}</p>\n",
        bytes(plan.peak_bytes()), bytes(plan.arena_bytes), bytes(plan.result_bytes),
        bytes(plan.in_place_bytes),
        plan.kept_bytes > 0 ? fmt::format("; {} of operands stay packed", bytes(plan.kept_bytes))
                            : "");
    const std::string graph = text_of(plan.replays);
    if (!graph.empty()) add("<p>{}</p>\n", escaped(graph));
    if (like != nullptr) {
      const auto number = like - explanation_.signatures.data() + 1;
      add("<p>The steps of <a href=\"#s{}\"><code>({})</code></a>, on other sizes.</p>\n", number,
          escaped(like->signature));
      return;
    }
    if (plan.steps.empty()) return;
    add("<input type=\"checkbox\" class=\"whole\" id=\"{0}w\"/><label for=\"{0}w\">all of it, no "
        "wider than the page</label>\n<div class=\"drawing\">{1}</div>\n",
        id, jit::drawn_graph(plan, id));
    add_steps(id, plan);
    if (plan.arena_bytes > 0) {
      add("<h3>Memory of temporaries over the steps</h3>\n<div class=\"drawing\">{}</div>\n",
          jit::drawn_memory(plan));
    }
  }

  void add_steps(const std::string& id, const PlanReport& plan) {
    const std::vector<jit::Bound> bounds = plan.bounds();
    double longest = 0, sum = 0;
    for (const jit::Bound& bound : bounds) {
      longest = std::max(longest, bound.seconds());
      sum += bound.seconds();
    }
    if (sum > 0) {
      add("<p class=\"faint\">This machine needs at least {} for a call: of each step the longer "
          "of "
          "the time for its bytes (first bar) and for its operations (second bar).</p>\n",
          seconds(sum));
    }
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const StepReport& step = plan.steps[i];
      const char* const style = step.kind == "kernel" ? "kernel-name" : "library-name";
      add("<details class=\"step\"><summary><span class=\"what\">{}. <span class=\"{}\">{}</span> "
          "{}{}</span><span class=\"where\">{}</span><span class=\"bytes\">{}</span>",
          i + 1, style, escaped(step.kind), escaped(list_of(step.ops)),
          step.launches > 1 ? fmt::format(" ({} in one launch)", step.launches) : "",
          escaped(jit::lines_of(step.places)), bytes(step.bytes_read + step.bytes_written));
      if (sum > 0) {
        add("<span class=\"bound\">{}</span>{}", bound_text(bounds[i].seconds()),
            jit::drawn_bound(bounds[i], longest));
      }
      add("</summary>\n<div id=\"{}{}\">\n", id, i + 1);
      add_details(id, plan, i);
      add("</div></details>\n");
    }
  }

  void add_details(const std::string& id, const PlanReport& plan, std::size_t number) {
    const StepReport& step = plan.steps[number];
    add("<table><tr><th></th><th>value</th><th>type</th><th>bytes</th><th></th></tr>\n");
    for (const ValueAccess& read : step.reads) {
      add_access("reads", plan, read,
                 read.from < 0 ? ""
                               : fmt::format("from <a href=\"#{}{}\">step {}</a>", id,
                                             read.from + 1, read.from + 1));
    }
    for (const ValueAccess& write : step.writes)
      add_access("writes", plan, write, plan.values[write.value].is_in_place ? "in place" : "");
    add("</table>\n");
    if (step.operations > 0) {
      const auto moved = static_cast<double>(step.bytes_read + step.bytes_written);
      add("<p>{:.3g} operations", step.operations);
      if (moved > 0) add(", {:.3g} a byte", step.operations / moved);
      add("{}</p>\n", step.is_ordered ? "; acts on the outside, in order" : "");
    }
    if (!step.places.empty()) {
      add("<p>from");
      for (const std::string& place : step.places) add(" <code>{}</code>", escaped(place));
      add("</p>\n");
    }
    if (!step.how.empty()) add("<p>{}</p>\n", escaped(step.how));
    if (step.build.origin != CodeOrigin::none) {
      const double took = step.build.emit_s + step.build.codegen_s + step.build.link_s;
      add("<p>code: {}, {}{}</p>\n", name_of(step.build.origin), bytes(step.build.code_bytes),
          step.was_cached ? ", of a kernel that was there" : ", made in " + seconds(took));
    }
    add_texts(id, plan, number);
  }

  void add_access(std::string_view how, const PlanReport& plan, const ValueAccess& access,
                  const std::string& remark) {
    const program::ValueReport& value = plan.values[access.value];
    add("<tr><td class=\"faint\">{}</td><td>{}</td><td><code>{}</code></td><td "
        "class=\"number\">{}</td><td>{}</td></tr>\n",
        how, value.name.empty() ? "temporary" : escaped(value.name), escaped(value.type),
        bytes(access.bytes), remark);
  }

  /// The kernel and its code; of steps that run the same kernel the first has it.
  void add_texts(const std::string& id, const PlanReport& plan, std::size_t number) {
    const std::string kernel = plan.kernel_text(number);
    const std::string here = fmt::format("{}{}", id, number + 1);
    if (!kernel.empty()) {
      const auto [first, is_new] = kernels_.try_emplace(kernel, here);
      if (!is_new) {
        add("<p>The kernel of <a href=\"#{}\">this step</a>.</p>\n", first->second);
        return;
      }
      add("{}", folded("kernel", kernel));
    }
    if (!options_.code) return;
    try {
      for (const CodeText& code : plan.code_texts(number))
        add("{}", folded(code.language, code.text));
    } catch (const Error& error) {
      add("<p class=\"warn\">{}</p>\n", escaped(error.what()));
    }
  }

  // ---- segments

  void add_segments(const SegmentsReport& report) {
    add("<h2>Segments</h2>\n<p>{} of {} ops left to plans; {} made; {} of {} cuts by them</p>\n",
        report.matched, report.matched + report.computed, counted(report.plans, "plan"),
        report.cuts_by_plan, report.cuts);
    if (report.run_time_numbers > 0) {
      add("<p>{} of host code come with each run</p>\n",
          counted(report.run_time_numbers, "number"));
    }
    if (report.crowded > 0) {
      add("<p class=\"warn\">{} had had so many sizes or attributes at their place that what "
          "followed ran eagerly</p>\n",
          counted(report.crowded, "op"));
    }
    add("<table><tr><th></th><th>ops</th><th>times</th><th>plans</th><th>lines</th><th>ends "
        "at</th><th>outcomes</th></tr>\n");
    for (std::size_t i = 0; i < report.segments.size(); ++i) add_segment(i + 1, report.segments[i]);
    add("</table>\n");
  }

  void add_segment(std::size_t number, const SegmentsReport::Segment& segment) {
    std::vector<std::string> lines;
    for (const std::string& place : {segment.first, segment.last}) {
      if (!place.empty() && (lines.empty() || lines.back() != place)) lines.push_back(place);
    }
    std::string ends, outcomes;
    for (const SegmentsReport::Look& look : segment.looks) {
      const std::string where = look.place.empty() ? "" : " at " + jit::lines_of({look.place});
      ends += fmt::format("<div>{}{}</div>", escaped(look.what), escaped(where));
      outcomes += look.is_bool ? fmt::format("<div>{} times true, {} false</div>", look.true_count,
                                             look.count - look.true_count)
                               : fmt::format("<div>{} times</div>", look.count);
    }
    add("<tr><td>{}.</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        number, segment.ops, segment.visits, segment.plans, escaped(jit::lines_of(lines)), ends,
        outcomes);
  }

  const Explanation& explanation_;
  const PageOptions& options_;
  std::string text_;
  std::map<std::string, std::string> kernels_;  ///< by text: the step that has it on the page
};

}  // namespace

std::string Explanation::to_html(const PageOptions& options) const {
  return Page(*this, options).text();
}

void Explanation::save_html(const std::string& path, const PageOptions& options) const {
  io::write_text("Explanation::save_html", path, to_html(options));
}

}  // namespace nitinol
