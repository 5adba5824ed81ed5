// Records of TensorBoard's event files: protobuf messages in TFRecord's framing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace nitinol::nn::events {

/// Castagnoli's CRC-32, which zlib does not have: of "123456789" it is 0xE3069283.
[[nodiscard]] uint32_t crc32c(std::string_view bytes);

/// A message as it stands in the file: its length, the length's checksum, itself, its checksum.
[[nodiscard]] std::string record(std::string_view message);

/// What a distribution looks like: counts of the elements up to each limit, from `least` on.
struct Histogram {
  double least = 0, greatest = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::span<const double> limits, counts;
};

/// The first record of a file. `time`: seconds since 1970.
[[nodiscard]] std::string version_record(double time);
/// Records of one value. `name` and `text` are UTF-8.
[[nodiscard]] std::string number_record(double time, int64_t step, std::string_view name,
                                        double value);
[[nodiscard]] std::string text_record(double time, int64_t step, std::string_view name,
                                      std::string_view text);
[[nodiscard]] std::string histogram_record(double time, int64_t step, std::string_view name,
                                           const Histogram& histogram);

}  // namespace nitinol::nn::events
