// Kernels of several stages over contiguous rows, a native loop for each: eager's softmax.
//
// What changes along a row is read and stored in place, a block at a time; of what a row has one, a
// block of copies is made first. A block that is accumulated joins its lanes while it is in the
// first-level cache.

#include "backends/host/accumulate.h"
#include "backends/host/loop_nest.h"
#include "backends/host/per_isa.h"
#include "backends/host/prebuilt_stages.h"
#include "backends/host/vectors.h"
#include "core/kernel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

namespace nitinol::host {
namespace {

constexpr std::size_t most_sources = 6;

/// Elements of a row at a time, at most: a run where they are accumulated, else fewer, so that less
/// has to be copied.
constexpr int64_t row_block = reduction_order::lanes_run, stored_block = 512;

ScalarType type_of(const Kernel& kernel, const Source& source) {
  switch (source.kind) {
    case Source::Kind::operand:
      return compute_type(kernel.operands[source.index].dtype);
    case Source::Kind::reduction:
      return kernel.reductions[source.index].type;
    case Source::Kind::row_value:
      return kernel.row_values[source.index];
  }
  return ScalarType::f32;
}

/// True if value `square` of the program is that of value `x`.
bool is_square(const ScalarProgram& program, uint32_t square, uint32_t x) {
  const ScalarInstr& instr = program.instrs[square];
  return instr.op == ScalarOp::mul && instr.a == x && instr.b == x;
}

/// Not a power of two long: equal low bits of the addresses of several would slow loads down.
struct alignas(64) Buffer {
  std::array<char, row_block * sizeof(uint64_t) + 64> bytes;
};

/// Copies of the T at `from` in at least `n` places. By whole registers, as they are loaded again:
/// a load of what several stores in flight have written waits for them.
template <class T>
struct Fill {
  template <int width>
  void operator()(VectorWidth<width>, const void* from, Buffer& to, int64_t n) const {
    using V = VectorOf<T, width>;
    constexpr auto step = static_cast<int64_t>(width / sizeof(T));
    const V value = V::all(*static_cast<const T*>(from));
    auto* const values = reinterpret_cast<T*>(to.bytes.data());
    for (int64_t i = 0; i < n; i += step) value.store(values + i);
  }
};
using FillFunction = void (*)(const void* from, Buffer& to, int64_t n);
FillFunction fill_of(ScalarType type) {
  if (type == ScalarType::f64) {
    return PerIsa<Fill<double>, const void*, Buffer&, int64_t>::at(current_isa());
  }
  return PerIsa<Fill<float>, const void*, Buffer&, int64_t>::at(current_isa());
}

/// One stage: its loop, and what becomes of the loop's result.
class StageLoop {
 public:
  StageLoop(const Kernel& kernel, std::size_t stage)
      : kernel_(kernel),
        stage_(kernel.stages[stage]),
        loop_(kernel.prebuilt.stages[stage].pick()),
        bytes_(size_of(stage_.program.instrs[stage_.sinks[0].value].type)) {
    for (const Sink& sink : stage_.sinks) {
      if (sink.kind != Sink::Kind::accumulate) continue;
      if (accumulate_.lanes != nullptr) {
        squares_ = sink.index;
        break;
      }
      reduction_ = sink.index;
      const Reduction& reduction = kernel.reductions[sink.index];
      accumulate_ = accumulate_of(reduction, current_isa());
    }
    const auto stores = [](const Sink& sink) { return sink.kind == Sink::Kind::store; };
    const auto stored = std::ranges::find_if(stage_.sinks, stores);
    if (stored != stage_.sinks.end()) output_ = stored->index;
    for (std::size_t a = 0; a < stage_.sources.size(); ++a) {
      const Source& source = stage_.sources[a];
      const bool moves = source.kind == Source::Kind::operand &&
                         kernel.operands[source.index].inner == StrideClass::one;
      const ScalarType type = type_of(kernel, source);
      (moves ? moving_ : of_rows_).push_back({a, source, size_of(type), fill_of(type)});
    }
  }

  [[nodiscard]] StageCode code() const {
    const bool is_row = stage_.level == Stage::Level::row;
    return {.function = is_row ? call<&StageLoop::run_row_values> : call<&StageLoop::run_rows>,
            .self = this};
  }

