// No callback of a Caller, and nothing of the user's that is released, runs under a lock of ours.
//
// A host language has a lock of its own (Python's GIL), which its callbacks take and which a thread
// may hold when it asks us for something. If a callback ran under a lock of ours, both would wait
// for ever. Here the callbacks wait for a limited time only and say who waited in vain.
#include "jit/compiled_function.h"
#include "nitinol.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

/// The host language, and its lock. A thread that looks on takes it in turns with the callbacks: it
/// asks the library for something, with the lock held, whenever a callback has come to wait.
class Host {
 public:
  static constexpr std::chrono::seconds patience{4};

  /// Holds the lock while a callback runs.
  class Callback {
   public:
    Callback(Host& host, const char* name) : host_(host), is_held_(host.take(name)) {}
    Callback(const Callback&) = delete;
    Callback& operator=(const Callback&) = delete;
    ~Callback() {
      if (is_held_) host_.give_back();
    }

   private:
    Host& host_;
    bool is_held_;
  };

  /// Looks on while it lives.
  class Looker {
   public:
    Looker(Host& host, std::function<void()> look) : host_(host) {
      host.turn_ = Turn::looker;
      thread_ = std::thread([this, look = std::move(look)] { host_.look_on(look); });
    }
    Looker(const Looker&) = delete;
    Looker& operator=(const Looker&) = delete;
    ~Looker() {
      host_.end();
      thread_.join();
    }

   private:
    Host& host_;
    std::thread thread_;
  };

  /// The callback that waited in vain, or "none".
  [[nodiscard]] std::string stuck() const { return stuck_; }

  /// A tensor of the host's memory, whose return is a callback.
  Tensor lend(float value) {
    const auto memory = std::make_shared<std::vector<float>>(4, value);
    ++lent_;
    return borrow(memory->data(), {4}, [this, memory] {
      const Callback callback(*this, "the release of borrowed memory");
      --lent_;
    });
  }
  [[nodiscard]] int lent() const { return lent_; }

 private:
  enum class Turn : uint8_t { anybody, looker, callback };

  /// False if this thread has it already, or in vain.
  bool take(const char* name) {
    std::unique_lock lock(mutex_);
    if (owner_ == std::this_thread::get_id()) return false;
    const bool is_known = stuck_ != "none";
    ++waiting_;
    changed_.notify_all();
    const auto is_free = [&] { return owner_ == std::thread::id() && turn_ != Turn::looker; };
    const bool is_held =
        changed_.wait_for(lock, is_known ? std::chrono::seconds(0) : patience, is_free);
    --waiting_;
    if (is_held) {
      owner_ = std::this_thread::get_id();
    } else if (!is_known) {
      stuck_ = name;
    }
    return is_held;
  }

  void give_back() {
    const std::lock_guard lock(mutex_);
    owner_ = {};
    if (turn_ == Turn::callback) turn_ = Turn::looker;
    changed_.notify_all();
  }

  void look_on(const std::function<void()>& look) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(
          lock, [&] { return turn_ == Turn::anybody || (turn_ == Turn::looker && waiting_ > 0); });
      if (turn_ == Turn::anybody) return;
      lock.unlock();
      look();
      lock.lock();
      if (turn_ == Turn::looker) turn_ = Turn::callback;
      changed_.notify_all();
    }
  }

  void end() {
    const std::lock_guard lock(mutex_);
    turn_ = Turn::anybody;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id owner_;
  Turn turn_ = Turn::anybody;
  int waiting_ = 0;  ///< callbacks
  std::string stuck_ = "none";
  std::atomic<int> lent_ = 0;
};

using Function = std::function<Tensor(const Tensor&)>;

/// One call of a function of the host's.
class HostCaller final : public jit::Caller {
 public:
  HostCaller(Host& host, const Function& function, const Tensor& x)
      : host_(host), function_(function), x_(x) {}

