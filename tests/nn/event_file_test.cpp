// The bytes of event files, against those that TensorFlow's own writers make.
#include "nn/event_file.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace nitinol::event_file_test {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

TEST_CASE("the checksum is Castagnoli's (RFC 3720, B.4)", "[nn][metric_log]") {
  CHECK(nn::events::crc32c("") == 0);
  CHECK(nn::events::crc32c("123456789") == 0xE3069283);
  CHECK(nn::events::crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(nn::events::crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
}

TEST_CASE("records are protobuf messages between checksums", "[nn][metric_log]") {
  // Of tensorboard 2.21: Event(...).SerializeToString() by its RecordWriter.
  CHECK(hex(nn::events::version_record(1.5)) ==
        "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  CHECK(hex(nn::events::number_record(1.5, 300, "a/b", 0.25)) ==
        "1a00000000000000129bd82d09000000000000f83f10ac022a0c0a0a0a03612f62150000803ef9cd"
        "e7ed");
  CHECK(hex(nn::events::text_record(1.5, 5, "n", "x\ny")) ==
        "2b00000000000000861bc34b09000000000000f83f10052a1e0a1c0a016e420d0807120412020801"
        "4203780a794a080a060a047465787464036466");
  const std::array<double, 2> limits = {0.5, 1}, counts = {3, 1};
  const nn::events::Histogram histogram = {.least = 0.25,
                                           .greatest = 1,
                                           .count = 4,
                                           .sum = 2,
                                           .sum_of_squares = 1.5,
                                           .limits = limits,
                                           .counts = counts};
  CHECK(hex(nn::events::histogram_record(1.5, 7, "h", histogram)) ==
        "6500000000000000ebd05a6909000000000000f83f10072a580a560a01682a5109000000000000d0"
        "3f11000000000000f03f19000000000000104021000000000000004029000000000000f83f321000"
        "0000000000e03f000000000000f03f3a100000000000000840000000000000f03f76f0eb4a");
}

}  // namespace nitinol::event_file_test