 private:
  struct Numbered {
    std::size_t argument;
    Source source;
    int64_t bytes;
    FillFunction fill;
  };
  using Arguments = std::array<const void*, most_sources>;
  using Buffers = std::array<Buffer, most_sources>;

  template <void (StageLoop::*member)(const StageCall&) const>
  static void call(const void* self, const StageCall& call) {
    (static_cast<const StageLoop*>(self)->*member)(call);
  }

  [[nodiscard]] bool is_number(const Source& source) const {
    return source.kind == Source::Kind::operand &&
           kernel_.operands[source.index].role == Role::scalar;
  }

  /// What row `row` has one of: a number, an element, a result, a row value.
  [[nodiscard]] const void* of_row(const StageCall& call, const Numbered& value,
                                   int64_t row) const {
    const Source& source = value.source;
    if (is_number(source)) return &call.scalars[source.index];
    if (source.kind == Source::Kind::operand) return at(call, source.index, row, 0);
    const void* const values = source.kind == Source::Kind::reduction
                                   ? call.results[source.index]
                                   : call.row_values[source.index];
    return static_cast<const char*>(values) + row * value.bytes;
  }

  [[nodiscard]] static char* at(const StageCall& call, std::size_t operand, int64_t row,
                                int64_t bytes) {
    return call.pointers[operand] + row * call.outer[operand] + bytes;
  }

  void run_rows(const StageCall& call) const {
    Buffers copies;
    Buffer result;
    Arguments in;
    const int64_t copied = std::min(block(), call.inner_size);
    for (int64_t row = 0; row < call.outer_size; ++row) {
      for (const Numbered& value : of_rows_) {
        Buffer& copy = copies[value.argument];
        in[value.argument] = copy.bytes.data();
        value.fill(of_row(call, value, row), copy, copied);
      }
      if (loop_ == nullptr)
        take_row(call, row);
      else
        compute_row(call, row, in, result);
    }
  }

  /// The identity: a row of the operand is accumulated where it lies.
  void take_row(const StageCall& call, int64_t row) const {
    accumulate_.lanes({at(call, stage_.sources[0].index, row, 0), call.inner_size, 0, true, true},
                      accumulator(call, reduction_, row), nullptr);
  }

  void compute_row(const StageCall& call, int64_t row, Arguments& in, Buffer& result) const {
    Buffer lanes, lanes_of_squares;
    for (int64_t i = 0; i < call.inner_size; i += block()) {
      const int64_t n = std::min(block(), call.inner_size - i);
      for (const Numbered& moving : moving_) {
        in[moving.argument] = at(call, moving.source.index, row, i * moving.bytes);
      }
      char* const out = output_ ? at(call, *output_, row, i * bytes_) : result.bytes.data();
      loop_(in.data(), out, n);
      if (accumulate_.lanes == nullptr) continue;
      const LanePiece piece = {out, n, 0, i == 0, i + n == call.inner_size};
      if (squares_)
        accumulate_.moments(piece, lanes.bytes.data(), lanes_of_squares.bytes.data());
      else
        accumulate_.lanes(piece, lanes.bytes.data(), nullptr);
    }
    if (accumulate_.lanes == nullptr) return;
    const auto bytes = static_cast<std::size_t>(bytes_);
    std::memcpy(accumulator(call, reduction_, row), lanes.bytes.data(), bytes);
    if (squares_)
      std::memcpy(accumulator(call, *squares_, row), lanes_of_squares.bytes.data(), bytes);
  }

  [[nodiscard]] int64_t block() const {
    return accumulate_.lanes != nullptr ? row_block : stored_block;
  }

  [[nodiscard]] char* accumulator(const StageCall& call, std::size_t reduction, int64_t row) const {
    return static_cast<char*>(call.accumulators[reduction]) + row * bytes_;
  }

  void run_row_values(const StageCall& call) const {
    Buffers copies;
    Buffer result;
    Arguments in;
    for (int64_t row = 0; row < call.inner_size; row += row_block) {
      const int64_t n = std::min(row_block, call.inner_size - row);
      for (const Numbered& value : of_rows_) {
        const void*& from = in[value.argument];
        from = of_row(call, value, row);
        if (!is_number(value.source)) continue;
        value.fill(from, copies[value.argument], n);
        from = copies[value.argument].bytes.data();
      }
      loop_(in.data(), result.bytes.data(), n);
      for (const Sink& sink : stage_.sinks) put_row_values(call, sink, row, result, n);
    }
  }

