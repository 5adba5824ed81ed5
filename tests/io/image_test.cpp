#include "io/image.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "tests/hostile_files.h"
#include "tests/mutated.h"
#include "tests/same_bits.h"
#include "tests/seeds.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace nitinol::image_test {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::TemporaryFolder;

fs::path data_file(const std::string& name) {
  return fs::path(NITINOL_SOURCE_DIR) / "tests/io/data/image" / name;
}

/// [height, width, channels] of value(y, x, c).
template <class F>
Tensor image_of(int64_t height, int64_t width, int64_t channels, const F& value) {
  std::vector<uint8_t> values;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c) values.push_back(static_cast<uint8_t>(value(y, x, c)));
  return from_span<uint8_t>(values, {height, width, channels});
}

/// What tests/io/data/write.py gave to Pillow.
Tensor given(int64_t channels) {
  return image_of(5, 6, channels,
                  [](int64_t y, int64_t x, int64_t c) { return 40 * y + 7 * x + 60 * c; });
}
Tensor smooth(int64_t channels = 3) {
  return image_of(16, 24, channels,
                  [](int64_t y, int64_t x, int64_t c) { return 20 + 6 * y + 3 * x + 20 * c; });
}

double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  return max(abs(cast(a, f64) - cast(b, f64))).item<double>();
}

