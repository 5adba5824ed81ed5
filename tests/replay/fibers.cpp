#include "tests/replay/fibers.h"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace nitinol::test {
namespace {

namespace context = boost::context;

constexpr uint32_t warp = 32;
/// A kernel in which a loop that calls lgamma was unrolled takes 83 KB, as its thousands of values
/// are not kept in registers.
constexpr std::size_t stack_bytes = 262144;

/// Stacks that are used again, since there are as many as threads in every block.
class Stacks {
 public:
  using traits_type = context::fixedsize_stack::traits_type;
  context::stack_context allocate() {
    if (free_->empty()) return context::fixedsize_stack(stack_bytes).allocate();
    const context::stack_context stack = free_->back().stack;
    free_->pop_back();
    return stack;
  }
  void deallocate(context::stack_context& stack) {
    free_->push_back({stack, static_cast<std::byte*>(stack.sp) - stack.size});
  }

 private:
  struct Free {
    context::stack_context stack;  // knows its end, which no search for leaks takes for a pointer
    const std::byte* memory;
  };
  static inline std::vector<Free>* const free_ = new std::vector<Free>;
};

struct Stopped {};  ///< thrown in a fiber whose block has failed

class Block {
 public:
  Block(Shim& shim, uint32_t threads, ThreadOrder order, std::mt19937& random,
        const std::function<void()>& thread)
      : shim_(shim), order_(order), random_(random), thread_(thread), fibers_(threads) {}

  std::string run() {
    current_ = this;
    for (Fiber& fiber : fibers_) {
      fiber.fiber = context::fiber(std::allocator_arg, Stacks(), [this](context::fiber&& back) {
        back_ = std::move(back);
        try {
          thread_();
        } catch (const Stopped&) {
        }
        fibers_[running_].state = State::done;
        return std::move(back_);
      });
    }
    while (failure_.empty() && count(State::done) < threads()) {
      run_ready();
      release();
    }
    stops_ = true;
    for (uint32_t t = 0; t < threads(); ++t) {
      if (fibers_[t].fiber && fibers_[t].state != State::done) resume(t);
    }
    current_ = nullptr;
    return failure_;
  }

  static void wait(Shim* shim, int line, bool of_warp) {
    Block& block = *current_;
    Fiber& own = block.fibers_[block.running_];
    own.state = of_warp ? State::in_warp : State::in_block;
    own.line = line;
    const uint32_t me = block.running_;
    block.back_ = std::move(block.back_).resume();
    if (block.stops_) throw Stopped();
    shim->thread = me;
  }
  static void fail(Shim* shim, const char* what, int detail) {
    if (current_ != nullptr && current_->failure_.empty())
      current_->failure_ = fmt::format("thread {} of block {}: {} ({} bytes)", shim->thread,
                                       shim->block, what, detail);
  }

 private:
  enum class State : uint8_t { ready, in_block, in_warp, done };
  struct Fiber {
    context::fiber fiber;
    State state = State::ready;
    int line = 0;
  };

  [[nodiscard]] uint32_t threads() const { return static_cast<uint32_t>(fibers_.size()); }

  [[nodiscard]] uint32_t count(State state) const {
    return static_cast<uint32_t>(std::ranges::count(fibers_, state, &Fiber::state));
  }

  void resume(uint32_t t) {
    running_ = t;
    shim_.thread = t;
    fibers_[t].fiber = std::move(fibers_[t].fiber).resume();
  }

  void run_ready() {
    std::vector<uint32_t> order(fibers_.size());
    std::iota(order.begin(), order.end(), 0U);
    if (order_ == ThreadOrder::backward) std::ranges::reverse(order);
    if (order_ == ThreadOrder::random) std::shuffle(order.begin(), order.end(), random_);
    for (const uint32_t t : order) {
      if (fibers_[t].state == State::ready && failure_.empty()) resume(t);
    }
  }

  /// Of threads [first, first + number): whether all wait, at one line; then they go on. Says so if
  /// they wait at several.
  bool release(State state, uint32_t first, uint32_t number) {
    for (uint32_t t = first; t < first + number; ++t) {
      if (fibers_[t].state != state) return false;
      if (fibers_[t].line != fibers_[first].line) {
        fail_at(first, t);
        return true;
      }
    }
    for (uint32_t t = first; t < first + number; ++t) fibers_[t].state = State::ready;
    return true;
  }

  void release() {
    if (!failure_.empty() || count(State::done) == threads()) return;
    bool moves = release(State::in_block, 0, threads());
    for (uint32_t w = 0; w < threads(); w += warp) moves |= release(State::in_warp, w, warp);
    if (moves) return;
    const auto waits = [](const Fiber& f) { return f.state != State::done; };
    const auto waiting = std::ranges::find_if(fibers_, waits);
    const auto other = std::ranges::find_if(fibers_, [&](const Fiber& f) {
      return f.state != waiting->state || f.line != waiting->line;
    });
    fail_at(static_cast<uint32_t>(waiting - fibers_.begin()),
            static_cast<uint32_t>(other - fibers_.begin()));
  }

  void fail_at(uint32_t waiting, uint32_t other) {
    const auto where = [&](uint32_t t) {
      return fibers_[t].state == State::done
                 ? std::string("has returned")
                 : fmt::format("waits at line {} for its {}", fibers_[t].line,
                               fibers_[t].state == State::in_warp ? "warp" : "block");
    };
    failure_ = fmt::format("block {}: thread {} {}, but thread {} {}", shim_.block, waiting,
                           where(waiting), other, where(other));
  }

  static inline Block* current_ = nullptr;
  Shim& shim_;
  const ThreadOrder order_;
  std::mt19937& random_;
  const std::function<void()>& thread_;
  std::vector<Fiber> fibers_;
  context::fiber back_;
  uint32_t running_ = 0;
  bool stops_ = false;
  std::string failure_;
};

}  // namespace

std::string run_blocks(Shim& shim, Blocks blocks, ThreadOrder order,
                       const std::function<void()>& thread) {
  std::mt19937 random(7);
  shim.wait = Block::wait;
  shim.fail = Block::fail;
  for (uint32_t b = 0; b < blocks.count; ++b) {
    shim.block = order == ThreadOrder::backward ? blocks.count - 1 - b : b;
    if (std::string failure = Block(shim, blocks.threads, order, random, thread).run();
        !failure.empty())
      return failure;
  }
  return {};
}

std::string run_plain(Shim& shim, Blocks blocks, ThreadOrder order,
                      const std::function<void()>& thread) {
  static std::string failure;
  failure.clear();
  shim.wait = [](Shim* at, int line, bool) {
    failure = fmt::format("thread {} waits at line {}, which was not expected", at->thread, line);
  };
  shim.fail = [](Shim* at, const char* what, int detail) {
    failure =
        fmt::format("thread {} of block {}: {} ({} bytes)", at->thread, at->block, what, detail);
  };
  for (uint32_t b = 0; b < blocks.count && failure.empty(); ++b) {
    const bool is_backward = order == ThreadOrder::backward;
    shim.block = is_backward ? blocks.count - 1 - b : b;
    for (uint32_t t = 0; t < blocks.threads; ++t) {
      shim.thread = is_backward ? blocks.threads - 1 - t : t;
      thread();
    }
  }
  return failure;
}

}  // namespace nitinol::test
