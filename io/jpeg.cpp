// TurboJPEG goes on after damage and makes the rest of the image grey. It says so, and then the
// image is refused: who trains on it would not notice.
#include "core/error.h"
#include "io/image_codecs.h"

#include <fmt/format.h>

#include <memory>
#include <turbojpeg.h>
#include <type_traits>

namespace nitinol::io {
namespace {

struct DestroyDecoder {
  void operator()(void* decoder) const { tjDestroy(decoder); }
};
using Decoder = std::unique_ptr<std::remove_pointer_t<tjhandle>, DestroyDecoder>;

Decoder new_decoder() {
  Decoder decoder(tjInitDecompress());
  if (decoder == nullptr) {
    throw Error(ErrorKind::internal,
                {.where = "load_image", .what = fmt::format("TurboJPEG: {}", tjGetErrorStr())});
  }
  return decoder;
}

const unsigned char* start_of(const ImageFile& file) {
  return reinterpret_cast<const unsigned char*>(file.bytes.data());
}

}  // namespace

ImageSize jpeg_size(const ImageFile& file) {
  const Decoder decoder = new_decoder();
  int width = 0, height = 0, sampling = 0, colours = 0;
  if (tjDecompressHeader3(decoder.get(), start_of(file), file.bytes.size(), &width, &height,
                          &sampling, &colours) != 0) {
    fail_undecoded(file, tjGetErrorStr2(decoder.get()));
  }
  if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
    throw Error(ErrorKind::unsupported,
                {.where = "load_image",
                 .what = fmt::format("\"{}\" has the four colours of print (CMYK)", file.name),
                 .expected = "grey, or red, green and blue",
                 .fix = "Convert it, which takes the printer's profile."});
  }
  const ImageSize size = {
      .height = height, .width = width, .channels = colours == TJCS_GRAY ? 1 : 3};
  // Of each block of 8 x 8 pixels there is a bit at least: the code of its mean.
  constexpr int64_t most_pixels_of_byte = 8 * 64;
  if (size.height * size.width / most_pixels_of_byte > static_cast<int64_t>(file.bytes.size()))
    fail_short_image(file, size);
  return size;
}

void read_jpeg(const ImageFile& file, const ImageSize& size, std::span<std::byte> to) {
  const Decoder decoder = new_decoder();
  // A file can make a decoder work for minutes by thousands of passes over an image.
  const int flags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
  if (tjDecompress2(decoder.get(), start_of(file), file.bytes.size(),
                    reinterpret_cast<unsigned char*>(to.data()), static_cast<int>(size.width), 0,
                    static_cast<int>(size.height), size.channels == 1 ? TJPF_GRAY : TJPF_RGB,
                    flags) != 0) {
    fail_undecoded(file, tjGetErrorStr2(decoder.get()));
  }
}

}  // namespace nitinol::io
