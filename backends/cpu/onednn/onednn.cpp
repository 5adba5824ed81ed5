// One primitive may be run by several threads only if each brings its own scratchpad (with the
// library's own, four threads gave 30 % wrong results) and its own memory objects, which take a
// microsecond to build. Both are kept in a context; the last one used waits in the primitive for
// the next caller, and callers that find none make one.
//
// The primitive is made for a number of threads, on which its scratchpad and results may depend; it
// always runs with that number.
//
// A convolution takes images as [n, h, w, c] and chooses the layout of its weight itself, which is
// reordered before or after it: it is small. Where it has no fast code for such images it may
// choose their layout too.

#include "backends/cpu/onednn/onednn.h"

#include "backends/cpu/onednn/exit_gate.h"
#include "backends/host/allocator.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/isa.h"
#include "core/parallel.h"

#include <dnnl.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#  include <cpuid.h>
#endif

namespace nitinol::cpu {
namespace {

[[noreturn]] void rethrow(const char* where, const dnnl::error& error) {
  throw Error(ErrorKind::internal, {.where = where,
                                    .what = std::string("oneDNN failed: ") + error.what(),
                                    .expected = {},
                                    .got = {},
                                    .fix = {}});
}

/// Turns oneDNN's own cache of primitives off, which would keep what ours evicts, unless the user
/// has chosen its size.
void keep_no_primitives() {
  for (const char* name : {"ONEDNN_PRIMITIVE_CACHE_CAPACITY", "DNNL_PRIMITIVE_CACHE_CAPACITY"}) {
    if (std::getenv(name) != nullptr) return;  // NOLINT(concurrency-mt-unsafe): nobody writes it
  }
  dnnl::set_primitive_cache_capacity(0);
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
    keep_no_primitives();
    return *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return instance;
}

dnnl::memory::data_type type_of(DType dtype) {
  return dtype == bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc layout(const MatmulDescription& description, std::size_t operand) {
  return {description.sizes[operand], type_of(description.dtype), description.strides[operand]};
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// An operand as the caller has it and as the primitive wants it.
struct Argument {
  int id;
  dnnl::memory::desc given, wanted;
  [[nodiscard]] bool is_reordered() const { return given != wanted; }
};

/// Memory that is ours as long as the context lives.
struct OwnMemory {
  dnnl::memory memory;
  StorageHandle storage;

  explicit OwnMemory(const dnnl::memory::desc& desc)
      : memory(desc, engine(), DNNL_MEMORY_NONE), storage(host::allocate(desc.get_size())) {
    memory.set_data_handle(storage->data);
  }
};

/// A change of layout before or after the primitive.
struct Reorder {
  dnnl::reorder reorder;
  std::unordered_map<int, dnnl::memory> arguments;
};

/// What one running call needs for itself.
struct Context {
  dnnl::stream stream;
  std::vector<dnnl::memory> given;
  std::vector<Reorder> before, after;
  std::unordered_map<int, dnnl::memory> arguments;
  std::vector<OwnMemory> owned;
};

class Call final : public OneDnnCall {
 public:
  /// Arguments: the inputs, then the result.
  Call(const char* name, dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
       std::vector<Argument> arguments, int threads)
      : name_(name),
        primitive_(std::make_unique<const dnnl::primitive>(std::move(primitive))),
        scratchpad_(scratchpad),
        arguments_(std::move(arguments)),
        threads_(threads) {}
  ~Call() override {
    const InsideOneDnn inside;
    delete idle_.load();
    primitive_.reset();
  }

  void run(std::initializer_list<const void*> inputs, void* result) const override {
    const InsideOneDnn inside;
    try {
      const LibraryThreads threads(threads_);
      std::unique_ptr<Context> context(idle_.exchange(nullptr));
      if (context == nullptr) context = make_context();
      auto given = context->given.begin();
      for (const void* const input : inputs)  // oneDNN takes them as void* too
        (given++)->set_data_handle(const_cast<void*>(input));
      given->set_data_handle(result);
      {
        const DefaultFloatMode mode;
        for (const Reorder& step : context->before)
          step.reorder.execute(context->stream, step.arguments);
        primitive_->execute(context->stream, context->arguments);
        for (const Reorder& step : context->after)
          step.reorder.execute(context->stream, step.arguments);
        context->stream.wait();
      }
      delete idle_.exchange(context.release());
    } catch (const dnnl::error& error) {
      rethrow(name_, error);
    }
  }

  [[nodiscard]] std::size_t bytes() const override {
    // A primitive with its code takes 55 to 76 KB, of oneDNN 3 on 125 to 280, a context 4 KB
    // (resident memory for each of 1,000, oneDNN 2.6, and of 600, 3.7; AVX-512, November 2026).
    constexpr std::size_t primitive_bytes = std::size_t{DNNL_VERSION_MAJOR < 3 ? 72 : 220} << 10;
    std::size_t bytes = primitive_bytes + scratchpad_.get_size();
    for (const Argument& argument : arguments_) {
      if (argument.is_reordered()) bytes += argument.wanted.get_size() + (std::size_t{16} << 10);
    }
    return bytes;
  }

 private:
  [[nodiscard]] std::unique_ptr<Context> make_context() const {
    const NoFork no_fork;
    auto context = std::make_unique<Context>();
    context->stream = dnnl::stream(engine());
    for (const Argument& argument : arguments_) {
      const dnnl::memory given(argument.given, engine(), DNNL_MEMORY_NONE);
      context->given.push_back(given);  // a handle of the same object
      dnnl::memory used = given;
      if (argument.is_reordered()) {
        used = own(*context, argument.wanted);
        if (&argument != &arguments_.back())
          context->before.push_back(reorder(*context, given, used));
        else
          context->after.push_back(reorder(*context, used, given));
      }
      context->arguments.emplace(argument.id, used);
    }
    context->arguments.emplace(DNNL_ARG_SCRATCHPAD, own(*context, scratchpad_));
    return context;
  }

  static dnnl::memory own(Context& context, const dnnl::memory::desc& desc) {
    return context.owned.emplace_back(desc).memory;
  }

  static Reorder reorder(Context& context, const dnnl::memory& from, const dnnl::memory& to) {
    const dnnl::reorder::primitive_desc plan(engine(), from.get_desc(), engine(), to.get_desc(),
                                             attributes());
    return {.reorder = dnnl::reorder(plan),
            .arguments = {{DNNL_ARG_FROM, from},
                          {DNNL_ARG_TO, to},
                          {DNNL_ARG_SCRATCHPAD, own(context, plan.scratchpad_desc())}}};
  }

  const char* const name_;
  std::unique_ptr<const dnnl::primitive> primitive_;
  const dnnl::memory::desc scratchpad_;
  const std::vector<Argument> arguments_;
  const int threads_;
  mutable std::atomic<Context*> idle_ = nullptr;
};

template <class Plan>
bool is_fast(const Plan& plan) {
  if (!plan) return false;
  const std::string_view name = plan.impl_info_str();
  return name.find("ref") == std::string_view::npos;
}

// ---- matmul

dnnl::matmul::primitive_desc plan_for(const MatmulDescription& description,
                                      const dnnl::memory::desc& b) {
  const auto a = layout(description, 0), c = layout(description, 2);
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), a, b, c, attributes(), true};
#else
  return {dnnl::matmul::desc(a, b, c), attributes(), engine(), true};
#endif
}

std::unique_ptr<OneDnnCall> matmul_call(const dnnl::matmul::primitive_desc& plan, int threads) {
  const std::vector<Argument> arguments = {
      {DNNL_ARG_SRC, plan.src_desc(), plan.src_desc()},
      {DNNL_ARG_WEIGHTS, plan.weights_desc(), plan.weights_desc()},
      {DNNL_ARG_DST, plan.dst_desc(), plan.dst_desc()}};
  return std::make_unique<Call>("matmul", dnnl::matmul(plan), plan.scratchpad_desc(), arguments,
                                threads);
}

/// One operand as dnnl_sgemm is told of it. It may lie by rows or by columns.
struct GemmOperand {
  char is_transposed;  ///< 'N' or 'T'
  int64_t distance;    ///< from row to row, or from column to column

