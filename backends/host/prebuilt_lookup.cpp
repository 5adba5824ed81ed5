// Rows, or elements, that indices name: a copy of each row where the index stays the same along the
// innermost loop, else an element at a time.

#include "backends/host/indices.h"
#include "backends/host/loop_nest.h"
#include "backends/host/prebuilt_stages.h"
#include "core/formula.h"
#include "core/kernel.h"
#include "core/word.h"

#include <algorithm>
#include <cstring>

namespace nitinol::host {
namespace {

/// Operands of the kernel.
enum : std::size_t { indices, row_count, row_step, table, result, operand_count };

/// One step of the outer loop. Steps are in bytes.
struct Line {
  const char* index;
  const char* from;
  char* to;
  int64_t index_step, from_step, to_step;
  int64_t points;
  int64_t rows, row_bytes;
};

int64_t row_at(const Line& line, int64_t point) {
  int64_t index = 0;
  std::memcpy(&index, line.index + point * line.index_step, sizeof index);
  return row_of(index, line.rows);
}

/// Copies elements of type T. False if an index names nothing.
template <class T>
bool look_up(const Line& line) {
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  const bool is_one_row = line.index_step == 0;
  int64_t row = row_at(line, 0);
  if (is_one_row && row >= 0 && line.from_step == size && line.to_step == size) {
    std::memcpy(line.to, line.from + row * line.row_bytes,
                static_cast<std::size_t>(line.points * size));
    return true;
  }
  for (int64_t i = 0; i < line.points; ++i) {
    if (!is_one_row) row = row_at(line, i);
    if (row < 0) return false;
    std::memcpy(line.to + i * line.to_step, line.from + row * line.row_bytes + i * line.from_step,
                sizeof(T));
  }
  return true;
}

using LookUp = bool (*)(const Line&);

LookUp look_up_of(DType dtype) {
  return with_word(size_of(dtype), [](auto word) -> LookUp { return look_up<decltype(word)>; });
}

class PrebuiltLookup final : public Executable {
 public:
  explicit PrebuiltLookup(const Kernel& kernel)
      : kernel_(kernel),
        element_(static_cast<int64_t>(size_of(kernel.operands[table].dtype))),
        look_up_(look_up_of(kernel.operands[table].dtype)),
        code_({.function =
                   [](const void* self, const StageCall& call) {
                     static_cast<const PrebuiltLookup*>(self)->run(call);
                   },
               .self = this}) {}

  void launch(const Launch& launch) const override { run_loop_nest(kernel_, &code_, launch); }

 private:
  void run(const StageCall& call) const {
    Line line = {.index = call.pointers[indices],
                 .from = call.pointers[table],
                 .to = call.pointers[result],
                 .index_step = call.inner[indices],
                 .from_step = call.inner[table],
                 .to_step = call.inner[result],
                 .points = call.inner_size,
                 .rows = static_cast<int64_t>(call.scalars[row_count]),
                 .row_bytes = static_cast<int64_t>(call.scalars[row_step]) * element_};
    for (int64_t i = 0; i < call.outer_size; ++i) {
      if (!look_up_(line)) {
        call.status->code.store(Status::index_out_of_range, std::memory_order_relaxed);
        return;
      }
      line.index += call.outer[indices];
      line.from += call.outer[table];
      line.to += call.outer[result];
    }
  }

  const Kernel kernel_;
  const int64_t element_;
  const LookUp look_up_;
  const StageCode code_;
};

/// True if the stage checks that a row exists, and stores an element of it.
bool is_lookup(const Stage& stage, DType dtype) {
  ScalarProgram program;
  std::vector<Expr> arguments;
  for (const std::size_t k : {indices, row_count, row_step}) {
    const auto operand = static_cast<uint16_t>(k);
    const Source source = {Source::Kind::operand, operand};
    if (arguments.size() >= stage.sources.size() || stage.sources[k] != source) return false;
    arguments.push_back(argument(program, ScalarType::i64, operand));
  }
  const Row row = row_of(arguments[0], arguments[1], arguments[2]);
  const Expr element = element_at(row, table, dtype);
  return stage.program == program && stage.sources.size() == arguments.size() &&
         stage.sinks ==
             std::vector<Sink>{{Sink::Kind::check, Status::index_out_of_range, row.exists.id},
                               {Sink::Kind::store, result, element.id}};
}

}  // namespace

std::unique_ptr<Executable> make_prebuilt_lookup(const Kernel& kernel) {
  const std::vector<Operand>& operands = kernel.operands;
  const auto is = [&](std::size_t k, Role role, DType dtype) {
    return operands[k].role == role && operands[k].dtype == dtype;
  };
  const bool has_operands = operands.size() == operand_count && is(indices, Role::input, i64) &&
                            is(row_count, Role::scalar, i64) && is(row_step, Role::scalar, i64) &&
                            is(result, Role::output, operands[table].dtype);
  if (!has_operands || kernel.order != Order::none || kernel.stages.size() != 1 ||
      !is_lookup(kernel.stages[0], operands[table].dtype))
    return nullptr;
  return std::make_unique<PrebuiltLookup>(kernel);
}

}  // namespace nitinol::host
