// One-op elementwise kernels by native loops.
//
// A loop (core/loop.h) takes contiguous arrays of compute types. Operands that already lie so are
// given to it in place; others pass through blocks on the stack: gathered and converted before the
// loop, converted and scattered after it. What does not change along the way is filled in once.
//
// A result that is much larger than the caches is computed into such blocks too, and streamed from
// there: its lines are then not read before they are written.
//
// An operand that is contiguous from row to row, as a transposed one, is turned in blocks of 16
// rows.
//
// Example: x[1000, 10] + b[10]. A loop over ten elements would be all overhead, so 51 rows are
// taken at a time: x is in place, because its rows follow each other, and the block of b is filled
// once with 51 copies.

#include "backends/host/convert.h"
#include "backends/host/copy_apart.h"
#include "backends/host/loop_nest.h"
#include "backends/host/prebuilt_stages.h"
#include "backends/host/transpose.h"
#include "core/bits.h"
#include "core/kernel.h"
#include "core/parallel.h"
#include "core/pick_loop.h"
#include "core/stream.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace nitinol::host {
namespace {

constexpr std::size_t most_arguments = 6;

/// An operand as the loop sees it.
struct Port {
  uint16_t operand = 0;
  Role role = Role::input;
  DType dtype = f32;
  int64_t size = 0;  ///< bytes in memory; 8 for positions
  Gather gather = nullptr;
};

/// How an operand reaches the loop in this call.
enum class Way : uint8_t {
  direct,    ///< its memory is the array
  constant,  ///< one block serves the whole call
  per_row,   ///< plain walk: one value for each row
  staged,    ///< a block at a time
};

/// Rows and columns of a block in which transposed operands are turned.
constexpr int64_t turned_rows = 16, turned_columns = staging_block / turned_rows * 2;

/// So many are staged column by column, where rows lie apart and are not contiguous.
constexpr int64_t few_columns = 16;

struct alignas(64) Buffer {
  std::array<char, staging_block * sizeof(uint64_t)> bytes;
};

/// One row of a turned block after the other.
struct alignas(64) TurnedBuffer {
  std::array<char, turned_rows * turned_columns * sizeof(uint64_t)> bytes;
};

/// Elements that are streamed at a time: so few that the processor loads those of the next block
/// meanwhile. a + b of 1.6e7 on one thread of Zen 5: 4.5 ms not streamed, 3.5 with 128, 3.9 with
/// 256, 4.4 with 512 (November 2026).
constexpr int64_t streamed_block = 128;

/// Programs of more instructions keep a processor so busy that streaming takes longer (exp: 3.1 ms,
/// 3.3 streamed), and so do three arguments (where: 5.0 ms, 11 streamed).
constexpr std::size_t most_streamed_instructions = 12, most_streamed_arguments = 2;

bool can_be_streamed(const Kernel& kernel, const Operand& result) {
  return kernel.stages[0].sources.size() <= most_streamed_arguments &&
         kernel.stores == Stores::non_temporal && is_direct(result.dtype) && result.alias < 0;
}

bool is_short(const Kernel& kernel) {
  return kernel.stages[0].program.instrs.size() <= most_streamed_instructions;
}

void fill_positions(int64_t first, int64_t step, void* to, int64_t n) {
  auto* const numbers = static_cast<int64_t*>(to);
  for (int64_t i = 0; i < n; ++i) numbers[i] = first + i * step;
}

Status::Code check_code_of(const Kernel& kernel) {
  const Sink& first = kernel.stages[0].sinks[0];
  return first.kind == Sink::Kind::check ? static_cast<Status::Code>(first.index) : Status::ok;
}

/// What computes the elements of one launch.
struct Work {
  Loop loop;
  bool is_streamed;
  Status* status;
};

struct Call : StageCall {
  Work work;
};

class PrebuiltLoop final : public Executable {
 public:
  PrebuiltLoop(const Kernel& kernel, Loop loop, std::vector<Port> arguments, Port result)
      : kernel_(kernel),
        loop_(loop),
        check_(kernel.prebuilt.check.pick()),
        check_code_(check_code_of(kernel)),
        arguments_(std::move(arguments)),
        result_(result),
        scatter_(scatter_of(result.dtype)),
        can_be_streamed_(can_be_streamed(kernel, kernel.operands[result.operand])),
        is_streamed_(can_be_streamed_ && is_short(kernel)),
        is_identity_(arguments_.size() == 1 && check_ == nullptr &&
                     compute_type(arguments_[0].dtype) == compute_type(result.dtype) &&
                     is_identity(kernel.stages[0], result.dtype)),
        grain_(grain_of(kernel)),
        code_({.function =
                   [](const void* self, const StageCall& call) {
                     static_cast<const PrebuiltLoop*>(self)->run(call);
                   },
               .self = this}) {
    for (const Operand& operand : kernel.operands) {
      const bool is_plain = operand.role == Role::scalar ||
                            (operand.role != Role::position && operand.inner == StrideClass::one);
      has_short_path_ &= is_plain;
    }
    is_direct_ = has_short_path_ && is_direct(result.dtype);
    for (const Port& port : arguments_)
      is_direct_ &= port.role == Role::input && is_direct(port.dtype);
  }

