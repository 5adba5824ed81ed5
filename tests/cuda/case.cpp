#include "tests/cuda/case.h"

#include "core/error.h"
#include "core/fields.h"
#include "tests/nan_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <istream>
#include <ostream>
#include <type_traits>
#include <utility>

namespace nitinol::test {
namespace {

/// Calls take(number) for all of `value`, as canonical_bytes() does: a number, or a list's length
/// and its elements, or a struct's fields.
template <class T, class Take>
void visit(T& value, Take& take) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, Prebuilt> || std::is_same_v<Plain, Making>) {
  } else if constexpr (std::is_enum_v<Plain> || std::is_integral_v<Plain>) {
    take(value);
  } else if constexpr (requires { value.begin(); }) {
    take.list(value);
  } else {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (visit(reflection::field<i>(value), take), ...);
    }
    (std::make_index_sequence<reflection::field_count<Plain>>());
  }
}

struct Writer {
  std::ostream& out;
  template <class T>
  void operator()(const T& number) {
    out.write(reinterpret_cast<const char*>(&number), sizeof number);
  }
  template <class T>
  void list(const std::vector<T>& values) {
    (*this)(static_cast<uint64_t>(values.size()));
    if constexpr (std::is_same_v<T, std::byte>) {
      out.write(reinterpret_cast<const char*>(values.data()),
                static_cast<std::streamsize>(values.size()));
    } else {
      for (const T& value : values) visit(value, *this);
    }
  }
};

struct Reader {
  std::istream& in;
  void read(void* to, std::size_t bytes) {
    in.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    if (!in) throw Error(ErrorKind::io, {.where = "read_case", .what = "the file ends in a case"});
  }
  template <class T>
  void operator()(T& number) {
    read(&number, sizeof number);
  }
  template <class T>
  void list(std::vector<T>& values) {
    uint64_t size = 0;
    read(&size, sizeof size);
    if (size > uint64_t{1} << 32)
      throw Error(ErrorKind::io, {.where = "read_case", .what = "this is no file of cases"});
    values.resize(size);
    if constexpr (std::is_same_v<T, std::byte>) {
      read(values.data(), size);
    } else {
      for (T& value : values) visit(value, *this);
    }
  }
};

constexpr uint64_t start_of_case = 0x3145534143544e31;

}  // namespace

Launch Case::launch(const std::vector<void*>& buffers, Status* status_word) const {
  return {.buffers = buffers,
          .sizes = sizes,
          .strides = strides,
          .offsets = offsets,
          .scalars = scalars,
          .status = status_word,
          .threads = 1};
}

Reach reach_of(const Kernel& kernel, const Launch& launch, std::size_t k) {
  Reach reach = {0, 0};
  const std::size_t loops = launch.sizes.size();
  for (std::size_t loop = 0; loop < loops; ++loop) {
    const int64_t size = launch.sizes[loop];
    if (size == 0) {  // the reduced loop: results are there all the same
      if (kernel.operands[k].role == Role::output) continue;
      return {0, 0};
    }
    const int64_t way = (size - 1) * launch.strides[k * loops + loop];
    (way < 0 ? reach.low : reach.high) += way;
  }
  const bool is_looked_up =
      std::ranges::any_of(kernel.stages, [k](const Stage& stage) { return looks_up(stage, k); });
  if (is_looked_up) {  // how many there are to choose from, and their distance, stand before it
    const auto way = static_cast<int64_t>((launch.scalars[k - 2] - 1) * launch.scalars[k - 1]);
    (way < 0 ? reach.low : reach.high) += way;
  }
  const auto bytes = static_cast<int64_t>(size_of(kernel.operands[k].dtype));
  return {reach.low * bytes, (reach.high + 1) * bytes};
}

void for_each_element(const Case& value, std::size_t k, FunctionRef<void(int64_t offset)> take) {
  const std::size_t loops = value.sizes.size();
  std::vector<int64_t> at(loops, 0);
  if (std::ranges::count(value.sizes, 0) > 0) return;
  for (int64_t offset = 0;;) {
    take(offset);
    std::size_t loop = loops;
    for (; loop > 0; --loop) {
      const int64_t stride = value.strides[k * loops + loop - 1];
      offset += stride;
      if (++at[loop - 1] < value.sizes[loop - 1]) break;
      offset -= stride * at[loop - 1];
      at[loop - 1] = 0;
    }
    if (loop == 0) return;
  }
}

cuda::Schedule schedule_of(const Case& value) {
  std::vector<void*> buffers;
  for (const CaseMemory& memory : value.memory)
    buffers.push_back(reinterpret_cast<void*>(uintptr_t{4096} + memory.misalignment));  // NOLINT
  return cuda::schedule_of(value.kernel, value.launch(buffers));
}

void write(std::ostream& out, const Case& value) {
  Writer writer{out};
  writer(start_of_case);
  visit(value, writer);
}

std::optional<Case> read_case(std::istream& in) {
  if (in.peek() == std::istream::traits_type::eof()) return std::nullopt;
  Reader reader{in};
  uint64_t start = 0;
  reader(start);
  if (start != start_of_case)
    throw Error(ErrorKind::io, {.where = "read_case", .what = "this is no file of cases"});
  Case value;
  visit(value, reader);
  return value;
}

std::string difference(const Case& value, std::size_t operand, const std::byte* at) {
  const CaseMemory& memory = value.memory[operand];
  const DType dtype = value.kernel.operands[operand].dtype;
  const std::size_t bytes = size_of(dtype);
  std::size_t count = 0;
  std::string text;
  for (std::size_t i = 0; i < memory.after.size(); i += bytes) {
    uint64_t expected = 0, found = 0;
    std::memcpy(&expected, memory.after.data() + i, bytes);
    std::memcpy(&found, at + i, bytes);
    if (expected == found || (is_nan(dtype, expected) && is_nan(dtype, found))) continue;
    if (++count > 4) continue;
    text += fmt::format("\n    element {}: {:#x}, expected {:#x}", i / bytes, found, expected);
    if (dtype == f32)
      text += fmt::format(" ({} and {})", std::bit_cast<float>(static_cast<uint32_t>(found)),
                          std::bit_cast<float>(static_cast<uint32_t>(expected)));
  }
  if (count == 0) return {};
  return fmt::format("operand {} ({}): {} of {} elements differ{}", operand, short_name_of(dtype),
                     count, memory.after.size() / bytes, text);
}

}  // namespace nitinol::test