class Files {
 public:
  [[nodiscard]] fs::path write(const Bytes& bytes) const {
    const fs::path path = folder_ / "given.bin";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  [[nodiscard]] std::string error(const Bytes& bytes, ErrorKind kind = ErrorKind::io,
                                  const ImageOptions& options = {}) const {
    try {
      return "read " + describe(load_image(write(bytes), options));
    } catch (const Error& error) {
      CHECK(error.kind() == kind);
      CHECK_THAT(error.message(), Catch::StartsWith("load_image: "));
      return error.message();
    }
  }

 private:
  TemporaryFolder folder_;
};

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

TEST_CASE("load_image: PNG files of each kind", "[io][image]") {
  CHECK(same_bits(load_image(data_file("grey.png")), given(1)));
  CHECK(same_bits(load_image(data_file("grey_alpha.png")), given(2)));
  CHECK(same_bits(load_image(data_file("rgb.png")), given(3)));
  CHECK(same_bits(load_image(data_file("rgba.png")), given(4)));
  CHECK(same_bits(load_image(data_file("interlaced.png")), given(3)));
  CHECK(same_bits(load_image(data_file("grey16.png")), given(1)));
  const auto palette = [](int64_t y, int64_t x, int64_t c) -> int64_t {
    const int64_t i = (y + x) % 8;
    if (c == 3) return i == 0 ? 0 : i == 1 ? 128 : 255;
    return c == 0 ? 30 * i : c == 1 ? 255 - 30 * i : 10 * i;
  };
  CHECK(same_bits(load_image(data_file("palette.png")), image_of(5, 6, 3, palette)));
  CHECK(same_bits(load_image(data_file("palette_alpha.png")), image_of(5, 6, 4, palette)));
  CHECK(same_bits(
      load_image(data_file("one_bit.png")),
      image_of(5, 6, 1, [](int64_t y, int64_t x, int64_t) { return (y + x) % 2 == 1 ? 255 : 0; })));
  // Brightness 55 of 255 looks like 128.
  CHECK(largest_difference(load_image(data_file("linear.png")),
                           tensor({{{0}, {128}, {255}}}, u8)) <= 1);
}

TEST_CASE("load_image: channels that are asked for", "[io][image]") {
  const auto load = [](const char* file, int64_t channels) {
    return load_image(data_file(file), {.channels = channels});
  };
  const Tensor grey = given(1), opaque = full({5, 6, 1}, 255, u8);
  CHECK(same_bits(load("grey.png", 1), grey));
  CHECK(same_bits(load("grey.png", 2), concat({grey, opaque}, 2)));
  CHECK(same_bits(load("grey.png", 3), concat({grey, grey, grey}, 2)));
  CHECK(same_bits(load("grey.png", 4), concat({grey, grey, grey, opaque}, 2)));
  const Tensor alpha = slice(given(2), 2, Range{1, 2});
  CHECK(same_bits(load("grey_alpha.png", 1), grey));
  CHECK(same_bits(load("grey_alpha.png", 4), concat({grey, grey, grey, alpha}, 2)));
  // Alpha is left out, not mixed in.
  CHECK(same_bits(load("rgba.png", 3), given(3)));
  CHECK(same_bits(load("rgb.png", 4), concat({given(3), opaque}, 2)));
  const Tensor weighed =
      sum(cast(given(3), f64) * tensor({0.299, 0.587, 0.114}, f64), {2}, KeepDims::yes);
  CHECK(largest_difference(load("rgb.png", 1), cast(round(weighed), u8)) <= 1);
  CHECK(same_bits(load("rgba.png", 1), load("rgb.png", 1)));
  CHECK(same_bits(load("rgb.png", 2), concat({load("rgb.png", 1), opaque}, 2)));
  for (const int64_t channels : {-1, 5})
    CHECK_THROWS_WITH(load("rgb.png", channels), Catch::Contains("1 to 4, or 0"));
}

TEST_CASE("load_image: JPEG files of each kind", "[io][image]") {
  CHECK(largest_difference(load_image(data_file("rgb.jpg")), smooth()) <= 4);
  CHECK(largest_difference(load_image(data_file("halved.jpg")), smooth()) <= 6);
  CHECK(largest_difference(load_image(data_file("progressive.jpg")), smooth()) <= 4);
  CHECK(largest_difference(load_image(data_file("grey.jpg")), smooth(1)) <= 4);
  // As the camera's sensor saw it.
  CHECK(largest_difference(load_image(data_file("turned.jpg")), smooth()) <= 4);
  const auto load = [](const char* file, int64_t channels) {
    return load_image(data_file(file), {.channels = channels});
  };
  const Tensor grey = load("grey.jpg", 0), opaque = full({16, 24, 1}, 255, u8);
  CHECK(same_bits(load("grey.jpg", 3), concat({grey, grey, grey}, 2)));
  CHECK(same_bits(load("grey.jpg", 2), concat({grey, opaque}, 2)));
  CHECK(same_bits(load("rgb.jpg", 4), concat({load("rgb.jpg", 3), opaque}, 2)));
  CHECK(load("rgb.jpg", 1).shape() == Shape{16, 24, 1});
  CHECK(same_bits(load("rgb.jpg", 2), concat({load("rgb.jpg", 1), opaque}, 2)));
  const Tensor weighed =
      sum(cast(smooth(), f64) * tensor({0.299, 0.587, 0.114}, f64), {2}, KeepDims::yes);
  CHECK(largest_difference(load("rgb.jpg", 1), cast(round(weighed), u8)) <= 4);
  CHECK_THAT(Files().error(test::bytes_of(data_file("cmyk.jpg")), ErrorKind::unsupported),
             Catch::Contains("CMYK"));
}

TEST_CASE("save_image writes what load_image reads", "[io][image]") {
  const TemporaryFolder folder;
  for (int64_t channels = 1; channels <= 4; ++channels) {
    save_image(folder / "x.png", given(channels));
    CHECK(same_bits(load_image(folder / "x.png"), given(channels)));
  }
  const Tensor grey = squeeze(given(1), {2});
  save_image(folder / "x.png", grey);
  CHECK(same_bits(load_image(folder / "x.png"), given(1)));
  // Views: turned, and with channels that came first.
  save_image(folder / "x.png", transpose(grey));
  CHECK(same_bits(load_image(folder / "x.png"), unsqueeze(copy(transpose(grey)), 2)));
  const Tensor first = copy(permute(given(3), {2, 0, 1}));
  save_image(folder / "x.png", permute(first, {1, 2, 0}));
  CHECK(same_bits(load_image(folder / "x.png"), given(3)));
  save_image(folder / "one", full({1, 1}, 7, u8));
  CHECK(same_bits(load_image(folder / "one"), full({1, 1, 1}, 7, u8)));
  CHECK(folder.names().size() == 2);  // and no temporary file
}

TEST_CASE("save_image says what is no image", "[io][image]") {
  const TemporaryFolder folder;
  const auto error = [&](const Tensor& image, ErrorKind kind, const char* name = "x.png") {
    try {
      save_image(folder / name, image);
    } catch (const Error& e) {
      CHECK(e.kind() == kind);
      return e.message();
    }
    return std::string("written");
  };
  CHECK_THAT(error(ones({4, 4}), ErrorKind::dtype), Catch::Contains("expected uint8"));
  for (const Shape& shape : {Shape{}, Shape{4}, Shape{3, 4, 5}, Shape{2, 2, 0}, Shape{0, 4},
                             Shape{4, 0, 3}, Shape{1, 2, 2, 3}}) {
    CHECK_THAT(error(zeros(shape, u8), ErrorKind::shape), Catch::Contains("[height, width]"));
  }
  for (const char* name : {"x.jpg", "x.JPEG"})
    CHECK_THAT(error(given(3), ErrorKind::value, name), Catch::Contains("call it .png"));
  CHECK_THAT(error(given(3), ErrorKind::io, "no/x.png"), Catch::Contains("No such file"));
  CHECK(folder.names().empty());
}

TEST_CASE("load_image says what is neither PNG nor JPEG", "[io][image]") {
  const Files files;
  CHECK_THAT(files.error({}), Catch::Contains("an empty file"));
  CHECK_THAT(files.error(bytes_of("GIF89a")), Catch::Contains("a GIF file"));
  CHECK_THAT(files.error(bytes_of("RIFFxxxxWEBP")), Catch::Contains("WebP"));
  CHECK_THAT(files.error(bytes_of("BM")), Catch::Contains("a BMP file"));
  CHECK_THAT(files.error(bytes_of("II*")), Catch::Contains("a TIFF file"));
  CHECK_THAT(files.error(bytes_of("\xFF\xD8")), Catch::Contains("neither a PNG nor a JPEG"));
  CHECK_THROWS_WITH(static_cast<void>(load_image("/nowhere/x.png")),
                    Catch::Contains("/nowhere/x.png"));
}

TEST_CASE("load_image refuses images that were cut short", "[io][image]") {
  const Files files;
  for (const char* name : {"rgb.png", "interlaced.png", "palette_alpha.png", "rgb.jpg", "grey.jpg",
                           "progressive.jpg", "halved.jpg"}) {
    const Bytes whole = test::bytes_of(data_file(name));
    const bool is_png = whole[0] == 0x89;
    const std::size_t tail = is_png ? 12 : 2;  // PNG's end without contents, JPEG's end
    for (std::size_t size = 0; size < whole.size() - tail; ++size) {
      INFO(name << " " << size);
      const Bytes part(whole.begin(), whole.begin() + static_cast<int64_t>(size));
      CHECK_FALSE(test::reads(test::read_image, part));  // in memory: these are many
    }
  }
  Bytes changed = test::bytes_of(data_file("rgb.png"));
  changed[50] ^= 1;
  CHECK_THAT(files.error(changed), Catch::Contains("cannot be decoded"));
}

TEST_CASE("load_image allocates nothing for what cannot be", "[io][image]") {
  const Files files;
  // Headers that say 65535 x 65535.
  Bytes png = test::bytes_of(data_file("rgb.png"));
  const Bytes header = {'I', 'H', 'D', 'R', 0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 8, 2, 0, 0, 0};
  std::ranges::copy(header, png.begin() + 12);
  uint32_t crc = 0xFFFFFFFF;
  for (const uint8_t byte : header) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  for (int i = 0; i < 4; ++i)
    png[static_cast<std::size_t>(29 + i)] = static_cast<uint8_t>(~crc >> (24 - 8 * i));
  CHECK_THAT(files.error(png), Catch::Contains("too short for the 65535 x 65535 pixels"));
  CHECK(!test::reads(test::read_image, png));

  Bytes jpeg = test::bytes_of(data_file("rgb.jpg"));
  const Bytes marker = {0xFF, 0xC0};
  const auto at = std::ranges::search(jpeg, marker).begin();
  REQUIRE(at != jpeg.end());
  std::ranges::copy(Bytes{0xFD, 0xE8, 0xFD, 0xE8}, at + 5);
  CHECK_THAT(files.error(jpeg), Catch::Contains("too short for the 65000 x 65000 pixels"));
  CHECK(!test::reads(test::read_image, jpeg));
  // As many pixels as so many bytes could give, but more than wanted.
  jpeg.resize(std::size_t{9} << 20);
  CHECK_THAT(files.error(jpeg),
             Catch::Contains("at most 268435456") && Catch::Contains("most_pixels"));
  const Bytes small = test::bytes_of(data_file("rgb.png"));
  CHECK_THAT(files.error(small, ErrorKind::io, {.most_pixels = 29}), Catch::Contains("at most 29"));
  CHECK(files.error(small, ErrorKind::io, {.most_pixels = 30}).starts_with("read"));
}

TEST_CASE("seeds of the fuzzer of images, and what becomes of them", "[image][errors]") {
  const std::vector<Bytes> seeds = test::seeds_in("/tests/io/data/image");
  REQUIRE(seeds.size() == 16);
  const auto reads = [](const Bytes& bytes) { return test::reads(test::read_image, bytes); };
  CHECK(std::ranges::count_if(seeds, reads) == 15);
  std::mt19937 random(1);
  int read = 0;
  for (int i = 0; i < 4000; ++i)
    read += reads(test::mutated(seeds[random() % seeds.size()], seeds, random)) ? 1 : 0;
  CHECK(read > 20);
}

}  // namespace
}  // namespace nitinol::image_test