  void launch(const Launch& launch) const override {
    const int64_t count = has_short_path_ ? count_if_contiguous(launch) : -1;
    const bool is_for_one = count <= grain_ || launch.threads <= 1;
    const bool lacks_status = check_ != nullptr && launch.status == nullptr;
    if (count < 0 || !is_for_one || lacks_status || !is_alias_right(launch))
      return run_loop_nest(kernel_, &code_, launch);  // which says what is wrong, if anything is
    if (count == 0) return;
    const DefaultFloatMode mode;
    is_direct_ ? launch_direct(launch, count) : launch_contiguous(launch, count);
  }

 private:
  /// Points of a launch whose operands, but for numbers, lie without gaps; or -1.
  [[nodiscard]] int64_t count_if_contiguous(const Launch& launch) const {
    const std::size_t rank = launch.sizes.size();
    const std::size_t operands = kernel_.operands.size();
    int64_t count = 1;
    for (std::size_t i = rank; i-- > 0;) {
      const int64_t size = launch.sizes[i];
      if (size == 1) continue;
      for (std::size_t k = 0; k < operands; ++k) {
        if (launch.strides[k * rank + i] != count && kernel_.operands[k].role != Role::scalar)
          return -1;
      }
      count *= size;
    }
    return count;
  }

  void launch_direct(const Launch& launch, int64_t count) const {
    std::array<const void*, most_arguments> in;
    for (std::size_t a = 0; a < arguments_.size(); ++a)
      in[a] = launch.buffers[arguments_[a].operand];
    const Work work = {.loop = loop_, .is_streamed = is_streamed_, .status = launch.status};
    compute_in_place(in.data(), launch.buffers[result_.operand], count, work);
    if (is_streamed_) finish_streams();
  }

  /// The result of n elements where it belongs.
  void compute_in_place(const void* const* in, void* out, int64_t n, const Work& work) const {
    work.is_streamed&& is_in_lines(out, n) ? compute_streamed(in, out, n, work)
                                           : compute(in, out, n, work);
  }

  /// Whether n elements are whole cache lines, but for ends that do not matter.
  [[nodiscard]] bool is_in_lines(const void* out, int64_t n) const {
    constexpr int64_t line = 64, many = 4096;
    return n >= many || (static_cast<int64_t>(reinterpret_cast<intptr_t>(out)) % line == 0 &&
                         n * result_.size % line == 0);
  }

  /// Not inlined: its block would be on the stack of all calls.
  [[gnu::noinline]] void compute_streamed(const void* const* in, void* out, int64_t n,
                                          const Work& work) const {
    Buffer block;
    std::array<const void*, most_arguments> from;
    for (int64_t first = 0; first < n; first += streamed_block) {
      const int64_t count = std::min(streamed_block, n - first);
      advance(in, first, from);
      compute(from.data(), block.bytes.data(), count, work);
      stream(static_cast<char*>(out) + first * result_.size, block.bytes.data(),
             static_cast<std::size_t>(count * result_.size));
    }
  }

  /// The arguments from element `first` on.
  void advance(const void* const* in, int64_t first,
               std::array<const void*, most_arguments>& from) const {
    for (std::size_t a = 0; a < arguments_.size(); ++a)
      from[a] = static_cast<const char*>(in[a]) + first * compute_size(arguments_[a].dtype);
  }

