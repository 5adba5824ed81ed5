// What the processor does at most: measured once, and kept on disk.
#include "backends/cpu/rates.h"

#include "tests/run_self.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <string>

using namespace nitinol;
using namespace nitinol::test;

namespace nitinol::rates_test {

TEST_CASE("seconds grow with bytes, at a rate between those that were measured", "[cpu][rates]") {
  const DeviceRates rates = {.copies = {{100, 50}, {200, 20}}, .operations_per_s = 1000};
  CHECK(rates.move_s(0) == 0);
  CHECK(rates.move_s(50) == Approx(1));
  CHECK(rates.move_s(100) == Approx(2));
  CHECK(rates.move_s(150) == Approx(150.0 / 35));
  CHECK(rates.move_s(200) == Approx(10));
  CHECK(rates.move_s(2000) == Approx(100));
  CHECK(rates.compute_s(500) == Approx(0.5));
  CHECK(DeviceRates().move_s(100) == 0);
  CHECK(DeviceRates().compute_s(100) == 0);
}

TEST_CASE("the rates of this processor are those of one", "[cpu][rates]") {
  const DeviceRates rates = cpu::rates(1);
  REQUIRE(rates.copies.size() >= 2);
  for (const DeviceRates::Copy& copy : rates.copies) {
    CHECK(copy.bytes_per_s > 1e7);
    CHECK(copy.bytes_per_s < 1e13);
  }
  CHECK(rates.operations_per_s > 1e7);
  CHECK(rates.operations_per_s < 1e13);
  CHECK(cpu::rates(1).operations_per_s == rates.operations_per_s);
}

TEST_CASE("prints its rates", "[.rates]") {
  const DeviceRates rates = cpu::rates(1);
  fmt::print("rate {:a} {:a}\n", rates.operations_per_s, rates.copies.at(0).bytes_per_s);
  std::fflush(stdout);
}

TEST_CASE("another process finds the rates on disk", "[cpu][rates]") {
  const TemporaryFolder folder;
  const std::string environment = "NITINOL_CACHE='" + (folder / "code").string() + "'";
  const auto line = [&] {
    const std::string output = run_self(environment, "[.rates]").output;
    const std::size_t begin = output.find("rate ");
    REQUIRE(begin != std::string::npos);
    return output.substr(begin, output.find('\n', begin) - begin);
  };
  const std::string first = line();
  CHECK(line() == first);  // no two measurements agree to the last bit
}

}  // namespace nitinol::rates_test
