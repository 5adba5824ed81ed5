#include "jit/explain.h"

#include "jit/figures.h"
#include "jit/same_steps.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <ostream>
#include <span>

namespace nitinol {
namespace {

using jit::bytes;
using jit::counted;
using jit::lines_of;
using jit::seconds;
using jit::with_same_steps;

std::string step_text(const program::StepReport& step, std::size_t number) {
  const std::string times =
      step.launches > 1 ? fmt::format(" ({} in one launch)", step.launches) : "";
  std::string order = step.is_ordered ? ", in order" : "";
  if (step.beside == 1) order += ", beside the next one";
  if (step.beside > 1) order += fmt::format(", beside the next {}", step.beside);
  std::string text =
      fmt::format("      {}. {:<8}{}{}{}\n", number, step.kind, list_of(step.ops), times, order);
  std::string detail =
      fmt::format("reads {}, writes {}", bytes(step.bytes_read), bytes(step.bytes_written));
  if (step.build.origin != CodeOrigin::none) {
    const double took = step.build.emit_s + step.build.codegen_s + step.build.link_s;
    detail += step.was_cached ? ", kernel reused"
                              : fmt::format(", {} in {} ({} of code)", name_of(step.build.origin),
                                            seconds(took), bytes(step.build.code_bytes));
  }
  constexpr std::string_view indent = "                 ";
  text += fmt::format("{}{}\n", indent, detail);
  if (!step.places.empty()) text += fmt::format("{}from {}\n", indent, lines_of(step.places));
  if (!step.how.empty()) text += fmt::format("{}{}\n", indent, step.how);
  return text;
}

/// `like`: an earlier signature whose Plan has the same steps, or null.
std::string plan_text(std::string_view name, const jit::PlanReport& plan, double total_s,
                      const SignatureReport* like) {
  std::string text =
      fmt::format("    {}: {} in {} (passes {}, fusion {}, kernels {})\n", name,
                  counted(plan.steps.size(), "step"), seconds(total_s), seconds(plan.passes_s),
                  seconds(plan.fusion_s), seconds(plan.prepare_s));
  if (plan.device != Device{}) {
    // What moves tensors is no part of a Plan (eager/ops/transfer.h).
    const bool has_ordered = std::ranges::any_of(plan.steps, &program::StepReport::is_ordered);
    text +=
        fmt::format("      on {}: {}a call copies nothing to or from the host, and waits {}{}\n",
                    describe(plan.device), has_ordered ? "but for its steps in order, " : "",
                    plan.waits == 0 ? "for nothing" : "at its end, for what its checks say",
                    plan.is_deferred ? "; who reads what it gives waits for its checks" : "");
  }
  text += fmt::format("      peak memory {}: {} temporary, {} of results; {} updated in place\n",
                      bytes(plan.peak_bytes()), bytes(plan.arena_bytes), bytes(plan.result_bytes),
                      bytes(plan.in_place_bytes));
  const std::string graph = jit::text_of(plan.replays);
  if (!graph.empty()) text += fmt::format("      {}\n", graph);
  if (plan.kept_bytes > 0) {
    text += fmt::format(
        "      {} of operands of matmul and conv2d stay packed until their Variables are "
        "assigned\n",
        bytes(plan.kept_bytes));
  }
  if (like != nullptr) {
    const auto is_new = [](const program::StepReport& step) {
      return step.build.origin != CodeOrigin::none && !step.was_cached;
    };
    const auto first = std::ranges::find_if(plan.steps, is_new);
    const std::string kernels =
        plan.kernels_generated > 0  ? counted(plan.kernels_generated, "kernel") + " generated"
        : first != plan.steps.end() ? fmt::format("kernels {}", name_of(first->build.origin))
                                    : "each kernel reused";
    return text + fmt::format("      the steps of ({}), {}\n", like->signature, kernels);
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) text += step_text(plan.steps[i], i + 1);
  return text;
}

std::string in_segments(uint64_t calls) {
  return calls > 0 ? fmt::format("{} in segments, ", calls) : "";
}

std::string look_text(const SegmentsReport::Look& look) {
  std::string text =
      fmt::format("{}{}: {} times", look.what,
                  look.place.empty() ? "" : " at " + lines_of({look.place}), look.count);
  if (look.is_bool) {
    text = fmt::format("{}{}: {} times true, {} false", look.what,
                       look.place.empty() ? "" : " at " + lines_of({look.place}), look.true_count,
                       look.count - look.true_count);
  }
  return text;
}

std::string segments_text(const SegmentsReport& report) {
  constexpr std::size_t most = 12;
  std::string text =
      fmt::format("  segments: {} of {} ops left to plans; {}; {} of {} cuts by them\n",
                  report.matched, report.matched + report.computed,
                  counted(report.plans, "plan") + " made", report.cuts_by_plan, report.cuts);
  if (report.run_time_numbers > 0) {
    text += fmt::format("    {} of host code changed, and {} with each run\n",
                        counted(report.run_time_numbers, "number"),
                        report.run_time_numbers == 1 ? "comes" : "come");
  }
  if (report.crowded > 0) {
    text += fmt::format(
        "    {} had had so many sizes or attributes at their place that what followed ran "
        "eagerly\n",
        counted(report.crowded, "op"));
    for (const auto& [place, count] : report.crowded_at) {
      if (!place.empty()) text += fmt::format("      {}: {} times\n", place, count);
    }
  }
  for (std::size_t i = 0; i < std::min(report.segments.size(), most); ++i) {
    const SegmentsReport::Segment& segment = report.segments[i];
    text += fmt::format("    {}. {}, {} times, {}", i + 1, counted(segment.ops, "op"),
                        segment.visits, counted(segment.plans, "plan"));
    std::vector<std::string> lines;
    for (const std::string& place : {segment.first, segment.last}) {
      if (!place.empty() && (lines.empty() || lines.back() != place)) lines.push_back(place);
    }
    if (!lines.empty()) text += fmt::format(": from {}", lines_of(lines));
    text += '\n';
    for (const SegmentsReport::Look& look : segment.looks)
      text += fmt::format("       then {}\n", look_text(look));
  }
  if (report.segments.size() > most)
    text += fmt::format("    and {} more\n", report.segments.size() - most);
  return text;
}

/// Of calls in segments and eager ones.
std::string comparison_text(const SignatureReport& report) {
  if (report.eager_s <= 0) return "";
  std::string text = fmt::format("    last compared: {} a call in segments, {} eagerly",
                                 seconds(report.segments_s), seconds(report.eager_s));
  const double saved =
      (report.eager_s - report.segments_s) * static_cast<double>(report.deferred_calls);
  if (saved > 0) text += fmt::format("; about {} saved", seconds(saved));
  return text + '\n';
}

std::string signature_text(const SignatureReport& report,
                           std::span<const SignatureReport> earlier) {
  std::string text = fmt::format("  ({}): {}\n", report.signature, name_of(report.tier));
  text += fmt::format("    {}: {} recorded, {} by the plan, {}{} eager\n",
                      counted(report.calls, "call"), report.recorded_calls, report.plan_calls,
                      in_segments(report.deferred_calls), report.eager_calls);
  if (!report.cause.empty()) text += fmt::format("    recorded because {}\n", report.cause);
  for (const auto& [why, count] : report.eager_because)
    text += fmt::format("    {} eager: {}\n", counted(count, "call"), why);
  if (!report.reason.empty()) {
    text += fmt::format("    {} because {}\n",
                        report.tier == Tier::deferred ? "not one plan" : "eager", report.reason);
  }
  if (!report.place.empty()) text += fmt::format("      at {}\n", report.place);
  if (report.tier == Tier::deferred) text += comparison_text(report);
  if (report.tier != Tier::traced) return text;
  const SignatureReport* const like = with_same_steps(report, earlier);
  text += plan_text("plan", report.plan, report.compile_s, like);
  if (report.backward)
    text += plan_text("backward", *report.backward, report.backward->total_s, like);
  return text;
}

nlohmann::json json_of(const std::vector<ValueAccess>& accesses) {
  nlohmann::json list = nlohmann::json::array();
  for (const ValueAccess& access : accesses) {
    list.push_back({{"value", access.value}, {"bytes", access.bytes}});
    if (access.from >= 0) list.back()["from"] = access.from;
  }
  return list;
}

nlohmann::json json_of(const program::ValueReport& value) {
  using Kind = program::ValueReport::Kind;
  constexpr std::string_view kinds[] = {"input", "constant", "temporary", "output"};
  nlohmann::json json = {{"kind", kinds[static_cast<std::size_t>(value.kind)]},
                         {"name", value.name},
                         {"type", value.type},
                         {"bytes", value.bytes},
                         {"first_step", value.first_step},
                         {"last_step", value.last_step}};
  if (value.kind == Kind::temporary) json["offset"] = value.offset;
  if (value.kind == Kind::output || value.kind == Kind::temporary)
    json["in_place"] = value.is_in_place;
  return json;
}

nlohmann::json json_of(const program::StepReport& step) {
  return {{"kind", step.kind},
          {"ops", step.ops},
          {"places", step.places},
          {"launches", step.launches},
          {"ordered", step.is_ordered},
          {"beside", step.beside},
          {"bytes_read", step.bytes_read},
          {"bytes_written", step.bytes_written},
          {"operations", step.operations},
          {"reads", json_of(step.reads)},
          {"writes", json_of(step.writes)},
          {"code", name_of(step.build.origin)},
          {"cached", step.was_cached},
          {"emit_s", step.build.emit_s},
          {"codegen_s", step.build.codegen_s},
          {"link_s", step.build.link_s},
          {"code_bytes", step.build.code_bytes},
          {"how", step.how}};
}

nlohmann::json json_of(const jit::PlanReport& plan, Bounds wanted) {
  nlohmann::json steps = nlohmann::json::array();
  std::vector<jit::Bound> bounds;
  if (wanted == Bounds::measured) bounds = plan.bounds();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    steps.push_back(json_of(plan.steps[i]));
    if (!bounds.empty()) steps.back()["bound_s"] = bounds[i].seconds();
    steps.back()["kernel"] = plan.kernel_text(i);
  }
  nlohmann::json values = nlohmann::json::array();
  for (const program::ValueReport& value : plan.values) values.push_back(json_of(value));
  return {{"device", describe(plan.device)},
          {"waits", plan.waits},
          {"deferred_checks", plan.is_deferred},
          {"passes_s", plan.passes_s},
          {"fusion_s", plan.fusion_s},
          {"prepare_s", plan.prepare_s},
          {"arena_bytes", plan.arena_bytes},
          {"result_bytes", plan.result_bytes},
          {"in_place_bytes", plan.in_place_bytes},
          {"peak_bytes", plan.peak_bytes()},
          {"kept_bytes", plan.kept_bytes},
          {"kernels_generated", plan.kernels_generated},
          {"replays",
           {{"count", plan.replays.replays},
            {"made", plan.replays.made},
            {"updated", plan.replays.updated},
            {"why_not", plan.replays.why_not}}},
          {"steps", std::move(steps)},
          {"values", std::move(values)}};
}

nlohmann::json json_of(const SegmentsReport& report) {
  nlohmann::json list = nlohmann::json::array();
  for (const SegmentsReport::Segment& segment : report.segments) {
    nlohmann::json looks = nlohmann::json::array();
    for (const SegmentsReport::Look& look : segment.looks) {
      looks.push_back({{"what", look.what}, {"place", look.place}, {"count", look.count}});
      if (look.is_bool) looks.back()["true"] = look.true_count;
    }
    list.push_back({{"ops", segment.ops},
                    {"visits", segment.visits},
                    {"plans", segment.plans},
                    {"first", segment.first},
                    {"last", segment.last},
                    {"looks", std::move(looks)}});
  }
  return {{"calls", report.calls},
          {"matched", report.matched},
          {"computed", report.computed},
          {"cuts", report.cuts},
          {"cuts_by_plan", report.cuts_by_plan},
          {"plans", report.plans},
          {"run_time_numbers", report.run_time_numbers},
          {"crowded", report.crowded},
          {"crowded_at", nlohmann::json(report.crowded_at)},
          {"segments", std::move(list)}};
}

nlohmann::json json_of(const SignatureReport& report, Bounds bounds) {
  nlohmann::json json = json_of(report.plan, bounds);
  json.update({{"signature", report.signature},
               {"tier", name_of(report.tier)},
               {"calls", report.calls},
               {"recorded_calls", report.recorded_calls},
               {"plan_calls", report.plan_calls},
               {"deferred_calls", report.deferred_calls},
               {"eager_calls", report.eager_calls},
               {"eager_because", nlohmann::json(report.eager_because)},
               {"cause", report.cause},
               {"reason", report.reason},
               {"place", report.place},
               {"segments_s", report.segments_s},
               {"eager_s", report.eager_s},
               {"compile_s", report.compile_s},
               {"graph", report.graph}});
  if (report.backward) json["backward"] = json_of(*report.backward, bounds);
  return json;
}

}  // namespace