  /// The result of n elements, and the check of them, which comes first: the result may be in place
  /// of an argument.
  void compute(const void* const* in, void* out, int64_t n, const Work& work) const {
    if (check_ != nullptr) check(in, n, work.status);
    work.loop(in, out, n);
  }

  void check(const void* const* in, int64_t n, Status* status) const {
    std::array<uint8_t, staging_block> holds;
    std::array<const void*, most_arguments> from;
    for (int64_t first = 0; first < n; first += staging_block) {
      const int64_t count = std::min(staging_block, n - first);
      advance(in, first, from);
      check_(from.data(), holds.data(), count);
      if (std::memchr(holds.data(), 0, static_cast<std::size_t>(count)) != nullptr)
        status->code.store(check_code_, std::memory_order_relaxed);
    }
  }

  void launch_contiguous(const Launch& launch, int64_t count) const {
    const std::size_t operands = kernel_.operands.size();
    std::array<char*, most_arguments + 1> pointers;
    std::array<int64_t, most_arguments + 1> steps;
    for (std::size_t k = 0; k < operands; ++k) {
      pointers[k] = static_cast<char*>(launch.buffers[k]);
      steps[k] = static_cast<int64_t>(size_of(kernel_.operands[k].dtype));
    }
    run(flat_call(pointers.data(), steps.data(), count, launch));
  }

  [[nodiscard]] bool is_alias_right(const Launch& launch) const {
    const int alias = kernel_.operands[result_.operand].alias;
    const void* const out = launch.buffers[result_.operand];
    if (alias >= 0 && launch.buffers[static_cast<std::size_t>(alias)] == out) return true;
    return std::none_of(arguments_.begin(), arguments_.end(),
                        [&](const Port& port) { return launch.buffers[port.operand] == out; });
  }

  /// Whether short rows should be taken several at a time.
  [[nodiscard]] bool packs(const StageCall& call) const {
    if (call.outer_size == 1 || call.inner_size > staging_block / 2) return false;
    if (call.inner_size <= 64) return true;
    return is_packed(call, result_) &&
           std::all_of(arguments_.begin(), arguments_.end(), [&](const Port& port) {
             return port.role == Role::scalar || call.outer[port.operand] == 0 ||
                    (port.role == Role::input && is_packed(call, port));
           });
  }

  void run(const StageCall& piece) const {
    const Call call = {piece, work_of(piece)};
    run_any(call);
    if (call.work.is_streamed) finish_streams();
  }

  [[nodiscard]] Work work_of(const StageCall& call) const {
    const Work usual = {.loop = loop_, .is_streamed = is_streamed_, .status = call.status};
    const auto loops_at = kernel_.prebuilt.loops_at;
    if (loops_at == nullptr || !is_same_everywhere(call, arguments_.back())) return usual;
    const Port& last = arguments_.back();
    const ScalarType type = compute_type(last.dtype);
    uint64_t bits = 0;
    stage(call, last, 0, 0, &bits, 1);
    const LoopsAt found = loops_at(type, double_of_bits(type, bits));
    return {.loop = found.loops.pick(),
            .is_streamed = found.emit != nullptr && can_be_streamed_,
            .status = call.status};
  }

  [[nodiscard]] static bool is_same_everywhere(const StageCall& call, const Port& port) {
    const bool stays = (call.inner[port.operand] == 0 || call.inner_size == 1) &&
                       (call.outer[port.operand] == 0 || call.outer_size == 1);
    return port.role == Role::scalar || (port.role == Role::input && stays);
  }

  void run_any(const Call& call) const {
    if (packs(call)) return run_packed(call);
    if (turns(call)) return run_turned(call);
    std::array<Way, most_arguments> ways;
    bool is_direct_all = true;
    for (std::size_t a = 0; a < arguments_.size(); ++a) {
      ways[a] = way_along_row(call, arguments_[a]);
      is_direct_all &= ways[a] == Way::direct;
    }
    const bool is_result_direct =
        is_direct(result_.dtype) &&
        (call.inner[result_.operand] == result_.size || call.inner_size == 1);
    if (is_direct_all && is_result_direct)
      run_in_place(call);
    else
      run_staged(call, ways, is_result_direct);
  }

