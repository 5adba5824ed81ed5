#include "jit/explain.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <ostream>
#include <span>

namespace nitinol {
namespace {

/// "12.3 us": three significant digits and the unit that suits.
std::string seconds(double value) {
  if (value >= 1) return fmt::format("{:.3g} s", value);
  if (value >= 1e-3) return fmt::format("{:.3g} ms", value * 1e3);
  return fmt::format("{:.3g} us", value * 1e6);
}

std::string bytes(std::size_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.3g} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.3g} MB", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.3g} kB", value / 1e3);
  return fmt::format("{} B", count);
}

std::string plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// "mul, add, relu" or, for repeated names, "mul x3, add".
std::string list_of(const std::vector<std::string>& ops) {
  std::vector<std::pair<std::string, int>> counted;
  for (const std::string& op : ops) {
    const auto known = std::ranges::find(counted, op, &std::pair<std::string, int>::first);
    if (known != counted.end()) {
      ++known->second;
    } else {
      counted.emplace_back(op, 1);
    }
  }
  std::string text;
  for (const auto& [name, count] : counted) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
    if (count > 1) text += fmt::format(" x{}", count);
  }
  return text;
}

/// "model.cpp:42, 44, net.cpp:7 and 3 more": files without their folders.
std::string lines_of(const std::vector<std::string>& places) {
  constexpr std::size_t most = 6;
  std::string text, file;
  for (std::size_t i = 0; i < std::min(places.size(), most); ++i) {
    const std::string place = places[i].substr(places[i].rfind('/') + 1);
    const std::size_t colon = std::min(place.rfind(':'), place.size());
    const bool is_same_file = place.substr(0, colon) == file && colon + 1 < place.size();
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        is_same_file ? place.substr(colon + 1) : place);
    file = place.substr(0, colon);
  }
  if (places.size() > most) text += fmt::format(" and {} more", places.size() - most);
  return text;
}

std::string step_text(const program::StepReport& step, std::size_t number) {
  const std::string times =
      step.launches > 1 ? fmt::format(" ({} in one launch)", step.launches) : "";
  std::string text = fmt::format("      {}. {:<8}{}{}{}\n", number, step.kind, list_of(step.ops),
                                 times, step.is_ordered ? ", in order" : "");
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

/// Whether two Plans do the same, on other sizes.
bool same_steps(const jit::PlanReport& a, const jit::PlanReport& b) {
  return std::ranges::equal(a.steps, b.steps,
                            [](const program::StepReport& m, const program::StepReport& n) {
                              return m.kind == n.kind && m.ops == n.ops && m.launches == n.launches;
                            });
}

/// `like`: an earlier signature whose Plan has the same steps, or null.
std::string plan_text(std::string_view name, const jit::PlanReport& plan, double total_s,
                      const SignatureReport* like) {
  std::string text =
      fmt::format("    {}: {} in {} (passes {}, fusion {}, kernels {})\n", name,
                  plural(plan.steps.size(), "step"), seconds(total_s), seconds(plan.passes_s),
                  seconds(plan.fusion_s), seconds(plan.prepare_s));
  if (plan.device != Device{}) {
    // What moves tensors is no part of a Plan (eager/ops/transfer.h).
    text += fmt::format("      on {}: a call copies nothing to or from the host, and waits {}{}\n",
                        describe(plan.device),
                        plan.waits == 0 ? "for nothing" : "at its end, for what its checks say",
                        plan.is_deferred ? "; who reads what it gives waits for its checks" : "");
  }
  text += fmt::format("      peak memory {}: {} temporary, {} of results; {} updated in place\n",
                      bytes(plan.peak_bytes()), bytes(plan.arena_bytes), bytes(plan.result_bytes),
                      bytes(plan.in_place_bytes));
  if (plan.kept_bytes > 0) {
    text += fmt::format(
        "      {} of operands of matmul stay packed until their Variables are assigned\n",
        bytes(plan.kept_bytes));
  }
  if (like != nullptr) {
    const auto is_new = [](const program::StepReport& step) {
      return step.build.origin != CodeOrigin::none && !step.was_cached;
    };
    const auto first = std::ranges::find_if(plan.steps, is_new);
    const std::string kernels =
        plan.kernels_generated > 0  ? plural(plan.kernels_generated, "kernel") + " generated"
        : first != plan.steps.end() ? fmt::format("kernels {}", name_of(first->build.origin))
                                    : "each kernel reused";
    return text + fmt::format("      the steps of ({}), {}\n", like->signature, kernels);
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) text += step_text(plan.steps[i], i + 1);
  return text;
}

/// The first of `earlier` whose compiled Plan does the same steps, or null.
const SignatureReport* with_same_steps(const SignatureReport& report,
                                       std::span<const SignatureReport> earlier) {
  const auto found = std::ranges::find_if(earlier, [&](const SignatureReport& other) {
    return other.tier == Tier::traced && same_steps(other.plan, report.plan) &&
           other.backward.has_value() == report.backward.has_value() &&
           (!report.backward || same_steps(*other.backward, *report.backward));
  });
  return found != earlier.end() ? &*found : nullptr;
}

std::string signature_text(const SignatureReport& report,
                           std::span<const SignatureReport> earlier) {
  std::string text = fmt::format("  ({}): {}\n", report.signature, name_of(report.tier));
  text +=
      fmt::format("    {}: {} recorded, {} by the plan, {} eager\n", plural(report.calls, "call"),
                  report.recorded_calls, report.plan_calls, report.eager_calls);
  if (!report.cause.empty()) text += fmt::format("    recorded because {}\n", report.cause);
  for (const auto& [why, count] : report.eager_because)
    text += fmt::format("    {} eager: {}\n", plural(count, "call"), why);
  if (!report.reason.empty()) text += fmt::format("    eager because {}\n", report.reason);
  if (!report.place.empty()) text += fmt::format("      at {}\n", report.place);
  if (report.tier != Tier::traced) return text;
  const SignatureReport* const like = with_same_steps(report, earlier);
  text += plan_text("plan", report.plan, report.compile_s, like);
  if (report.backward)
    text += plan_text("backward", *report.backward, report.backward->total_s, like);
  return text;
}

nlohmann::json json_of(const program::StepReport& step) {
  return {{"kind", step.kind},
          {"ops", step.ops},
          {"places", step.places},
          {"launches", step.launches},
          {"ordered", step.is_ordered},
          {"bytes_read", step.bytes_read},
          {"bytes_written", step.bytes_written},
          {"code", name_of(step.build.origin)},
          {"cached", step.was_cached},
          {"emit_s", step.build.emit_s},
          {"codegen_s", step.build.codegen_s},
          {"link_s", step.build.link_s},
          {"code_bytes", step.build.code_bytes},
          {"how", step.how}};
}

nlohmann::json json_of(const jit::PlanReport& plan) {
  nlohmann::json steps = nlohmann::json::array();
  for (const program::StepReport& step : plan.steps) steps.push_back(json_of(step));
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
          {"steps", std::move(steps)}};
}

