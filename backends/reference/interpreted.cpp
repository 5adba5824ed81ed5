// The plainest reading of core/kernel.h: at each point, load the arguments, evaluate the program,
// hand on what the sinks say. Nothing is shared with the other two kinds of stage code but the
// driver and how two values join.

#include "backends/reference/interpreted.h"

#include "backends/host/combine.h"
#include "backends/host/convert.h"
#include "backends/host/flat_kernel.h"
#include "backends/host/stage.h"
#include "core/evaluate.h"

#include <array>
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
    std::vector<uint64_t> arguments(stage_.sources.size());
    std::vector<Lanes> lanes(is_lanes() ? combiners_.size() : 0);
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
            join_lane(lanes[stage_.sinks[s].index], stage_.sinks[s].index, values[s],
                      call.position + inner, inner);
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

  using Combiner = host::Combiner;

  /// The accumulators of a row.
  struct Lanes {
    std::array<uint64_t, reduction_order::lanes_32> values;
    std::array<int64_t, reduction_order::lanes_32> positions;
    std::array<uint64_t, reduction_order::lanes_32> runs;  ///< what the runs before came to
  };

  [[nodiscard]] int lane_count(std::size_t r) const { return lanes_of(kernel_.reductions[r].type); }

  void start_lanes(std::vector<Lanes>& lanes) const {
    for (std::size_t r = 0; r < lanes.size(); ++r) {
      combiners_[r].fill(lanes[r].values.data(), lanes[r].positions.data(), lane_count(r));
      if (depends_on_order(kernel_.reductions[r]))
        combiners_[r].fill(lanes[r].runs.data(), nullptr, lane_count(r));
    }
  }

  /// The lanes join those of the runs before.
  void end_run(std::vector<Lanes>& lanes) const {
    for (std::size_t r = 0; r < lanes.size(); ++r) {
      if (!depends_on_order(kernel_.reductions[r])) continue;
      combiners_[r].join(lanes[r].runs.data(), nullptr, lanes[r].values.data(), nullptr,
                         lane_count(r));
      combiners_[r].fill(lanes[r].values.data(), nullptr, lane_count(r));
    }
  }

  void join_lane(Lanes& lanes, std::size_t r, uint64_t value, int64_t position, int64_t i) const {
    const auto lane = static_cast<std::size_t>(i % lane_count(r));
    char* const values = reinterpret_cast<char*>(lanes.values.data());
    combiners_[r].join(values + lane * combiners_[r].value_bytes, &lanes.positions[lane], &value,
                       &position, 1);
  }

  void fold_lanes(const host::StageCall& call, std::vector<Lanes>& lanes, int64_t row) const {
    for (const Sink& sink : stage_.sinks) {
      if (sink.kind != Sink::Kind::accumulate) continue;
      const std::size_t r = sink.index;
      const Combiner& combiner = combiners_[r];
      if (depends_on_order(kernel_.reductions[r])) lanes[r].values = lanes[r].runs;
      combiner.fold(lanes[r].values.data(), lanes[r].positions.data(), lane_count(r));
      std::memcpy(static_cast<char*>(call.accumulators[r]) +
                      static_cast<std::size_t>(row) * combiner.value_bytes,
                  lanes[r].values.data(), combiner.value_bytes);
      if (combiner.has_positions) call.accumulator_positions[r][row] = lanes[r].positions[0];
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
      case Sink::Kind::check:
        if (value == 0) call.status->code = static_cast<uint32_t>(sink.index);
        return;
      case Sink::Kind::accumulate: {
        const Combiner& combiner = combiners_[k];
        const int64_t position = call.position + point.outer;
        combiner.join(
            static_cast<char*>(call.accumulators[k]) +
                point.inner * static_cast<int64_t>(combiner.value_bytes),
            combiner.has_positions ? call.accumulator_positions[k] + point.inner : nullptr, &value,
            &position, 1);
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
  [[nodiscard]] std::unique_ptr<const Executable> specialise(const Launch& example) const override {
    return host::flat_kernel(kernel_, codes_[0], *this, example);
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