  void run_in_place(const Call& call) const {
    std::array<const void*, most_arguments> in;
    for (int64_t row = 0; row < call.outer_size; ++row) {
      for (std::size_t a = 0; a < arguments_.size(); ++a) in[a] = at(call, arguments_[a], row, 0);
      compute_in_place(in.data(), at(call, result_, row, 0), call.inner_size, call.work);
    }
  }

  [[nodiscard]] static Way way_along_row(const StageCall& call, const Port& port) {
    if (port.role == Role::scalar) return Way::constant;
    const int64_t step = call.inner[port.operand];
    const bool is_memory = port.role == Role::input;
    if (is_memory && is_direct(port.dtype) && (step == port.size || call.inner_size == 1)) {
      return Way::direct;
    }
    if (step != 0) return Way::staged;
    return call.outer[port.operand] == 0 || call.outer_size == 1 ? Way::constant : Way::per_row;
  }

  static char* at(const StageCall& call, const Port& port, int64_t row, int64_t point) {
    return call.pointers[port.operand] + row * call.outer[port.operand] +
           point * call.inner[port.operand];
  }

  /// n values from (row, point) on, along the row.
  static void stage(const StageCall& call, const Port& port, int64_t row, int64_t point, void* to,
                    int64_t n) {
    if (port.role == Role::scalar) {
      port.gather(reinterpret_cast<const char*>(&call.scalars[port.operand]), 0, to, n);
    } else if (port.role == Role::position) {
      const auto first = reinterpret_cast<int64_t>(at(call, port, row, point));
      fill_positions(first, call.inner[port.operand], to, n);
    } else {
      port.gather(at(call, port, row, point), call.inner[port.operand], to, n);
    }
  }

  void run_staged(const Call& call, const std::array<Way, most_arguments>& ways,
                  bool is_result_direct) const {
    std::array<Buffer, most_arguments> buffers;
    Buffer result;
    std::array<const void*, most_arguments> in;
    const int64_t block = std::min(staging_block, call.inner_size);
    const auto stage_all = [&](Way way, int64_t row, int64_t point, int64_t n) {
      for (std::size_t a = 0; a < arguments_.size(); ++a) {
        if (ways[a] != way) continue;
        in[a] = buffers[a].bytes.data();
        stage(call, arguments_[a], row, point, buffers[a].bytes.data(), n);
      }
    };
    if (is_identity_ && !call.work.is_streamed && (is_result_direct || ways[0] == Way::direct))
      return convert(call, is_result_direct);
    stage_all(Way::constant, 0, 0, block);
    for (int64_t row = 0; row < call.outer_size; ++row) {
      stage_all(Way::per_row, row, 0, block);
      for (int64_t point = 0; point < call.inner_size; point += block) {
        const int64_t n = std::min(block, call.inner_size - point);
        stage_all(Way::staged, row, point, n);
        for (std::size_t a = 0; a < arguments_.size(); ++a) {
          if (ways[a] == Way::direct) in[a] = at(call, arguments_[a], row, point);
        }
        char* const out = at(call, result_, row, point);
        if (is_result_direct) {
          compute_in_place(in.data(), out, n, call.work);
          continue;
        }
        compute(in.data(), result.bytes.data(), n, call.work);
        scatter_(result.bytes.data(), out, call.inner[result_.operand], n);
      }
    }
  }

  /// A cast between a dtype and what it computes in needs no block: it is gathered where it
  /// belongs, or scattered from where it lies.
  void convert(const Call& call, bool is_result_direct) const {
    const Port& from = arguments_[0];
    for (int64_t row = 0; row < call.outer_size; ++row) {
      char* const out = at(call, result_, row, 0);
      if (is_result_direct)
        stage(call, from, row, 0, out, call.inner_size);
      else
        scatter_(at(call, from, row, 0), out, call.inner[result_.operand], call.inner_size);
    }
  }

  /// Whether the operand is contiguous from row to row.
  [[nodiscard]] static bool is_turned(const StageCall& call, const Port& port) {
    return port.role == Role::input && is_direct(port.dtype) &&
           call.outer[port.operand] == port.size && call.inner[port.operand] != port.size &&
           call.inner[port.operand] != 0;
  }

