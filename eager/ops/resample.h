// Images and sequences of another size: [batch, channels, axes that change size...].
//
// All are compositions of movement and indexing; float16 and bfloat16 are computed in float32 and
// rounded at the end. Axes and options are PyTorch's.
#pragma once

#include "core/tensor.h"

#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol {

/// How numbers between those of an image are found.
enum class Interpolation : uint8_t {
  nearest,  ///< the element whose share of the axis the place is in
  linear,   ///< along each axis between two
  cubic,    ///< along each axis a polynomial of four (R. Keys, 1981; a = -0.75)
  area,     ///< the mean of what a new element covers: adaptive_avg_pool()
};
struct InterpolateOptions {
  Interpolation mode = Interpolation::nearest;
  /// The middles of the first and last elements stay where they are, else the ends of the axis: for
  /// `linear` and `cubic`.
  bool aligns_corners = false;
};
/// x, enlarged or reduced to `size` along its last axes, one number for each.
/// Throws Error(shape) for sizes below 1, for empty axes and unless the first two axes are others,
/// Error(value) for corners that the mode cannot align, Error(dtype) unless x is floating.
[[nodiscard]] Tensor interpolate(const Tensor& x, const Dims& size,
                                 const InterpolateOptions& options = {});

/// Means of windows that together cover the last axes, `size` of them along each: window i goes
/// from floor(i n / size) to ceil((i + 1) n / size). Throws Error(shape) as interpolate(),
/// Error(dtype) unless x is floating.
[[nodiscard]] Tensor adaptive_avg_pool(const Tensor& x, const Dims& size);
/// The largest numbers of these windows. Throws likewise.
[[nodiscard]] Tensor adaptive_max_pool(const Tensor& x, const Dims& size);

/// Channels become pixels (W. Shi et al., arXiv:1609.05158): [n, c * factor^2, h, w] to
/// [n, c, h * factor, w * factor]. Throws Error(shape) for other axes or channels.
[[nodiscard]] Tensor pixel_shuffle(const Tensor& x, Integer factor);
/// The opposite. Throws Error(shape) unless the factor divides both sizes.
[[nodiscard]] Tensor pixel_unshuffle(const Tensor& x, Integer factor);

/// What stands around an image that is looked at beyond its ends.
enum class Border : uint8_t {
  zeros,
  edge,        ///< the nearest element
  reflection,  ///< mirrored at the ends
};
struct GridSampleOptions {
  Interpolation mode = Interpolation::linear;  ///< or nearest, or cubic
  Border border = Border::zeros;
  /// -1 and 1 are the middles of the first and last elements, else the ends of the axis.
  bool aligns_corners = false;
};
/// Images x [n, c, h, w] looked at where `grid` [n, oh, ow, 2] says, which holds columns and rows
/// between -1 and 1 (M. Jaderberg et al., arXiv:1506.02025): [n, c, oh, ow].
/// Throws Error(shape) for other shapes, Error(value) for other modes.
[[nodiscard]] Tensor grid_sample(const Tensor& x, const Tensor& grid,
                                 const GridSampleOptions& options = {});

struct UnfoldOptions {
  Pair stride = 1;
  Pair padding = 0;  ///< rows and columns of zeros on both sides
  Pair dilation = 1;
};
/// The windows that a convolution sees, as columns: images [n, c, h, w] give
/// [n, c * kernel elements, windows]. Throws Error(shape) if no window fits.
[[nodiscard]] Tensor unfold(const Tensor& x, Pair kernel, const UnfoldOptions& options = {});
/// Sums of columns where their windows lie in an image of `size`: the gradient of unfold().
/// Throws Error(shape) unless the columns are those of such an image.
[[nodiscard]] Tensor fold(const Tensor& columns, Pair size, Pair kernel,
                          const UnfoldOptions& options = {});

}  // namespace nitinol

#pragma GCC visibility pop
