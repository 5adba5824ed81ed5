// The plainest reading of core/kernel.h: at each point, load the arguments, evaluate the program,
// hand on what the sinks say. Nothing is shared with the other two kinds of stage code but the
// driver, which joins what blocks came to.

#include "backends/reference/interpreted.h"

#include "backends/host/convert.h"
#include "backends/host/flat_kernel.h"
#include "backends/host/stage.h"
#include "backends/reference/joins.h"
#include "core/evaluate.h"

#include <algorithm>
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
    for (const Reduction& reduction : kernel.reductions) nothings_.push_back(nothing_of(reduction));
  }

  void run(const host::StageCall& call) const {
    std::vector<uint64_t> arguments(stage_.sources.size());
    std::vector<Lanes> lanes(is_lanes() ? kernel_.reductions.size() : 0);
    for (int64_t outer = 0; outer < call.outer_size; ++outer) {
      if (is_lanes()) start_lanes(lanes);
      for (int64_t inner = 0; inner < call.inner_size; ++inner) {
        const Point point = {outer, inner};
        if (is_lanes() && inner > 0 && inner % reduction_order::lanes_run == 0) end_run(lanes);
        for (std::size_t k = 0; k < arguments.size(); ++k) {
          arguments[k] = argument(call, stage_.sources[k], point);
        }
        const auto load = [&](uint64_t operand, int64_t distance) {
          const DType dtype = kernel_.operands[operand].dtype;
          return load_element(dtype, address(call, operand, point) +
                                         distance * static_cast<int64_t>(size_of(dtype)));
        };
        const std::vector<uint64_t> values = evaluate(stage_.program, arguments, wanted_, load);
        for (std::size_t s = 0; s < values.size(); ++s) {
          if (is_lanes() && stage_.sinks[s].kind == Sink::Kind::accumulate)
            join_lane(lanes[stage_.sinks[s].index], reduction_of(stage_.sinks[s]), inner,
                      {values[s], call.position + inner});
          else
            take(call, stage_.sinks[s], values[s], point);
        }
      }
      if (!is_lanes()) continue;
      end_run(lanes);
      fold_lanes(call, lanes, outer);
    }
  }

 private:
  [[nodiscard]] bool is_lanes() const {
    return kernel_.order == Order::lanes && stage_.level == Stage::Level::element;
  }

  /// Index of this point's row in results and row values.
  [[nodiscard]] int64_t row(Point point) const { return is_lanes() ? point.outer : point.inner; }

  [[nodiscard]] const Reduction& reduction_of(const Sink& sink) const {
    return kernel_.reductions[sink.index];
  }

  /// The accumulators of a row.
  struct Lanes {
    std::vector<Accumulated> values;
    std::vector<Accumulated> runs;  ///< what the runs before came to
  };

  void start_lanes(std::vector<Lanes>& lanes) const {
    for (std::size_t r = 0; r < lanes.size(); ++r) {
      const int count = lanes_of(kernel_.reductions[r].type);
      lanes[r].values.assign(static_cast<std::size_t>(count), nothings_[r]);
      lanes[r].runs = lanes[r].values;
    }
  }

  /// The lanes join those of the runs before.
  void end_run(std::vector<Lanes>& lanes) const {
    for (std::size_t r = 0; r < lanes.size(); ++r) {
      const Reduction& reduction = kernel_.reductions[r];
      if (!depends_on_order(reduction)) continue;
      for (std::size_t l = 0; l < lanes[r].values.size(); ++l)
        lanes[r].runs[l] = joined(reduction, lanes[r].runs[l], lanes[r].values[l]);
      std::ranges::fill(lanes[r].values, nothings_[r]);
    }
  }

  static void join_lane(Lanes& lanes, const Reduction& reduction, int64_t i,
                        const Accumulated& value) {
    Accumulated& lane = lanes.values[static_cast<std::size_t>(i % lanes_of(reduction.type))];
    lane = joined(reduction, lane, value);
  }

  void fold_lanes(const host::StageCall& call, std::vector<Lanes>& lanes, int64_t row) const {
    for (const Sink& sink : stage_.sinks) {
      if (sink.kind != Sink::Kind::accumulate) continue;
      const Reduction& reduction = reduction_of(sink);
      Lanes& own = lanes[sink.index];
      std::vector<Accumulated>& values = depends_on_order(reduction) ? own.runs : own.values;
      for (std::size_t half = values.size() / 2; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l)
          values[l] = joined(reduction, values[l], values[l + half]);
      }
      store_accumulated(call, sink, row, values[0]);
    }
  }

  [[nodiscard]] char* accumulator(const host::StageCall& call, const Sink& sink,
                                  int64_t row) const {
    return static_cast<char*>(call.accumulators[sink.index]) +
           row * size_of(reduction_of(sink).type);
  }

  void store_accumulated(const host::StageCall& call, const Sink& sink, int64_t row,
                         const Accumulated& value) const {
    std::memcpy(accumulator(call, sink, row), &value.bits,
                static_cast<std::size_t>(size_of(reduction_of(sink).type)));
    if (is_arg(reduction_of(sink).combine))
      call.accumulator_positions[sink.index][row] = value.position;
  }

  [[nodiscard]] Accumulated load_accumulated(const host::StageCall& call, const Sink& sink,
                                             int64_t row) const {
    const Reduction& reduction = reduction_of(sink);
    return {load_bits(accumulator(call, sink, row), size_of(reduction.type)),
            is_arg(reduction.combine) ? call.accumulator_positions[sink.index][row] : 0};
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
        const Reduction& reduction = kernel_.reductions[k];
        const int bytes = size_of(is_arg(reduction.combine) ? ScalarType::i64 : reduction.type);
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
      case Sink::Kind::check:
        if (value == 0) call.status->code = static_cast<uint32_t>(sink.index);
        return;
      case Sink::Kind::accumulate:
        if (kernel_.order == Order::turned && host::keeps_lanes(reduction_of(sink))) {
          const int64_t number = point.outer * call.inner_size + point.inner;
          std::memcpy(accumulator(call, sink, number), &value,
                      static_cast<std::size_t>(size_of(reduction_of(sink).type)));
          return;
        }
        store_accumulated(call, sink, point.inner,
                          joined(reduction_of(sink), load_accumulated(call, sink, point.inner),
                                 {value, call.position + point.outer}));
        return;
    }
  }

  const Kernel& kernel_;
  const Stage& stage_;
  std::vector<uint32_t> wanted_;
  std::vector<Accumulated> nothings_;  ///< per reduction
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
  [[nodiscard]] std::unique_ptr<const Executable> specialise(
      std::span<const Launch> examples) const override {
    if (examples.size() > 1) return nullptr;
    return host::flat_kernel(kernel_, codes_[0], *this, examples[0]);
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
