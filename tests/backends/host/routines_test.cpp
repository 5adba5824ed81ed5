// The host's routines against the reference device's, which are written as the definitions read.
#include "core/kernel.h"
#include "core/library.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

using Kind = LibraryCall::Kind;

/// A layout of this shape: axes in a random order in memory, perhaps with gaps, sizes 1 perhaps
/// with stride 0.
OperandLayout random_layout(RandomNumbers& numbers, DType dtype, const Shape& shape) {
  OperandLayout layout = {.dtype = dtype, .shape = shape, .strides = strides_of(shape)};
  std::vector<int> order;
  for (int i = 0; i < shape.size(); ++i) order.insert(order.begin() + numbers.below(i + 1), i);
  if (numbers.below(2) == 0) return layout;
  int64_t stride = 1;
  for (const int axis : order) {
    layout.strides[axis] = stride;
    stride *= shape[axis] + numbers.below(2);
  }
  return layout;
}

/// Memory for a layout, with numbers that round; a few are `rare`, or -0.
std::vector<double> random_memory(RandomNumbers& numbers, const OperandLayout& layout,
                                  double rare = NAN) {
  int64_t span = 1;
  for (int i = 0; i < layout.shape.size(); ++i)
    span += (layout.shape[i] > 0 ? layout.shape[i] - 1 : 0) * layout.strides[i];
  std::vector<double> memory(static_cast<std::size_t>(span));  // wide enough for any dtype
  auto* const bytes = reinterpret_cast<char*>(memory.data());
  for (int64_t i = 0; i < span; ++i) {
    const double x = numbers.below(9) == 0 ? (numbers.below(2) == 0 ? -0.0 : rare) : numbers.real();
    switch (layout.dtype) {
      case f64:
        std::memcpy(bytes + 8 * i, &x, 8);
        break;
      case f32: {
        const auto y = static_cast<float>(x);
        std::memcpy(bytes + 4 * i, &y, 4);
        break;
      }
      case f16:
      case bf16: {
        const auto bits = static_cast<uint16_t>(numbers.below(0x7000) | numbers.below(2) << 15);
        std::memcpy(bytes + 2 * i, &bits, 2);
        break;
      }
      case boolean:
        bytes[i] = static_cast<char>(numbers.below(2));
        break;
      default: {
        const auto y = static_cast<int32_t>(numbers.next());
        std::memcpy(bytes + 4 * i, &y, 4);
      }
    }
  }
  return memory;
}

struct Trial {
  LibraryCall call;
  int64_t rows = 0;  ///< what operand 1 chooses from, if it is indices
};

Trial random_trial(RandomNumbers& numbers, Kind kind, DType dtype) {
  const auto size = [&] { return 1 + numbers.below(6); };
  const auto layout = [&](DType type, const Shape& shape) {
    return random_layout(numbers, type, shape);
  };
  const int64_t rows = size();
  const Shape places = numbers.below(2) == 0 ? Shape{size()} : Shape{size(), size()};
  const Shape rest = numbers.below(3) == 0 ? Shape{} : Shape{size() * 7};
  const auto with = [](Shape a, const Shape& b) {
    for (const int64_t i : b) a.push_back(i);
    return a;
  };
  Trial trial;
  trial.rows = rows;
  LibraryCall& call = trial.call;
  call.kind = kind;
  call.threads = 1 + static_cast<int>(numbers.below(2));
  const Shape cube = {size(), size() * 9, size()};
  call.axis = static_cast<int>(numbers.below(3));
  Shape other = cube;
  other[call.axis] = rows;
  switch (kind) {
    case Kind::scatter_add:
      call.operands = {layout(dtype, with(places, rest)), layout(i64, places),
                       layout(dtype, with({rows}, rest))};
      break;
    case Kind::scatter:
      call.operands = {layout(dtype, with({rows}, rest)), layout(dtype, with(places, rest)),
                       layout(i64, places), layout(dtype, with({rows}, rest))};
      call.replaces = numbers.below(2) == 0;
      call.combine = static_cast<Combine>(1 + numbers.below(3));
      break;
    case Kind::scatter_add_along:
      call.operands = {layout(dtype, cube), layout(i64, cube), layout(dtype, other)};
      break;
    case Kind::scan:
      call.operands = {layout(dtype, cube), layout(dtype, cube)};
      call.combine = static_cast<Combine>(numbers.below(4));
      break;
    case Kind::sort:
      call.operands = {layout(dtype, cube), layout(dtype, cube)};
      call.is_descending = numbers.below(2) == 0;
      break;
    case Kind::argsort:
      call.is_descending = numbers.below(2) == 0;
      other[call.axis] = numbers.below(cube[call.axis] + 1);
      call.operands = {layout(dtype, cube), layout(i64, other)};
      break;
    case Kind::compress:
      call.operands = {layout(dtype, with({cube[1]}, rest)), layout(boolean, {cube[1]}),
                       layout(dtype, with({size() * 4}, rest))};
      break;
    case Kind::positions:
      call.operands = {layout(boolean, {cube[1]}), layout(i64, {size() * 4})};
      break;
    default: {
      const Shape image = {2, 4 + size(), 3 + size(), size() * 20};
      call.windows.kernel = {2, 3};
      call.windows.stride = {size(), 2};
      call.windows.padding = {1, 1};
      Shape result = {2, call.windows.count(0, image[1]), call.windows.count(1, image[2]),
                      image[3]};
      if (kind == Kind::window_max && result[2] > 1) result[2] -= numbers.below(2);  // a part
      if (kind == Kind::window_max)
        call.operands = {layout(dtype, image), layout(dtype, image), layout(dtype, result)};
      else
        call.operands = {layout(dtype, image), layout(dtype, result), layout(dtype, image)};
    }
  }
  return trial;
}

