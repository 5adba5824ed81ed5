#include "backends/cuda/runtime/loaded.h"

#include "backends/cuda/runtime/ranges.h"
#include "core/environment.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace nitinol::cuda {
namespace {

/// Of the functions of a part; 0 if the cubin does not say.
int most_registers(const Code& code) {
  const std::string first = function_name(code.part, 0);
  const std::string_view name = std::string_view(first).substr(0, first.size() - 1);
  int most = 0;
  try {
    for (const Resources& function : resources_of(*code.cubin)) {
      if (function.function.starts_with(name)) most = std::max(most, function.registers);
    }
  } catch (const Error&) {
    return 0;
  }
  return most;
}

}  // namespace

bool waits_after_each() {
  static constexpr std::string_view values[] = {"0", "1"};
  static const bool waits = environment_choice("NITINOL_CUDA_WAIT", values).value_or(0) == 1;
  return waits;
}

Loaded::Loaded(Gpu& gpu, const Code& code, std::string label, std::string name)
    : gpu_(gpu),
      bytes_(code.cubin->size()),
      part_(code.part),
      origin_(code.origin),
      label_(std::make_shared<const std::string>(std::move(label))),
      name_(std::move(name)) {
  const Entered entered = gpu_.enter();
  gpu_.check(driver().cuModuleLoadData(&module_, code.cubin->data()), "loading a kernel");
  registers_ = most_registers(code);
}

Loaded::~Loaded() {
  try {
    const Entered entered = gpu_.enter();
    gpu_.wait();
    driver().cuModuleUnload(module_);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a lost device has no modules
  }
}

std::string Loaded::describe() const {
  const bool is_known = is_told_.exchange(true, std::memory_order_relaxed);
  const std::string origin = is_known ? "code from memory"
                             : origin_ == CodeOrigin::generated
                                 ? "compiled"
                                 : fmt::format("code {}", name_of(origin_));
  return registers_ > 0 ? fmt::format("{}, {} registers", origin, registers_) : origin;
}

Driver::Function Loaded::entry(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  while (entries_.size() <= number) {
    Driver::Function function = nullptr;
    const std::string name = function_name(part_, entries_.size());
    gpu_.check(driver().cuModuleGetFunction(&function, module_, name.c_str()),
               "finding a function");
    entries_.push_back(function);
  }
  return entries_[number];
}

Loaded::Memory Loaded::memory_for(const Workspace& workspace, const Launch& launch) const {
  Memory memory;
  if (workspace.bytes > Gpu::workspace_bytes) {
    memory.workspace = gpu_.scratch(workspace.bytes);
    memory.places.workspace = memory.workspace->data;
  } else if (workspace.bytes > 0) {
    memory.places.workspace = gpu_.workspace();
  }
  memory.places.counters = gpu_.counters(workspace.counters);
  memory.places.status = reinterpret_cast<uint32_t*>(launch.status);
  if (launch.is_gated) memory.places.gate = memory.places.status;
  return memory;
}

void Loaded::check_size(std::size_t argument_bytes) const {
  if (argument_bytes <= gpu_.most_argument_bytes()) return;
  throw Error(ErrorKind::unsupported,
              {.where = *label_,
               .what = "a kernel of more operands than the driver passes",
               .expected = fmt::format("at most {} bytes of arguments", gpu_.most_argument_bytes()),
               .got = fmt::format("{}", argument_bytes),
               .fix = "Use CUDA 12.1 or newer, or compile a smaller function."});
}

void Loaded::launch(std::size_t entry, uint32_t blocks, uint32_t threads,
                    std::span<const std::byte> arguments) const {
  if (blocks == 0) return;
  gpu_.launch(this->entry(entry), blocks, threads, arguments, label_);
  if (waits_after_each()) gpu_.wait();
}

void Loaded::run(const Call& call) const {
  check_size(call.arguments.size());
  const NamedRange range(name_);
  const Entered entered = gpu_.enter();
  const std::lock_guard order(gpu_.order());
  for (std::size_t i = 0; i < call.blocks.size(); ++i)
    launch(i, call.blocks[i], call.threads, call.arguments);
}

void Loaded::run(std::span<const Step> steps, std::span<std::byte> arguments,
                 std::size_t number_at) const {
  check_size(arguments.size());
  const NamedRange range(name_);
  const Entered entered = gpu_.enter();
  const std::lock_guard order(gpu_.order());
  for (const Step& step : steps) {
    std::memcpy(&arguments[number_at], &step.number, sizeof step.number);
    launch(step.entry, step.blocks, block_threads, arguments);
  }
}

}  // namespace nitinol::cuda
