// What calls.cpp and eager_paths.cpp share.
#pragma once

#include <string>
#include <valgrind/callgrind.h>

/// Makes warm calls whose instructions callgrind counts, and has it write a file that names
/// them and says how many they are.
template <class Call>
void count_calls(const char* name, int count, Call call) {
  const std::string label = std::string(name) + " " + std::to_string(count);
  for (const bool is_counted : {false, true}) {  // one loop: calls in several are inlined less
    if (is_counted) {
      CALLGRIND_START_INSTRUMENTATION;
      CALLGRIND_ZERO_STATS;
    }
    for (int i = 0; i < count; ++i) static_cast<void>(call());
  }
  CALLGRIND_DUMP_STATS_AT(label.c_str());
  CALLGRIND_STOP_INSTRUMENTATION;
}

/// The calls named "eager_<name>", which is a function by itself, "asked_<name>", by eager() of the
/// same compiled, and "segments_<name>", which has looked at data.
void count_eager_paths();
