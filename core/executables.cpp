#include "core/executables.h"

#include "core/hash.h"
#include "core/kernel.h"
#include "core/library.h"
#include "core/once_cache.h"
#include "core/profiling.h"

namespace nitinol {

std::atomic<uint64_t> executable_clears = 0;

namespace {

std::size_t hash_of_call(const LibraryCall& call) {
  Hash hash;
  hash.add(call.kind);
  hash.add(call.threads);
  for (const OperandLayout& operand : call.operands) {
    hash.add(operand.dtype);
    hash.add_all(operand.shape);
    hash.add_all(operand.strides);
  }
  const Windows& windows = call.windows;
  for (const auto& pair : {windows.kernel, windows.stride, windows.padding, windows.dilation})
    hash.add_all(pair);
  hash.add(windows.groups);
  hash.add(call.axis);
  hash.add(call.only_checks);
  hash.add(reinterpret_cast<uintptr_t>(call.routine));
  hash.add(call.collective.kind);
  hash.add(call.collective.group);
  hash.add(call.collective.partner);
  hash.add(call.collective.call);
  hash.add_all(call.collective.shape);
  return hash.result();
}

std::size_t hash_of(const Backend& device, const Step& step) {
  const Kernel* kernel = std::get_if<Kernel>(&step);
  Hash hash;
  hash.add(reinterpret_cast<uintptr_t>(&device));
  hash.add(kernel != nullptr ? nitinol::hash_of(*kernel)
                             : hash_of_call(std::get<LibraryCall>(step)));
  return hash.result();
}

/// Bytes of a step twice, as the key and in the executable, with what the maps take for it.
std::size_t bytes_of(const Step& step) {
  const auto of_vector = [](const auto& vector) { return vector.capacity() * sizeof(vector[0]); };
  std::size_t bytes = sizeof(Step) + 256;
  if (const auto* kernel = std::get_if<Kernel>(&step)) {
    bytes +=
        of_vector(kernel->operands) + of_vector(kernel->reductions) + of_vector(kernel->stages);
    for (const Stage& stage : kernel->stages) {
      bytes += of_vector(stage.program.instrs) + of_vector(stage.sources) + of_vector(stage.sinks);
    }
    return 2 * bytes;
  }
  return 2 * (bytes + of_vector(std::get<LibraryCall>(step).operands));
}

/// A step that a device was asked for.
struct Asked {
  Backend* device;
  const Step& step;
};

struct Key {
  explicit Key(const Asked& asked) : device(asked.device), step(asked.step) {}
  Backend* device;
  Step step;
  friend bool operator==(const Key& a, const Asked& b) {
    return a.device == b.device && a.step == b.step;
  }
};

using Cache = OnceCache<Key, std::shared_ptr<const Executable>>;

/// Never destroyed: threads may still launch while the process ends. Locks itself.
Cache& cache() {
  static Cache& instance = *new Cache(std::size_t{256} << 20);
  return instance;
}

std::atomic<uint64_t> from_disk = 0, shipped = 0;

}  // namespace

std::shared_ptr<const Executable> executable_for(Backend& device, const Step& step,
                                                 bool* was_there) {
  bool is_made = false;
  auto executable = cache().get(hash_of(device, step), Asked{&device, step}, [&]() -> Cache::Made {
    is_made = true;
    const auto* call = std::get_if<LibraryCall>(&step);
    profiling::Span span(EventKind::compile, call != nullptr ? name_of(call->kind) : "kernel");
    std::shared_ptr<const Executable> made = device.prepare(step);
    note_code(made->report().origin);
    span.set_detail(name_of(made->report().origin));
    const std::size_t bytes = bytes_of(step) + made->bytes();
    return {std::move(made), bytes};
  });
  if (was_there != nullptr) *was_there = !is_made;
  return executable;
}

std::shared_ptr<const Executable> known_executable(Backend& device, const Step& step) {
  return cache().find(hash_of(device, step), Asked{&device, step}).value_or(nullptr);
}

void note_code(CodeOrigin origin) {
  if (origin == CodeOrigin::disk) from_disk.fetch_add(1, std::memory_order_relaxed);
  if (origin == CodeOrigin::shipped) shipped.fetch_add(1, std::memory_order_relaxed);
}

ExecutableStatistics executable_statistics() {
  const Cache::Counts counts = cache().counts();
  return {.hits = counts.hits,
          .prepared = counts.claimed,
          .from_disk = from_disk.load(std::memory_order_relaxed),
          .shipped = shipped.load(std::memory_order_relaxed),
          .evicted = counts.evicted,
          .entries = counts.entries,
          .bytes = counts.bytes,
          .limit = counts.limit};
}

void clear_executables() {
  cache().clear();
  executable_clears.fetch_add(1, std::memory_order_relaxed);
}

void set_executable_limit(std::size_t bytes) {
  cache().set_limit(bytes);
}

}  // namespace nitinol
