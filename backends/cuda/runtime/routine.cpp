// A library call as kernels of our own. Calls of one text share a cubin, whatever their sizes.
#include "backends/cuda/runtime/executables.h"
#include "backends/cuda/runtime/loaded.h"
#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/routine_text.h"
#include "core/library.h"
#include "core/once_cache.h"

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::cuda {
namespace {

/// A text on a device.
struct Asked {
  const Gpu* gpu;
  const std::string& text;
};

struct Key {
  explicit Key(const Asked& asked) : gpu(asked.gpu), text(asked.text) {}
  const Gpu* gpu;
  std::string text;
  friend bool operator==(const Key& a, const Asked& b) {
    return a.gpu == b.gpu && a.text == b.text;
  }
};

/// Its cubin, loaded once and kept.
std::shared_ptr<const Loaded> loaded_text(Gpu& gpu, const std::string& text,
                                          std::string_view label) {
  using Cache = OnceCache<Key, std::shared_ptr<const Loaded>>;
  static auto& all = *new Cache(std::numeric_limits<std::size_t>::max());
  return all.get(std::hash<std::string>()(text), Asked{&gpu, text}, [&]() -> Cache::Made {
    const Code code = CubinCache::instance().get_text(text, gpu.properties().architecture);
    return {std::make_shared<const Loaded>(gpu, code, std::string(label), std::string(label)),
            code.cubin->size()};
  });
}

class Routine final : public Executable {
 public:
  Routine(Gpu& gpu, const LibraryCall& call)
      : text_(routine_text(call)),
        operands_(call.operands.size()),
        loaded_(loaded_text(gpu, text_.text, name_of(call.kind))) {
    for (const RoutineText::Step& step : text_.steps) {
      steps_.push_back({.entry = static_cast<uint32_t>(step.entry),
                        .blocks = static_cast<uint32_t>(ceil_div(step.threads, block_threads)),
                        .number = step.number});
    }
  }

  [[nodiscard]] std::string describe(std::span<const Launch> /*examples*/) const override {
    return "a kernel of our own: " + loaded_->describe();
  }

  [[nodiscard]] std::vector<CodeText> code_texts(std::span<const Launch>) const override {
    return {{"CUDA C++", text_.text}};
  }

  void launch(const Launch& launch) const override {
    const Loaded::Memory memory =
        loaded_->memory_for({.bytes = text_.workspace_bytes, .counters = 0}, launch);
    RoutineArguments arguments = text_.arguments;
    arguments.gate = memory.places.gate;
    arguments.status = memory.places.status;
    arguments.workspace = memory.places.workspace;
    for (std::size_t k = 0; k < operands_; ++k) arguments.operands[k] = launch.buffers[k];
    loaded_->run(steps_, std::as_writable_bytes(std::span(&arguments, 1)),
                 offsetof(RoutineArguments, step));
  }

 private:
  const RoutineText text_;
  const std::size_t operands_;
  const std::shared_ptr<const Loaded> loaded_;
  std::vector<Loaded::Step> steps_;
};

}  // namespace

std::unique_ptr<Executable> make_routine(Gpu& gpu, const LibraryCall& call) {
  return std::make_unique<Routine>(gpu, call);
}

}  // namespace nitinol::cuda
