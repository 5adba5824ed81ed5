// What stands for io/png.cpp and io/jpeg.cpp in a library that was built without images.
#include "core/error.h"
#include "io/image_codecs.h"

namespace nitinol::io {
namespace {

[[noreturn]] void fail_without_images(const char* where) {
  throw Error(ErrorKind::unsupported,
              {.where = where,
               .what = "the library was built without images",
               .fix = "Configure with -DNITINOL_IMAGES=ON, for which Debian has libpng-dev and "
                      "libturbojpeg0-dev."});
}

}  // namespace

ImageSize png_size(const ImageFile&) {
  fail_without_images("load_image");
}
void read_png(const ImageFile&, const ImageSize&, std::span<std::byte>) {
  fail_without_images("load_image");
}
std::vector<std::byte> png_of(const ImageSize&, std::span<const std::byte>, const std::string&) {
  fail_without_images("save_image");
}
ImageSize jpeg_size(const ImageFile&) {
  fail_without_images("load_image");
}
void read_jpeg(const ImageFile&, const ImageSize&, std::span<std::byte>) {
  fail_without_images("load_image");
}

}  // namespace nitinol::io
