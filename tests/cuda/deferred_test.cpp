// Calls that return before their checks are made: a compiled function on a GPU, by the fake driver,
// which does what it is asked for when something waits, and no earlier. In ctest's cuda.fake.calls.
#include "core/deferred_check.h"
#include "nitinol.h"
#include "tests/cuda/using_fake.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

Tensor rows(std::vector<int> numbers) {
  return tensor(numbers).to(gpu);
}

std::vector<float> value(const Variable& variable) {
  return variable.get().to_vector<float>();
}

/// A table from which a compiled function takes rows, and a count of its calls, in place.
struct Model {
  Variable table{reshape(arange(12, f32, gpu), {4, 3})};
  Variable count{zeros({64}, f32, gpu)};

  static constexpr int op_line = __LINE__ + 4;
  auto step() {
    return compile(
        [this](const Tensor& places) {
          const Tensor taken = take(table, places);
          count += 1;
          table -= 0.5;
          return sum(taken);
        },
        {.name = "step", .check = Check::never});
  }
};

/// Calls until a Plan runs; returns how often that was.
template <class Step, class... Arguments>
int warm_up(const Step& step, const Arguments&... arguments) {
  int calls = 0;
  while (step.explain().plan_calls == 0) {
    static_cast<void>(step(arguments...));
    REQUIRE(++calls < 5);
  }
  synchronize(gpu);
  return calls;
}

/// All of an error's text but the place where it came out.
std::string before_place(const std::string& error) {
  return error.substr(0, error.rfind("\nat "));
}

int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("calls with checks wait for nothing until something is read", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  Model model;
  const auto step = model.step();
  const int before = warm_up(step, rows({1, 3}));
  const Tensor good = rows({1, 3});
  const jit::PlanReport plan = step.explain().signatures[0].plan;
  CHECK(plan.is_deferred);
  CHECK(plan.waits == 0);
  CHECK(plan.in_place_bytes > 0);
  CHECK(has(to_string(step.explain()),
            "waits for nothing; who reads what it gives waits for its "
            "checks"));
  const FakeCounts first = driver->counts();
  Tensor result;
  for (int i = 0; i < 4; ++i) result = step(good);
  const FakeCounts called = driver->counts();
  CHECK(called.waits == first.waits);
  CHECK(called.queued > first.queued);
  CHECK(called.uploaded == first.uploaded);
  CHECK(result.item<float>() == 42 - 3.0F * static_cast<float>(before + 3));
  CHECK(value(model.count)[5] == static_cast<float>(before + 4));
  const FakeCounts read = driver->counts();
  CHECK(read.queued == 0);
  CHECK(read.waits <= called.waits + 4);  // each of the two for the check, and for the copy
  synchronize(gpu);
  CHECK(step.explain().failed_checks == 0);
}

TEST_CASE("a call that fails is told where its result is read, and again each time",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model;
  const auto step = model.step();
  const int calls = warm_up(step, rows({1, 3}));
  const std::vector<float> table = value(model.table), count = value(model.count);
  const auto* const address = model.table.get().internals().address();
  const Tensor bad = rows({1, 4});
  const int line = __LINE__ + 1;
  const Tensor result = step(bad);
  const std::string error = error_of([&] { static_cast<void>(result.item<float>()); });
  CAPTURE(error);
  CHECK(has(error, "take: index 4"));  // eager's own words
  CHECK(has(error, "the call of `step` at "));
  CHECK(has(error, "deferred_test.cpp:" + std::to_string(line)));
  CHECK(has(error, "deferred_test.cpp:" + std::to_string(Model::op_line)));
  CHECK(has(error, "It has changed nothing."));
  CHECK(before_place(error) ==
        before_place(error_of([&] { static_cast<void>(result.item<float>()); })));
  CHECK(step.explain().failed_checks == 1);
  CHECK(value(model.table) == table);
  CHECK(value(model.count) == count);
  CHECK(value(model.count)[0] == static_cast<float>(calls));
  const Tensor next = step(rows({1, 3}));  // told already
  CHECK(next.item<float>() == 42 - 3.0F * static_cast<float>(calls));
  CHECK(value(model.count)[0] == static_cast<float>(calls + 1));
  CHECK(model.table.get().internals().address() == address);  // still in place
  CHECK_NOTHROW(synchronize(gpu));
}