  GemmOperand(const MatmulDescription& description, std::size_t operand) {
    const std::vector<int64_t>& strides = description.strides[operand];
    is_transposed = strides[1] == 1 ? 'N' : 'T';
    distance = strides[1] == 1 ? strides[0] : strides[1];
  }
};

/// dnnl_sgemm has no object of its own and allocates what it needs while it runs. The code for a
/// shape is generated when one like it runs for the first time.
class Gemm final : public OneDnnCall {
 public:
  explicit Gemm(const MatmulDescription& d)
      : a_(d, 0),
        b_(d, 1),
        c_(d, 2),
        m_(d.sizes[2][0]),
        n_(d.sizes[2][1]),
        k_(d.sizes[0][1]),
        threads_(d.threads) {}

  void run(std::initializer_list<const void*> inputs, void* result) const override {
    const auto* const a = static_cast<const float*>(inputs.begin()[0]);
    const auto* const b = static_cast<const float*>(inputs.begin()[1]);
    const InsideOneDnn inside;
    std::optional<NoFork> no_fork;
    if (!has_code_.load(std::memory_order_relaxed)) no_fork.emplace();
    const LibraryThreads threads(threads_);
    const DefaultFloatMode mode;
    const dnnl_status_t status =
        dnnl_sgemm(a_.is_transposed, b_.is_transposed, m_, n_, k_, 1.0F, a, a_.distance, b,
                   b_.distance, 0.0F, static_cast<float*>(result), c_.distance);
    if (status != dnnl_success) rethrow("matmul", dnnl::error(status, "dnnl_sgemm"));
    if (!has_code_.exchange(true, std::memory_order_relaxed)) close_at_exit();
  }