  [[nodiscard]] bool turns(const StageCall& call) const {
    return call.outer_size >= turned_rows / 2 &&
           std::any_of(arguments_.begin(), arguments_.end(),
                       [&](const Port& port) { return is_turned(call, port); });
  }

  void run_turned(const Call& call) const {
    std::array<TurnedBuffer, most_arguments> buffers;
    for (int64_t row = 0; row < call.outer_size; row += turned_rows) {
      const int64_t rows = std::min(turned_rows, call.outer_size - row);
      for (int64_t point = 0; point < call.inner_size; point += turned_columns) {
        const int64_t n = std::min(turned_columns, call.inner_size - point);
        for (std::size_t a = 0; a < arguments_.size(); ++a) {
          const Port& port = arguments_[a];
          if (!is_turned(call, port)) continue;
          transpose({.from = at(call, port, row, point),
                     .from_step = call.inner[port.operand],
                     .to = buffers[a].bytes.data(),
                     .to_step = turned_columns * port.size,
                     .rows = rows,
                     .columns = n},
                    static_cast<std::size_t>(port.size));
        }
        for (int64_t r = 0; r < rows; ++r) run_turned_row(call, buffers, row, r, point, n);
      }
    }
  }

  /// Row `row` + r of a block, whose turned operands are in the buffers.
  void run_turned_row(const Call& call, std::array<TurnedBuffer, most_arguments>& buffers,
                      int64_t row, int64_t r, int64_t point, int64_t n) const {
    std::array<const void*, most_arguments> in;
    for (std::size_t a = 0; a < arguments_.size(); ++a) {
      const Port& port = arguments_[a];
      char* const buffer = buffers[a].bytes.data();
      if (is_turned(call, port)) {
        in[a] = buffer + r * turned_columns * port.size;
      } else if (way_along_row(call, port) == Way::direct) {
        in[a] = at(call, port, row + r, point);
      } else {
        stage(call, port, row + r, point, buffer, n);
        in[a] = buffer;
      }
    }
    char* const out = at(call, result_, row + r, point);
    if (is_direct(result_.dtype) && call.inner[result_.operand] == result_.size) {
      compute(in.data(), out, n, call.work);
      return;
    }
    Buffer result;
    compute(in.data(), result.bytes.data(), n, call.work);
    scatter_(result.bytes.data(), out, call.inner[result_.operand], n);
  }

  /// Whether rows follow each other in memory without gaps.
  [[nodiscard]] static bool is_packed(const StageCall& call, const Port& port) {
    return is_direct(port.dtype) && call.inner[port.operand] == port.size &&
           call.outer[port.operand] == port.size * call.inner_size;
  }

  /// Short rows, several at a time.
  void run_packed(const Call& call) const {
    const int64_t columns = call.inner_size;
    const int64_t rows_at_once = std::min(staging_block / columns, call.outer_size);
    std::array<Buffer, most_arguments> buffers;
    Buffer result;
    std::array<const void*, most_arguments> in;
    std::array<Way, most_arguments> ways;
    for (std::size_t a = 0; a < arguments_.size(); ++a) {
      const Port& port = arguments_[a];
      ways[a] = Way::staged;
      in[a] = buffers[a].bytes.data();
      if (port.role == Role::input && is_packed(call, port)) ways[a] = Way::direct;
      if (port.role != Role::scalar && call.outer[port.operand] != 0) continue;
      ways[a] = Way::constant;
      stage_rows(call, port, 0, rows_at_once, buffers[a].bytes.data());
    }
    const bool is_result_direct = is_packed(call, result_);
    for (int64_t row = 0; row < call.outer_size; row += rows_at_once) {
      const int64_t rows = std::min(rows_at_once, call.outer_size - row);
      for (std::size_t a = 0; a < arguments_.size(); ++a) {
        if (ways[a] == Way::direct) in[a] = at(call, arguments_[a], row, 0);
        if (ways[a] == Way::staged) {
          stage_rows(call, arguments_[a], row, rows, buffers[a].bytes.data());
        }
      }
      if (is_result_direct) {
        compute_in_place(in.data(), at(call, result_, row, 0), rows * columns, call.work);
        continue;
      }
      compute(in.data(), result.bytes.data(), rows * columns, call.work);
      store_rows(call, row, rows, result.bytes.data());
    }
  }

