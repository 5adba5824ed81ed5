// Calls: counts the calls of a fake library's functions, and lets one of them fail.
#pragma once

#include "tests/cuda/fake/fake.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::test {

/// One a process, or one a library where its parts do not share inline functions. Any thread.
class Calls {
 public:
  static Calls& instance() {
    static Calls& calls = *new Calls;
    return calls;
  }
  /// Counts a call; the result that it is to fail with, or 0.
  int note(const char* name) {
    const std::lock_guard lock(mutex_);
    ++counts_[name];
    for (Failure& failure : failures_) {
      if (failure.name == name && failure.after > 0 && --failure.after == 0) return failure.result;
    }
    return 0;
  }
  /// Lets the call-th call of `name` from now on fail; 0: those that were to fail will not.
  void fail(const char* name, uint64_t call, int result) {
    const std::lock_guard lock(mutex_);
    if (call == 0) {
      std::erase_if(failures_, [&](const Failure& failure) { return failure.name == name; });
      return;
    }
    failures_.push_back({name, call, result});
  }
  /// "name count" in lines, of all that were called.
  const char* text() {
    const std::lock_guard lock(mutex_);
    std::ostringstream out;
    for (const auto& [name, count] : counts_) out << name << ' ' << count << '\n';
    text_ = out.str();
    return text_.c_str();
  }

 private:
  struct Failure {
    std::string name;
    uint64_t after;
    int result;
  };
  /// NITINOL_FAKE_FAIL: "name:call:result".
  Calls() {
    const char* const set = std::getenv("NITINOL_FAKE_FAIL");
    std::istringstream text(set != nullptr ? set : "");
    Failure failure = {};
    char colon = 0;
    if (std::getline(text, failure.name, ':') && text >> failure.after >> colon >> failure.result)
      failures_.push_back(failure);
  }

  std::mutex mutex_;
  std::map<std::string, uint64_t, std::less<>> counts_;
  std::vector<Failure> failures_;
  std::string text_;
};

}  // namespace nitinol::test

/// Defines fake_calls() and fake_fail() for the library that this stands in.
// NOLINTBEGIN(readability-identifier-naming)
#define FAKE_CALLS                                              \
  const char* fake_calls() {                                    \
    return nitinol::test::Calls::instance().text();             \
  }                                                             \
  void fake_fail(const char* name, uint64_t call, int result) { \
    nitinol::test::Calls::instance().fail(name, call, result);  \
  }                                                             \
  static_assert(true)
// NOLINTEND(readability-identifier-naming)
