// One primitive may be run by several threads only if each brings its own scratchpad (with the
// library's own, four threads gave 30 % wrong results) and its own memory objects, which take a
// microsecond to build. Both are kept in a context; the last one used waits in the primitive for
// the next caller, and callers that find none make one.
//
// The primitive is made for a number of threads, on which its scratchpad and results may depend; it
// always runs with that number.

#include "backends/cpu/onednn.h"

#include "backends/cpu/allocator.h"
#include "core/error.h"
#include "core/isa.h"
#include "core/parallel.h"

#include <dnnl.hpp>

#include <atomic>
#include <string_view>
#include <unordered_map>

namespace nitinol::cpu {
namespace {

[[noreturn]] void rethrow(const dnnl::error& error) {
  throw Error(ErrorKind::internal, {.where = "matmul",
                                    .what = std::string("oneDNN failed: ") + error.what(),
                                    .expected = {},
                                    .got = {},
                                    .fix = {}});
}

/// The library's engine; its instruction set is lowered to ours before its first use.
const dnnl::engine& engine() {
  static const dnnl::engine& instance = [&]() -> const dnnl::engine& {
    switch (current_isa()) {
      case Isa::baseline:
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
        break;
      case Isa::avx2:
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
        break;
      case Isa::avx512:
        break;
    }
    return *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return instance;
}

dnnl::memory::desc layout(const MatmulDescription& description, std::size_t operand) {
  const auto type =
      description.dtype == bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  return {description.sizes[operand], type, description.strides[operand]};
}

/// What one running call needs for itself.
struct Context {
  dnnl::stream stream;
  std::unordered_map<int, dnnl::memory> arguments;
  StorageHandle scratch;
};

class Matmul final : public OneDnnMatmul {
 public:
  Matmul(const dnnl::matmul::primitive_desc& plan, int threads)
      : plan_(plan), primitive_(plan), threads_(threads) {}
  ~Matmul() override { delete idle_.load(); }

  void run(const void* a, const void* b, void* c) const override {
    try {
      std::unique_ptr<Context> context(idle_.exchange(nullptr));
      if (context == nullptr) context = make_context();
      // oneDNN takes inputs as void* too
      context->arguments.at(DNNL_ARG_SRC).set_data_handle(const_cast<void*>(a));
      context->arguments.at(DNNL_ARG_WEIGHTS).set_data_handle(const_cast<void*>(b));
      context->arguments.at(DNNL_ARG_DST).set_data_handle(c);
      {
        const DefaultFloatMode mode;
        const LibraryThreads threads(threads_);
        primitive_.execute(context->stream, context->arguments);
        context->stream.wait();
      }
      delete idle_.exchange(context.release());
    } catch (const dnnl::error& error) {
      rethrow(error);
    }
  }

 private:
  [[nodiscard]] std::unique_ptr<Context> make_context() const {
    auto context = std::make_unique<Context>();
    context->stream = dnnl::stream(engine());
    const auto memory = [](const dnnl::memory::desc& desc) {
      return dnnl::memory(desc, engine(), DNNL_MEMORY_NONE);
    };
    const dnnl::memory::desc scratchpad = plan_.scratchpad_desc();
    dnnl::memory scratch = memory(scratchpad);
    context->scratch = allocate(scratchpad.get_size(), Device{});
    scratch.set_data_handle(context->scratch->data);
    context->arguments = {{DNNL_ARG_SRC, memory(plan_.src_desc())},
                          {DNNL_ARG_WEIGHTS, memory(plan_.weights_desc())},
                          {DNNL_ARG_DST, memory(plan_.dst_desc())},
                          {DNNL_ARG_SCRATCHPAD, scratch}};
    return context;
  }

  const dnnl::matmul::primitive_desc plan_;
  const dnnl::matmul primitive_;
  const int threads_;
  mutable std::atomic<Context*> idle_ = nullptr;
};

dnnl::matmul::primitive_desc plan_for(const MatmulDescription& description) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto a = layout(description, 0), b = layout(description, 1), c = layout(description, 2);
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), a, b, c, attributes, true};
#else
  return {dnnl::matmul::desc(a, b, c), attributes, engine(), true};
#endif
}

}  // namespace

std::unique_ptr<OneDnnMatmul> make_onednn_matmul(const MatmulDescription& description) {
  try {
    static_cast<void>(engine());
    const LibraryThreads threads(description.threads);
    const dnnl::matmul::primitive_desc plan = plan_for(description);
    if (!plan) return nullptr;
    const std::string_view name = plan.impl_info_str();
    if (name.find("ref") != std::string_view::npos) return nullptr;
    return std::make_unique<Matmul>(plan, description.threads);
  } catch (const dnnl::error& error) {
    // Layouts that it rejects, such as batches that overlap, are for the caller to take apart.
    if (error.status == dnnl_invalid_arguments || error.status == dnnl_unimplemented) {
      return nullptr;
    }
    rethrow(error);
  }
}

}  // namespace nitinol::cpu
