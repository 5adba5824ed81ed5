// What acts on the outside: once, in the program's order, and only when nothing can fail any more.
#include "eager/apply.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/outside_ops.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

const CompileOptions by_calls = {.name = "f", .check = Check::never};

std::vector<int64_t> numbers(const std::vector<Note>& notes) {
  std::vector<int64_t> list;
  for (const Note& note : notes) list.push_back(note.number);
  return list;
}

/// The notes of one call of `body`, which may throw.
template <class Body>
std::vector<int64_t> noted_by(const Body& body) {
  static_cast<void>(take_notes());
  try {
    static_cast<void>(body());
  } catch (const Error&) {
  }
  return numbers(take_notes());
}

using List = std::vector<int64_t>;

/// Checks that f(x...) notes what it notes eagerly and gives the same bits: in recorded calls, and
/// by a Plan.
template <class F, class... A>
void check_same_notes(const F& f, const A&... x) {
  static_cast<void>(take_notes());
  const std::vector<Tensor> expected = f(x...);
  const std::vector<Note> notes = take_notes();
  REQUIRE(!notes.empty());
  const auto g = compile(f, by_calls);
  for (int call = 0; call < 4; ++call) {
    const std::vector<Tensor> results = g(x...);
    CHECK(take_notes() == notes);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(results[i], expected[i]));
  }
  CHECK(g.explain().plan_calls == 2);
}

}  // namespace

TEST_CASE("what is ordered runs in the program's order, whatever reads it", "[jit][effects]") {
  const Tensor x = ramp({6, 6}), y = ramp({6, 6}) * 0.5;
  SECTION("the second is needed first") {
    check_same_notes(
        [](const Tensor& a, const Tensor& b) {
          const Tensor e = exp(a);
          const Tensor first = noted(a, 1);
          const Tensor second = noted(b, 2);
          return std::vector{e + second, tanh(first)};
        },
        x, y);
  }
  SECTION("a group reads the second and is read by the first") {
    check_same_notes(
        [](const Tensor& a, const Tensor& b) {
          const Tensor e = a * 2 + 1;
          const Tensor first = noted(e, 1);
          const Tensor second = noted(b, 2);
          return std::vector{tanh(e) + second, first};
        },
        x, y);
  }
  SECTION("nobody reads any") {
    check_same_notes(
        [](const Tensor& a, const Tensor& b) {
          static_cast<void>(noted(b, 3));
          static_cast<void>(noted(matmul(a, b), 1));
          static_cast<void>(noted(b, 2));
          static_cast<void>(noted(slice(b, 0, Range{0, 0}), 4));
          return std::vector{a + b};
        },
        x, y);
  }
  SECTION("the same twice, of constants, of views, of nothing") {
    check_same_notes(
        [](const Tensor& a, const Tensor& b) {
          const Tensor once = noted(a, 7);
          const Tensor twice = noted(a, 7);
          const Tensor constant = noted(full({}, 2.0F), 8);
          const Tensor view = noted(transpose(b), 9);
          const Tensor nothing = noted(slice(b, 0, Range{0, 0}), 10);
          return std::vector{once + twice + constant, view[0], nothing};
        },
        x, y);
  }
  SECTION("beside joined launches and products") {
    check_same_notes(
        [](const Tensor& a, const Tensor& b) {
          std::vector<Tensor> results;
          for (int k = 0; k < 4; ++k) {
            const Tensor sent = noted(matmul(a, b) + k, k);
            results.push_back(a * 0.5 + sent);
          }
          return results;
        },
        x, y);
  }
}

TEST_CASE("other steps move around what is ordered", "[jit][effects]") {
  const auto f = compile(
      [](const std::vector<Tensor>& x) {
        std::vector<Tensor> results;
        for (std::size_t k = 0; k < x.size(); ++k) {
          results.push_back(tanh(x[k]) * 2);
          results.push_back(noted(x[k], static_cast<int64_t>(k)));
        }
        return results;
      },
      by_calls);
  settle(f, std::vector{ramp({8}), ramp({9}), ramp({10})});
  const Explanation explanation = f.explain();
  CHECK(to_string(explanation).find(". library noted, in order") != std::string::npos);
  // Three launches of one kernel at once, after what is sent as early as it can be.
  REQUIRE(explanation.signatures.at(0).plan.steps.size() == 4);
  CHECK(explanation.signatures[0].plan.steps[3].launches == 3);
}

