// oneDNN's primitive reads b as it lies, row by row of a block of columns. That is slow where rows
// lie whole pages apart, unless each is used often; if n is a power of two it copies b before,
// which costs as much as it gains where there are few rows of a. dnnl_sgemm always copies both, in
// blocks. It is slow where b lies by columns and a has few rows, and has code of its own for
// vectors.
//
// GFLOP/s, f32, AVX-512, by nitinol_matmul: primitive / gemm. Zen 5 measured in November 2026 with
// oneDNN 2.6.3, on 1 and on 2 threads; Sapphire Rapids (where known) on 2. T: an operand that lies
// by columns.
//
// | m x k x n        | Zen 5, 1  | Zen 5, 2  | Sapphire Rapids | here      |
// |------------------|-----------|-----------|-----------------|-----------|
// | 128x768x3072     | 184 / 199 | 359 / 413 |  96 / 328       | gemm      |
// | 512x768x3072     | 196 / 216 | 379 / 422 | 175 / 381       | gemm      |
// | 768x512x3072 TN  | 188 / 222 | 377 / 435 | 138 / 374       | gemm      |
// | 32x256x1024      | 175 / 205 | 315 / 361 | 263 / 323       | gemm      |
// | 32x1024x256 NT   | 173 / 113 | 305 /  59 | 261 / 165       | primitive |
// | 1024x1024x1024   | 208 / 226 | 386 / 428 | 338 / 274       | primitive |
// | 512x768x2304     | 213 / 213 | 438 / 427 |                 | gemm      |
// | 256x1600x1024 TN | 193 / 212 | 352 / 419 |                 | gemm      |
// | 256x32x1024 TN   | 224 / 220 | 404 / 404 |                 | primitive |
// | 64x128x1024      | 211 / 205 | 372 / 374 |                 | primitive |
// | 512x3072x768     | 170 / 208 | 374 / 428 |                 | primitive |
// | 512x768x768      | 202 / 205 | 467 / 459 |                 | primitive |
// | 512x3072x768 NT  | 203 / 197 | 434 / 311 |                 | primitive |
// | 4x1024x1024      |  61 / 112 | 118 / 171 |                 | gemm      |
// | 4x1024x1024 NT   |  63 / 101 | 115 / 149 |                 | gemm      |
// | 1x1024x1024      |  19 /  47 |  27 /  71 |                 | gemm      |
// | 1024x1024x1      |   8 /  50 |  15 /  87 |                 | gemm      |
//
// Where the makes differ (1024 cubed), or one is not known and the other gains little, the
// primitive stays. With AVX2 and less the primitive is a call of the same gemm.
//
// Packed: the primitive with b in a layout of its own choice; uses: after how many products of one
// b that has repaid the change of layout. Zen 5, 1 thread and 2. (Sapphire Rapids, 2 threads:
// 32x1024x256 NT 261 -> 370.)
//
// | m x k x n        | primitive | packed    | uses     |
// |------------------|-----------|-----------|----------|
// | 9x1024x1024 NT   | 120 / 215 | 226 / 425 | 6 / 6    |
// | 16x1024x256 NT   | 153 / 278 | 240 / 461 | 6 / 5    |
// | 32x64x64 NT      | 172 / 150 | 192 / 171 | 8 / 8    |
// | 32x1024x256 NT   | 186 / 343 | 232 / 458 | 7 / 5    |
// | 32x768x768 NT    | 187 / 354 | 230 / 444 | 5 / 5    |
// | 32x4096x1024 NT  | 151 / 320 | 176 / 402 | 10 / 7   |
// | 64x1024x256 NT   | 212 / 414 | 238 / 491 | 6 / 5    |
// | 128x1024x256 NT  | 227 / 439 | 241 / 484 | 7 / 5    |
// | 256x1024x256 NT  | 240 / 472 | 246 / 491 | 8 / 5    |
// | 32x256x256       | 233 / 429 | 232 / 431 | never    |
// | 32x768x768       | 227 / 400 | 229 / 448 | 40 / 6   |
// | 64x1600x128      | 245 / 442 | 248 / 468 | 15 / 7   |
//
// So where b lies by columns, from 12 uses on, and for rows of a up to 128: beyond there is little
// to gain. Where b lies by rows one thread gains nothing, but where the primitive copies b: then a
// packed one saves the copy. gemm, which is the faster there for few rows, adds in the order of the
// primitive only up to a depth of 384. Primitive / gemm / packed, by threads (Zen 4: here, November
// 2026; the others: docs/decisions/0015-matrix-products.md):
//
// | m x k x n      | Zen 4, 1        | Zen 4, 2        | Zen 5, 1        | Sapphire Rapids, 2 |
// |----------------|-----------------|-----------------|-----------------|--------------------|
// | 32x256x1024    |  97 / 107 / 112 | 180 / 203 / 209 | 175 / 205 / 216 | 263 / 323 / 360    |
// | 128x256x1024   |  99 / 106 / 103 | 208 / 212 / 220 |                 |                    |
// | 1600x128x1024  |  99 / 103 / 104 | 204 / 217 / 214 |                 |                    |
// | 1024x1024x1024 |  98 / 103 / 106 | 210 / 213 / 216 | 208 / 226 / 224 | 338 / 274 / 376    |

#include "backends/cpu/onednn/matmul_rule.h"

#include "core/isa.h"

#include <bit>

namespace nitinol::cpu {
namespace {

/// Whether the primitive copies b, which lies by rows, before it multiplies.
bool is_b_copied(int64_t n) {
  return n > 256 && std::has_single_bit(static_cast<uint64_t>(n));
}

}  // namespace

MatmulWay fastest_way(const MatmulDescription& product) {
  const bool is_one = product.sizes[2].size() == 2;
  if (!is_one || product.dtype != f32 || current_isa() != Isa::avx512) return MatmulWay::primitive;
  const int64_t m = product.sizes[2][0], n = product.sizes[2][1], k = product.sizes[0][1];
  const bool is_a_by_columns = product.strides[0][1] != 1;
  const bool is_b_by_columns = product.strides[1][1] != 1;
  const auto is_gemm_faster = [&] {
    if (m == 1 || n == 1) return m != n;
    if (is_b_by_columns) return m <= 8 && !is_a_by_columns;
    if (is_a_by_columns) return n >= 1024 && m >= 64 && k >= 256;
    if (is_b_copied(n)) return m <= 64 && 4 * m <= k;
    return n >= 1024 && m >= 8 && k >= 128;
  };
  return is_gemm_faster() ? MatmulWay::gemm : MatmulWay::primitive;
}

bool pays_to_pack(const MatmulDescription& product, std::size_t uses) {
  constexpr std::size_t fewest_uses = 12;
  const bool is_one = product.sizes[2].size() == 2;
  if (!is_one || product.dtype != f32 || current_isa() != Isa::avx512) return false;
  if (uses < fewest_uses) return false;
  const int64_t m = product.sizes[2][0], n = product.sizes[2][1], k = product.sizes[0][1];
  const bool is_primitive = fastest_way(product) == MatmulWay::primitive;
  if (product.strides[1][1] != 1) return m <= 128 && is_primitive;
  return product.strides[0][1] == 1 && is_b_copied(n) && m >= 16 && (is_primitive || k <= 384);
}

}  // namespace nitinol::cpu
