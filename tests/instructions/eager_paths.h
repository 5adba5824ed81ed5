// What calls.cpp and eager_paths.cpp share.
#pragma once

#include <string_view>

template <class Call>
void repeat(long count, Call call) {
  for (long i = 0; i < count; ++i) static_cast<void>(call());
}

/// The calls named "eager_<name>", which is a function by itself, "asked_<name>", by eager() of the
/// same compiled, and "fallback_<name>", which cannot be compiled.
void compare_eager_paths(std::string_view what, long count);
