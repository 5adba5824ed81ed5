#include "io/image.h"

#include "core/error.h"
#include "core/host_access.h"
#include "core/interpreter.h"
#include "core/shape.h"
#include "eager/host_read.h"
#include "io/file.h"
#include "io/image_codecs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fcntl.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

namespace fs = std::filesystem;
using io::ImageFile;
using io::ImageSize;

[[noreturn]] void fail_image(ErrorKind kind, std::string what, std::string expected,
                             std::string got, std::string fix = {}) {
  throw Error(kind, {.where = "load_image",
                     .what = std::move(what),
                     .expected = std::move(expected),
                     .got = std::move(got),
                     .fix = std::move(fix)});
}

// ---- reading

enum class ImageFormat { png, jpeg };

/// What begins with these bytes, for messages.
std::string_view image_name_of(std::string_view start) {
  if (start.empty()) return "an empty file";
  if (start.starts_with("GIF8")) return "a GIF file";
  if (start.starts_with("RIFF")) return "a WebP file, or another RIFF file";
  if (start.starts_with("BM")) return "a BMP file";
  if (start.starts_with("II*") || start.starts_with("MM")) return "a TIFF file";
  return "other bytes at its start";
}

ImageFormat format_of(std::string_view start, const std::string& name) {
  if (start.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::png;
  if (start.starts_with("\xFF\xD8\xFF")) return ImageFormat::jpeg;
  fail_image(ErrorKind::io, fmt::format("\"{}\" is neither a PNG nor a JPEG file", name),
             "the first bytes of one", std::string(image_name_of(start)));
}

/// Copies pixels, each from `from_channels` values to `to_channels`.
void convert_channels(std::span<const std::byte> from, int64_t from_channels,
                      std::span<std::byte> to, int64_t to_channels) {
  const auto n = static_cast<std::size_t>(from_channels);
  const auto m = static_cast<std::size_t>(to_channels);
  for (std::size_t i = 0, k = 0; i < from.size(); i += n, k += m) {
    const std::byte red = from[i], green = from[n > 2 ? i + 1 : i], blue = from[n > 2 ? i + 2 : i];
    if (m > 2) {
      to[k] = red;
      to[k + 1] = green;
      to[k + 2] = blue;
    } else if (n > 2) {  // ITU-R BT.601; the factors have the sum 2^16
      const uint32_t grey = 19595 * std::to_integer<uint32_t>(red) +
                            38470 * std::to_integer<uint32_t>(green) +
                            7471 * std::to_integer<uint32_t>(blue) + 0x8000;
      to[k] = static_cast<std::byte>(grey >> 16);
    } else {
      to[k] = red;
    }
    if (m % 2 == 0) to[k + m - 1] = n % 2 == 0 ? from[i + n - 1] : std::byte{255};
  }
}

std::vector<std::byte> bytes_of_image(const io::File& file) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read(bytes);
  return bytes;
}

