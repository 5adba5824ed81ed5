// Files changed at random, as a fuzzer would.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace nitinol::test {

using Bytes = std::vector<uint8_t>;

/// A few bytes changed, inserted, removed, repeated, or taken from another seed.
inline Bytes mutated(Bytes bytes, const std::vector<Bytes>& seeds, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  const auto at = [&](Bytes& in) { return in.begin() + static_cast<int64_t>(below(in.size())); };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    if (bytes.empty()) bytes.push_back('x');
    switch (below(6)) {
      case 0:
        *at(bytes) = static_cast<uint8_t>(random());
        break;
      case 1:
        *at(bytes) ^= static_cast<uint8_t>(1U << below(8));
        break;
      case 2:
        bytes.insert(at(bytes), static_cast<uint8_t>(R"([]{}:,"0129-e'()<>|)"[below(20)]));
        break;
      case 3:
        bytes.erase(at(bytes));
        break;
      case 4:
        bytes.resize(below(bytes.size() + 8));
        break;
      default: {
        Bytes other = seeds[below(seeds.size())];
        if (!other.empty()) bytes.insert(at(bytes), at(other), other.end());
      }
    }
  }
  return bytes;
}

}  // namespace nitinol::test