  static int64_t compute_size(DType dtype) { return nitinol::size_of(compute_type(dtype)); }

  static void stage_rows(const StageCall& call, const Port& port, int64_t row, int64_t rows,
                         char* to) {
    const int64_t size = compute_size(port.dtype), columns = call.inner_size;
    const int64_t step = call.inner[port.operand], row_step = call.outer[port.operand];
    if (port.role == Role::input && step == 0) {
      Buffer values;  // one for each row
      port.gather(at(call, port, row, 0), row_step, values.bytes.data(), rows);
      return spread(values.bytes.data(), size, rows, columns, to);
    }
    if (port.role == Role::input && is_direct(port.dtype)) {
      const char* const from = at(call, port, row, 0);
      if (step == size && size * columns <= longest_piece)
        return copy_apart_of(size * columns)(from, row_step, to, size * columns, rows);
      if (columns <= few_columns) {
        for (int64_t c = 0; c < columns; ++c)
          copy_apart_of(size)(from + c * step, row_step, to + c * size, size * columns, rows);
        return;
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      stage(call, port, row + r, 0, to + r * size * columns, columns);
    }
  }

  void store_rows(const StageCall& call, int64_t row, int64_t rows, const char* from) const {
    const int64_t size = compute_size(result_.dtype), columns = call.inner_size;
    const int64_t step = call.inner[result_.operand];
    if (is_direct(result_.dtype) && step == size && size * columns <= longest_piece)
      return copy_apart_of(size * columns)(from, size * columns, at(call, result_, row, 0),
                                           call.outer[result_.operand], rows);
    for (int64_t r = 0; r < rows; ++r)
      scatter_(from + r * size * columns, at(call, result_, row + r, 0), step, columns);
  }

  const Kernel kernel_;
  const Loop loop_;
  const Loop check_;  ///< or null
  const Status::Code check_code_;
  const std::vector<Port> arguments_;
  const Port result_;
  const Scatter scatter_;
  const bool can_be_streamed_, is_streamed_, is_identity_;
  const int64_t grain_;
  const StageCode code_;
  bool has_short_path_ = true;  ///< operands are contiguous or numbers
  bool is_direct_ = true;       ///< and none needs a block: the loop takes them where they lie
};

Port port_of(const Kernel& kernel, uint16_t operand) {
  const Operand& o = kernel.operands[operand];
  return {.operand = operand,
          .role = o.role,
          .dtype = o.dtype,
          .size = static_cast<int64_t>(size_of(o.dtype)),
          .gather = gather_of(o.dtype)};
}

/// Its elements as they are in memory, though they compute in f32.
Port as_bits(Port port) {
  port.dtype = u16;
  port.gather = gather_of(u16);
  return port;
}

}  // namespace

std::unique_ptr<Executable> make_prebuilt_loop(const Kernel& kernel) {
  if (kernel.prebuilt.loops.pick() == nullptr || kernel.stages.size() != 1) return nullptr;
  const Stage& stage = kernel.stages[0];
  const bool checks = stage.sinks.size() == 2 && stage.sinks[0].kind == Sink::Kind::check &&
                      kernel.prebuilt.check.pick() != nullptr;
  const bool stores_one = !stage.sinks.empty() && stage.sinks.back().kind == Sink::Kind::store;
  if (!stores_one || stage.sinks.size() != (checks ? 2 : 1) ||
      stage.sources.size() > most_arguments || kernel.operands.size() > most_arguments + 1) {
    return nullptr;
  }
  std::vector<Port> arguments;
  for (const Source& source : stage.sources) {
    if (source.kind != Source::Kind::operand) return nullptr;
    arguments.push_back(port_of(kernel, source.index));
  }
  const Port result = port_of(kernel, stage.sinks.back().index);
  const std::optional<SignChange> change = sign_change_of(stage, result.dtype);
  if (change && arguments[0].dtype == result.dtype)
    return std::make_unique<PrebuiltLoop>(kernel, sign_loop_of(*change, result.dtype),
                                          std::vector{as_bits(arguments[0])}, as_bits(result));
  return std::make_unique<PrebuiltLoop>(kernel, kernel.prebuilt.loops.pick(), std::move(arguments),
                                        result);
}

}  // namespace nitinol::host