  void put_row_values(const StageCall& call, const Sink& sink, int64_t row, const Buffer& values,
                      int64_t n) const {
    const bool is_kept = sink.kind == Sink::Kind::row_value;
    const int64_t step = is_kept ? bytes_ : call.inner[sink.index];
    char* const to =
        (is_kept ? static_cast<char*>(call.row_values[sink.index]) : call.pointers[sink.index]) +
        row * step;
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(to + i * step, values.bytes.data() + i * bytes_,
                  static_cast<std::size_t>(bytes_));
    }
  }

  const Kernel& kernel_;
  const Stage& stage_;
  const Loop loop_;      ///< null: the identity
  const int64_t bytes_;  ///< of the loop's result
  Accumulate accumulate_;
  std::size_t reduction_ = 0;
  std::optional<std::size_t> squares_;  ///< the reduction that takes the results' squares
  std::optional<std::size_t> output_;
  std::vector<Numbered> moving_, of_rows_;  ///< arguments that change along a row, and the others
};

class PrebuiltRows final : public Executable {
 public:
  explicit PrebuiltRows(const Kernel& kernel) : kernel_(kernel) {
    for (std::size_t s = 0; s < kernel_.stages.size(); ++s) {
      codes_.push_back(loops_.emplace_back(kernel_, s).code());
    }
  }
  void launch(const Launch& launch) const override {
    run_loop_nest(kernel_, codes_.data(), launch);
  }

 private:
  const Kernel kernel_;
  std::deque<StageLoop> loops_;  // whose addresses stay
  std::vector<StageCode> codes_;
};

/// Element stages walk contiguous operands, and row stages read none.
bool walks_rows(const Kernel& kernel, const Stage& stage) {
  const bool is_element = stage.level == Stage::Level::element;
  for (const Source& source : stage.sources) {
    if (source.kind != Source::Kind::operand) continue;
    const Operand& operand = kernel.operands[source.index];
    if (operand.role == Role::scalar) continue;
    if (!is_element || operand.inner == StrideClass::any) return false;
  }
  return std::ranges::none_of(stage.sinks, [&](const Sink& sink) {
    return is_element && sink.kind == Sink::Kind::store &&
           kernel.operands[sink.index].inner != StrideClass::one;
  });
}

/// Accumulates what a loop gives, and its square.
bool takes_moments(const Kernel& kernel, const Stage& stage) {
  const Sink &first = stage.sinks[0], &second = stage.sinks[1];
  if (first.kind != Sink::Kind::accumulate) return false;
  const Reduction& reduction = kernel.reductions[first.index];
  return reduction == kernel.reductions[second.index] &&
         accumulate_of(reduction, Isa::baseline).moments != nullptr &&
         is_square(stage.program, second.value, first.value);
}

/// One loop, or the identity of an operand that is accumulated; one place for the result, and one
/// accumulator of it; or an accumulator of it and one of its square.
bool is_one_loop(const Kernel& kernel, const Stage& stage, const Loops& loops) {
  if (stage.sources.size() > most_sources || stage.sinks.size() > 2) return false;
  if (stage.sinks.empty()) return false;
  if (stage.sinks.size() == 2) {
    const Sink &first = stage.sinks[0], &second = stage.sinks[1];
    if (first.kind == second.kind) return takes_moments(kernel, stage) && loops.pick() != nullptr;
    if (first.value != second.value) return false;
  }
  if (loops.pick() != nullptr) return true;
  return stage.level == Stage::Level::element && stage.sinks.size() == 1 &&
         stage.sinks[0].kind == Sink::Kind::accumulate &&
         is_identity(stage, kernel.operands[stage.sources[0].index].dtype);
}

}  // namespace

std::unique_ptr<Executable> make_prebuilt_rows(const Kernel& kernel) {
  const std::size_t count = kernel.stages.size();
  if (kernel.order != Order::lanes || count == 0 || kernel.prebuilt.stages.size() != count) {
    return nullptr;
  }
  for (std::size_t s = 0; s < count; ++s) {
    if (!walks_rows(kernel, kernel.stages[s]) ||
        !is_one_loop(kernel, kernel.stages[s], kernel.prebuilt.stages[s])) {
      return nullptr;
    }
  }
  return std::make_unique<PrebuiltRows>(kernel);
}

}  // namespace nitinol::host
