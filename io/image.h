// Images in PNG and JPEG files.
#pragma once

#include "core/tensor.h"

#include <cstdint>
#include <filesystem>
#include <source_location>

#pragma GCC visibility push(default)

namespace nitinol {

struct ImageOptions {
  /// 1: grey, 2: grey and alpha, 3: red, green and blue, 4: these and alpha; 0: as the file has it.
  int64_t channels = 0;
  /// Height times width of the largest image that is read.
  int64_t most_pixels = int64_t{1} << 28;
};

/// Reads a PNG or JPEG file, which its first bytes tell from another, as u8 [height, width,
/// channels], each from 0 to 255. Alpha that is not asked for is left out, not mixed in; alpha that
/// the file does not have is 255. Grey of colours is 0.299 R + 0.587 G + 0.114 B, of a JPEG file
/// its own. 16 bits are reduced to 8, palettes become colours, and PNG files that say that their
/// gamma is not sRGB's are converted to it. A camera's orientation (EXIF) is not applied.
///
/// The file is not trusted: whatever its bytes are, the result is an image or an Error. Nothing is
/// allocated for an image that is larger than `most_pixels` or than the file's bytes can give.
/// Throws Error(io) if the file cannot be read, is neither PNG nor JPEG, or is damaged: also if the
/// decoder could go on, as with a JPEG file that was cut short; Error(unsupported) for JPEG files
/// of four colours (CMYK) and in a library that was built without images (NITINOL_IMAGES),
/// Error(value) for other channels.
[[nodiscard]] Tensor load_image(const std::filesystem::path& path, const ImageOptions& options = {},
                                std::source_location place = std::source_location::current());

/// Writes a PNG file, whatever its name is, of u8 [height, width] or [height, width, 1 to 4
/// channels], with at least one pixel. load_image() reads it back exactly. The file appears
/// complete or not at all. Inside a compiled function this ends the trace, like item().
/// Throws Error(io) if the file cannot be written, Error(dtype), Error(shape), Error(value) if it
/// is called .jpg or .jpeg, and Error(unsupported) in a library that was built without images.
void save_image(const std::filesystem::path& path, const Tensor& image,
                std::source_location place = std::source_location::current());

}  // namespace nitinol

#pragma GCC visibility pop