  [[nodiscard]] std::size_t bytes() const override { return sizeof *this; }

 private:
  const GemmOperand a_, b_, c_;
  const int64_t m_, n_, k_;
  const int threads_;
  mutable std::atomic<bool> has_code_ = false;
};

/// A change of layout.
std::unique_ptr<OneDnnCall> packing_call(const char* name, const dnnl::memory::desc& given,
                                         const dnnl::memory::desc& packed, int threads) {
  const dnnl::reorder::primitive_desc change(engine(), given, engine(), packed, attributes());
  const std::vector<Argument> arguments = {{DNNL_ARG_FROM, given, given},
                                           {DNNL_ARG_TO, packed, packed}};
  return std::make_unique<Call>(name, dnnl::reorder(change), change.scratchpad_desc(), arguments,
                                threads);
}

// ---- convolution

using Sizes = dnnl::memory::dims;

/// What the three kinds are made from. Images are [n, c, h, w] to oneDNN, whatever their layout.
struct ConvolutionParts {
  dnnl::memory::desc x, weight, y;                        ///< as the caller has them
  dnnl::memory::desc any_x, any_weight, any_y;            ///< the same sizes, in any layout
  Sizes strides, dilates, padding_before, padding_after;  ///< oneDNN counts dilation from 0

  explicit ConvolutionParts(const ConvolutionDescription& d) {
    const auto type = type_of(d.dtype);
    const auto any = dnnl::memory::format_tag::any;
    const auto images = [](const Shape& s) { return Sizes{s[0], s[3], s[1], s[2]}; };
    const auto last = [](const Shape& s) {
      return Sizes{s[1] * s[2] * s[3], 1, s[2] * s[3], s[3]};
    };
    x = {images(d.x), type, last(d.x)};
    y = {images(d.y), type, last(d.y)};
    any_x = {images(d.x), type, any};
    any_y = {images(d.y), type, any};
    const Shape& w = d.weight;
    Sizes sizes = {w[0], w[1], w[2], w[3]};
    Sizes steps = {w[1] * w[2] * w[3], w[2] * w[3], w[3], 1};
    const int64_t groups = d.windows.groups;
    if (groups > 1) {
      sizes = {groups, w[0] / groups, w[1], w[2], w[3]};
      steps.insert(steps.begin(), w[0] / groups * steps[0]);
    }
    weight = {sizes, type, steps};
    any_weight = {sizes, type, any};
    for (const std::size_t i : {0, 1}) {
      const Windows& windows = d.windows;
      const auto axis = static_cast<int>(i);
      strides.push_back(windows.stride[i]);
      dilates.push_back(windows.dilation[i] - 1);
      padding_before.push_back(windows.padding[i]);
      // As much as the last window reaches into it, which may be less than nothing.
      const int64_t reach = (d.y[axis + 1] - 1) * windows.stride[i] +
                            windows.dilation[i] * (windows.kernel[i] - 1) + 1;
      padding_after.push_back(reach - d.x[axis + 1] - windows.padding[i]);
    }
  }
};

constexpr auto direct = dnnl::algorithm::convolution_direct;

/// oneDNN 2.6 writes outside of its scratchpad in the code for kernels of one point that step over
/// points, which first copies those in between away: for gradients, with AVX2 on any number of
/// threads, with AVX-512 on two and more (x [1, 5, 4, 9], weight [3, 5, 1, 1], strides [2, 1]).
bool is_safe(const char* implementation, const ConvolutionParts& parts) {
  const std::string_view name = implementation;
  const bool copies = name.starts_with("jit") && name.find("1x1") != std::string_view::npos;
  return !copies || parts.strides == Sizes{1, 1};
}

/// The plan, or the next of its implementations that is safe; or an empty one. While what it was
/// made from lives: oneDNN goes on from that.
template <class Plan>
Plan made_safe(Plan plan, const ConvolutionParts& parts) {
  while (is_fast(plan) && !is_safe(plan.impl_info_str(), parts)) {
    if (!plan.next_impl()) return {};
  }
  return plan;
}

/// With images in the caller's layout, or in any.
dnnl::convolution_forward::primitive_desc first_forward_plan(const ConvolutionParts& p,
                                                             bool is_any) {
  const auto& x = is_any ? p.any_x : p.x;
  const auto& y = is_any ? p.any_y : p.y;
  const auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return {engine(),         kind,
          direct,           x,
          p.any_weight,     y,
          p.strides,        p.dilates,
          p.padding_before, p.padding_after,
          attributes(),     true};
#else
  return {
      {kind, direct, x, p.any_weight, y, p.strides, p.dilates, p.padding_before, p.padding_after},
      attributes(),
      engine(),
      true};
#endif
}

dnnl::convolution_forward::primitive_desc forward_plan(const ConvolutionParts& p, bool is_any) {
  return made_safe(first_forward_plan(p, is_any), p);
}

/// The same for a gradient, `Primitive`: for the image or for the weight.
template <class Primitive>
typename Primitive::primitive_desc backward_plan(const ConvolutionParts& p, bool is_any) {
  const auto& x = is_any ? p.any_x : p.x;
  const auto& y = is_any ? p.any_y : p.y;
  const auto hint = first_forward_plan(p, true);  // which is never run
  using Plan = typename Primitive::primitive_desc;
#if DNNL_VERSION_MAJOR >= 3
  const Plan plan(engine(), direct, x, p.any_weight, y, p.strides, p.dilates, p.padding_before,
                  p.padding_after, hint, attributes(), true);
#else
  const Plan plan(
      {direct, x, p.any_weight, y, p.strides, p.dilates, p.padding_before, p.padding_after},
      attributes(), engine(), hint, true);
#endif
  return made_safe(plan, p);
}

/// The first fast one of plan(parts, false) and plan(parts, true), as a Call; or null.
template <class Primitive, class Plan, class Arguments>
std::unique_ptr<OneDnnCall> call_of(const char* name, const ConvolutionParts& parts, Plan plan,
                                    Arguments arguments, int threads) {
  for (const bool is_any : {false, true}) {
    const auto made = plan(parts, is_any);
    if (!is_fast(made)) continue;
    return std::make_unique<Call>(name, Primitive(made), made.scratchpad_desc(), arguments(made),
                                  threads);
  }
  return nullptr;
}

std::unique_ptr<OneDnnCall> convolution_call(const ConvolutionDescription& d) {
  using Arguments = std::vector<Argument>;
  const ConvolutionParts p(d);
  if (d.kind == LibraryCall::Kind::conv2d_input) {
    return call_of<dnnl::convolution_backward_data>(
        "conv2d_input", p, backward_plan<dnnl::convolution_backward_data>,
        [&](const auto& plan) -> Arguments {
          return {{DNNL_ARG_DIFF_DST, p.y, plan.diff_dst_desc()},
                  {DNNL_ARG_WEIGHTS, p.weight, plan.weights_desc()},
                  {DNNL_ARG_DIFF_SRC, p.x, plan.diff_src_desc()}};
        },
        d.threads);
  }
  if (d.kind == LibraryCall::Kind::conv2d_weight) {
    return call_of<dnnl::convolution_backward_weights>(
        "conv2d_weight", p, backward_plan<dnnl::convolution_backward_weights>,
        [&](const auto& plan) -> Arguments {
          return {{DNNL_ARG_SRC, p.x, plan.src_desc()},
                  {DNNL_ARG_DIFF_DST, p.y, plan.diff_dst_desc()},
                  {DNNL_ARG_DIFF_WEIGHTS, p.weight, plan.diff_weights_desc()}};
        },
        d.threads);
  }
  return call_of<dnnl::convolution_forward>(
      "conv2d", p, forward_plan,
      [&](const auto& plan) -> Arguments {
        return {{DNNL_ARG_SRC, p.x, plan.src_desc()},
                {DNNL_ARG_WEIGHTS, p.weight, plan.weights_desc()},
                {DNNL_ARG_DST, p.y, plan.dst_desc()}};
      },
      d.threads);
}

std::optional<PackedConvolution> packed_convolution(const ConvolutionDescription& d) {
  const ConvolutionParts p(d);
  dnnl::memory::desc packed;
  auto convolution = call_of<dnnl::convolution_forward>(
      "conv2d", p, forward_plan,
      [&](const auto& plan) -> std::vector<Argument> {
        packed = plan.weights_desc();
        return {{DNNL_ARG_SRC, p.x, plan.src_desc()},
                {DNNL_ARG_WEIGHTS, packed, packed},
                {DNNL_ARG_DST, p.y, plan.dst_desc()}};
      },
      d.threads);
  if (convolution == nullptr || packed == p.weight) return std::nullopt;
  return PackedConvolution{.packing = packing_call("conv2d", p.weight, packed, d.threads),
                           .convolution = std::move(convolution),
                           .packed_bytes = packed.get_size()};
}

/// `make()`, on as many threads as it will run on; empty for what oneDNN rejects: that is for the
/// caller to take apart or to compute itself.
template <class Make>
auto made_on(int threads, const char* name, Make make) -> decltype(make()) {
  const InsideOneDnn inside;
  try {
    static_cast<void>(engine());
    const LibraryThreads scope(threads);
    auto made = make();
    close_at_exit();
    return made;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_invalid_arguments || error.status == dnnl_unimplemented) {
      return {};
    }
    rethrow(name, error);
  }
}

}  // namespace

