// Copies between any strides: materialised views, padding, filling with a number. Where input and
// output are contiguous in different directions, the copy is a transpose.

#include "backends/host/convert.h"
#include "backends/host/copy_apart.h"
#include "backends/host/prebuilt_stages.h"
#include "backends/host/transpose.h"
#include "core/copy_bytes.h"
#include "core/kernel.h"
#include "core/stream.h"
#include "core/word.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace nitinol::host {
namespace {

/// A two-dimensional piece: addresses and steps in bytes.
struct Rectangle {
  const char* from;
  char* to;
  int64_t from_outer, from_inner, to_outer, to_inner;
  int64_t rows, columns;
  bool is_streamed;  ///< TransposedBlock
};

/// Results of so many bytes are turned around the caches: they are not in the near ones afterwards
/// anyway. 16 times [64, 3136] floats, 13 MB, take 0.8 ms then instead of 2.4 to 3.5, of [64, 3136]
/// alone as long as else (AMD Zen 4, November 2026).
constexpr double streamed_bytes = 8 << 20;

/// Elements that are repeated so often are written by a few instructions each; others by vectors.
constexpr int64_t most_repeats = 8;

// By value, which no store through a char* may change: else its numbers are read for each element.
template <class T>
void copy_strided(Rectangle piece) {
  for (int64_t i = 0; i < piece.rows; ++i) {
    const char* from = piece.from + i * piece.from_outer;
    char* to = piece.to + i * piece.to_outer;
    for (int64_t j = 0; j < piece.columns; ++j) {
      T value;
      std::memcpy(&value, from + j * piece.from_inner, sizeof(T));
      std::memcpy(to + j * piece.to_inner, &value, sizeof(T));
    }
  }
}

/// Each `columns` times.
template <class T>
void repeat_elements(const Rectangle& piece) {
  constexpr int64_t at_once = 512;
  std::array<T, at_once> elements;
  const Gather gather = gather_of(dtype_of<T>());
  for (int64_t i = 0; i < piece.rows; i += at_once) {
    const int64_t n = std::min(at_once, piece.rows - i);
    gather(piece.from + i * piece.from_outer, piece.from_outer, elements.data(), n);
    spread(reinterpret_cast<const char*>(elements.data()), sizeof(T), n, piece.columns,
           piece.to + i * piece.to_outer);
  }
}

template <class T>
void copy_piece(const Rectangle& piece) {
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  const bool is_contiguous = piece.from_inner == size && piece.to_inner == size;
  if (is_contiguous && piece.rows > 1 && piece.columns > 0 &&
      piece.columns * size <= longest_piece) {
    copy_apart_of(piece.columns * size)(piece.from, piece.from_outer, piece.to, piece.to_outer,
                                        piece.rows);
  } else if (is_contiguous) {
    for (int64_t i = 0; i < piece.rows; ++i) {
      copy_bytes(piece.to + i * piece.to_outer, piece.from + i * piece.from_outer,
                 static_cast<std::size_t>(piece.columns * size));
    }
  } else if (piece.from_outer == size && piece.from_inner != 0 && piece.to_inner == size &&
             piece.rows > 1) {
    transpose({.from = piece.from,
               .from_step = piece.from_inner,
               .to = piece.to,
               .to_step = piece.to_outer,
               .rows = piece.rows,
               .columns = piece.columns,
               .is_streamed = piece.is_streamed},
              sizeof(T));
    if (piece.is_streamed) finish_streams();
  } else if (piece.from_inner == 0 && piece.to_inner == size &&
             piece.to_outer == piece.columns * size && piece.columns <= most_repeats) {
    repeat_elements<T>(piece);
  } else if (piece.to_inner == size) {
    const Gather gather = gather_of(dtype_of<T>());  // one number, and some steps, by vectors
    for (int64_t i = 0; i < piece.rows; ++i) {
      gather(piece.from + i * piece.from_outer, piece.from_inner, piece.to + i * piece.to_outer,
             piece.columns);
    }
  } else {
    copy_strided<T>(piece);
  }
}

using CopyPiece = void (*)(const Rectangle&);

CopyPiece copy_piece_of(DType dtype) {
  return with_word(size_of(dtype),
                   [](auto word) -> CopyPiece { return copy_piece<decltype(word)>; });
}

class PrebuiltCopy final : public Executable {
 public:
  explicit PrebuiltCopy(const Kernel& kernel)
      : kernel_(kernel),
        source_(kernel.stages[0].sources[0].index),
        result_(kernel.stages[0].sinks[0].index),
        is_number_(kernel.operands[source_].role == Role::scalar),
        copy_(copy_piece_of(kernel.operands[result_].dtype)),
        near_({.function = run<false>, .self = this}),
        streamed_({.function = run<true>, .self = this}) {}

  void launch(const Launch& launch) const override {
    auto bytes = static_cast<double>(size_of(kernel_.operands[result_].dtype));
    for (const int64_t size : launch.sizes) bytes *= static_cast<double>(size);
    run_loop_nest(kernel_, bytes < streamed_bytes ? &near_ : &streamed_, launch);
  }

 private:
  template <bool is_streamed>
  static void run(const void* self, const StageCall& call) {
    static_cast<const PrebuiltCopy*>(self)->copy(call, is_streamed);
  }

  void copy(const StageCall& call, bool is_streamed) const {
    copy_({.from = is_number_ ? reinterpret_cast<const char*>(&call.scalars[source_])
                              : call.pointers[source_],
           .to = call.pointers[result_],
           .from_outer = is_number_ ? 0 : call.outer[source_],
           .from_inner = is_number_ ? 0 : call.inner[source_],
           .to_outer = call.outer[result_],
           .to_inner = call.inner[result_],
           .rows = call.outer_size,
           .columns = call.inner_size,
           .is_streamed = is_streamed});
  }

  const Kernel kernel_;
  const std::size_t source_, result_;
  const bool is_number_;
  const CopyPiece copy_;
  const StageCode near_, streamed_;
};

}  // namespace

std::unique_ptr<Executable> make_prebuilt_copy(const Kernel& kernel) {
  if (kernel.stages.size() != 1) return nullptr;
  const Stage& stage = kernel.stages[0];
  if (stage.sources.size() != 1 || stage.sinks.size() != 1 ||
      stage.sources[0].kind != Source::Kind::operand || stage.sinks[0].kind != Sink::Kind::store) {
    return nullptr;
  }
  const Operand& from = kernel.operands[stage.sources[0].index];
  const Operand& to = kernel.operands[stage.sinks[0].index];
  const bool is_value = from.role == Role::input || from.role == Role::scalar;
  if (!is_value || from.dtype != to.dtype || !is_identity(stage, from.dtype)) return nullptr;
  return std::make_unique<PrebuiltCopy>(kernel);
}

}  // namespace nitinol::host
