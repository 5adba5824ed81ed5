// How compiled functions are told to behave: by the environment, the process, a scope, a function.
#include "jit/stance.h"

#include "tests/jit/calls.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// Sets the process's stance while it lives.
class ProcessStance {
 public:
  explicit ProcessStance(Stance stance) { set_stance(stance); }
  ~ProcessStance() { set_stance(Stance::normal); }
  ProcessStance(const ProcessStance&) = delete;
  ProcessStance& operator=(const ProcessStance&) = delete;
};

/// Exit status of this program when it runs one case with `environment`.
int run_case(const std::string& environment, const std::string& name) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      environment + " '" + self + "' -w NoTests '" + name + "' > /dev/null 2>&1";
  return std::system(command.c_str());  // NOLINT(cert-env33-c,concurrency-mt-unsafe): a test
}

Tensor twice(const Tensor& x) {
  return x * 2.0;
}

}  // namespace

TEST_CASE("functions start as NITINOL_COMPILE says", "[jit][stance]") {
  const char* text = std::getenv("NITINOL_COMPILE");  // NOLINT(concurrency-mt-unsafe)
  const bool is_eager = text != nullptr && std::string(text) == "0";
  CHECK(current_stance() == (is_eager ? Stance::eager : Stance::normal));
  const auto g = compile(&twice);
  settle(g, ones({3}));
  CHECK(g.explain().eager_calls == (is_eager ? 3 : 0));
  CHECK(g.explain().recorded_calls == (is_eager ? 0 : 2));
}

TEST_CASE("NITINOL_COMPILE=0 starts with everything eager", "[jit][stance]") {
  CHECK(run_case("NITINOL_COMPILE=0", "functions start as NITINOL_COMPILE says") == 0);
  CHECK(run_case("NITINOL_COMPILE=1", "functions start as NITINOL_COMPILE says") == 0);
  CHECK(run_case("NITINOL_COMPILE=0", "a scope is of one thread") != 0);
}

TEST_CASE("set_stance holds for all threads", "[jit][stance]") {
  const ProcessStance eager(Stance::eager);
  CHECK(current_stance() == Stance::eager);
  Stance elsewhere = Stance::normal;
  std::thread([&elsewhere] { elsewhere = current_stance(); }).join();
  CHECK(elsewhere == Stance::eager);
}

TEST_CASE("scopes nest, and the innermost holds", "[jit][stance]") {
  CHECK(current_stance() == Stance::normal);
  {
    const StanceScope outer(Stance::eager);
    CHECK(current_stance() == Stance::eager);
    {
      const StanceScope inner(Stance::fail_on_fallback);
      CHECK(current_stance() == Stance::fail_on_fallback);
    }
    CHECK(current_stance() == Stance::eager);
    const ProcessStance process(Stance::fail_on_recompile);
    CHECK(current_stance() == Stance::eager);
  }
  CHECK(current_stance() == Stance::normal);
}

TEST_CASE("a scope ends when an exception leaves it", "[jit][stance]") {
  try {
    const StanceScope scope(Stance::eager);
    throw 1;
  } catch (int) {
    CHECK(current_stance() == Stance::normal);
  }
}

TEST_CASE("a scope is of one thread", "[jit][stance]") {
  const StanceScope scope(Stance::eager);
  Stance elsewhere = Stance::eager;
  std::thread([&elsewhere] { elsewhere = current_stance(); }).join();
  CHECK(elsewhere == Stance::normal);
}

TEST_CASE("a function's own stance comes before the scope's", "[jit][stance]") {
  const auto g = compile(&twice);
  const auto copy = g;
  const Tensor x = ones({3});
  settle(g, x);
  g.set_stance(Stance::eager);
  copy(x);  // copies share it
  CHECK(g.explain().eager_calls == 1);
  const StanceScope eager(Stance::eager);
  g.set_stance(Stance::normal);
  CHECK(g.explain().plan_calls == 1);
  g(x);  // call 4 is recorded again
  g(x);
  CHECK(g.explain().plan_calls == 2);
  CHECK(g.explain().eager_calls == 1);
}

TEST_CASE("eager calls by stance do not touch what is compiled", "[jit][stance]") {
  const auto g = compile(&twice);
  const Tensor x = ones({3});
  settle(g, x);
  {
    const StanceScope scope(Stance::eager);
    for (int i = 0; i < 20; ++i) g(x);
  }
  CHECK(g.explain().signatures.at(0).calls == 3);
  CHECK(g.explain().signatures.at(0).tier == Tier::traced);
}

TEST_CASE("fail_on_recompile names the difference, and known signatures still run",
          "[jit][stance][host]") {
  const auto g = compile(&twice, {.name = "twice"});
  const Tensor x = ones({3});
  const StanceScope scope(Stance::fail_on_recompile);
  settle(g, x);  // the first signature may be compiled
  const std::string message = error_of([&] { return g(ones({4})); });
  CHECK_THAT(message,
             Catch::StartsWith("compile: twice: the call needs another Plan: argument 0 is "
                               "float32[4], was float32[3]"));
  CHECK(error_of([&] { return g(ones({4})); }) == message);
  CHECK(error_of([&] { return g(x); }) == "no error");
}

TEST_CASE("fail_on_fallback names reason and place", "[jit][stance]") {
  const auto g =
      compile([](const Tensor& x) { return x * x.to_vector<float>()[0]; }, {.name = "reader"});
  const StanceScope scope(Stance::fail_on_fallback);
  if (backend(default_device()).can_generate_code()) {  // what lies between looks runs by Plans
    for (int i = 0; i < 4; ++i) CHECK(error_of([&] { return g(ones({3})); }) == "no error");
  }
  // Calls that make tensors on a device for which there is no code run eagerly.
  const Device before = default_device();
  set_default_device({.kind = Device::Kind::reference, .index = 0});
  static_cast<void>(error_of([&] { return g(ones({3})); }));
  const std::string message = error_of([&] { return g(ones({3})); });
  set_default_device(before);
  CHECK_THAT(message, Catch::StartsWith("compile: reader: ") && Catch::Contains("to_vector") &&
                          Catch::Contains("stance_test.cpp:"));
}
