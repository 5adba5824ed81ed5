#include "core/kernel.h"

#include "core/fields.h"
#include "core/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

namespace nitinol {
namespace {

std::string_view name_of(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::output:
      return "output";
    case Role::scalar:
      return "scalar";
    case Role::position:
      return "position";
    case Role::scratch:
      return "scratch";
  }
  return "?";
}

std::string_view name_of(StrideClass inner) {
  switch (inner) {
    case StrideClass::zero:
      return "0";
    case StrideClass::one:
      return "1";
    case StrideClass::any:
      return "any";
  }
  return "?";
}

std::string_view name_of(Order order) {
  switch (order) {
    case Order::none:
      return "elementwise";
    case Order::lanes:
      return "lanes";
    case Order::sequential:
      return "sequential";
    case Order::turned:
      return "turned";
    case Order::across:
      return "across";
  }
  return "?";
}

std::string_view name_of(Source::Kind kind) {
  switch (kind) {
    case Source::Kind::operand:
      return "operand ";
    case Source::Kind::reduction:
      return "reduction ";
    case Source::Kind::row_value:
      return "row value ";
  }
  return "?";
}

std::string_view name_of(Sink::Kind kind) {
  switch (kind) {
    case Sink::Kind::store:
      return "store to operand ";
    case Sink::Kind::accumulate:
      return "accumulate into reduction ";
    case Sink::Kind::row_value:
      return "keep as row value ";
    case Sink::Kind::check:
      return "check, else status ";
  }
  return "?";
}

void print(std::string& text, const Stage& stage, std::size_t number) {
  text += fmt::format("  stage {} {}\n", number,
                      stage.level == Stage::Level::element ? "per element" : "per row");
  for (std::size_t k = 0; k < stage.sources.size(); ++k) {
    text += fmt::format("    argument {}: {}{}\n", k, name_of(stage.sources[k].kind),
                        stage.sources[k].index);
  }
  const std::string program = to_string(stage.program);
  for (std::size_t begin = 0; begin < program.size();) {
    const std::size_t end = program.find('\n', begin);
    text += fmt::format("    {}\n", std::string_view(program).substr(begin, end - begin));
    begin = end + 1;
  }
  for (const Sink& sink : stage.sinks) {
    text += fmt::format("    {}{}: %{}\n", name_of(sink.kind), sink.index, sink.value);
  }
}

/// Calls take(number) for all that operator== compares in `value`: every field, in the order of
/// declaration, and the length of each list before its elements. Calls take.end() after each list
/// and struct.
template <class T, class Take>
void visit_numbers(const T& value, Take& take) {
  if constexpr (std::is_same_v<T, Prebuilt> || std::is_same_v<T, Making>) {  // no part of it
  } else if constexpr (std::is_enum_v<T>) {
    take(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_integral_v<T>) {
    take(value);
  } else if constexpr (requires { value.begin(), value.size(); }) {
    take(static_cast<uint64_t>(value.size()));
    take.end();
    for (const auto& element : value) visit_numbers(element, take);
    take.end();
  } else {
    static_assert(std::is_aggregate_v<T>, "what is the canonical form of this?");
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (visit_numbers(reflection::field<i>(value), take), ...);
    }
    (std::make_index_sequence<reflection::field_count<T>>());
    take.end();
  }
}

/// Hashes numbers, as many at once as fit into a word.
class Packed {
 public:
  template <class T>
  void operator()(T number) {
    constexpr int bits = 8 * sizeof(T);
    if (used_ + bits > 64) end();
    word_ |= static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(number)) << used_;
    used_ += bits;
  }
  void end() {
    if (used_ != 0) hash_.add(word_);
    word_ = 0;
    used_ = 0;
  }
  [[nodiscard]] std::size_t result() const { return hash_.result(); }

 private:
  Hash hash_;
  uint64_t word_ = 0;
  int used_ = 0;
};

struct Bytes {
  std::vector<std::byte> list;

  /// Seven bits a byte, the lowest first, with a mark on all but the last; the sign is the lowest
  /// (LEB128 with zigzag, as in protocol buffers): most numbers are small.
  template <class T>
  void operator()(T number) {
    auto rest = static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(number));
    if constexpr (std::is_signed_v<T>)
      rest = static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number < 0 ? -1 : 0);
    for (; rest > 127; rest >>= 7) list.push_back(static_cast<std::byte>(rest | 128));
    list.push_back(static_cast<std::byte>(rest));
  }
  void end() {}
};

}  // namespace

