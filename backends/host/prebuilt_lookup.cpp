// Rows, or elements, that indices name: a copy of each row where the index stays the same along the
// innermost loop, else an element at a time.

#include "backends/host/convert.h"
#include "backends/host/indices.h"
#include "backends/host/loop_nest.h"
#include "backends/host/prebuilt_stages.h"
#include "core/copy_bytes.h"
#include "core/formula.h"
#include "core/kernel.h"
#include "core/word.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

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

int64_t row_at(const char* index, int64_t rows) {
  int64_t row = 0;
  std::memcpy(&row, index, sizeof row);
  return row_of(row, rows);
}

/// An element of type T for each index of a line; false if an index names nothing. `is_dense`:
/// indices and results lie one after another, and each index names an element of one line.
template <class T, bool is_dense>
bool look_up_elements(Line line) {  // a copy: what is stored might be the line itself
  if (line.rows == 0) return false;
  if constexpr (is_dense) {
    line.index_step = sizeof(int64_t);
    line.to_step = sizeof(T);
    line.from_step = 0;
  }
  int64_t all = 0;
  for (int64_t i = 0; i < line.points; ++i) {
    const int64_t row = row_at(line.index + i * line.index_step, line.rows);
    all |= row;
    const char* const from = line.from + std::max<int64_t>(row, 0) * line.row_bytes;
    std::memcpy(line.to + i * line.to_step, from + i * line.from_step, sizeof(T));
  }
  return all >= 0;
}

/// Copies elements of type T. False if an index names nothing.
template <class T>
bool look_up(const Line& line) {
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  if (line.index_step == 0) {
    const int64_t row = row_at(line.index, line.rows);
    if (row < 0) return false;
    const char* const from = line.from + row * line.row_bytes;
    if (line.from_step == size && line.to_step == size) {
      copy_bytes(line.to, from, static_cast<std::size_t>(line.points * size));
      return true;
    }
    if (line.to_step == size) {
      gather_of(dtype_of<T>())(from, line.from_step, line.to, line.points);
      return true;
    }
    for (int64_t i = 0; i < line.points; ++i)
      std::memcpy(line.to + i * line.to_step, from + i * line.from_step, sizeof(T));
    return true;
  }
  const bool is_dense =
      line.index_step == sizeof(int64_t) && line.to_step == size && line.from_step == 0;
  return is_dense ? look_up_elements<T, true>(line) : look_up_elements<T, false>(line);
}

/// What leads from a line to the next, in bytes.
struct LineSteps {
  int64_t index, from, to;
};

/// Lines that ask for the same elements: where these lie is found once for a block of them.
template <class T>
bool look_up_alike(const Line& line, int64_t lines, const LineSteps& steps) {
  std::array<int64_t, 1024> places;
  for (int64_t first = 0; first < line.points; first += std::ssize(places)) {
    const int64_t n = std::min<int64_t>(line.points - first, std::ssize(places));
    int64_t all = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = row_at(line.index + (first + i) * line.index_step, line.rows);
      all |= row;
      places[i] = row * line.row_bytes + (first + i) * line.from_step;
    }
    if (all < 0) return false;
    for (int64_t k = 0; k < lines; ++k) {
      const char* const from = line.from + k * steps.from;
      char* const to = line.to + k * steps.to + first * static_cast<int64_t>(sizeof(T));
      for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * sizeof(T), from + places[i], sizeof(T));
    }
  }
  return true;
}

/// The ways for elements of one size.
struct LookUp {
  bool (*line)(const Line&);
  bool (*lines_alike)(const Line&, int64_t lines, const LineSteps&);
};

LookUp look_up_of(DType dtype) {
  return with_word(size_of(dtype), [](auto word) -> LookUp {
    return {look_up<decltype(word)>, look_up_alike<decltype(word)>};
  });
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
    const LineSteps steps = {call.outer[indices], call.outer[table], call.outer[result]};
    if (steps.index == 0 && line.index_step != 0 && line.to_step == element_ &&
        call.outer_size > 1 && line.rows > 0) {
      return note(look_up_.lines_alike(line, call.outer_size, steps), call);
    }
    constexpr int64_t cache_line = 64, near_memory = 16 << 10;
    // What is read nearly whole, but in no order that a CPU foresees, is asked for a line ahead.
    const int64_t bytes = line.rows * line.row_bytes;
    const bool is_whole = line.index_step != 0 && line.from_step == 0 && bytes <= near_memory &&
                          bytes <= line.points * cache_line && steps.from >= bytes;
    for (int64_t i = 0; i < call.outer_size; ++i) {
      if (is_whole && i + 1 < call.outer_size) {
        const char* const next = line.from + steps.from;
        for (int64_t k = 0; k < bytes; k += cache_line) __builtin_prefetch(next + k);
      }
      if (!look_up_.line(line)) return note(false, call);
      line.index += steps.index;
      line.from += steps.from;
      line.to += steps.to;
    }
  }

  static void note(bool all_exist, const StageCall& call) {
    if (!all_exist) call.status->code.store(Status::index_out_of_range, std::memory_order_relaxed);
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
