// libpng's simplified interface: it returns after an error, where the other one would jump.
#include "core/error.h"
#include "io/image_codecs.h"
#include "io/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <png.h>

namespace nitinol::io {
namespace {

/// libpng's memory for an image.
class PngImage {
 public:
  PngImage() { image_.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  /// Reads the header.
  void begin(const ImageFile& file) {
    if (png_image_begin_read_from_memory(&image_, file.bytes.data(), file.bytes.size()) == 0)
      fail_undecoded(file, image_.message);
    // Else 16 bits would be taken for brightness, not for what eyes see.
    image_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  }
  png_image* operator->() { return &image_; }
  png_image* get() { return &image_; }

 private:
  png_image image_ = {};
};

uint32_t png_format_of(int64_t channels) {
  constexpr uint32_t formats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  return formats[channels - 1];
}

/// Bits of a pixel in the file: of its header, which stands where libpng has found it.
int64_t bits_of_pixel(const ImageFile& file) {
  const auto depth = std::to_integer<int64_t>(file.bytes[24]);
  constexpr int64_t channels[] = {1, 1, 3, 1, 2, 1, 4};  // of type 0, 2, 3 (a palette), 4, 6
  const auto type = std::to_integer<std::size_t>(file.bytes[25]);
  return depth * channels[std::min<std::size_t>(type, 6)];
}

}  // namespace

ImageSize png_size(const ImageFile& file) {
  PngImage image;
  image.begin(file);
  const bool has_colour = (image->format & PNG_FORMAT_FLAG_COLOR) != 0;
  const bool has_alpha = (image->format & PNG_FORMAT_FLAG_ALPHA) != 0;
  const ImageSize size = {.height = image->height,
                          .width = image->width,
                          .channels = (has_colour ? 3 : 1) + (has_alpha ? 1 : 0)};
  // Each row of pixels comes after a byte, and all of them are deflated.
  const int64_t row = 1 + (size.width * bits_of_pixel(file) + 7) / 8;
  if (row * size.height / most_inflated > static_cast<int64_t>(file.bytes.size()))
    fail_short_image(file, size);
  return size;
}

void read_png(const ImageFile& file, const ImageSize& size, std::span<std::byte> to) {
  PngImage image;
  image.begin(file);
  image->format = png_format_of(size.channels);
  NITINOL_ASSERT(image->height == size.height && image->width == size.width &&
                     static_cast<int64_t>(to.size()) == size.height * size.width * size.channels,
                 "the size is that of this file");
  if (png_image_finish_read(image.get(), nullptr, to.data(), 0, nullptr) == 0)
    fail_undecoded(file, image->message);
}

std::vector<std::byte> png_of(const ImageSize& size, std::span<const std::byte> pixels,
                              const std::string& name) {
  PngImage image;
  image->width = static_cast<uint32_t>(size.width);
  image->height = static_cast<uint32_t>(size.height);
  image->format = png_format_of(size.channels);
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(*image.get());
  std::vector<std::byte> file(bytes);
  if (png_image_write_to_memory(image.get(), file.data(), &bytes, 0, pixels.data(), 0, nullptr) ==
      0) {
    throw Error(ErrorKind::io,
                {.where = "save_image",
                 .what = fmt::format("\"{}\" cannot be written: {}", name, image->message)});
  }
  file.resize(bytes);
  return file;
}

}  // namespace nitinol::io