TEST_CASE("what may fail comes before what is ordered", "[jit][effects]") {
  const auto f = [](const Tensor& x, const Tensor& table, const Tensor& indices) {
    const Tensor sent = noted(x, 1);
    const Tensor found = take(table, indices, 0);
    const Tensor again = noted(found, 2);
    return sent + again;
  };
  const auto g = compile(f, by_calls);
  const Tensor x = ramp({3}), table = ramp({5});
  const Tensor good = tensor({0, 4, 2}), bad = tensor({0, 5, 2});
  const Tensor expected = f(x, table, good);
  const std::string error = error_of([&] { return f(x, table, bad); });
  for (int call = 0; call < 5; ++call) {
    CHECK(noted_by([&] { return g(x, table, good); }) == List{1, 2});
    CHECK(same_bits(g(x, table, good), expected));
    CHECK(noted_by([&] { return g(x, table, bad); }) == List{1});  // as eager, and once
    CHECK(error_of([&] { return g(x, table, bad); }) == error);
  }
  const Explanation explanation = g.explain();
  CHECK(explanation.failed_checks == 10);
  CHECK(explanation.signatures.at(0).tier == Tier::traced);
  static_cast<void>(take_notes());
}

TEST_CASE("a check that is read late only comes before what is ordered", "[jit][effects]") {
  // Postponing moves the quotient to the group that reads it, which needs what is ordered.
  const auto f = [](const Tensor& x, const Tensor& n) {
    const Tensor more = n + 1;
    const Tensor quotient = floor_divide(more, n);
    const Tensor sent = noted(x, 1);
    return std::vector{quotient * sent, more};
  };
  const auto g = compile(f, by_calls);
  const Tensor x = arange(64), good = arange(1, 65, 1, i64), bad = arange(0, 64, 1, i64);
  const std::vector<Tensor> expected = f(x, good);
  for (int call = 0; call < 4; ++call) {
    CHECK(same_bits(g(x, good)[0], expected[0]));
    static_cast<void>(take_notes());
    CHECK(noted_by([&] { return g(x, bad); }).empty());
  }
  CHECK(g.explain().signatures.at(0).tier == Tier::traced);
  static_cast<void>(take_notes());
}

TEST_CASE("what a call has not checked yet does not lead to what is ordered in the next",
          "[jit][effects]") {
  const auto a = compile(
      [](const Tensor& table, const Tensor& indices) { return take(table, indices, 0); }, by_calls);
  const auto b = compile([](const Tensor& x) { return noted(x + 1, 1) * 2; }, by_calls);
  const Tensor table = ramp({5}), good = tensor({0, 4, 2}), bad = tensor({0, 5, 2});
  for (int call = 0; call < 4; ++call)
    CHECK(noted_by([&] { return b(a(table, good)); }) == List{1});
  for (int call = 0; call < 3; ++call) {
    static_cast<void>(take_notes());
    CHECK_THROWS_AS(b(a(table, bad)), Error);
    CHECK(numbers(take_notes()).empty());
  }
  CHECK(a.explain().plan_calls >= 2);
  CHECK(b.explain().plan_calls >= 2);
}

TEST_CASE("what may fail on what is ordered leaves the function without a Plan, with the reason",
          "[jit][effects]") {
  const auto f = [](const Tensor& table, const Tensor& indices) {
    return take(table, noted(indices, 1), 0);
  };
  const auto g = compile(f, by_calls);
  const Tensor table = ramp({5}), good = tensor({0, 4, 2}), bad = tensor({0, 5, 2});
  for (int call = 0; call < 4; ++call) {
    CHECK(noted_by([&] { return g(table, good); }) == List{1});
    CHECK(noted_by([&] { return g(table, bad); }) == List{1});
  }
  const Explanation explanation = g.explain();
  CHECK(explanation.signatures.at(0).tier == without_plan());
  const std::string& reason = explanation.signatures[0].reason;
  CHECK(reason.find("take, which may fail, is applied to what noted gives") != std::string::npos);
  CHECK(explanation.signatures[0].place.find("effects_test.cpp") != std::string::npos);
}

TEST_CASE("two Plans keep the program's order", "[jit][effects]") {
  const auto twice = [](int64_t first) {
    return [first](const Tensor& x) {
      const Tensor sent = noted(x, first);
      return sent + noted(x * 2, first + 1);
    };
  };
  const auto a = compile(twice(1), by_calls), b = compile(twice(3), by_calls);
  const Tensor x = ramp({4});
  for (int call = 0; call < 4; ++call) CHECK(noted_by([&] { return b(a(x)); }) == List{1, 2, 3, 4});
  CHECK(a.explain().plan_calls == 2);
  CHECK(b.explain().plan_calls == 2);
}