TEST_CASE("calls on what a failed call assigns are discarded with it, and others are not",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model, other;
  const auto step = model.step(), other_step = other.step();
  const int calls = warm_up(step, rows({0}));
  warm_up(other_step, rows({0}));
  const std::vector<float> table = value(model.table), other_table = value(other.table);
  const Tensor before = step(rows({0})), failed = step(rows({-9})), after = step(rows({0}));
  static_cast<void>(step(rows({0})));
  const Tensor beside = other_step(rows({0}));
  CHECK(before.item<float>() == 3 - 1.5F * static_cast<float>(calls));
  CHECK(beside.item<float>() == 3 - 1.5F * static_cast<float>(calls));
  CHECK(value(other.table)[0] == other_table[0] - 0.5F);
  const std::string error = error_of([&] { static_cast<void>(after.item<float>()); });
  CHECK(has(error, "index -9"));
  CHECK(has(error, "nor have the 2 calls after it that take what it gives"));
  CHECK(before_place(error_of([&] { static_cast<void>(failed.item<float>()); })) ==
        before_place(error));
  CHECK(value(model.table)[0] == table[0] - 0.5F);  // of the one before
  CHECK(value(model.count)[0] == static_cast<float>(calls + 1));
  CHECK(step.explain().failed_checks == 1);
  CHECK(other_step.explain().failed_checks == 0);
}

TEST_CASE("who is told of a failed call reads its Variables at once, whatever followed it",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model;
  const auto step = model.step();
  const int calls = warm_up(step, rows({0}));
  const Tensor failed = step(rows({9}));
  static_cast<void>(step(rows({0})));
  static_cast<void>(step(rows({1})));
  const std::string error = error_of([&] { static_cast<void>(failed.item<float>()); });
  CHECK(has(error, "nor have the 2 calls after it that take what it gives"));
  CHECK(value(model.count)[0] == static_cast<float>(calls));
  CHECK_NOTHROW(step(rows({0})));
  CHECK_NOTHROW(synchronize(gpu));
}

TEST_CASE("synchronize() tells of a call that failed, once", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model;
  const auto step = model.step();
  const int calls = warm_up(step, rows({1}));
  static_cast<void>(step(rows({7})));
  CHECK(has(error_of([] { synchronize(gpu); }), "index 7"));
  CHECK_NOTHROW(synchronize(gpu));
  static_cast<void>(step(rows({1})));  // no news either
  CHECK(value(model.count)[0] == static_cast<float>(calls + 1));
  CHECK_NOTHROW(synchronize(gpu));
}

TEST_CASE("the next call tells of one that is known to have failed, to its own thread",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model;
  const auto step = model.step();
  const int calls = warm_up(step, rows({1}));
  static_cast<void>(step(rows({7})));
  static_cast<void>(zeros({1}, f32, gpu).to_vector<float>());  // something waits; reads another one
  std::string elsewhere;
  std::jthread([&] { elsewhere = error_of([&] { static_cast<void>(step(rows({1}))); }); }).join();
  CHECK(elsewhere.empty());
  const std::string error = error_of([&] { static_cast<void>(step(rows({1}))); });
  CHECK(has(error, "index 7"));
  CHECK(times(error, "It has changed nothing") == 1);
  CHECK(error_of([&] { static_cast<void>(step(rows({1}))); }).empty());
  CHECK(value(model.count)[0] == static_cast<float>(calls + 2));
}