bool has_bf16_units() {
#if defined(__x86_64__)
  static const bool has = [] {
    uint32_t a = 0, b = 0, c = 0, d = 0;
    constexpr uint32_t avx512_bf16 = 1U << 5U;
    return current_isa() == Isa::avx512 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 &&
           (a & avx512_bf16) != 0;
  }();
  return has;
#else
  return false;
#endif
}

std::unique_ptr<OneDnnCall> make_onednn_matmul(const MatmulDescription& d, MatmulWay way) {
  return made_on(d.threads, "matmul", [&]() -> std::unique_ptr<OneDnnCall> {
    if (way == MatmulWay::gemm) return std::make_unique<Gemm>(d);
    const dnnl::matmul::primitive_desc plan = plan_for(d, layout(d, 1));
    return is_fast(plan) ? matmul_call(plan, d.threads) : nullptr;
  });
}

std::optional<PackedMatmul> make_onednn_packed_matmul(const MatmulDescription& d) {
  return made_on(d.threads, "matmul", [&]() -> std::optional<PackedMatmul> {
    const dnnl::memory::desc b(d.sizes[1], type_of(d.dtype), dnnl::memory::format_tag::any);
    const dnnl::matmul::primitive_desc plan = plan_for(d, b);
    if (!is_fast(plan)) return std::nullopt;
    return PackedMatmul{
        .packing = packing_call("matmul", layout(d, 1), plan.weights_desc(), d.threads),
        .product = matmul_call(plan, d.threads),
        .packed_bytes = plan.weights_desc().get_size()};
  });
}

std::unique_ptr<OneDnnCall> make_onednn_convolution(const ConvolutionDescription& d) {
  return made_on(d.threads, "conv2d", [&] { return convolution_call(d); });
}

std::optional<PackedConvolution> make_onednn_packed_convolution(const ConvolutionDescription& d) {
  return made_on(d.threads, "conv2d", [&] { return packed_convolution(d); });
}

}  // namespace nitinol::cpu
