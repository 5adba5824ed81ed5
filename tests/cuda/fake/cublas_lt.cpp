// libcublasLt.so.13 by plain loops: column-major, batches at regular distances, sums in double.
#include "tests/cuda/fake/fake.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>

namespace {

struct Description {
  int compute = 0, scale = 0;
  int32_t transposes_a = 0, transposes_b = 0;
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t count = 1;
  int64_t stride = 0;
};
struct Choice {
  uint64_t data[8];
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};
constexpr int type_f32 = 0, type_f64 = 1, type_f16 = 2, type_bf16 = 14;

double value_of(const void* from, int type, int64_t at) {
  switch (type) {
    case type_f32:
      return static_cast<const float*>(from)[at];
    case type_f64:
      return static_cast<const double*>(from)[at];
    case type_f16:
      return static_cast<double>(static_cast<const _Float16*>(from)[at]);
    default:
      return std::bit_cast<float>(static_cast<uint32_t>(static_cast<const uint16_t*>(from)[at])
                                  << 16);
  }
}

void store(void* to, int type, int64_t at, double value) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case type_f32:
      static_cast<float*>(to)[at] = single;
      return;
    case type_f64:
      static_cast<double*>(to)[at] = value;
      return;
    case type_f16:
      static_cast<_Float16*>(to)[at] = static_cast<_Float16>(single);
      return;
    default: {
      const auto bits = std::bit_cast<uint32_t>(single);
      const uint32_t rest = bits & 0xffff, kept = bits >> 16;
      static_cast<uint16_t*>(to)[at] = static_cast<uint16_t>(
          single != single ? 0x7fff : kept + (rest > 0x8000 || (rest == 0x8000 && (kept & 1))));
    }
  }
}

struct Work {
  Description description;
  const void *a, *b;
  void* d;
  Layout la, lb, ld;
};

void run(void* data) {
  const auto* const work = static_cast<Work*>(data);
  const auto& [description, a, b, d, la, lb, ld] = *work;
  const auto depth = static_cast<int64_t>(description.transposes_a != 0 ? la.rows : la.columns);
  for (int64_t batch = 0; batch < ld.count; ++batch) {
    for (int64_t column = 0; column < static_cast<int64_t>(ld.columns); ++column) {
      for (int64_t row = 0; row < static_cast<int64_t>(ld.rows); ++row) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          const int64_t at =
              description.transposes_a != 0 ? k + row * la.leading : row + k * la.leading;
          const int64_t bt =
              description.transposes_b != 0 ? column + k * lb.leading : k + column * lb.leading;
          sum += value_of(a, la.type, batch * la.stride + at) *
                 value_of(b, lb.type, batch * lb.stride + bt);
        }
        store(d, ld.type, batch * ld.stride + row + column * ld.leading, sum);
      }
    }
  }
  delete work;
}

}  // namespace

extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
constexpr int invalid_value = 7, not_supported = 15;
std::size_t cublasLtGetVersion() {
  return 130000;
}
int cublasLtCreate(void** handle) {
  *handle = new char;
  return 0;
}
int cublasLtDestroy(void* handle) {
  delete static_cast<char*>(handle);
  return 0;
}
int cublasLtMatmulDescCreate(Description** made, int compute, int scale) {
  *made = new Description{compute, scale};
  return 0;
}
int cublasLtMatmulDescDestroy(Description* description) {
  delete description;
  return 0;
}
int cublasLtMatmulDescSetAttribute(Description* description, int attribute, const void* value,
                                   std::size_t bytes) {
  if (bytes != sizeof(int32_t) || (attribute != 3 && attribute != 4)) return invalid_value;
  std::memcpy(attribute == 3 ? &description->transposes_a : &description->transposes_b, value,
              bytes);
  return 0;
}
int cublasLtMatrixLayoutCreate(Layout** made, int type, uint64_t rows, uint64_t columns,
                               int64_t leading) {
  if (leading < static_cast<int64_t>(rows)) return invalid_value;
  *made = new Layout{type, rows, columns, leading};
  return 0;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value,
                                     std::size_t bytes) {
  if (attribute == 5 && bytes == sizeof layout->count) {
    std::memcpy(&layout->count, value, bytes);
  } else if (attribute == 6 && bytes == sizeof layout->stride) {
    std::memcpy(&layout->stride, value, bytes);
  } else {
    return invalid_value;
  }
  return 0;
}
int cublasLtMatmulPreferenceCreate(void** made) {
  *made = new char;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<char*>(preference);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, std::size_t) {
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void*, const Description* description, const Layout* a,
                                   const Layout* b, const Layout*, const Layout* d, void*, int,
                                   Choice* choice, int* count) {
  const bool ta = description->transposes_a != 0, tb = description->transposes_b != 0;
  if ((ta ? a->columns : a->rows) != d->rows || (tb ? b->rows : b->columns) != d->columns ||
      (ta ? a->rows : a->columns) != (tb ? b->columns : b->rows))
    return invalid_value;
  const int compute = d->type == type_f64 ? 70 : 68;
  if (description->compute != compute) return not_supported;
  *choice = {};
  *count = 1;
  return 0;
}
int cublasLtMatmul(void*, const Description* description, const void*, const void* a,
                   const Layout* la, const void* b, const Layout* lb, const void*, const void*,
                   const Layout*, void* d, const Layout* ld, const void*, void*, std::size_t,
                   void* stream) {
  static const auto enqueue = [] {
    void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver == nullptr
               ? nullptr
               : reinterpret_cast<decltype(&fake_enqueue)>(::dlsym(driver, "fake_enqueue"));
  }();
  if (enqueue == nullptr) return 1;
  return enqueue(stream, run, new Work{*description, a, b, d, *la, *lb, *ld}) == 0 ? 0 : 14;
}
// NOLINTEND(readability-identifier-naming)
}