/// Equal memory, but any NaN is any NaN.
bool same(DType dtype, const std::vector<double>& a, const std::vector<double>& b) {
  if (dtype == f64) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::memcmp(&a[i], &b[i], 8) != 0 && !(a[i] != a[i] && b[i] != b[i])) return false;
    }
    return true;
  }
  if (dtype != f32) return std::memcmp(a.data(), b.data(), 8 * a.size()) == 0;
  std::vector<float> x(2 * a.size()), y(x);
  std::memcpy(x.data(), a.data(), 8 * a.size());
  std::memcpy(y.data(), b.data(), 8 * b.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::memcmp(&x[i], &y[i], 4) != 0 && !(x[i] != x[i] && y[i] != y[i])) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("routines of the host do what plain loops do", "[routines]") {
  RandomNumbers numbers(9);
  for (const Kind kind :
       {Kind::scatter_add, Kind::scatter, Kind::scatter_add_along, Kind::scan, Kind::sort,
        Kind::argsort, Kind::compress, Kind::positions, Kind::window_max, Kind::window_max_input}) {
    for (const DType dtype : {f32, f64, f16, bf16, i32}) {
      for (int round = 0; round < 30; ++round) {
        CAPTURE(name_of(kind), name_of(dtype), round);
        Trial trial = random_trial(numbers, kind, dtype);
        const bool picks_itself = kind == Kind::window_max && round % 2 == 1;
        if (picks_itself) trial.call.operands[1] = trial.call.operands[0];
        std::vector<std::vector<double>> memory;
        for (const OperandLayout& operand : trial.call.operands)
          memory.push_back(random_memory(numbers, operand));
        const bool has_indices =
            kind == Kind::scatter_add || kind == Kind::scatter || kind == Kind::scatter_add_along;
        const std::size_t indices_at = trial.call.operands.size() - 2;
        const bool is_wrong = round % 10 == 9 && has_indices;
        if (has_indices) {
          auto* const indices = reinterpret_cast<int64_t*>(memory[indices_at].data());
          for (std::size_t i = 0; i < memory[indices_at].size(); ++i)
            indices[i] = numbers.below(2 * trial.rows) - trial.rows;
          if (is_wrong) indices[0] = trial.rows;
        }
        std::vector<double> results[2];
        Status status[2];
        for (const auto device : {Device::Kind::cpu, Device::Kind::reference}) {
          const bool is_reference = device == Device::Kind::reference;
          std::vector<std::vector<double>> mine = memory;
          Call call = {.buffers = {}, .sizes = {}, .strides = {}, .threads = trial.call.threads};
          for (std::vector<double>& each : mine) call.buffers.push_back(each.data());
          if (picks_itself) call.buffers[1] = call.buffers[0];
          call.run(trial.call, device, &status[is_reference ? 1 : 0]);
          results[is_reference ? 1 : 0] = mine.back();
        }
        CHECK(status[0].code.load() == (is_wrong ? Status::index_out_of_range : Status::ok));
        CHECK(status[1].code.load() == status[0].code.load());
        if (!is_wrong) CHECK(same(dtype, results[0], results[1]));
      }
    }
  }
}

