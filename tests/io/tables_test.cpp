// Readers of data as others publish them: IDX and CSV.
#include "core/error.h"
#include "eager/ops/ops.h"
#include "io/csv.h"
#include "io/idx.h"
#include "tests/message_of.h"
#include "tests/same_bits.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <string>
#include <string_view>

namespace nitinol::tables_test {
namespace {

using test::message_of;
using test::TemporaryFolder;

class Files {
 public:
  std::filesystem::path operator()(std::string_view bytes) const {
    const std::filesystem::path path = folder_ / "file";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("load_idx: elements of each type, big-endian", "[io][idx]") {
  using namespace std::string_view_literals;
  const Files file;
  CHECK(same_bits(load_idx(file("\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\xFF\0\x10"sv)),
                  tensor({{1, 2, 3}, {255, 0, 16}}, u8)));
  CHECK(same_bits(load_idx(file("\0\0\x09\x01\0\0\0\x02\xFF\x7F"sv)), tensor({-1, 127}, i8)));
  CHECK(same_bits(load_idx(file("\0\0\x0B\x01\0\0\0\x01\xFF\xFE"sv)), tensor({-2}, i16)));
  CHECK(same_bits(load_idx(file("\0\0\x0C\x01\0\0\0\x01\0\x01\0\0"sv)), tensor({65536}, i32)));
  CHECK(same_bits(load_idx(file("\0\0\x0D\x01\0\0\0\x01\x3F\xC0\0\0"sv)), tensor({1.5}, f32)));
  CHECK(same_bits(load_idx(file("\0\0\x0E\x01\0\0\0\x01\xBF\xF8\0\0\0\0\0\0"sv)),
                  tensor({-1.5}, f64)));
  CHECK(same_bits(load_idx(file("\0\0\x08\0\x07"sv)), tensor(7, u8)));
  CHECK(load_idx(file("\0\0\x08\x02\0\0\0\0\0\0\0\x03"sv)).shape() == Shape{0, 3});
}

TEST_CASE("load_idx: what is no IDX file is said", "[io][idx]") {
  using namespace std::string_view_literals;
  const Files file;
  const auto message = [&](std::string_view bytes) {
    return message_of([&] { static_cast<void>(load_idx(file(bytes))); });
  };
  CHECK(message(""sv).find("does not agree") != std::string::npos);
  CHECK(message("\0\0\x08"sv).find("does not agree") != std::string::npos);
  CHECK(message("\0\0\x08\x02\0\0\0\x02"sv).find("expected 12 bytes") != std::string::npos);
  CHECK(message("\0\0\x08\x01\0\0\0\x02\x01"sv).find("expected 10 bytes, got 9") !=
        std::string::npos);
  CHECK(message("\0\0\x08\x01\0\0\0\x01\x01\x01"sv).find("got 10") != std::string::npos);
  CHECK(message("\0\0\x07\x01\0\0\0\x01\x01"sv).find("is no IDX file") != std::string::npos);
  CHECK(message("\x1F\x8B\x08\x01\0\0\0\x01\x01"sv).find("gunzip") != std::string::npos);
  CHECK(message("\0\0\x08\xFF"sv).find("at most") != std::string::npos);
  CHECK(message("\0\0\x0E\x03\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv)
            .find("a file that holds them") != std::string::npos);
  CHECK(message_of([] {
          static_cast<void>(load_idx("/nowhere/digits"));
        }).find("/nowhere/digits") != std::string::npos);
}

TEST_CASE("load_csv: numbers, names, quotes and gaps", "[io][csv]") {
  const Files file;
  CHECK(same_bits(load_csv(file("1,2.5,-3\n4,5e2,+6\n")).values,
                  tensor({{1.0, 2.5, -3.0}, {4.0, 500.0, 6.0}}, f32)));
  // No newline at the end, Windows' ends of lines, blanks, quotes, a mark, empty lines at the end.
  CHECK(same_bits(load_csv(file("\xEF\xBB\xBF 1 , \"2\"\r\n3,\t4 \r\n\r\n\r\n")).values,
                  tensor({{1.0, 2.0}, {3.0, 4.0}}, f32)));
  const CsvFile named =
      load_csv(file("a;\"b; c\"\n1;2"), {.separator = ';', .has_header = true, .dtype = i64});
  CHECK(named.names == std::vector<std::string>{"a", "b; c"});
  CHECK(same_bits(named.values, tensor({{1, 2}}, i64)));
  const Tensor gaps = load_csv(file("1,,nan\ninf,-inf,4\n"), {.dtype = f64}).values;
  CHECK(std::isnan(gaps[0][1].item<double>()));
  CHECK(std::isnan(gaps[0][2].item<double>()));
  CHECK(gaps[1].to_vector<double>() == std::vector<double>{INFINITY, -INFINITY, 4});
  CHECK(load_csv(file("")).values.shape() == Shape{0, 0});
  CHECK(load_csv(file("x,y\n"), {.has_header = true}).values.shape() == Shape{0, 2});
  CHECK(same_bits(load_csv(file("9007199254740993\n"), {.dtype = i64}).values,
                  tensor({{int64_t{9007199254740993}}})));
}

TEST_CASE("load_csv: what is no number is said, and where", "[io][csv]") {
  const Files file;
  const auto message = [&](std::string_view bytes, const CsvOptions& options = {}) {
    return message_of([&] { static_cast<void>(load_csv(file(bytes), options)); });
  };
  const auto has = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(message("a,b\n1,2\n"), "line 1, field 1");
  has(message("a,b\n1,2\n"), "has_header");
  has(message("1,2\n3,4x\n"), "line 2, field 2");
  has(message("1,2\n3,4x\n"), "got \"4x\"");
  has(message("1,2\n3\n"), "line 2");
  has(message("1,2\n3\n"), "expected 2 fields, got 1");
  has(message("1,2\n3,4,5\n"), "expected 2 fields, got 3");
  has(message("1,\n", {.dtype = i64}), "line 1, field 2");
  has(message("1.5\n", {.dtype = i64}), "a number of int64");
  has(message("1e99\n"), "a number that float32 holds");
  has(message("99999999999999999999\n", {.dtype = i64}), "a number that int64 holds");
  has(message("+-1\n"), "got \"+-1\"");
  has(message("1,2\n\n3,4\n"), "line 2");
  has(message("1\n", {.dtype = u8}), "float32, float64 or int64");
  has(message("1\n", {.separator = '.'}), "the separator");
  has(message("", {.has_header = true}), "the header");
  has(message(std::string(1000, '"')), "line 1, field 1");
}

}  // namespace
}  // namespace nitinol::tables_test
