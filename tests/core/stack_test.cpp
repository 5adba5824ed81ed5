#include "core/stack.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "jit/compile.h"

#include <catch2/catch.hpp>

#include <functional>
#include <optional>
#include <pthread.h>
#include <string>

using namespace nitinol;

namespace {

/// Runs f on a thread with a stack of so many KiB; what it threw, or nothing. "none" if there
/// cannot be such a thread.
std::optional<std::string> on_stack(std::size_t kibibytes, const std::function<void()>& f) {
  struct Work {
    const std::function<void()>& f;
    std::optional<std::string> thrown;
  } work = {f, {}};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kibibytes << 10);
  pthread_t thread;
  const int failed = pthread_create(
      &thread, &attributes,
      [](void* given) -> void* {
        auto* all = static_cast<Work*>(given);
        try {
          all->f();
        } catch (const Error& error) {
          all->thrown = error.message();
        }
        return nullptr;
      },
      &work);
  pthread_attr_destroy(&attributes);
  if (failed != 0) return "none";
  pthread_join(thread, nullptr);
  return work.thrown;
}

}  // namespace

TEST_CASE("a thread with a small stack is told so, and one with a larger computes", "[core][jit]") {
  const Tensor x = ones({4});
  const Variable p = parameter(x);
  const std::pair<const char*, std::function<void()>> uses[] = {
      {"an operation", [&] { static_cast<void>(sum(tanh(x + 1) * 2).item<float>()); }},
      {"a composite", [&] { static_cast<void>(softmax(x, -1)); }},
      {"a product",
       [] {
         static_cast<void>(matmul(ones({40, 40}), ones({40, 40})));
       }},
      {"backward", [&] { sum(tanh(p.get() * 2)).backward(); }},
      {"a compiled call",
       [&] {
         CompileOptions options;
         options.check = Check::never;
         const auto f = compile([](const Tensor& y) { return tanh(y) * 2 + sum(y); }, options);
         for (int i = 0; i < 50; ++i) static_cast<void>(f(x));
         CHECK(f.explain().plan_calls > 0);
       }},
  };
  for (const auto& [name, use] : uses) {
    [[maybe_unused]] int refused = 0;
    for (const std::size_t size : {20, 24, 28, 32,  36,  40,  44,  48,  52,  56,  60,  64,
                                   72, 80, 96, 112, 128, 160, 192, 224, 256, 512, 1024}) {
      INFO(name << " on " << size << " KiB");
      const std::optional<std::string> thrown = on_stack(size, use);
      if (thrown == "none") continue;
      if (thrown) {
        CHECK_THAT(*thrown, Catch::Contains("stack is nearly used up"));
        CHECK(size < 256);
        ++refused;
      }
    }
#if !defined(__SANITIZE_THREAD__)  // which makes small stacks larger
    INFO(name);
    CHECK(refused > 0);
#endif
  }
}

TEST_CASE("what is left of a stack", "[core]") {
  CHECK_FALSE(is_stack_short_of(16 << 10));
  CHECK(is_stack_short_of(std::size_t{1} << 60));
  CHECK_THROWS_AS(check_stack("here", std::size_t{1} << 60), Error);
}