Tensor load_pixels(const fs::path& path, const ImageOptions& options) {
  if (options.channels < 0 || options.channels > 4) {
    fail_image(ErrorKind::value, "the channels", "1 to 4, or 0 for those of the file",
               std::to_string(options.channels));
  }
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const io::File opened("load_image", path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::array<char, 8> start = {};
  const auto fits = std::min(start.size(), static_cast<std::size_t>(opened.size()));
  opened.read_at(std::as_writable_bytes(std::span(start).first(fits)), 0);
  const ImageFormat format = format_of({start.data(), fits}, opened.name());
  const std::vector<std::byte> bytes = bytes_of_image(opened);
  const ImageFile file = {.bytes = bytes, .name = opened.name()};
  ImageSize size = format == ImageFormat::png ? io::png_size(file) : io::jpeg_size(file);
  if (size.height > options.most_pixels / std::max<int64_t>(size.width, 1)) {
    fail_image(
        ErrorKind::io,
        fmt::format("\"{}\" says that it has {} x {} pixels", file.name, size.height, size.width),
        fmt::format("at most {}", options.most_pixels), std::to_string(size.height * size.width),
        "If that is so, set the option most_pixels.");
  }
  const int64_t wanted = options.channels == 0 ? size.channels : options.channels;
  if (format == ImageFormat::jpeg) size.channels = wanted <= 2 ? 1 : 3;
  const auto read = [&](std::span<std::byte> to) {
    format == ImageFormat::png ? io::read_png(file, size, to) : io::read_jpeg(file, size, to);
  };
  const Spec spec = {.dtype = u8,
                     .shape = {size.height, size.width, wanted},
                     .is_weak = false,
                     .device = default_device()};
  const Tensor image = filled_tensor(spec, [&](std::span<std::byte> memory) {
    if (wanted == size.channels) return read(memory);
    std::vector<std::byte> own(static_cast<std::size_t>(size.height * size.width * size.channels));
    read(own);
    convert_channels(own, size.channels, memory, wanted);
  });
  current().created(image);
  return image;
}

// ---- writing

ImageSize size_to_save(const fs::path& path, const Tensor& image) {
  const auto fail = [](ErrorKind kind, std::string what, std::string expected, std::string got,
                       std::string fix) {
    throw Error(kind, {.where = "save_image",
                       .what = std::move(what),
                       .expected = std::move(expected),
                       .got = std::move(got),
                       .fix = std::move(fix)});
  };
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (ending == ".jpg" || ending == ".jpeg") {
    fail(ErrorKind::value, fmt::format("the name \"{}\"", path.string()), "that of a PNG file",
         ending, "JPEG files are read, not written: call it .png.");
  }
  const Spec& spec = image.spec();
  if (spec.dtype != u8) {
    fail(ErrorKind::dtype, "the image", "uint8", std::string(name_of(spec.dtype)),
         "Of numbers from 0 to 1: cast(round(clamp(x, 0, 1) * 255), u8).");
  }
  const std::size_t rank = spec.shape.size();
  const int64_t channels = rank == 3 ? spec.shape[2] : 1;
  constexpr int64_t most = 0x7FFF'FFFF;  // of PNG
  const bool is_image = (rank == 2 || rank == 3) && channels >= 1 && channels <= 4 &&
                        spec.shape[0] >= 1 && spec.shape[1] >= 1 && spec.shape[0] <= most &&
                        spec.shape[1] <= most;
  if (!is_image) {
    fail(ErrorKind::shape, "the image", "shape [height, width] or [height, width, 1 to 4 channels]",
         to_string(spec.shape), "Channels come last: permute(x, {1, 2, 0}).");
  }
  return {.height = spec.shape[0], .width = spec.shape[1], .channels = channels};
}

void save_pixels(const fs::path& path, const Tensor& image, std::source_location place) {
  const ImageSize size = size_to_save(path, image);
  const HostElements elements = eager::host_read(image, {.what = "save_image()", .place = place});
  const std::vector<std::byte> file =
      io::png_of(size, io::ElementBytes(elements).get(), path.string());
  io::TemporaryFile temporary("save_image", path);
  temporary.file().write(file);
  temporary.publish();
}

}  // namespace

namespace io {

void fail_undecoded(const ImageFile& file, const std::string& reason) {
  fail_image(ErrorKind::io, fmt::format("\"{}\" cannot be decoded: {}", file.name, reason), "", "",
             "If it was cut short or changed, get it again.");
}

void fail_short_image(const ImageFile& file, const ImageSize& size) {
  fail_image(ErrorKind::io,
             fmt::format("\"{}\" is too short for the {} x {} pixels that it says it has",
                         file.name, size.height, size.width),
             "more bytes", std::to_string(file.bytes.size()),
             "If it was cut short or changed, get it again.");
}

}  // namespace io

Tensor load_image(const fs::path& path, const ImageOptions& options, std::source_location place) {
  return eager::located(place, [&] { return load_pixels(path, options); });
}

void save_image(const fs::path& path, const Tensor& image, std::source_location place) {
  eager::located(place, [&] { save_pixels(path, image, place); });
}

}  // namespace nitinol