  void run() override {
    const Host::Callback callback(host_, "run()");
    result_ = function_(x_);
  }
  void run_on(std::span<const Tensor> tensors, std::span<const Tensor>) override {
    const Host::Callback callback(host_, "run_on()");
    result_ = function_(tensors[0]);
  }
  void result_leaves(jit::Leaves& leaves) override {
    const Host::Callback callback(host_, "result_leaves()");
    leaves.tensors.push_back(&result_);
  }
  void change_result(FunctionRef<void(Tensor&)> change) override {
    const Host::Callback callback(host_, "change_result()");
    change(result_);
  }
  std::vector<jit::Word> describe_arguments(std::span<const std::string>) override {
    const Host::Callback callback(host_, "describe_arguments()");
    return {};
  }
  std::shared_ptr<const void> result_form() override {
    const Host::Callback callback(host_, "result_form()");
    return std::make_shared<Form>(host_);
  }
  void restore(const void*, std::span<Tensor> tensors) override {
    const Host::Callback callback(host_, "restore()");
    result_ = std::move(tensors[0]);
  }

 private:
  struct Form {
    explicit Form(Host& of) : host(of) {}
    Form(const Form&) = delete;
    Form& operator=(const Form&) = delete;
    ~Form() { const Host::Callback callback(host, "the destructor of a form"); }
    Host& host;
  };

  Host& host_;
  const Function& function_;
  const Tensor& x_;
  Tensor result_;
};

/// Calls `function` with signatures 0, 1, …, each `calls` times, while another thread explains
/// with the host's lock held.
void check_no_callback_waits(const CompileOptions& options, int signatures, int calls,
                             const std::function<Function(Host&, int)>& function_of) {
  Host host;
  set_log_sink([&host](LogLevel, std::string_view) { const Host::Callback callback(host, "log"); });
  {
    jit::CompiledFunction compiled(options, true);
    const Host::Looker looker(host, [&] { static_cast<void>(compiled.explain()); });
    const Tensor x = ones({4});
    for (int signature = 0; signature < signatures; ++signature) {
      for (int i = 0; i < calls; ++i) {
        jit::Leaves leaves;
        leaves.tensors.push_back(&x);
        leaves.fixed.push_back(static_cast<uint64_t>(signature));
        const Function function = function_of(host, i);
        HostCaller caller(host, function, x);
        compiled.call(leaves, caller);
      }
    }
  }
  set_log_sink({});
  CHECK(host.stuck() == "none");
  CHECK(host.lent() == 0);
}

}  // namespace

TEST_CASE("no callback runs under a lock: signatures come and go", "[jit][locks]") {
  check_no_callback_waits({.signature_limit = 2}, 60, 4,
                          [](Host&, int) { return [](const Tensor& x) { return x * 2; }; });
}

TEST_CASE("no callback runs under a lock: recordings disagree", "[jit][locks]") {
  check_no_callback_waits({}, 40, 6, [](Host& host, int call) {
    return [captured = host.lend(2), call](const Tensor& x) {
      return call % 2 == 0 ? x * captured : exp(x) + captured;
    };
  });
}

TEST_CASE("no callback runs under a lock: a Plan is dropped", "[jit][locks]") {
  check_no_callback_waits({.check = Check::always}, 20, 6, [](Host&, int call) {
    return [call](const Tensor& x) { return call < 4 ? x * 2 : x * 3; };
  });
}

TEST_CASE("no callback runs under a lock: calls that cannot be compiled", "[jit][locks]") {
  check_no_callback_waits({}, 40, 3, [](Host& host, int call) {
    return [captured = host.lend(2), call](const Tensor& x) {
      return call == 1 && x[0] > 0 ? x * captured : x + captured;
    };
  });
}

TEST_CASE("no callback runs under a lock: compiled in the background", "[jit][locks]") {
  check_no_callback_waits({.signature_limit = 2, .in_background = true}, 60, 4,
                          [](Host&, int) { return [](const Tensor& x) { return x * 2 + 1; }; });
}

TEST_CASE("no callback runs under a lock: borrowed values are replaced", "[jit][locks]") {
  Host host;
  {
    const Variable state(ones({4}));
    const Host::Looker looker(host, [&] { static_cast<void>(state.get()); });
    const auto step = compile([&](const Tensor& x) { state.set(state.get() * 0.5F + x); },
                              {.check = Check::never});
    for (int i = 0; i < 40; ++i) {
      state.set(host.lend(1));
      state.set(host.lend(2));
      step(ones({4}));
    }
    CHECK(step.explain().plan_calls > 0);
  }
  CHECK(host.stuck() == "none");
  CHECK(host.lent() == 0);
}
