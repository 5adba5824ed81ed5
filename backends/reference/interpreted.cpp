// The plainest reading of core/kernel.h: at each point, load the arguments, evaluate the program,
// hand on what the sinks say. Nothing is shared with the other two kinds of stage code but the
// driver and how two values join.

#include "backends/reference/interpreted.h"

#include "backends/host/combine.h"
#include "backends/host/convert.h"
#include "backends/host/stage.h"

#include <cstring>
#include <vector>

namespace nitinol::reference {
namespace {

uint64_t load_bits(const void* from, int bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<std::size_t>(bytes));
  return bits;
}

/// An element in its compute type.
uint64_t load_element(DType dtype, const void* from) {
  const uint64_t bits = load_bits(from, static_cast<int>(size_of(dtype)));
  if (dtype == f16)
    return std::bit_cast<uint32_t>(host::half_to_float(static_cast<uint16_t>(bits)));
  if (dtype == bf16) {
    return std::bit_cast<uint32_t>(host::bfloat_to_float(static_cast<uint16_t>(bits)));
  }
  return bits;
}

void store_element(DType dtype, void* to, uint64_t bits) {
  const auto number = std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (dtype == f16) bits = host::float_to_half(number);
  if (dtype == bf16) bits = host::float_to_bfloat(number);
  std::memcpy(to, &bits, size_of(dtype));
}

struct Point {
  int64_t outer, inner;
};

class InterpretedStage {
 public:
  InterpretedStage(const Kernel& kernel, const Stage& stage) : kernel_(kernel), stage_(stage) {
    for (const Sink& sink : stage.sinks) wanted_.push_back(sink.value);
    for (const Reduction& reduction : kernel.reductions) {
      combiners_.push_back(host::combiner_of(reduction.combine, reduction.type));
    }
  }

  void run(const host::StageCall& call) const {
    if (is_lanes()) for_lanes(call, &Combiner::fill);
    std::vector<uint64_t> arguments(stage_.sources.size());
    for (int64_t outer = 0; outer < call.outer_size; ++outer) {
      for (int64_t inner = 0; inner < call.inner_size; ++inner) {
        const Point point = {outer, inner};
        for (std::size_t k = 0; k < arguments.size(); ++k) {
          arguments[k] = argument(call, stage_.sources[k], point);
        }
        const std::vector<uint64_t> values = evaluate(stage_.program, arguments, wanted_);
        for (std::size_t s = 0; s < values.size(); ++s) {
          take(call, stage_.sinks[s], values[s], point);
        }
      }
    }
    if (is_lanes()) for_lanes(call, &Combiner::fold);
  }

 private:
  [[nodiscard]] bool is_lanes() const {
    return kernel_.order == Order::lanes && stage_.level == Stage::Level::element;
  }

  /// Index of this point's row in results and row values.
  [[nodiscard]] int64_t row(Point point) const { return is_lanes() ? 0 : point.inner; }

  using Combiner = host::Combiner;

  /// Calls fill or fold on all lanes.
  template <class Function>
  void for_lanes(const host::StageCall& call, Function Combiner::*function) const {
    for (const Sink& sink : stage_.sinks) {
      if (sink.kind != Sink::Kind::accumulate) continue;
      const Combiner& combiner = combiners_[sink.index];
      (combiner.*function)(
          call.accumulators[sink.index],
          combiner.has_positions ? call.accumulator_positions[sink.index] : nullptr,
          lanes_of(kernel_.reductions[sink.index].type));
    }
  }

  [[nodiscard]] char* address(const host::StageCall& call, std::size_t k, Point point) const {
    return call.pointers[k] + point.outer * call.outer[k] + point.inner * call.inner[k];
  }

  [[nodiscard]] uint64_t argument(const host::StageCall& call, const Source& source,
                                  Point point) const {
    const std::size_t k = source.index;
    switch (source.kind) {
      case Source::Kind::operand: {
        const Operand& operand = kernel_.operands[k];
        if (operand.role == Role::scalar) return load_element(operand.dtype, &call.scalars[k]);
        char* const at = address(call, k, point);
        if (operand.role == Role::position) return reinterpret_cast<uint64_t>(at);
        return load_element(operand.dtype, at);
      }
      case Source::Kind::reduction: {
        const Combiner& combiner = combiners_[k];
        const int bytes = combiner.has_positions ? 8 : static_cast<int>(combiner.value_bytes);
        return load_bits(static_cast<const char*>(call.results[k]) + row(point) * bytes, bytes);
      }
      case Source::Kind::row_value: {
        const int bytes = size_of(kernel_.row_values[k]);
        return load_bits(static_cast<char*>(call.row_values[k]) + row(point) * bytes, bytes);
      }
    }
    return 0;
  }

  void take(const host::StageCall& call, const Sink& sink, uint64_t value, Point point) const {
    const std::size_t k = sink.index;
    switch (sink.kind) {
      case Sink::Kind::store:
        store_element(kernel_.operands[k].dtype, address(call, k, point), value);
        return;
      case Sink::Kind::row_value: {
        const int bytes = size_of(kernel_.row_values[k]);
        std::memcpy(static_cast<char*>(call.row_values[k]) + row(point) * bytes, &value,
                    static_cast<std::size_t>(bytes));
        return;
      }
      case Sink::Kind::accumulate: {
        const Combiner& combiner = combiners_[k];
        const int64_t lane =
            is_lanes() ? point.inner % lanes_of(kernel_.reductions[k].type) : point.inner;
        const int64_t position = call.position + (is_lanes() ? point.inner : point.outer);
        combiner.join(static_cast<char*>(call.accumulators[k]) +
                          lane * static_cast<int64_t>(combiner.value_bytes),
                      combiner.has_positions ? call.accumulator_positions[k] + lane : nullptr,
                      &value, &position, 1);
        return;
      }
    }
  }

  const Kernel& kernel_;
  const Stage& stage_;
  std::vector<uint32_t> wanted_;
  std::vector<Combiner> combiners_;
};

class InterpretedKernel final : public Executable {
 public:
  explicit InterpretedKernel(const Kernel& kernel) : kernel_(kernel) {
    stages_.reserve(kernel_.stages.size());
    for (const Stage& stage : kernel_.stages) {
      stages_.emplace_back(kernel_, stage);
      codes_.push_back({.function =
                            [](const void* self, const host::StageCall& call) {
                              static_cast<const InterpretedStage*>(self)->run(call);
                            },
                        .self = &stages_.back()});
    }
  }

  void launch(const Launch& launch) const override {
    host::run_loop_nest(kernel_, codes_.data(), launch);
  }

 private:
  const Kernel kernel_;
  std::vector<InterpretedStage> stages_;
  std::vector<host::StageCode> codes_;
};

}  // namespace

std::unique_ptr<Executable> make_interpreted(const Kernel& kernel) {
  return std::make_unique<InterpretedKernel>(kernel);
}

}  // namespace nitinol::reference