std::string_view name_of(Tier tier) {
  switch (tier) {
    case Tier::recorded:
      return "recorded, not compiled yet";
    case Tier::traced:
      return "compiled";
    case Tier::deferred:
      return "compiled in segments";
    case Tier::eager:
      return "eager";
  }
  return "";
}

std::string to_string(const Explanation& explanation) {
  std::string text =
      fmt::format("{}: {} in {}\n", explanation.name, counted(explanation.calls, "call"),
                  counted(explanation.signatures.size(), "signature"));
  text += fmt::format("  {} by plans, {} recorded, {}{} eager\n", explanation.plan_calls,
                      explanation.recorded_calls, in_segments(explanation.deferred_calls),
                      explanation.eager_calls);
  if (explanation.failed_checks > 0) {
    text += fmt::format("  {} discarded: a check inside a kernel failed\n",
                        counted(explanation.failed_checks, "plan run"));
  }
  const std::span<const SignatureReport> signatures = explanation.signatures;
  for (std::size_t i = 0; i < signatures.size(); ++i)
    text += signature_text(signatures[i], signatures.first(i));
  if (explanation.segments) text += segments_text(*explanation.segments);
  for (const std::string& remark : explanation.remarks)
    text += fmt::format("  remark: {}\n", remark);
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Explanation& explanation) {
  return stream << to_string(explanation);
}

std::string Explanation::to_json(Bounds bounds) const {
  nlohmann::json list = nlohmann::json::array();
  for (const SignatureReport& report : signatures) list.push_back(json_of(report, bounds));
  nlohmann::json object = {{"name", name},
                           {"calls", calls},
                           {"recorded_calls", recorded_calls},
                           {"plan_calls", plan_calls},
                           {"deferred_calls", deferred_calls},
                           {"eager_calls", eager_calls},
                           {"failed_checks", failed_checks},
                           {"signatures", std::move(list)},
                           {"remarks", remarks}};
  if (segments) object["segments"] = json_of(*segments);
  return object.dump(2);
}

}  // namespace nitinol
