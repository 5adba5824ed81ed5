// Kernels that look up, by the host's loops, by interpretation and as generated code, against a
// loop over all points.
#include "backends/cpu/jit_loader.h"
#include "backends/host/stage.h"
#include "core/error.h"
#include "core/library.h"
#include "tests/backends/cpu/jit/kernel_case.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

StrideClass class_of(int64_t stride) {
  return stride == 0 ? StrideClass::zero : stride == 1 ? StrideClass::one : StrideClass::any;
}

/// A launch over [outer, inner] points: the strides of indices, table and result along both.
struct Trial {
  DType dtype = f32;
  int64_t outer = 1, inner = 1, rows = 1, row_step = 1;
  std::array<int64_t, 2> index, table, result;

  [[nodiscard]] Kernel kernel() const {
    const auto operand = [](Role role, DType type, int64_t stride) {
      return Operand{.role = role, .dtype = type, .inner = class_of(stride), .alias = -1};
    };
    return lookup(std::array{operand(Role::input, i64, index[1]), operand(Role::scalar, i64, 0),
                             operand(Role::scalar, i64, 0), operand(Role::input, dtype, table[1]),
                             operand(Role::output, dtype, result[1])});
  }
  [[nodiscard]] std::size_t extent(const std::array<int64_t, 2>& strides) const {
    return static_cast<std::size_t>((outer - 1) * strides[0] + (inner - 1) * strides[1] + 1);
  }
};

Trial random_trial(RandomNumbers& numbers) {
  constexpr DType dtypes[] = {f32, f64, f16, bf16, i8, i16, u8, i64, boolean};
  Trial t;
  t.dtype = dtypes[numbers.below(9)];
  t.outer = 1 + numbers.below(5);
  t.inner = numbers.below(3) == 0 ? 1 : 1 + numbers.below(140);
  t.rows = 1 + numbers.below(7);
  const int64_t kind = numbers.below(4);
  if (kind == 0)
    t.index = {1, 0};  // a row for each
  else
    t.index = {kind == 1 ? 0 : t.inner, kind == 2 ? 2 : 1};
  if (t.index[1] == 2) t.index[0] = 2 * t.inner;
  const int64_t step = numbers.below(3);
  t.table = {numbers.below(2) * (t.inner * step + 1), step};
  t.row_step = t.table[0] * t.outer + step * t.inner + 1;
  const int64_t gap = 1 + numbers.below(2);
  t.result = {t.inner * gap + 1, gap};
  return t;
}

struct Memory {
  std::vector<int64_t> indices;
  std::vector<std::byte> table, result;
};

/// What the definition says.
std::vector<std::byte> expected(const Trial& t, const Memory& memory) {
  std::vector<std::byte> result = memory.result;
  const auto size = static_cast<int64_t>(size_of(t.dtype));
  for (int64_t i = 0; i < t.outer; ++i) {
    for (int64_t j = 0; j < t.inner; ++j) {
      int64_t row = memory.indices[static_cast<std::size_t>(i * t.index[0] + j * t.index[1])];
      if (row < 0) row += t.rows;
      std::memcpy(result.data() + (i * t.result[0] + j * t.result[1]) * size,
                  memory.table.data() + (row * t.row_step + i * t.table[0] + j * t.table[1]) * size,
                  static_cast<std::size_t>(size));
    }
  }
  return result;
}

}  // namespace

TEST_CASE("lookups find each element that an index names", "[lookup][no-isa]") {
  RandomNumbers numbers(3);
  for (int round = 0; round < 300; ++round) {
    const Trial t = random_trial(numbers);
    CAPTURE(round, name_of(t.dtype), t.outer, t.inner, t.rows, t.index[1], t.table[1]);
    const std::size_t size = size_of(t.dtype);
    Memory memory;
    memory.indices.resize(t.extent(t.index));
    for (int64_t& index : memory.indices) index = numbers.below(2 * t.rows) - t.rows;
    memory.table.resize((t.extent(t.table) + static_cast<std::size_t>((t.rows - 1) * t.row_step)) *
                        size);
    // No NaN, whose bits conversions may change, and no boolean but 0 and 1.
    for (std::byte& byte : memory.table) byte = static_cast<std::byte>(numbers.below(2));
    memory.result.assign(t.extent(t.result) * size, std::byte{0x55});
    const Kernel kernel = t.kernel();
    const auto run = [&](const auto& launch_on, Memory& on) {
      Status status;
      Call call = {
          .buffers = {on.indices.data(), nullptr, nullptr, on.table.data(), on.result.data()},
          .sizes = {t.outer, t.inner},
          .strides = {t.index[0], t.index[1], 0, 0, 0, 0, t.table[0], t.table[1], t.result[0],
                      t.result[1]},
          .offsets = {},
          .scalars = {0, static_cast<uint64_t>(t.rows), static_cast<uint64_t>(t.row_step), 0, 0},
          .threads = 1};
      launch_on(call.launch(&status));
      return status.code.load();
    };
    const std::vector<std::byte> wanted = expected(t, memory);
    const bool has_wrong = round % 3 == 0;
    Memory wrong = memory;
    const std::size_t used = static_cast<std::size_t>(numbers.below(t.outer) * t.index[0] +
                                                      numbers.below(t.inner) * t.index[1]);
    wrong.indices[used] = numbers.below(2) == 0 ? t.rows : -t.rows - 1;
    const auto check = [&](const auto& launch_on) {
      Memory mine = memory;
      CHECK(run(launch_on, mine) == Status::ok);
      CHECK(mine.result == wanted);
      Memory also_mine = wrong;
      if (has_wrong) CHECK(run(launch_on, also_mine) == Status::index_out_of_range);
    };
    for (const auto kind : {Device::Kind::cpu, Device::Kind::reference}) {
      const auto executable = executable_for(backend({.kind = kind, .index = 0}), kernel);
      check([&](const Launch& launch) { executable->launch(launch); });
    }
    if (cpu::jit_plugin() == nullptr) continue;
    for (const Isa isa : testing::isa_levels()) {
      CAPTURE(name_of(isa));
      const auto code = testing::code_for(kernel, isa);
      check([&](const Launch& launch) { host::run_loop_nest(kernel, code.stages.data(), launch); });
    }
  }
}

TEST_CASE("a kernel that looks up says so", "[lookup]") {
  const Kernel kernel = Trial{.index = {1, 0}, .table = {0, 1}, .result = {1, 1}}.kernel();
  CHECK(looks_up(kernel.stages[0], 3));
  CHECK_FALSE(looks_up(kernel.stages[0], 0));
  CHECK(to_string(kernel).find("= f32 load %") != std::string::npos);
  CHECK(to_string(kernel).find(" of operand 3") != std::string::npos);
  Kernel other = kernel;
  other.stages[0].program.instrs.back().imm = 4;
  CHECK_FALSE(other == kernel);
}