std::size_t hash_of(const Kernel& kernel) {
  Packed hash;
  visit_numbers(kernel, hash);
  return hash.result();
}

std::vector<std::byte> canonical_bytes(const Kernel& kernel) {
  Bytes bytes;
  visit_numbers(kernel, bytes);
  return std::move(bytes.list);
}

std::string to_string(const Kernel& kernel) {
  std::string text =
      fmt::format("kernel {}{}{}\n", name_of(kernel.order),
                  kernel.reduced_loops > 1 ? fmt::format(" of {} loops", kernel.reduced_loops) : "",
                  kernel.stores == Stores::non_temporal ? ", non-temporal" : "");
  for (std::size_t k = 0; k < kernel.operands.size(); ++k) {
    const Operand& operand = kernel.operands[k];
    text +=
        fmt::format("  operand {}: {} {}", k, name_of(operand.role), short_name_of(operand.dtype));
    if (operand.role != Role::scalar)
      text += fmt::format(", inner stride {}", name_of(operand.inner));
    if (operand.alias >= 0) text += fmt::format(", in place of operand {}", operand.alias);
    text += '\n';
  }
  for (std::size_t r = 0; r < kernel.reductions.size(); ++r) {
    text += fmt::format("  reduction {}: {} {}\n", r, name_of(kernel.reductions[r].type),
                        name_of(kernel.reductions[r].combine));
  }
  for (std::size_t v = 0; v < kernel.row_values.size(); ++v) {
    text += fmt::format("  row value {}: {}\n", v, name_of(kernel.row_values[v]));
  }
  for (std::size_t s = 0; s < kernel.stages.size(); ++s) print(text, kernel.stages[s], s);
  return text;
}

bool looks_up(const Stage& stage, std::size_t operand) {
  return std::ranges::any_of(stage.program.instrs, [operand](const ScalarInstr& instr) {
    return instr.op == ScalarOp::load && instr.imm == operand;
  });
}

bool has_checks(const Kernel& kernel) {
  return std::ranges::any_of(kernel.stages, [](const Stage& stage) {
    return std::ranges::find(stage.sinks, Sink::Kind::check, &Sink::kind) != stage.sinks.end();
  });
}

namespace {

/// What one instruction computes.
double operations_of(const ScalarInstr& instr) {
  switch (instr.op) {
    case ScalarOp::constant:
    case ScalarOp::argument:
    case ScalarOp::convert:
    case ScalarOp::bitcast:
    case ScalarOp::table:
    case ScalarOp::load:
    case ScalarOp::begin_if:
    case ScalarOp::end_if:
      return 0;
    case ScalarOp::fma:
      return 2;
    default:
      return 1;
  }
}

double operations_of(const Stage& stage) {
  double count = 0;
  int rare = 0;  // of begin_if that are open
  for (const ScalarInstr& instr : stage.program.instrs) {
    if (instr.op == ScalarOp::begin_if && (rare > 0 || instr.imm == 0)) ++rare;
    if (rare == 0) count += operations_of(instr);
    if (instr.op == ScalarOp::end_if && rare > 0) --rare;
  }
  const auto accumulates = std::ranges::count(stage.sinks, Sink::Kind::accumulate, &Sink::kind);
  return count + static_cast<double>(accumulates);
}

}  // namespace

double operations_of(const Kernel& kernel, std::span<const int64_t> sizes) {
  double points = 1;
  for (const int64_t size : sizes) points *= static_cast<double>(size);
  double rows = points;
  if (kernel.order != Order::none && !sizes.empty() && points > 0) {
    for (const int64_t size : sizes.last(std::min<std::size_t>(kernel.reduced_loops, sizes.size())))
      rows /= static_cast<double>(size);
  }
  double sum = 0;
  for (const Stage& stage : kernel.stages)
    sum += operations_of(stage) * (stage.level == Stage::Level::row ? rows : points);
  return sum;
}

int64_t block_of(const Kernel& kernel) {
  if (kernel.order == Order::lanes || kernel.order == Order::across)
    return reduction_order::lanes_block;
  return std::ranges::any_of(kernel.reductions, depends_on_order)
             ? reduction_order::ordered_block
             : reduction_order::unordered_block;
}

}  // namespace nitinol