TEST_CASE("an eager operation on what a failed call gives is where its error comes out",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model;
  const auto step = model.step();
  warm_up(step, rows({1}));
  const Variable last(full({}, 5, f32, gpu));
  CHECK(has(error_of([&] { last.set(step(rows({7})) * 2); }), "index 7"));
  CHECK(has(error_of([&] { last.set(step(rows({8}))); }), "index 8"));
  CHECK(has(error_of([&] { last.set(sum(step(rows({9})))); }), "index 9"));
  const auto keep = compile([&](const Tensor& x) { last = x; });
  CHECK(has(error_of([&] { keep.eager(step(rows({10}))); }), "index 10"));
  CHECK(value(last) == std::vector<float>{5});
  CHECK_NOTHROW(synchronize(gpu));
}

TEST_CASE("a Variable whose value somebody holds gets that value back", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model;
  const auto step = model.step();
  warm_up(step, rows({1}));
  const Tensor held = model.table.get();
  const std::vector<float> table = held.to_vector<float>();
  static_cast<void>(step(rows({7})));  // into other memory
  static_cast<void>(step(rows({1})));
  CHECK(has(error_of([&] { static_cast<void>(value(model.table)); }), "index 7"));
  CHECK(model.table.get().internals().storage == held.internals().storage);
  CHECK(value(model.table) == table);
}

TEST_CASE("Variables that exchange their values or take an argument's get their own back",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Variable a(full({70}, 1, f32, gpu)), b(full({70}, 2, f32, gpu)), c(full({70}, 3, f32, gpu));
  const auto turn = compile(
      [&](const Tensor& places, const Tensor& next) {
        const Tensor first = a, second = b;
        a = second;
        b = first;
        c = next;
        return take(second, places);
      },
      {.name = "turn", .check = Check::never});
  const Tensor given = full({70}, 4, f32, gpu);
  warm_up(turn, rows({0}), given);
  const auto all = [&] { return std::vector{value(a)[0], value(b)[0], value(c)[0]}; };
  const std::vector<float> before = all();
  c.set(full({70}, 9, f32, gpu));
  static_cast<void>(turn(rows({70}), given));
  static_cast<void>(turn(rows({1}), given));
  static_cast<void>(turn(rows({1}), full({70}, 6, f32, gpu)));
  CHECK(has(error_of([&] { static_cast<void>(value(c)); }), "index 70"));
  CHECK(all() == std::vector{before[0], before[1], 9.0F});
  static_cast<void>(turn(rows({1}), given));
  CHECK(all() == std::vector{before[1], before[0], 4.0F});
}

TEST_CASE("an assignment after a failed call stays", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model;
  const auto step = model.step();
  const int calls = warm_up(step, rows({1}));
  static_cast<void>(step(rows({7})));
  model.table.set(full({4, 3}, 8, f32, gpu));
  CHECK(has(error_of([] { synchronize(gpu); }), "index 7"));
  CHECK(value(model.table)[0] == 8);
  CHECK(value(model.count)[0] == static_cast<float>(calls));
}

TEST_CASE("what depends on a deferred call through another function fails with it",
          "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  Model model;
  const auto step = model.step();
  const auto doubled = compile([](const Tensor& x) { return x * 2 + 1; }, {.check = Check::never});
  const Variable sums(zeros({}, f32, gpu));
  const auto add = compile([&](const Tensor& x) { sums += x; }, {.check = Check::never});
  const Tensor good = rows({1}), bad = rows({7});
  warm_up(step, good);
  warm_up(doubled, ones({}, f32, gpu));
  warm_up(add, zeros({}, f32, gpu));
  const FakeCounts before = driver->counts();
  const Tensor fine = doubled(step(good)), failed = doubled(step(bad));
  CHECK(driver->counts().waits == before.waits);  // without checks or Variables it can follow
  CHECK(fine.item<float>() != 0);
  const std::string error = error_of([&] { static_cast<void>(failed.item<float>()); });
  CHECK(has(error, "index 7"));
  CHECK(has(error, "`step`"));
  CHECK(has(error_of([&] { add(step(bad)); }), "index 7"));  // nothing holds its update back
  CHECK(value(sums) == std::vector<float>{0});
  CHECK_NOTHROW(add(step(good)));
  CHECK(value(sums)[0] != 0);
}