nlohmann::json json_of(const SignatureReport& report) {
  nlohmann::json json = json_of(report.plan);
  json.update({{"signature", report.signature},
               {"tier", name_of(report.tier)},
               {"calls", report.calls},
               {"recorded_calls", report.recorded_calls},
               {"plan_calls", report.plan_calls},
               {"eager_calls", report.eager_calls},
               {"eager_because", nlohmann::json(report.eager_because)},
               {"cause", report.cause},
               {"reason", report.reason},
               {"place", report.place},
               {"compile_s", report.compile_s},
               {"graph", report.graph}});
  if (report.backward) json["backward"] = json_of(*report.backward);
  return json;
}

}  // namespace

std::string_view name_of(Tier tier) {
  switch (tier) {
    case Tier::recorded:
      return "recorded, not compiled yet";
    case Tier::traced:
      return "compiled";
    case Tier::eager:
      return "eager";
  }
  return "";
}

std::string to_string(const Explanation& explanation) {
  std::string text =
      fmt::format("{}: {} in {}\n", explanation.name, plural(explanation.calls, "call"),
                  plural(explanation.signatures.size(), "signature"));
  text += fmt::format("  {} by plans, {} recorded, {} eager\n", explanation.plan_calls,
                      explanation.recorded_calls, explanation.eager_calls);
  if (explanation.failed_checks > 0) {
    text += fmt::format("  {} discarded: a check inside a kernel failed\n",
                        plural(explanation.failed_checks, "plan run"));
  }
  const std::span<const SignatureReport> signatures = explanation.signatures;
  for (std::size_t i = 0; i < signatures.size(); ++i)
    text += signature_text(signatures[i], signatures.first(i));
  for (const std::string& remark : explanation.remarks)
    text += fmt::format("  remark: {}\n", remark);
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Explanation& explanation) {
  return stream << to_string(explanation);
}

std::string Explanation::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const SignatureReport& report : signatures) list.push_back(json_of(report));
  const nlohmann::json object = {{"name", name},
                                 {"calls", calls},
                                 {"recorded_calls", recorded_calls},
                                 {"plan_calls", plan_calls},
                                 {"eager_calls", eager_calls},
                                 {"failed_checks", failed_checks},
                                 {"signatures", std::move(list)},
                                 {"remarks", remarks}};
  return object.dump(2);
}

}  // namespace nitinol