TEST_CASE("a call that fails while it acts changes no Variable", "[jit][effects][host]") {
  const Variable before(zeros({32})), after(zeros({32})), unread(zeros({32}));
  const auto f = compile(
      [&](const Tensor& x, const Tensor& y) {
        before.set(before.get() + 1);
        const Tensor early = exp(x);
        const Tensor sent = noted(x + before.get(), 1);  // which has to be made first
        after.set(after.get() + sent);
        unread.set(exp(y));  // by the kernel of `early`
        return std::pair(sent * 2, early);
      },
      by_calls);
  const Tensor x = ramp({32}) * 0.125, y = x + 1;
  settle(f, x, y);
  const Explanation explanation = f.explain();
  REQUIRE(explanation.plan_calls == 1);
  // What is made before the call acts must not be stored over what may have to stay.
  CHECK(explanation.signatures.at(0).plan.in_place_bytes == 2 * 32 * 4);
  const std::vector<Tensor> held = {copy(before.get()), copy(after.get()), copy(unread.get())};
  listen(false);
  CHECK(error_of([&] { return f(x, x + 2).first; }) == "io: noted: nobody listens.");
  listen(true);
  CHECK(same_bits(before.get(), held[0]));
  CHECK(same_bits(after.get(), held[1]));
  CHECK(same_bits(unread.get(), held[2]));
  static_cast<void>(f(x, y));
  CHECK(same_bits(before.get(), held[0] + 1));
  CHECK(f.explain().plan_calls == 3);
  static_cast<void>(take_notes());
}

TEST_CASE("gradients act in order, once for each time they are asked for", "[jit][effects]") {
  const auto loss = [](const Tensor& x) { return sum(square(noted(tanh(noted(x, 1)), 2))); };
  const Tensor x = ramp({4}) * 0.25;
  static_cast<void>(take_notes());  // of other cases
  const Tensor expected = grad(loss)(x);
  CHECK(numbers(take_notes()) == List{1, 2, 1002, 1001});
  SECTION("in a compiled function") {
    const auto g = compile([&](const Tensor& y) { return grad(loss)(y); }, by_calls);
    for (int call = 0; call < 4; ++call)
      CHECK(noted_by([&] { return g(x); }) == List{1, 2, 1002, 1001});
    CHECK(same_bits(g(x), expected));
    CHECK(g.explain().plan_calls == 3);
  }
  SECTION("of a compiled function, which is eager then, with the reason") {
    const auto g = compile(loss, by_calls);
    for (int call = 0; call < 4; ++call)
      CHECK(noted_by([&] { return grad(g)(x); }) == List{1, 2, 1002, 1001});
    CHECK(same_bits(grad(g)(x), expected));
    const Explanation explanation = g.explain();
    CHECK(explanation.signatures.at(0).reason.find("gradients of its results go back by noted") !=
          std::string::npos);
  }
  SECTION("through a checkpoint, which does not act again") {
    const auto checked = [&](const Tensor& y) { return checkpoint(loss)(y); };
    CHECK(noted_by([&] { return grad(checked)(x); }) == List{1, 2, 1002, 1001});
    CHECK(same_bits(grad(checked)(x), expected));
    const auto g = compile([&](const Tensor& y) { return grad(checked)(y); }, by_calls);
    for (int call = 0; call < 4; ++call)
      CHECK(noted_by([&] { return g(x); }) == List{1, 2, 1002, 1001});
    CHECK(same_bits(g(x), expected));
    CHECK(g.explain().plan_calls == 3);
  }
  SECTION("through a checkpoint of a compiled function") {
    const auto inner = compile(loss, by_calls);
    const auto checked = [&](const Tensor& y) { return checkpoint(inner)(y); };
    for (int call = 0; call < 4; ++call)
      CHECK(noted_by([&] { return grad(checked)(x); }) == List{1, 2, 1002, 1001});
    for (int call = 0; call < 4; ++call) CHECK(noted_by([&] { return inner(x); }) == List{1, 2});
    CHECK(noted_by([&] { return grad(checked)(x); }) == List{1, 2, 1002, 1001});
    CHECK(same_bits(grad(checked)(x), expected));
  }
  static_cast<void>(take_notes());
}

TEST_CASE("a checkpoint that acts otherwise the second time is an Error", "[jit][effects]") {
  int runs = 0;
  const auto f = [&](const Tensor& x) {
    Tensor y = noted(x, 1);
    if (++runs % 2 == 0) y = noted(y, 2);
    return sum(y * x);
  };
  const Tensor x = ramp({4});
  CHECK(error_of([&] {
          return grad([&](const Tensor& y) { return checkpoint(f)(y); })(x);
        }).find("did noted another time") != std::string::npos);
  static_cast<void>(take_notes());
}

TEST_CASE("a composite op acts at each call", "[jit][effects]") {
  static constinit const Op composite = {
      .name = "noted_twice",
      .kind = OpKind::composite,
      .expand = [](Inputs x, const Attrs&) { return noted(noted(*x[0] + 1, 1) * 2, 2); },
      .summary = "For tests."};
  const Tensor x = ramp({4});
  for (int call = 0; call < 4; ++call)
    CHECK(noted_by([&] { return apply(composite, {&x}); }) == List{1, 2});
}
