// What the fuzzers do (tests/fuzz/readers), in short and without libFuzzer: the seeds, and bytes of
// them changed at random, are read or refused with an Error; nothing else happens.
#include "tests/hostile_files.h"

#include "tests/mutated.h"
#include "tests/seeds.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using namespace nitinol::test;

namespace {

/// Makes the first eight bytes the length of the header again, as often as not: otherwise nearly
/// all changes end there.
void mend_length(Bytes& bytes, std::mt19937& random) {
  if (bytes.size() < 8 || random() % 2 == 0) return;
  const auto end = std::find(bytes.rbegin(), bytes.rend() - 8, '}').base();
  const auto length = static_cast<uint64_t>(end - bytes.begin() - 8);
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(length >> (8 * i));
}

}  // namespace

TEST_CASE("seeds of the safetensors fuzzer, and what becomes of them", "[safetensors][errors]") {
  const std::vector<Bytes> seeds = seeds_in("/tests/fuzz/corpus/safetensors");
  REQUIRE(seeds.size() >= 10);
  CHECK(std::ranges::count_if(
            seeds, [](const Bytes& seed) { return reads(read_safetensors, seed); }) == 4);
  std::mt19937 random(1);
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    Bytes bytes = mutated(seeds[random() % seeds.size()], seeds, random);
    mend_length(bytes, random);
    read += reads(read_safetensors, bytes) ? 1 : 0;
  }
  CHECK(read > 20);
}

TEST_CASE("seeds of the .npy fuzzer, and what becomes of them", "[npy][errors]") {
  const std::vector<Bytes> seeds = seeds_in("/tests/eager/data");
  REQUIRE(seeds.size() >= 10);
  std::mt19937 random(1);
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    read += reads(read_npy, mutated(seeds[random() % seeds.size()], seeds, random)) ? 1 : 0;
  }
  CHECK(read > 20);
}

TEST_CASE("seeds of the fuzzer of objects, and what becomes of them", "[cpu][errors]") {
  const std::vector<Bytes> seeds = seeds_in("/tests/fuzz/corpus/object");
  REQUIRE(seeds.size() >= 4);
  CHECK(std::ranges::count_if(seeds, [](const Bytes& seed) { return loads(seed); }) >= 1);
  std::mt19937 random(1);
  int loaded = 0;
  for (int i = 0; i < 4000; ++i) {
    loaded += loads(mutated(seeds[random() % seeds.size()], seeds, random)) ? 1 : 0;
  }
  CHECK(loaded > 20);
}

TEST_CASE("IDX and CSV files may hold anything", "[io]") {
  const std::string image("\0\0\x08\x02\0\0\0\x02\0\0\0\x02\x01\x02\x03\x04", 16);
  const std::string number("\0\0\x0E\x01\0\0\0\x01\xBF\xF8\0\0\0\0\0\0", 16);
  const std::string table = "a,\"b\"\n1,2.5\n-3e4,\n inf,nan\r\n";
  const auto bytes_of = [](const std::string& text) { return Bytes(text.begin(), text.end()); };
  std::mt19937 random(2);
  const std::vector<Bytes> images = {bytes_of(image), bytes_of(number)}, tables = {bytes_of(table)};
  for (const Bytes& seed : images) CHECK(reads(read_idx, seed));
  CHECK(reads(read_csv, tables[0]));
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    read += reads(read_idx, mutated(images[random() % 2], images, random)) ? 1 : 0;
    read += reads(read_csv, mutated(tables[0], tables, random)) ? 1 : 0;
  }
  CHECK(read > 300);
  CHECK(read < 5700);
}
