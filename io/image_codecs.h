// PNG and JPEG as their libraries read and write them: libpng and TurboJPEG. Where this library was
// built without them (NITINOL_IMAGES=OFF), all of these throw Error(unsupported)
// (missing/images.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace nitinol::io {

struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
};

/// The bytes of a file, and its name for messages.
struct ImageFile {
  std::span<const std::byte> bytes;
  std::string name;
};

/// What the file says, with the channels that it has. Throws Error(io) if it is damaged or too
/// short for an image of that size, Error(unsupported) for colours that are not read.
[[nodiscard]] ImageSize png_size(const ImageFile& file);
[[nodiscard]] ImageSize jpeg_size(const ImageFile& file);

/// Reads the pixels, row by row and without gaps. `size` is png_size(file).
void read_png(const ImageFile& file, const ImageSize& size, std::span<std::byte> to);
/// With size.channels 1 or 3, whatever the file has.
void read_jpeg(const ImageFile& file, const ImageSize& size, std::span<std::byte> to);

/// A PNG file of these pixels; `name` is for messages.
[[nodiscard]] std::vector<std::byte> png_of(const ImageSize& size,
                                            std::span<const std::byte> pixels,
                                            const std::string& name);

/// Throws the Error(io) for what cannot be decoded; `reason` is the decoder's.
[[noreturn]] void fail_undecoded(const ImageFile& file, const std::string& reason);
/// Throws the Error(io) for a file that is too short for an image of that size.
[[noreturn]] void fail_short_image(const ImageFile& file, const ImageSize& size);

}  // namespace nitinol::io