TEST_CASE("a recording after a deferred call that failed tells of it, and is not kept",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model;
  const auto step = compile(
      [&](const Tensor& places) {
        const Tensor taken = take(model.table, places);
        model.table -= 0.5;
        return sum(taken);
      },
      {.name = "step"});
  const Tensor good = rows({1}), bad = rows({7});
  for (int i = 0; i < 6; ++i) static_cast<void>(step(good));
  static_cast<void>(step(bad));
  REQUIRE(step.explain().plan_calls > 1);
  CHECK(has(error_of([&] { static_cast<void>(step(good)); }), "index 7"));  // call 8
  for (int i = 0; i < 3; ++i) static_cast<void>(step(good));
  CHECK_NOTHROW(value(model.table));
  CHECK(step.explain().signatures[0].tier == Tier::traced);
  CHECK(value(model.table)[0] == -4.5F);
}

TEST_CASE("gradients of a deferred call that failed are not added", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Variable table = parameter(reshape(arange(12, f32, gpu), {4, 3}));
  const auto loss = compile([&](const Tensor& places) { return sum(take(table, places) * 2); },
                            {.name = "loss", .check = Check::never});
  const Tensor good = rows({1, 1}), bad = rows({7});
  warm_up(loss, good);
  loss(good).backward();
  const std::vector<float> gradient = table.grad().to_vector<float>();
  CHECK(gradient[3] == 4);
  CHECK(has(error_of([&] { loss(bad).backward(); }), "7"));
  CHECK(table.grad().to_vector<float>() == gradient);
}

TEST_CASE("few calls are on their way at a time, and their arguments are let go",
          "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  Model model;
  const auto step = model.step();
  warm_up(step, rows({1}));
  std::vector<Tensor> batches;
  for (int i = 0; i < 30; ++i) batches.push_back(rows({i % 4}));
  synchronize(gpu);
  const FakeCounts before = driver->counts();
  for (const Tensor& batch : batches) static_cast<void>(step(batch));
  const uint64_t waits = driver->counts().waits - before.waits;
  CHECK(waits > 0);
  CHECK(waits <= 30 - 8);  // each for the call eight before it
  synchronize(gpu);
  for (const Tensor& batch : batches)
    CHECK(is_unique(batch.handle()));  // nothing keeps them for an error
}

TEST_CASE("a deferred call outlives its function", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model;
  Tensor result;
  {
    const auto step = model.step();
    warm_up(step, rows({1}));
    result = step(rows({7}));
  }
  CHECK(has(error_of([&] { static_cast<void>(result.item<float>()); }), "index 7"));
}

TEST_CASE("threads whose deferred calls fail lose nothing", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Model model;
  const auto step = model.step();
  const int before = warm_up(step, rows({1}));
  const Tensor good = rows({1}), bad = rows({7});
  std::atomic<int> failed = 0, done = 0;
  const auto work = [&](int thread) {
    for (int i = 0; i < 20; ++i) {
      try {
        const Tensor result = step((i + 5 * thread) % 10 == 3 ? bad : good);
        if (i % 3 == 0) static_cast<void>(result.item<float>());
        ++done;
      } catch (const Error&) {
        ++failed;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 3; ++thread) threads.emplace_back(work, thread);
  }
  static_cast<void>(error_of([] { synchronize(gpu); }));
  static_cast<void>(error_of([] { synchronize(gpu); }));
  // All of one call, or nothing: the table has moved by as many halves as calls were counted.
  const float calls = value(model.count)[0];
  CHECK(value(model.table)[0] == -0.5F * calls);
  CHECK(calls >= static_cast<float>(before));
  CHECK(calls <= static_cast<float>(before + 60 - 6));
  CHECK(failed > 0);
  CHECK(done > 0);
}
