// libcublasLt.so.13 by plain loops: column-major, batches at regular distances, sums in double.
#include "tests/cuda/fake/calls.h"
#include "tests/cuda/fake/fake.h"
#include "tests/cuda/fake/library.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

FAKE_CALLS;

using namespace nitinol::test;

namespace {

struct Handle : Counted {};
struct Preference : Counted {
  uint64_t workspace_bytes = 0;
  uint32_t reduction_schemes = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};
struct Description : Counted {
  Description(int compute, int scale) : compute(compute), scale(scale) {}
  int compute, scale;
  int32_t transposes_a = 0, transposes_b = 0;
};
struct Layout : Counted {
  Layout(int type, uint64_t rows, uint64_t columns, int64_t leading)
      : type(type), rows(rows), columns(columns), leading(leading) {}
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t count = 1;
  int64_t stride = 0;
};
struct Algorithm {
  uint64_t magic, alignment, reduction_schemes, unused[5];
};
constexpr uint64_t algorithm_magic = 0x616c676f72697468;
struct Choice {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

/// Bytes from a matrix's first element to its last one's end.
std::size_t extent(const Layout& layout) {
  const auto elements = static_cast<int64_t>(layout.rows) +
                        static_cast<int64_t>(layout.columns - 1) * layout.leading +
                        (layout.count - 1) * layout.stride;
  return static_cast<std::size_t>(elements) * bytes_of(layout.type);
}

/// A factor beside the matrices, which the library reads at the call.
double factor(const void* from, int scale) {
  return scale == type_f64 ? *static_cast<const double*>(from) : *static_cast<const float*>(from);
}

struct Work {
  Description description;
  double alpha, beta;
  const void *a, *b, *c;
  void* d;
  Layout la, lb, lc, ld;
  void* workspace;
  std::size_t workspace_bytes;
  bool is_wrong;  ///< the parts of a sum met in 16 bits
};

void run(void* data) {
  const auto* const work = static_cast<Work*>(data);
  const auto& [description, alpha, beta, a, b, c, d, la, lb, lc, ld, workspace, workspace_bytes,
               is_wrong] = *work;
  constexpr std::size_t most_poison = 4096;
  std::memset(workspace, 0xa5, std::min(workspace_bytes, most_poison));  // the call's own to use
  const auto depth = static_cast<int64_t>(description.transposes_a != 0 ? la.rows : la.columns);
  for (int64_t batch = 0; batch < ld.count; ++batch) {
    for (int64_t column = 0; column < static_cast<int64_t>(ld.columns); ++column) {
      for (int64_t row = 0; row < static_cast<int64_t>(ld.rows); ++row) {
        double sum = is_wrong ? std::numeric_limits<double>::quiet_NaN() : 0;
        for (int64_t k = 0; k < depth; ++k) {
          const int64_t at =
              description.transposes_a != 0 ? k + row * la.leading : row + k * la.leading;
          const int64_t bt =
              description.transposes_b != 0 ? column + k * lb.leading : k + column * lb.leading;
          sum += value_of(a, la.type, batch * la.stride + at) *
                 value_of(b, lb.type, batch * lb.stride + bt);
        }
        sum *= alpha;
        if (beta != 0) {
          const int64_t ct = batch * lc.stride + row + column * lc.leading;
          sum += beta * value_of(c, lc.type, ct);
        }
        store(d, ld.type, batch * ld.stride + row + column * ld.leading, sum);
      }
    }
  }
}

void end(void* data) {
  delete static_cast<Work*>(data);
}

bool is_held(const void* at, const Layout& layout, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(at) % alignment == 0 &&
         fake_driver().holds(at, extent(layout));
}

}  // namespace

extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
constexpr int not_initialized = 1, invalid_value = 7, execution_failed = 13, not_supported = 15;
std::size_t cublasLtGetVersion() {
  return 130000;
}
int cublasLtCreate(Handle** made) {
  FAKE_ENTRY;
  if (fake_driver().enqueue == nullptr) return not_initialized;
  *made = new Handle;
  return 0;
}
int cublasLtDestroy(Handle* handle) {
  FAKE_ENTRY;
  delete handle;
  return 0;
}
int cublasLtMatmulDescCreate(Description** made, int compute, int scale) {
  FAKE_ENTRY;
  *made = new Description(compute, scale);
  return 0;
}
int cublasLtMatmulDescDestroy(Description* description) {
  FAKE_ENTRY;
  delete description;
  return 0;
}
int cublasLtMatmulDescSetAttribute(Description* description, int attribute, const void* value,
                                   std::size_t bytes) {
  FAKE_ENTRY;
  if (bytes != sizeof(int32_t) || (attribute != 3 && attribute != 4)) return invalid_value;
  std::memcpy(attribute == 3 ? &description->transposes_a : &description->transposes_b, value,
              bytes);
  return 0;
}
int cublasLtMatrixLayoutCreate(Layout** made, int type, uint64_t rows, uint64_t columns,
                               int64_t leading) {
  FAKE_ENTRY;
  if (rows == 0 || columns == 0 || leading < static_cast<int64_t>(rows)) return invalid_value;
  *made = new Layout(type, rows, columns, leading);
  return 0;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) {
  FAKE_ENTRY;
  delete layout;
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value,
                                     std::size_t bytes) {
  FAKE_ENTRY;
  if (attribute == 5 && bytes == sizeof layout->count) {
    std::memcpy(&layout->count, value, bytes);
  } else if (attribute == 6 && bytes == sizeof layout->stride) {
    std::memcpy(&layout->stride, value, bytes);
  } else {
    return invalid_value;
  }
  return 0;
}
int cublasLtMatmulPreferenceCreate(Preference** made) {
  FAKE_ENTRY;
  *made = new Preference;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  FAKE_ENTRY;
  delete preference;
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value,
                                         std::size_t bytes) {
  FAKE_ENTRY;
  if (attribute == 1 && bytes == sizeof preference->workspace_bytes) {
    std::memcpy(&preference->workspace_bytes, value, bytes);
  } else if (attribute == 3 && bytes == sizeof preference->reduction_schemes) {
    std::memcpy(&preference->reduction_schemes, value, bytes);
  } else if (attribute >= 5 && attribute < 9 && bytes == sizeof(uint32_t)) {
    std::memcpy(&preference->alignments[attribute - 5], value, bytes);
  } else {
    return invalid_value;
  }
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(Handle*, const Description* description, const Layout* a,
                                   const Layout* b, const Layout*, const Layout* d,
                                   const Preference* preference, int, Choice* choice, int* count) {
  FAKE_ENTRY;
  const bool ta = description->transposes_a != 0, tb = description->transposes_b != 0;
  if ((ta ? a->columns : a->rows) != d->rows || (tb ? b->rows : b->columns) != d->columns ||
      (ta ? a->rows : a->columns) != (tb ? b->columns : b->rows))
    return invalid_value;
  const bool is_double = d->type == type_f64;
  if (description->compute != (is_double ? 70 : 68) ||
      description->scale != (is_double ? type_f64 : type_f32))
    return not_supported;
  *choice = {};
  *count = 0;
  // As the library may: another algorithm for vectors it could load, or none.
  constexpr uint64_t refused_rows = 13, most_bytes = 16, least_bytes = 4;
  const uint64_t alignment = *std::ranges::min_element(preference->alignments);
  if (alignment > most_bytes) return invalid_value;
  if (d->rows == refused_rows) return not_supported;
  if (alignment < least_bytes) return 0;
  choice->algorithm.magic = algorithm_magic;
  choice->algorithm.alignment = alignment;
  choice->algorithm.reduction_schemes = preference->reduction_schemes;
  choice->workspace_bytes = preference->workspace_bytes;
  *count = 1;
  return 0;
}
int cublasLtMatmulAlgoCheck(Handle*, const Description*, const Layout* a, const Layout* b,
                            const Layout*, const Layout* d, const Algorithm* algorithm,
                            Choice* choice) {
  FAKE_ENTRY;
  if (algorithm->magic != algorithm_magic) return invalid_value;
  // As the library may: what takes two elements at once does not take every distance of columns.
  for (const Layout* layout : {a, b, d}) {
    if (layout->leading % 2 != 0 && layout->leading != static_cast<int64_t>(layout->rows))
      return not_supported;
  }
  *choice = {};
  choice->algorithm = *algorithm;
  choice->workspace_bytes = 0;
  return 0;
}
int cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, int attribute, void* value,
                                         std::size_t bytes, std::size_t* written) {
  FAKE_ENTRY;
  if (algorithm->magic != algorithm_magic || bytes != sizeof(int32_t)) return invalid_value;
  const int32_t setting = attribute == 0 ? 21 : attribute == 2 ? 4 : 0;
  std::memcpy(value, &setting, bytes);
  *written = bytes;
  return 0;
}
int cublasLtMatmul(Handle* handle, const Description* description, const void* alpha, const void* a,
                   const Layout* la, const void* b, const Layout* lb, const void* beta,
                   const void* c, const Layout* lc, void* d, const Layout* ld,
                   const Algorithm* algorithm, void* workspace, std::size_t workspace_bytes,
                   void* stream) {
  FAKE_ENTRY;
  if (handle == nullptr || algorithm == nullptr || algorithm->magic != algorithm_magic)
    return invalid_value;
  const uint64_t alignment = algorithm->alignment;
  if (!is_held(a, *la, alignment) || !is_held(b, *lb, alignment) || !is_held(d, *ld, alignment) ||
      !fake_driver().holds(workspace, workspace_bytes))
    return invalid_value;
  const int scale = description->scale;
  constexpr uint64_t compute_type = 2;
  const bool is_wrong = bytes_of(ld->type) == 2 && algorithm->reduction_schemes != compute_type;
  auto* const work = new Work{*description,
                              factor(alpha, scale),
                              factor(beta, scale),
                              a,
                              b,
                              c,
                              d,
                              *la,
                              *lb,
                              *lc,
                              *ld,
                              workspace,
                              workspace_bytes,
                              is_wrong};
  return fake_driver().enqueue_again(stream, run, work, end) == 0 ? 0 : execution_failed;
}
uint64_t fake_live() {
  return live_objects();
}
// NOLINTEND(readability-identifier-naming)
}
