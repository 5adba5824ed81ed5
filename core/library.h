// LibraryCall: the closed list of work that backends know by name rather than as scalar
// instructions.
#pragma once

#include "core/dtype.h"
#include "core/shape.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace nitinol {

enum class Combine : uint8_t;  // core/reduction.h
struct Launch;                 // core/launch.h
struct LibraryCall;

/// Shape, strides (in elements) and dtype of one operand, exactly as the call will get it.
struct OperandLayout {
  DType dtype = f32;
  Shape shape;
  Strides strides;
  friend bool operator==(const OperandLayout&, const OperandLayout&) = default;
};

/// How windows lie on images: vertically, then horizontally. An output pixel (i, j) sees the input
/// pixels (i * stride[0] - padding[0] + a * dilation[0], ...) for 0 <= a < kernel[0].
struct Windows {
  std::array<int64_t, 2> kernel = {1, 1};
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;  ///< of channels: those of a group see only each other
  friend bool operator==(const Windows&, const Windows&) = default;

  /// How many windows fit on `size` pixels along an axis (0 or 1); 0 if none does.
  [[nodiscard]] int64_t count(int axis, int64_t size) const;
  /// How many pixels along an axis the first `count` windows reach.
  [[nodiscard]] int64_t reach(int axis, int64_t count) const;
};

/// What processes that compute together do (dist/group.h): x goes out, y comes in.
struct Collective {
  enum class Kind : uint8_t {
    exchange,   ///< operands x[n, ...], y of its shape: x[r] goes to rank r, y[r] comes from it
    gather,     ///< operands x, y[n, ...]: x goes to all, y[r] comes from rank r
    broadcast,  ///< operands x, y of its shape: that of rank `partner`
    permute,    ///< operands x, y of its shape: x goes to the rank `partner` after this one
    reduce,     ///< operands x, y of its shape: the sum over ranks; their mean if `partner` is 1.
                ///< Of a group that shares memory (dist/add_rows.h)
  };
  Kind kind = Kind::exchange;
  int group = 0;
  int partner = 0;
  int64_t call = 0;  ///< the user's (dist/calls.h)
  Shape shape = {};  ///< of what the user gave it
  friend bool operator==(const Collective&, const Collective&) = default;
};

/// Work that is no backend's: on the host's memory, by the layouts of `call`. Must not be the
/// same function for calls that do other things.
using Routine = void (*)(const LibraryCall& call, const Launch& launch);

/// One call into a vendor library, or a prebuilt routine of the backend. The whole struct is its
/// key.
struct LibraryCall {
  enum class Kind : uint8_t {
    matmul,  ///< operands a[..., m, k], b[..., k, n] (batch dims broadcast by stride 0) -> c[...,
             ///< m, n]
    pack,    ///< operands of a matmul, of which it reads b and writes b in a layout that the
             ///< device chooses, of Backend::packed_bytes() bytes
    packed_matmul,  ///< operands of a matmul, with b as pack has written it
    scatter_add,    ///< operands values, indices i64 -> out[rows, ...]: each row added where its
                    ///< index says; checks -rows <= index < rows (status: index), negative ones
                    ///< count from the end
    scatter,  ///< operands x[rows, ...], values, indices i64 -> out of the shape of x: its rows
              ///< joined with each row of values where its index says, in their order, or
              ///< (replaces) the last one of these; checks and negative indices likewise. Where
              ///< memory is the host's, out may be x
    scatter_add_along,  ///< operands values, indices i64 of their shape -> out: each value added
                        ///< where its index says along `axis`; checks and negative indices likewise
    scan,  ///< operands x -> out of its shape: running sums along `axis`, or products, or
           ///< extremes, as `combine` says
    sort,  ///< operands x -> out of its shape: lines along `axis` in order; NaN counts as greater
           ///< than all numbers, and what compares equal keeps its order
    argsort,    ///< operands x -> positions i64: where along `axis` the elements of sort come from,
                ///< of as many as the result has
    search,     ///< operands sorted[n], x -> places i64 of its shape: how many elements of `sorted`
                ///< are before x (is_right: or equal to it)
    compress,   ///< operands x[n, ...], mask[n] -> out[rows, ...]: the first rows whose mask is
                ///< true, and zeros for those that there are not
    positions,  ///< operands mask[n] -> places i64 of as many: where it is true, then -1
    permutation,    ///< operands state i64[2], a key and a counter -> numbers i64[n]: 0 to n - 1 in
                    ///< the random order that core/permutation.h describes
    conv2d,         ///< operands x[n, h, w, c], weight[o, c / groups, kh, kw] -> y[n, oh, ow, o]
    conv2d_input,   ///< operands y, weight -> x: the gradient of conv2d for x
    conv2d_weight,  ///< operands x, y -> weight: the gradient of conv2d for the weight
    pack_filter,    ///< operands of a conv2d, of which it reads the weight and writes it in a
                    ///< layout that the device chooses, of Backend::packed_bytes() bytes
    packed_conv2d,  ///< operands of a conv2d, with the weight as pack_filter has written it
    window_max,     ///< operands x[n, h, w, c], values of its shape -> y[n, oh, ow, c]: the value
                    ///< where x is largest in the window, at the first of equal places
    window_max_input,  ///< operands x, y -> values: each y added where x is largest; 0 elsewhere
    routine,           ///< what `routine` does; only where memory is the host's
    collective,        ///< what the processes of a group do together (dist/collective.h)
  };
  Kind kind = Kind::matmul;
  std::vector<OperandLayout> operands;  ///< inputs, then the output or outputs
  Windows windows = {};                 ///< conv2d..., window_max...
  int axis = 0;                         ///< scatter_add_along, scan, sort, argsort, routine
  Combine combine{};         ///< scan: log_add_exp; it and scatter: add, multiply, maximum, minimum
  bool replaces = false;     ///< scatter
  bool only_checks = false;  ///< scatter: checks the indices, reads nothing else and stores nothing
  bool is_descending = false;  ///< sort, argsort
  bool is_right = false;       ///< search
  Routine routine = nullptr;   ///< routine
  Collective collective = {};  ///< collective
  int threads = 0;             ///< the thread count it was made for; results may depend on it
  friend bool operator==(const LibraryCall&, const LibraryCall&) = default;
};

[[nodiscard]] std::string_view name_of(LibraryCall::Kind kind);
/// Arithmetic operations of the call: two for each product of a matmul or a convolution, one for
/// each element that others combine; 0 of what only moves, or compares as often as it has to.
[[nodiscard]] double operations_of(const LibraryCall& call);

}  // namespace nitinol
