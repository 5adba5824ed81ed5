// What a Profile notes of eager ops, compiled calls, ways back, threads and forks; and the table
// that is made of it.
#include "jit/profile.h"

#include "nitinol.h"
#include "tests/in_child.h"
#include "tests/jit/calls.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <thread>

using namespace nitinol;
using namespace nitinol::test;

namespace nitinol::profile_test {

using Indices = std::vector<std::size_t>;

/// Numbers of the events of a kind, of this name unless it is empty.
Indices find(const ProfileReport& report, EventKind kind, std::string_view name = "") {
  Indices found;
  for (std::size_t i = 0; i < report.events.size(); ++i) {
    const ProfileLabel& label = report.labels[report.events[i].label];
    if (label.kind == kind && (name.empty() || label.name == name)) found.push_back(i);
  }
  return found;
}

const ProfileLabel& label_of(const ProfileReport& report, std::size_t event) {
  return report.labels[report.events[event].label];
}

/// Whether `outer` contains `inner`, by parents.
bool is_in(const ProfileReport& report, std::size_t inner, std::size_t outer) {
  for (auto i = static_cast<std::ptrdiff_t>(inner); i >= 0;
       i = report.events[static_cast<std::size_t>(i)].parent) {
    if (static_cast<std::size_t>(i) == outer) return true;
  }
  return false;
}

/// Lines of this file among the places; without line tables there are none.
std::vector<int> lines_of(const std::vector<std::string>& places) {
  std::vector<int> lines;
  for (const std::string& place : places) {
    const std::size_t colon = place.rfind(':');
    if (place.substr(0, colon).ends_with("profile_test.cpp"))
      lines.push_back(std::stoi(place.substr(colon + 1)));
  }
  return lines;
}

bool has_places() {
  const Profile profile;
  static_cast<void>(exp(ones({2})));
  return !profile.report().labels.at(0).places.empty();
}

/// Every event is inside its parent, and takes at least as long as those inside it.
void check_nesting(const ProfileReport& report) {
  std::vector<double> inside(report.events.size());
  for (std::size_t i = 0; i < report.events.size(); ++i) {
    const ProfileEvent& event = report.events[i];
    CHECK(event.length_s >= 0);
    CHECK(event.begin_s + event.length_s <= report.length_s + 1e-9);
    if (event.parent < 0) continue;
    const auto p = static_cast<std::size_t>(event.parent);
    REQUIRE(p < i);
    const ProfileEvent& parent = report.events[p];
    CHECK(parent.thread == event.thread);
    CHECK(parent.begin_s <= event.begin_s);
    CHECK(parent.begin_s + parent.length_s >= event.begin_s + event.length_s - 1e-12);
    inside[p] += event.length_s;
  }
  for (std::size_t i = 0; i < report.events.size(); ++i)
    CHECK(report.events[i].self_s == Approx(report.events[i].length_s - inside[i]).margin(1e-9));
}

TEST_CASE("a profile notes eager ops with operands, lines, bytes and operations",
          "[jit][profile]") {
  const Tensor x = ones({64, 100}), w = ones({100, 32});
  static_cast<void>(matmul(x, w));  // before
  Profile profile;
  const int line = __LINE__;
  const Tensor y = matmul(x, w);  // 1
  const Tensor z = y * 2.0F + y;  // 2
  const Tensor t = transpose(z);  // 3
  const Tensor s = sum(z);        // 4
  static_cast<void>(cast(y, f64));
  profile.stop();
  static_cast<void>(exp(x));  // after
  const ProfileReport report = profile.report();
  check_nesting(report);
  CHECK(report.dropped == 0);
  const Indices products = find(report, EventKind::op, "matmul");
  REQUIRE(products.size() == 1);
  const ProfileLabel& product = label_of(report, products[0]);
  CHECK(product.detail == "float32[64, 100] float32[100, 32] -> float32[64, 32]");
  CHECK(product.bytes == 4 * (64 * 100 + 100 * 32 + 64 * 32));
  CHECK(product.operations == 2.0 * 64 * 100 * 32);
  CHECK(report.events[products[0]].tier == "eager");
  CHECK(report.events[products[0]].thread == 0);
  if (default_device() == Device{})  // others may not count them
    CHECK(report.events[products[0]].allocations >= 1);
  REQUIRE(find(report, EventKind::op, "mul").size() == 1);
  const ProfileLabel& scaled = label_of(report, find(report, EventKind::op, "mul")[0]);
  CHECK(scaled.bytes == 2 * 4 * 64 * 32);
  CHECK(scaled.operations == 64 * 32);
  const Indices views = find(report, EventKind::op, "permute");
  REQUIRE(views.size() == 1);
  CHECK(label_of(report, views[0]).bytes == 0);
  CHECK(label_of(report, find(report, EventKind::op, "sum").at(0)).operations == 64 * 32);
  CHECK(find(report, EventKind::op, "exp").empty());
  const Indices casts = find(report, EventKind::op, "cast");
  REQUIRE(casts.size() == 1);
  CHECK(label_of(report, casts[0]).operations == 0);
  CHECK(label_of(report, casts[0]).bytes == (4 + 8) * 64 * 32);
  if (!has_places()) return;
  CHECK(lines_of(product.places) == std::vector<int>{line + 1});
  CHECK(lines_of(label_of(report, views[0]).places) == std::vector<int>{line + 3});
}

TEST_CASE("an op's parts are inside it", "[jit][profile]") {
  const Tensor x = normal({8, 10});
  for (int i = 0; i < 4; ++i) static_cast<void>(softmax(x, -1));  // made one step
  Profile profile;
  static_cast<void>(softmax(x, -1));
  profile.stop();
  const ProfileReport report = profile.report();
  check_nesting(report);
  const Indices ops = find(report, EventKind::op, "softmax");
  REQUIRE(ops.size() == 1);
  CHECK(label_of(report, ops[0]).bytes == 0);  // they have them
  REQUIRE(report.events.size() > 1);
  for (std::size_t i = 0; i < report.events.size(); ++i) CHECK(is_in(report, i, ops[0]));
}

TEST_CASE("parts of an op and of a way back have the line that asked for it", "[jit][profile]") {
  if (!has_places()) return;
  const int line = __LINE__;
  const auto doubled = custom_gradient([](const Tensor& x) {
    return std::pair(x * 2, [](const Tensor& g) { return cos(g); });  // 2
  });
  const Variable w = parameter(normal({8, 10}));
  Profile profile;
  const Tensor loss = sum(doubled(softmax(w.get(), -1)));  // 6
  const Tensor other = exp(w.get());                       // 7
  loss.backward();                                         // 8
  profile.stop();
  const ProfileReport report = profile.report();
  const auto lines = [&](std::size_t event) { return lines_of(label_of(report, event).places); };
  const std::vector<int> forward = {line + 6}, back = {line + 8}, own = {line + 2};
  const std::size_t whole = find(report, EventKind::backward, "backward()").at(0);
  const std::size_t softmax_op = find(report, EventKind::op, "softmax").at(0);
  int parts = 0, ways_back = 0;
  for (const std::size_t op : find(report, EventKind::op)) {
    const std::string& name = label_of(report, op).name;
    INFO(name);
    if (name == "cos") {  // the user's code, in the way back
      CHECK(lines(op) == own);
    } else if (is_in(report, op, whole)) {
      CHECK(lines(op) == back);
      ++ways_back;
    } else if (is_in(report, op, softmax_op)) {
      CHECK(lines(op) == forward);
      ++parts;
    }
  }
  CHECK(parts >= 1);
  CHECK(ways_back >= 2);
  CHECK(lines(find(report, EventKind::op, "exp").back()) == std::vector<int>{line + 7});
}

TEST_CASE("a profile that was stopped says the same again", "[jit][profile]") {
  Profile profile;
  for (int i = 0; i < 100; ++i) static_cast<void>(exp(ones({10})));
  profile.stop();
  const std::string first = profile.to_json();
  for (int i = 0; i < 20; ++i) CHECK(profile.to_json() == first);
}

TEST_CASE("steps for which there is no room are counted", "[jit][profile]") {
  const auto f = compile([](const Tensor& x) { return matmul(matmul(matmul(x, x), x), x); },
                         {.name = "model", .check = Check::never});
  const Tensor x = ones({8, 8});
  for (int i = 0; i < 4; ++i) static_cast<void>(f(x));
  const std::size_t steps = f.explain().signatures.at(0).plan.steps.size();
  REQUIRE(steps >= 3);
  Profile all, few({.most_events = 2 * steps});
  for (int i = 0; i < 3; ++i) static_cast<void>(f(x));
  all.stop();
  few.stop();
  const ProfileReport whole = all.report(), part = few.report();
  check_nesting(whole);
  check_nesting(part);
  CHECK(whole.events.size() == 3 * (steps + 1));
  CHECK(whole.dropped == 0);
  CHECK(part.events.size() == 2 * steps);  // a call, and all but one of the next one's steps
  CHECK(part.dropped == steps + 3);
  std::size_t calls = 0;
  for (const ProfileEvent& event : whole.events) {
    const bool is_call = whole.labels[event.label].kind == EventKind::call;
    CHECK((event.parent < 0) == is_call);
    calls += is_call ? 1 : 0;
  }
  CHECK(calls == 3);
  CHECK(find(whole, EventKind::library, "matmul").size() == 3 * steps);
}

TEST_CASE("a profile shows how calls ran, and the steps with their lines", "[jit][profile]") {
  const auto f = compile(
      [](const Tensor& x, const Tensor& w) {
        const Tensor y = matmul(x, w);
        return exp(y) * 2 + sum(y, {0});
      },
      {.name = "model", .check = Check::never});
  const int line = __LINE__ - 4;
  const Tensor x = ones({32, 50}), w = ones({50, 20});
  Profile profile;
  for (int i = 0; i < 5; ++i) static_cast<void>(f(x, w));
  profile.stop();
  const ProfileReport report = profile.report();
  check_nesting(report);
  std::map<std::string, int> tiers;
  for (const std::size_t call : find(report, EventKind::call, "model"))
    ++tiers[label_of(report, call).detail];
  CHECK(tiers == std::map<std::string, int>{{"recorded", 2}, {"compiled", 3}});
  CHECK(find(report, EventKind::record, "model").size() == 2);
  for (const std::size_t op : find(report, EventKind::op, "matmul"))
    CHECK(report.events[op].tier == "recorded");
  const Indices products = find(report, EventKind::library, "matmul");
  REQUIRE(products.size() == 3);
  CHECK(report.events[products[0]].tier == "compiled");
  CHECK(label_of(report, products[0]).operations == 2.0 * 32 * 50 * 20);
  CHECK(label_of(report, static_cast<std::size_t>(report.events[products[0]].parent)).kind ==
        EventKind::call);
  REQUIRE(!find(report, EventKind::kernel).empty());
  CHECK(label_of(report, find(report, EventKind::kernel).front()).operations > 0);
  const Indices made = find(report, EventKind::compile, "model");
  REQUIRE(made.size() == 1);
  for (const char* part : {"simplify", "merge_duplicates", "fusion"}) {
    INFO(part);
    const Indices parts = find(report, EventKind::compile, part);
    REQUIRE(!parts.empty());
    CHECK(is_in(report, parts[0], made[0]));
  }
  if (!has_places()) return;
  CHECK(lines_of(label_of(report, products[0]).places) == std::vector<int>{line});
}

TEST_CASE("steps that store over Variables are noted as what they are", "[jit][profile]") {
  const Variable weight(ones({100, 100})), count(zeros({100}));
  const Tensor x = ones({100, 100});
  const auto f = compile(
      [&](const Tensor& v) {
        const Tensor y = matmul(v, weight);
        count += sum(y, 1);
        weight -= tanh(y) * 0.5;
        return sum(y);
      },
      {.name = "model", .check = Check::never});
  for (int i = 0; i < 3; ++i) static_cast<void>(f(x));
  Profile profile;
  static_cast<void>(f(x));
  profile.stop();
  const ProfileReport report = profile.report();
  const Explanation explanation = f.explain();
  const jit::PlanReport& plan = explanation.signatures.at(0).plan;
  REQUIRE(plan.in_place_bytes > 0);
  std::vector<std::string> ran, planned;
  for (const ProfileEvent& event : report.events) {
    const ProfileLabel& label = report.labels[event.label];
    if (label.kind == EventKind::kernel || label.kind == EventKind::library)
      ran.push_back(label.name);
  }
  for (const StepReport& step : plan.steps) planned.push_back(list_of(step.ops));
  CHECK(ran == planned);
  CHECK(ran.size() >= 2);
}

TEST_CASE("calls in segments and asked to run eagerly say so", "[jit][profile]") {
  const auto f = compile(
      [](const Tensor& x) {
        const Tensor y = exp(x) + 1;
        return y.to_vector<float>()[0] > 0 ? y * 2 : y;
      },
      {.name = "looks"});
  const Tensor x = ones({50});
  for (int i = 0; i < 6; ++i) static_cast<void>(f(x));
  const bool is_in_segments = f.explain().signatures.at(0).tier == Tier::deferred;
  if (is_in_segments) f.set_stance(Stance::fail_on_fallback);  // not compared with eager
  Profile profile;
  static_cast<void>(f(x));
  static_cast<void>(f.eager(x));
  profile.stop();
  const ProfileReport report = profile.report();
  check_nesting(report);
  const Indices calls = find(report, EventKind::call, "looks");
  REQUIRE(calls.size() == 2);
  CHECK(report.events[calls[1]].tier == "eager");
  CHECK(report.events[calls[0]].tier == (is_in_segments ? "in segments" : "eager"));
  if (!is_in_segments) return;  // without a code generator, or measured to be slower
  for (const std::size_t op : find(report, EventKind::op, "exp")) {
    if (is_in(report, op, calls[0])) CHECK(label_of(report, op).bytes == 0);  // a step does it
  }
  const Indices steps = find(report, EventKind::kernel);
  CHECK(std::ranges::any_of(steps, [&](std::size_t i) { return is_in(report, i, calls[0]); }));
}

TEST_CASE("ways back know where they went forward", "[jit][profile]") {
  const Variable w = parameter(ones({10}));
  Profile profile;
  const Tensor y = exp(w.get());
  const Tensor loss = sum(y * y);
  loss.backward();
  profile.stop();
  const ProfileReport report = profile.report();
  check_nesting(report);
  const Indices whole = find(report, EventKind::backward, "backward()");
  REQUIRE(whole.size() == 1);
  for (const char* name : {"exp", "mul", "sum"}) {
    INFO(name);
    const Indices back = find(report, EventKind::backward, name);
    REQUIRE(back.size() == 1);
    CHECK(is_in(report, back[0], whole[0]));
    const std::ptrdiff_t forward = report.events[back[0]].forward;
    REQUIRE(forward >= 0);
    CHECK(label_of(report, static_cast<std::size_t>(forward)).name == name);
    CHECK(label_of(report, static_cast<std::size_t>(forward)).kind == EventKind::op);
  }
}

TEST_CASE("the way back through an op of parts leads to the op", "[jit][profile]") {
  const Variable w = parameter(normal({4, 3}));
  const Tensor labels = tensor({0, 2, 1, 0}).to(default_device());
  Profile profile;
  nn::cross_entropy(w.get(), labels).backward();
  profile.stop();
  const ProfileReport report = profile.report();
  const Indices back = find(report, EventKind::backward, "log_likelihood");
  REQUIRE(back.size() == 1);
  const std::ptrdiff_t forward = report.events[back[0]].forward;
  REQUIRE(forward >= 0);
  CHECK(label_of(report, static_cast<std::size_t>(forward)).name == "log_likelihood");
}

TEST_CASE("the way back through a compiled call leads to the call", "[jit][profile]") {
  const auto f = compile([](const Tensor& x) { return sum(exp(x) * x); },
                         {.name = "inner", .check = Check::never});
  const Variable w = parameter(ones({10}));
  for (int i = 0; i < 4; ++i) f(w.get()).backward();
  Profile profile;
  f(w.get()).backward();
  profile.stop();
  const ProfileReport report = profile.report();
  const Indices calls = find(report, EventKind::call, "inner"),
                back = find(report, EventKind::backward, "inner");
  REQUIRE(calls.size() == 1);
  CHECK(report.events[calls[0]].tier == "compiled");
  REQUIRE(back.size() == 1);
  CHECK(report.events[back[0]].forward == static_cast<std::ptrdiff_t>(calls[0]));
}

TEST_CASE("profiles nest and overlap", "[jit][profile]") {
  const Tensor x = ones({10});
  Profile first;
  static_cast<void>(exp(x));
  Profile second;
  static_cast<void>(log(x));
  first.stop();
  static_cast<void>(sin(x));
  second.stop();
  static_cast<void>(cos(x));
  const auto names = [](const Profile& profile) {
    const ProfileReport report = profile.report();
    std::vector<std::string> all;
    for (const std::size_t i : find(report, EventKind::op)) all.push_back(label_of(report, i).name);
    return all;
  };
  CHECK(names(first) == std::vector<std::string>{"exp", "log"});
  CHECK(names(second) == std::vector<std::string>{"log", "sin"});
}

TEST_CASE("what throws is noted, and so is what follows", "[jit][profile]") {
  const auto f = compile([](const Tensor& x) { return x + ones({4}); }, {.name = "wrong"});
  Profile profile;
  CHECK_THROWS_AS(f(ones({2, 3})), Error);
  CHECK_THROWS_AS(ones({2, 3}) + ones({4}), Error);
  const Tensor x = exp(ones({3}));
  profile.stop();
  const ProfileReport report = profile.report();
  check_nesting(report);
  CHECK(find(report, EventKind::call, "wrong").size() == 1);
  CHECK(find(report, EventKind::op, "add").size() == 2);
  REQUIRE(find(report, EventKind::op, "exp").size() == 1);
  CHECK(report.events[find(report, EventKind::op, "exp")[0]].parent == -1);
}

TEST_CASE("what there is no room for is counted", "[jit][profile]") {
  const Tensor x = ones({10});
  static_cast<void>(exp(x));  // which may have its loops compiled
  Profile profile({.most_events = 7});
  for (int i = 0; i < 100; ++i) static_cast<void>(exp(x));
  profile.stop();
  const ProfileReport report = profile.report();
  CHECK(report.events.size() == 7);
  CHECK(report.dropped == 93);
  CHECK(report.table().find("93 later events were dropped") != std::string::npos);
}

TEST_CASE("threads are told apart, also when they have ended", "[jit][profile]") {
  const Tensor x = ones({10});
  Profile profile;
  static_cast<void>(exp(x));
  const auto work = [&] {
    for (int i = 0; i < 1000; ++i) static_cast<void>(softmax(x, 0));
  };
  { const std::jthread one(work), two(work); }
  profile.stop();
  const ProfileReport report = profile.report();
  check_nesting(report);
  std::map<int, int> counts;
  for (const std::size_t i : find(report, EventKind::op, "softmax")) {
    ++counts[report.events[i].thread];
    CHECK(report.events[i].parent == -1);
  }
  REQUIRE(counts.size() == 2);
  CHECK(counts.begin()->first > 0);
  CHECK(counts.begin()->second == 1000);
  for (const ProfileEvent& event : report.events) {
    const std::string& name = report.labels[event.label].name;
    if (name != "softmax" && name != "exp" && event.parent < 0) FAIL(name << " is in nothing");
  }
  CHECK(report.events[find(report, EventKind::op, "exp")[0]].thread == 0);
}

TEST_CASE("ops need not look for lines", "[jit][profile]") {
  Profile profile({.lines = false});
  static_cast<void>(exp(ones({10})));
  profile.stop();
  const ProfileReport report = profile.report();
  CHECK(label_of(report, find(report, EventKind::op, "exp").at(0)).places.empty());
}

TEST_CASE("a child of a fork is not profiled, but may profile itself", "[jit][profile][host]") {
  const Tensor x = ones({10});
  Profile profile;
  static_cast<void>(exp(x));
  const int result = in_child([&] {
    static_cast<void>(log(x));
    if (!find(profile.report(), EventKind::op, "log").empty()) return 1;
    if (find(profile.report(), EventKind::op, "exp").size() != 1) return 2;
    Profile own;
    static_cast<void>(sin(x));
    own.stop();
    return find(own.report(), EventKind::op, "sin").size() == 1 ? 0 : 3;
  });
  CHECK(result == 0);
  static_cast<void>(cos(x));
  profile.stop();
  const ProfileReport report = profile.report();
  CHECK(find(report, EventKind::op, "cos").size() == 1);
  CHECK(find(report, EventKind::op, "log").empty());
}

TEST_CASE("the table lists what took longest by op, by shape and by line", "[jit][profile]") {
  const Tensor x = ones({300, 300}), small = ones({2});
  Profile profile;
  for (int i = 0; i < 3; ++i) static_cast<void>(matmul(x, x));
  static_cast<void>(exp(small));
  static_cast<void>(exp(x));
  profile.stop();
  const ProfileReport report = profile.report();
  const std::string table = report.table();
  INFO("\n" << table);
  CHECK(table.starts_with("profile of "));
  CHECK(table.find("GFLOP/s") != std::string::npos);
  const std::size_t product = table.find("op matmul"), rest = table.find("op exp");
  REQUIRE(product != std::string::npos);
  const auto self_of = [&](const char* op) {
    double sum = 0;
    for (const std::size_t i : find(report, EventKind::op, op)) sum += report.events[i].self_s;
    return sum;
  };
  CHECK((product < rest) == (self_of("matmul") > self_of("exp")));  // as it was on this machine
  CHECK(table.find("op exp", rest + 1) == std::string::npos);
  CHECK(table.find("outside of the library") != std::string::npos);
  const std::string shapes = report.table(ProfileBy::shape);
  INFO(shapes);
  CHECK(shapes.find("op exp (float32[2] -> float32[2])") != std::string::npos);
  CHECK(shapes.find("op exp (float32[300, 300] -> float32[300, 300])") != std::string::npos);
  CHECK(report.table(ProfileBy::op, 1).find(" more row") != std::string::npos);
  if (has_places())
    CHECK(report.table(ProfileBy::line).find("profile_test.cpp:") != std::string::npos);
}

TEST_CASE("what the machine can do is known, and never less for fewer bytes", "[jit][profile]") {
  const Tensor x = ones({1000, 1000});
  Profile profile;
  static_cast<void>(exp(x));
  profile.stop();
  const ProfileReport report = profile.report();
  const ProfileLabel& label = label_of(report, find(report, EventKind::op, "exp").at(0));
  if (default_device().kind == Device::Kind::reference) {  // whose speed nobody measures
    CHECK(label.bound_s == 0);
    return;
  }
  CHECK(label.bound_s > label.bytes / 1e13);  // 10 TB/s
  CHECK(label.bound_s < label.bytes / 1e8);
}

}  // namespace nitinol::profile_test
