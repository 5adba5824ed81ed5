// The messages are those of tensorflow's event.proto, summary.proto and tensor.proto, by the
// numbers of their fields (docs/decisions/0033-event-files-by-hand.md):
//
//     Event     1 double wall_time   2 int64 step   3 string file_version   5 Summary summary
//     Summary   1 Value value
//     Value     1 string tag   2 float simple_value   5 HistogramProto histo   8 TensorProto tensor
//               9 SummaryMetadata metadata
#include "nn/event_file.h"

#include <array>
#include <bit>
#include <cstddef>

namespace nitinol::nn::events {
namespace {

static_assert(std::endian::native == std::endian::little, "as protobuf and TFRecord write numbers");

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// A protobuf message that grows by fields. A key is the field's number and how it is written.
class Message {
 public:
  Message& number(int field, double value) { return key(field, 1).raw(bytes_of(value)); }
  Message& number(int field, float value) { return key(field, 5).raw(bytes_of(value)); }
  Message& integer(int field, int64_t value) {
    return key(field, 0).variable(static_cast<uint64_t>(value));
  }
  Message& text(int field, std::string_view text) {
    return key(field, 2).variable(text.size()).raw(text);
  }
  Message& part(int field, const Message& message) { return text(field, message.bytes_); }
  Message& numbers(int field, std::span<const double> all) {  // packed
    return text(field, {reinterpret_cast<const char*>(all.data()), all.size_bytes()});
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  Message& key(int field, int kind) { return variable(static_cast<uint64_t>(field << 3 | kind)); }
  /// Seven bits a byte, the lowest first.
  Message& variable(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  Message& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }

  std::string bytes_;
};

std::string value_record(double time, int64_t step, const Message& value) {
  const Message summary = Message().part(1, value);
  return record(Message().number(1, time).integer(2, step).part(5, summary).bytes());
}

/// Checksums stand in a file rotated, and with this added: else one over data that has checksums
/// in it would be a bad one.
std::string masked_checksum(std::string_view bytes) {
  return bytes_of(std::rotr(crc32c(bytes), 15) + 0xA282EAD8U);
}

constexpr std::array<uint32_t, 256> crc_table = [] {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ ((rest & 1) != 0 ? 0x82F63B78U : 0);
    table[byte] = rest;
  }
  return table;
}();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char c : bytes) crc = crc >> 8 ^ crc_table[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

std::string record(std::string_view message) {
  const std::string length = bytes_of<uint64_t>(message.size());
  return length + masked_checksum(length) + std::string(message) + masked_checksum(message);
}

std::string version_record(double time) {
  return record(Message().number(1, time).text(3, "brain.Event:2").bytes());
}

std::string number_record(double time, int64_t step, std::string_view name, double value) {
  return value_record(time, step, Message().text(1, name).number(2, static_cast<float>(value)));
}

std::string text_record(double time, int64_t step, std::string_view name, std::string_view text) {
  constexpr int64_t of_strings = 7;
  const Message shape = Message().part(2, Message().integer(1, 1));
  const Message tensor = Message().integer(1, of_strings).part(2, shape).text(8, text);
  const Message metadata = Message().part(1, Message().text(1, "text"));
  return value_record(time, step, Message().text(1, name).part(8, tensor).part(9, metadata));
}

std::string histogram_record(double time, int64_t step, std::string_view name,
                             const Histogram& histogram) {
  const Message all = Message()
                          .number(1, histogram.least)
                          .number(2, histogram.greatest)
                          .number(3, histogram.count)
                          .number(4, histogram.sum)
                          .number(5, histogram.sum_of_squares)
                          .numbers(6, histogram.limits)
                          .numbers(7, histogram.counts);
  return value_record(time, step, Message().text(1, name).part(5, all));
}

}  // namespace nitinol::nn::events
