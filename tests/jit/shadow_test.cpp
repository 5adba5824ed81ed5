// ResultCheck::shadow: every compiled call is compared with its ops one by one. Faults are planted:
// in passes, in kernels' code, in a formula, in place, among threads, in a library call.
#include "jit/shadow.h"

#include "core/backend.h"
#include "core/executables.h"
#include "core/kernel.h"
#include "core/library.h"
#include "eager/all_ops.h"
#include "eager/apply.h"
#include "jit/experiment.h"
#include "jit/passes/pipeline.h"
#include "nitinol.h"
#include "tests/has_text.h"
#include "tests/jit/calls.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using namespace nitinol;
using namespace nitinol::test;

namespace nitinol::shadow_test {

const CompileOptions shadowed = {.name = "step", .check = Check::never, .shadow = true};

/// The message of the first Error(internal) of these calls, by when a Plan has run; empty if none
/// throws.
template <class F>
std::string difference_in(const F& f) {
  constexpr int many = 64;  // a Plan may have to repay
  try {
    for (int i = 0; i < many; ++i) f();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
    return error.message();
  }
  return {};
}

/// The folder that a message names.
std::filesystem::path folder_in(const std::string& message) {
  const std::size_t begin = message.find("report it with ") + 15;
  return message.substr(begin, message.find(", where repro.cpp") - begin);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Removes the folder when the test is over.
class Repro {
 public:
  explicit Repro(const std::string& message) : path_(folder_in(message)) {
    REQUIRE(std::filesystem::exists(path_ / "repro.cpp"));
  }
  ~Repro() { std::filesystem::remove_all(path_); }
  Repro(const Repro&) = delete;
  Repro& operator=(const Repro&) = delete;
  [[nodiscard]] std::string graph() const { return text_of(path_ / "graph.txt"); }
  [[nodiscard]] std::string program() const { return text_of(path_ / "repro.cpp"); }
  /// What the program does.
  [[nodiscard]] std::string run() const {
    std::vector<Tensor> inputs;
    for (int i = 0;; ++i) {
      const std::filesystem::path file = path_ / ("input_" + std::to_string(i) + ".npy");
      if (!std::filesystem::exists(file)) break;
      inputs.push_back(load_npy(file));
    }
    return shadow_difference(graph(), inputs);
  }

 private:
  std::filesystem::path path_;
};

/// While it lives, a pass of the test's runs after the others.
class Planted {
 public:
  Planted(std::string_view name, Graph (*pass)(Graph)) : before_(jit::pass_options()) {
    jit::PassOptions options = before_;
    options.added.push_back({name, pass});
    set_pass_options(std::move(options));
  }
  ~Planted() { set_pass_options(before_); }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;

 private:
  jit::PassOptions before_;
};

/// Whether a word of the graph's text is the op.
int ops_in(const std::string& graph) {
  return static_cast<int>(std::ranges::count(graph, '=')) -
         static_cast<int>(graph.find("axes=") != std::string::npos);
}

// ---- without faults

TEST_CASE("a shadowed function gives what it gives, by its Plan and in place", "[jit][shadow]") {
  const Variable w = parameter(ramp({40, 8}));
  const auto step = compile(
      [&w](const Tensor& x) {
        const Tensor y = softmax(matmul(x, w.get()), {-1});
        w.set(w.get() * 0.5 + 1.0);
        return sum(y * y);
      },
      shadowed);
  const Tensor x = ramp({16, 40});
  for (int i = 0; i < 6; ++i) {
    const Tensor before = w.get();
    const Tensor expected = sum(square(softmax(matmul(x, before), {-1})));
    const Tensor assigned = before * 0.5 + 1.0;
    const Tensor got = step(x);
    CHECK(same_bits(got, expected));
    CHECK(same_bits(w.get(), assigned));
  }
  const Explanation explanation = step.explain();
  CHECK(explanation.plan_calls == 4);
  CHECK(explanation.signatures.at(0).plan.in_place_bytes == 40 * 8 * sizeof(float));
}

TEST_CASE("the memory of a shadowed call is stored over", "[jit][shadow][host]") {
  const Variable w{ramp({64})};
  const auto step = compile([&w] { w.set(tanh(w.get()) + 1.0); }, shadowed);
  step();
  step();
  const void* const before = w.get().internals().address();
  step();
  CHECK(w.get().internals().address() == before);
}

TEST_CASE("ways back, segments, checks and random numbers have shadows", "[jit][shadow]") {
  const Variable w = parameter(ramp({8, 4}));
  Generator generator(7);
  const ResultCheckScope scope(ResultCheck::shadow);
  const auto loss = compile([&](const Tensor& x) { return mean(square(matmul(x, w.get()))); },
                            {.check = Check::never});
  const auto noisy =
      compile([&generator](const Tensor& x) { return x + normal(x.shape(), 0, 1, f32, generator); },
              {.check = Check::never});
  const auto branch = compile([](const Tensor& x) { return sum(x) > 0 ? exp(x) * 2 : x - 1; },
                              {.check = Check::never});
  const auto picked = compile([](const Tensor& x, const Tensor& i) { return take(x, i) * 2; },
                              {.check = Check::never});
  const Tensor x = ramp({4, 8});
  for (int i = 0; i < 5; ++i) {
    loss(x).backward();
    noisy(x);
    branch(x + i);
    picked(x, tensor({0, 2}, i64).to(default_device()));
  }
  CHECK(loss.explain().plan_calls == 3);
  CHECK(error_of([&] {
          return picked(x, tensor({0, 4}, i64).to(default_device()));
        }).starts_with("value: "));
}

TEST_CASE("a function goes on by its Plan, though that is slower than eager with a shadow",
          "[jit][shadow]") {
  const CompileOptions scheduled = {.check_interval = std::chrono::milliseconds(0), .shadow = true};
  const auto f = compile([](const Tensor& x) { return exp(x) * 2; }, scheduled);
  const auto branch =
      compile([](const Tensor& x) { return sum(x) > 0 ? exp(x) * 2 : x; }, scheduled);
  const Tensor x = ones({2000}, f32, default_device());
  for (int i = 0; i < 600; ++i) {
    f(x);
    branch(x);
  }
  CHECK(f.explain().eager_calls == 0);
  CHECK(f.explain().signatures.at(0).tier == Tier::traced);
  CHECK(branch.explain().signatures.at(0).tier == without_plan());
}

TEST_CASE("NITINOL_CHECK=shadow is for the whole process", "[jit][shadow][host]") {
  CHECK(run_self("NITINOL_CHECK=shadow", "[.shadow-work]").status == 0);
  const Run run = run_self("NITINOL_CHECK=shadow", "[.shadow-wrong]");
  CHECK(run.status != 0);
  CHECK(has(run.output, "the pass `wrong_factor`"));
}

TEST_CASE("an option for NaN and one for the shadow are two wishes", "[jit][shadow]") {
  CHECK_THROWS_WITH(compile([](const Tensor& x) { return x; }, {.check_nan = true, .shadow = true}),
                    Catch::Contains("`check_nan` and `shadow`: expected one of them"));
}

// ---- wrong passes

/// exp(x) * 2 becomes exp(x) + 2.
Graph wrong_factor(Graph graph) {
  for (Node& node : graph.nodes) {
    if (node.kind == Node::Kind::op && node.op->name == "mul") node.op = &ops::add();
  }
  return graph;
}

/// Reads an earlier value of the same kind.
Graph wrong_operand(Graph graph) {
  for (Node& node : graph.nodes) {
    if (node.kind != Node::Kind::op || node.op->name != "sub") continue;
    std::swap(node.inputs[0], node.inputs[1]);
  }
  return graph;
}

/// What may fail cannot any more.
Graph without_checks(Graph graph) {
  for (Node& node : graph.nodes) {
    if (node.kind != Node::Kind::op || node.op != &ops::check_nonzero()) continue;
    node.op = &ops::copy();
    node.attrs.clear();
  }
  return graph;
}

Tensor long_chain(const Tensor& x) {
  Tensor y = sin(x);
  for (int i = 0; i < 20; ++i) y = tanh(y + x);
  y = exp(y) * 2;
  for (int i = 0; i < 20; ++i) y = sqrt(abs(y) + x * 0 + 1);
  return sum(y, {0});
}

TEST_CASE("a wrong pass is named, with the smallest graph", "[jit][shadow][no-isa]") {
  const Tensor x = ramp({6, 5});
  const auto f = compile([](const Tensor& t) { return long_chain(t) - 1; }, shadowed);
  const Planted plant("wrong_operand", wrong_operand);
  const std::string message = difference_in([&] { f(x); });
  CHECK(has(message, "step: a compiled call: of the result, float32[5], element [0] is "));
  CHECK(has(message, "5 of 5 differ"));
  CHECK(has(message, "The cause: the pass `wrong_operand`: left out, the bits are the same"));
  const Repro repro(message);
  CHECK(ops_in(repro.graph()) <= 3);
  CHECK(has(repro.graph(), "sub"));
  CHECK(has(message, "shadow_test.cpp:"));
  CHECK(has(repro.program(), "shadow_difference"));
  CHECK(has(repro.run(), "output 0: element "));
  // It is looked for once.
  CHECK(folder_in(difference_in([&] { f(x); })) == folder_in(message));
}

TEST_CASE("a pass that drops a check is named", "[jit][shadow]") {
  const Tensor x = tensor({7, 8, 9}, i32).to(default_device());
  const auto f =
      compile([](const Tensor& a, const Tensor& b) { return floor_divide(a, b) + 1; }, shadowed);
  const Planted plant("without_checks", without_checks);
  const Tensor one = ones({3}, i32, default_device());
  CHECK(difference_in([&] { f(x, one); }).empty());
  const Tensor zero = zeros({3}, i32, default_device());
  const std::string message = difference_in([&] { f(x, zero); });
  CHECK(has(message, "no check fails"));
  CHECK(has(message, "the pass `without_checks`"));
  const Repro repro(message);
}

TEST_CASE("nothing is assigned by a call that differs, even in place", "[jit][shadow]") {
  const Variable w{ramp({32})};
  const auto step = compile([&w](const Tensor& x) { w.set(exp(w.get()) * 2 + x); }, shadowed);
  const Planted plant("wrong_factor", wrong_factor);
  Tensor before;
  const std::string message = difference_in([&] {
    before = w.get() + 0;
    step(ramp({32}));
  });
  CHECK(has(message, "of the new value of Variable 1"));
  CHECK(has(message, "the pass `wrong_factor`"));
  CHECK(same_bits(w.get(), before));
  const Repro repro(message);
}

TEST_CASE("a wrong pass is found in segments and in ways back", "[jit][shadow]") {
  const Tensor x = ramp({9});
  const auto branch =
      compile([](const Tensor& t) { return sum(t) > 0 ? t : exp(t) * 2; }, shadowed);
  {
    const Planted plant("wrong_factor", wrong_factor);
    const std::string message = difference_in([&] { static_cast<void>(branch(x).to(Device{})); });
    if (without_plan() == Tier::deferred) {
      CHECK(has(message, "the pass `wrong_factor`"));
      const Repro repro(message);
    }
  }
  const Variable w = parameter(ramp({9}));
  const auto loss = compile([&w] { return sum(tanh(w.get())); }, shadowed);
  const Planted plant("wrong_operand", wrong_operand);  // 1 - y * y
  const std::string message = difference_in([&] { loss().backward(); });
  CHECK(has(message, "the pass `wrong_operand`"));
  const Repro repro(message);
}

TEST_CASE("[work] a shadowed process", "[.shadow-work]") {
  const auto f = compile([](const Tensor& x) { return exp(x) * 2; });
  for (int i = 0; i < 5; ++i) f(ramp({9}));
  CHECK(f.explain().plan_calls > 0);
}

TEST_CASE("[work] a shadowed process with a fault", "[.shadow-wrong]") {
  const Planted plant("wrong_factor", wrong_factor);
  const auto f = compile([](const Tensor& x) { return exp(x) * 2; });
  for (int i = 0; i < 5; ++i) f(ramp({9}));
}

// ---- wrong formulas and code

TEST_CASE("an op that is lowered wrongly is named", "[jit][shadow][host]") {
  if (!backend(Device{}).can_generate_code()) return;
  // Where a kernel with sin's formula would be found, with sin's loops; and the wrong ones after
  // it.
  struct Cleared {
    Cleared() { clear_executables(); }
    ~Cleared() { clear_executables(); }
  };
  const Cleared executables;
  static const Op wrong = [] {
    Op op = *find_op("tanh");
    op.name = "wrong_tanh";
    op.formula.emit = find_op("sin")->formula.emit;
    return op;
  }();
  const auto f = compile(
      [](const Tensor& t) {
        const Tensor y = exp(sqrt(abs(t)) + 1);
        return log(apply(wrong, {&y}) + 3) * t;
      },
      shadowed);
  const Tensor x = ramp({50});
  const std::string message = difference_in([&] { f(x); });
  CHECK(has(message, "wrong_tanh"));
  CHECK(has(message,
            "where each op alone gives the same bits: interpreted it gives wrong bits, too"));
  CHECK(has(message, "how an op is lowered"));
  const Repro repro(message);
  CHECK(ops_in(repro.graph()) <= 4);
}

enum class Fault : uint8_t { none, fused, in_place, threads };
std::atomic<Fault> fault = Fault::none;

/// An Executable that stores a wrong first element where the fault says so.
class Spoiled final : public Executable {
 public:
  Spoiled(std::unique_ptr<Executable> right, std::vector<std::size_t> outputs, std::size_t size)
      : right_(std::move(right)), outputs_(std::move(outputs)), size_(size) {}
  void launch(const Launch& launch) const override {
    right_->launch(launch);
    if (!is_wrong(launch)) return;
    for (const std::size_t output : outputs_)
      static_cast<unsigned char*>(launch.buffers[output])[size_ - 1] ^= 0x41U;
  }

 private:
  [[nodiscard]] bool is_wrong(const Launch& launch) const {
    if (fault == Fault::threads) return launch.threads > 1;
    if (fault != Fault::in_place) return true;
    return std::ranges::any_of(outputs_, [&](std::size_t output) {
      return std::ranges::count(launch.buffers, launch.buffers[output]) > 1;
    });
  }

  std::unique_ptr<Executable> right_;
  std::vector<std::size_t> outputs_;
  std::size_t size_;
};

bool is_fused(const Kernel& kernel) {
  return kernel.making.name.find('_') != std::string::npos;
}

/// Interprets, wrongly where it is told to.
class FaultyDevice final : public Backend {
 public:
  [[nodiscard]] Device device() const override {
    return {.kind = Device::Kind::reference, .index = 9};
  }
  [[nodiscard]] std::string description() const override { return "faulty"; }
  std::unique_ptr<Executable> prepare(const Step& step) override {
    if (const auto* kernel = std::get_if<Kernel>(&step)) {
      auto right = below_.prepare(step);
      if (!is_fused(*kernel)) return right;
      std::vector<std::size_t> outputs;
      for (std::size_t i = 0; i < kernel->operands.size(); ++i) {
        if (kernel->operands[i].role == Role::output) outputs.push_back(i);
      }
      if (fault == Fault::none || outputs.empty()) return right;
      return std::make_unique<Spoiled>(std::move(right), outputs, 4);
    }
    return below_.prepare(step);
  }
  bool can_generate_code() override { return true; }

  StorageHandle allocate(std::size_t bytes) override { return below_.allocate(bytes); }
  [[nodiscard]] bool is_host_memory() const override { return true; }
  void upload(const void* from, void* to, std::size_t bytes) override {
    below_.upload(from, to, bytes);
  }
  void download(const void* from, void* to, std::size_t bytes) override {
    below_.download(from, to, bytes);
  }
  void fill(void* to, uint64_t bits, std::size_t size, std::size_t count) override {
    below_.fill(to, bits, size, count);
  }
  MemoryStatistics memory() override { return below_.memory(); }
  void set_memory_budget(std::size_t bytes) override { below_.set_memory_budget(bytes); }
  void release_cached_memory() override { below_.release_cached_memory(); }
  void reset_peak_memory() override { below_.reset_peak_memory(); }
  void synchronize() override { below_.synchronize(); }
  [[nodiscard]] DeviceLimits limits() const override { return below_.limits(); }

 private:
  Backend& below_ = backend({.kind = Device::Kind::reference, .index = 0});
};

Device faulty_device() {
  static FaultyDevice& instance = []() -> FaultyDevice& {
    auto& made = *new FaultyDevice;
    add_backend(made);
    return made;
  }();
  return instance.device();
}

/// While it lives, the device has it.
class Faulty {
 public:
  explicit Faulty(Fault which) {
    clear_executables();
    fault = which;
  }
  ~Faulty() {
    fault = Fault::none;
    clear_executables();
  }
  Faulty(const Faulty&) = delete;
  Faulty& operator=(const Faulty&) = delete;
};

TEST_CASE("wrong code of a kernel is told from a wrong kernel", "[jit][shadow][host]") {
  const Tensor x = ramp({6, 4}).to(faulty_device());
  const auto f =
      compile([](const Tensor& t) { return matmul(exp(t) + 1, transpose(t, 0, 1)); }, shadowed);
  const Faulty planted(Fault::fused);
  const std::string message = difference_in([&] { f(x); });
  CHECK(has(message,
            "the kernel `exp, add`, where each op alone gives the same bits: "
            "interpreted it gives the right bits, so the code generated for it is wrong"));
  const Repro repro(message);
  CHECK(repro.graph().find("matmul") == std::string::npos);
  CHECK(has(repro.run(), "output 0: element [0, 0]"));
}

TEST_CASE("what is wrong in place alone is named so", "[jit][shadow][host]") {
  const Variable w{ramp({16}).to(faulty_device())};
  const auto step = compile([&w] { w.set(tanh(w.get()) * 2); }, shadowed);
  const Faulty planted(Fault::in_place);
  Tensor before;
  const std::string message = difference_in([&] {
    before = w.get() + 0;
    step();
  });
  CHECK(has(message, "The cause: that results are stored over what they are made of"));
  CHECK(same_bits(w.get().to(Device{}), before.to(Device{})));
  const Repro repro(message);
}

TEST_CASE("what is wrong on several threads alone is named so", "[jit][shadow][host]") {
  const int threads = num_threads();
  set_num_threads(2);
  const Tensor x = ramp({64}).to(faulty_device());
  const auto f = compile([](const Tensor& t) { return exp(t) * 2; }, shadowed);
  std::string message;
  {
    const Faulty planted(Fault::threads);
    message = difference_in([&] { f(x); });
  }
  set_num_threads(threads);
  CHECK(has(message, "The cause: 2 threads: with one, the bits are the same"));
  const Repro repro(message);
}

// ---- what the search is made of

TEST_CASE("bits are compared as the promise has it", "[jit][shadow]") {
  using jit::first_difference;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(!first_difference(tensor({nan, 1.0F}), tensor({-nan, 1.0F})));
  CHECK(first_difference(tensor({0.0F, 1.0F}), tensor({-0.0F, 1.0F})) ==
        "element [0] is 0 (0x00000000) compiled and -0 (0x80000000) op by op; 1 of 2 differ");
  CHECK(first_difference(tensor({{1, 2}, {3, 4}}), tensor({{1, 2}, {5, 4}})) ==
        "element [1, 0] is 3 compiled and 5 op by op; 1 of 4 differ");
  const Tensor turned = transpose(tensor({{1, 3}, {2, 4}}));  // its elements lie in another order
  CHECK(!first_difference(tensor({{1, 2}, {3, 4}}), turned));
  CHECK(first_difference(turned, tensor({{1, 2}, {5, 4}})) ==
        "element [1, 0] is 3 compiled and 5 op by op; 1 of 4 differ");
  CHECK(first_difference(zeros({2}), zeros({3})).has_value());
  CHECK(!first_difference(zeros({0}), zeros({0})));
}

TEST_CASE("shadow_difference looks at what it is given", "[jit][shadow]") {
  const std::string graph =
      "a: f32[3] = input; b: bf16[2, 3] strides=[1, 2] = input; c = exp a; d "
      "= tanh b; return c d";
  const Tensor a = tensor({1.0F, 2.0F, 3.0F}), b = ones({2, 3});
  CHECK(shadow_difference(graph, std::vector{a, b}).empty());
  CHECK_THROWS_WITH(shadow_difference(graph, std::vector{a}),
                    Catch::Contains("the inputs: expected 2, as the graph has, got 1"));
  CHECK_THROWS_WITH(shadow_difference(graph, std::vector{b, a}),
                    Catch::Contains("input 0: expected float32[3], got float32[2, 3]"));
  CHECK_THROWS_WITH(shadow_difference("a = nothing b", {}), Catch::Contains("line 1"));
}

}  // namespace nitinol::shadow_test
