// The same on several numbers of threads.
#pragma once

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <functional>
#include <vector>

namespace nitinol {

/// Sets the thread count and restores it.
class Threads {
 public:
  explicit Threads(int count) : saved_(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(saved_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int saved_;
};

/// Checks that two and three threads compute the bits of one.
inline void check_same_on_threads(const std::function<std::vector<Tensor>()>& compute_all) {
  const Threads one(1);
  const std::vector<Tensor> expected = compute_all();
  for (const int count : {2, 3}) {
    const Threads more(count);
    const std::vector<Tensor> got = compute_all();
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(i << " on " << count << " threads");
      CHECK(same_bits(got[i], expected[i]));
    }
  }
}

}  // namespace nitinol
