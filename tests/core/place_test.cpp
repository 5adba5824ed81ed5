// Places that a binding gives, in errors. For fallbacks: tests/jit/explain_test.cpp.
#include "core/place.h"

#include "nitinol.h"

#include <catch2/catch.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace nitinol;

namespace {

/// Says a line of a program, and counts how often it is asked.
struct Program {
  std::string line = "model.py:42";
  int asked = 0;
  static std::string place(void* program) {
    ++static_cast<Program*>(program)->asked;
    return static_cast<Program*>(program)->line;
  }
};

template <class F>
std::optional<Error> error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

Error misfit() {
  return *error_of([] { static_cast<void>(ones({2}) + ones({3})); });
}

[[gnu::noinline]] CallSite site() {
  CallSite here = CallSite::here();
  return here;
}

[[gnu::noinline]] CallSite site_through(int functions) {
  CallSite there = functions > 0 ? site_through(functions - 1) : site();
  return there;
}

}  // namespace

// A walk over the stack that would be the same as one of the latest is not made again.
TEST_CASE("places of calls are the same where all calls are, and only there", "[core][place]") {
  std::vector<CallSite> first, first_deep;
  for (int round = 0; round < 3; ++round) {
    std::vector<CallSite> sites;
    for (int call = 0; call < 3; ++call) sites.push_back(site());
    sites.push_back(site());
    sites.push_back(site_through(0));
    sites.push_back(site_through(1));
    sites.push_back(site_through(0));
    sites.push_back(site_through(1));
    sites.push_back([] { return site(); }());
    std::thread([&] { sites.push_back(site()); }).join();
    std::vector<CallSite> deep;  // more than are remembered
    for (int functions = 2; functions < 42; ++functions) deep.push_back(site_through(functions));
    if (round == 0) first = sites, first_deep = deep;
    CHECK(sites == first);
    CHECK(deep == first_deep);
    CHECK(sites[0] == sites[1]);
    CHECK(sites[0] == sites[2]);
    for (std::size_t i = 2; i < sites.size(); ++i) {
      for (std::size_t k = 2; k < i; ++k) CHECK(!(sites[i] == sites[k]));
    }
  }
}

TEST_CASE("an error says the place that is given", "[core][place]") {
  Program program;
  const PlaceScope scope(&Program::place, &program);
  const Error error = misfit();
  CHECK(program.asked == 0);  // nobody has looked
  CHECK(error.location() == "model.py:42");
  CHECK(std::string(error.what()) == error.message() + "\nat model.py:42");
  CHECK(program.asked == 1);
  program.line = "model.py:43";
  CHECK(error.location() == "model.py:42");
  CHECK(misfit().location() == "model.py:43");
}

TEST_CASE("a given place counts where a call knows its line in C++", "[core][place]") {
  Program program;
  const PlaceScope scope(&Program::place, &program);
  CHECK(error_of([] { static_cast<void>(ones({2}).item<float>()); })->location() == "model.py:42");
  CHECK(error_of([] { static_cast<void>(static_cast<bool>(ones({2}))); })->location() ==
        "model.py:42");
}

TEST_CASE("without a given place it is the one in C++", "[core][place]") {
  const auto location = [] {
    return error_of([] { static_cast<void>(ones({2}).item<float>()); })->location();
  };
  CHECK_THAT(location(), Catch::Contains("place_test.cpp:"));
  Program nowhere = {.line = ""};
  const PlaceScope scope(&Program::place, &nowhere);
  CHECK_THAT(location(), Catch::Contains("place_test.cpp:"));
  CHECK(nowhere.asked == 1);
  const PlaceScope failing([](void*) -> std::string { throw std::runtime_error("no frame"); });
  CHECK_THAT(location(), Catch::Contains("place_test.cpp:"));
}

TEST_CASE("scopes of places nest, and are the thread's", "[core][place]") {
  Program outer, inner = {.line = "layer.py:7"};
  const PlaceScope scope(&Program::place, &outer);
  {
    const PlaceScope nested(&Program::place, &inner);
    CHECK(misfit().location() == "layer.py:7");
  }
  const Error error = misfit();
  std::thread([&] {
    CHECK(misfit().location() != "model.py:42");
    // Another thread's error, which looks at it first.
    Program other = {.line = "worker.py:1"};
    const PlaceScope here(&Program::place, &other);
    CHECK(error.location() != "worker.py:1");
  }).join();
  CHECK(misfit().location() == "model.py:42");
}