TEST_CASE("numbers come into the same order by any threads", "[routines]") {
  const OperandLayout state = {.dtype = i64, .shape = {2}, .strides = {3}};
  std::vector<int64_t> words = {-5, 0, 0, (int64_t{1} << 33) - 9};
  for (const int64_t count : {0, 1, 3, 256, 300, 1024, 1025, 2048, 2049, 65536, 300001}) {
    for (const int64_t step : {1, 2}) {
      const OperandLayout out = {.dtype = i64, .shape = {count}, .strides = {step}};
      std::vector<std::vector<int64_t>> results;
      const auto run = [&](Device::Kind device, int threads) {
        results.emplace_back(static_cast<std::size_t>(count * step + 1), -1);
        const Call call = {.buffers = {words.data(), results.back().data()},
                           .sizes = {},
                           .strides = {},
                           .threads = threads};
        call.run(
            LibraryCall{.kind = Kind::permutation, .operands = {state, out}, .threads = threads},
            device);
      };
      run(Device::Kind::reference, 1);
      for (const int threads : {1, 2, 3, 70}) run(Device::Kind::cpu, threads);
      CAPTURE(count, step);
      for (const std::vector<int64_t>& result : results) CHECK(result == results[0]);
      CHECK(results[0].back() == -1);
      std::vector<bool> is_there(static_cast<std::size_t>(count));
      for (int64_t i = 0; i < count; ++i) {
        const int64_t number = results[0][static_cast<std::size_t>(i * step)];
        REQUIRE((number >= 0 && number < count));
        is_there[static_cast<std::size_t>(number)] = true;
      }
      CHECK(std::ranges::count(is_there, true) == count);
    }
  }
}

TEST_CASE("logcumsumexp of all lengths is what plain loops give", "[routines]") {
  RandomNumbers numbers(10);
  for (const DType dtype : {f32, f64, f16, bf16}) {
    for (const int64_t length : {1, 16, 17, 127, 128, 129, 300, 4500}) {
      for (const int64_t lines : {1, 3, 40}) {
        for (const int axis : {0, 1}) {
          CAPTURE(name_of(dtype), length, lines, axis);
          const Shape shape = axis == 0 ? Shape{length, lines} : Shape{lines, length};
          const OperandLayout layout = {
              .dtype = dtype, .shape = shape, .strides = strides_of(shape)};
          const LibraryCall scan = {.kind = Kind::scan,
                                    .operands = {layout, layout},
                                    .axis = axis,
                                    .combine = Combine::log_add_exp,
                                    .threads = 2};
          std::vector<double> x = random_memory(numbers, layout, -INFINITY);
          std::vector<double> results[2] = {x, x};
          for (const auto device : {Device::Kind::cpu, Device::Kind::reference}) {
            std::vector<double>& result = results[device == Device::Kind::reference ? 1 : 0];
            const Call call = {
                .buffers = {x.data(), result.data()}, .sizes = {}, .strides = {}, .threads = 2};
            call.run(scan, device);
          }
          CHECK(same(dtype, results[0], results[1]));
        }
      }
    }
  }
}

TEST_CASE("short lines are sorted and added up as plain loops do", "[routines]") {
  RandomNumbers numbers(11);
  for (const DType dtype : {u8, i16, i32, u64, f16, f32, f64}) {
    for (const int64_t length : {1, 2, 3, 7, 16, 17, 40, 63, 64, 65, 127, 128, 129}) {
      for (const int64_t lines : {3, 4, 5, 32, 71}) {
        for (const int axis : {0, 1}) {
          CAPTURE(name_of(dtype), length, lines, axis);
          const Shape shape = axis == 0 ? Shape{length, lines} : Shape{lines, length};
          const OperandLayout layout = random_layout(numbers, dtype, shape);
          const OperandLayout result = {
              .dtype = dtype, .shape = shape, .strides = strides_of(shape)};
          const std::vector<double> x = random_memory(numbers, layout);
          const auto check = [&](const LibraryCall& routine) {
            std::vector<double> results[2];
            for (const auto device : {Device::Kind::cpu, Device::Kind::reference}) {
              std::vector<double> from = x;
              std::vector<double>& to = results[device == Device::Kind::reference ? 1 : 0];
              to.resize(static_cast<std::size_t>(length * lines));
              const Call call = {
                  .buffers = {from.data(), to.data()}, .sizes = {}, .strides = {}, .threads = 2};
              call.run(routine, device);
            }
            CHECK(same(routine.operands[1].dtype, results[0], results[1]));
          };
          for (const bool is_descending : {false, true}) {
            check({.kind = Kind::sort,
                   .operands = {layout, result},
                   .axis = axis,
                   .is_descending = is_descending,
                   .threads = 2});
            OperandLayout places = result;
            places.dtype = i64;
            check({.kind = Kind::argsort,
                   .operands = {layout, places},
                   .axis = axis,
                   .is_descending = is_descending,
                   .threads = 2});
          }
          for (const Combine combine : {Combine::add, Combine::maximum})
            check({.kind = Kind::scan,
                   .operands = {layout, result},
                   .axis = axis,
                   .combine = combine,
                   .threads = 2});
        }
      }
    }
  }
}
