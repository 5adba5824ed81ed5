// An Error names the line of the user's call. For that the tables of the object which has the line
// are read, and no others: a library's, and libc's where a debugger has had them installed, took a
// tenth of a second in every program's first Error. One that is opened later has lines, too.

#include "nitinol.h"
#include "tests/message_of.h"

#include <cstdio>
#include <dlfcn.h>
#include <fstream>
#include <string>

using namespace nitinol;
using test::message_of;

namespace {

/// How many parts of files of this name are in memory.
int parts_in_memory(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find(name) != std::string::npos ? 1 : 0;
  return count;
}

int wrong = 0;
void expect(bool is_so, const char* what, const std::string& got) {
  if (is_so) return;
  std::printf("%s: %s\n", what, got.c_str());
  ++wrong;
}

}  // namespace

int main() {
  set_log_level(LogLevel::off);
  const std::string line = "lines.cpp:" + std::to_string(__LINE__ + 1);
  const auto fail = [] { static_cast<void>(ones({2}) + ones({3})); };
  static_cast<void>(ones({2}) + ones({2}));
  const int before = parts_in_memory("/libnitinol.so"), others = parts_in_memory("/debug/");
  const std::string own = message_of(fail);
  expect(own.find(line) != std::string::npos, "the program's line", own);
  const int after = parts_in_memory("/libnitinol.so");
  expect(after == before, "parts of libnitinol.so in memory", std::to_string(after - before));
  expect(parts_in_memory("/debug/") == others, "debug information of others", "is in memory");

  void* const opened = ::dlopen(NITINOL_OPENED, RTLD_NOW);
  const auto fail_in_opened =
      opened == nullptr ? nullptr : reinterpret_cast<void (*)()>(::dlsym(opened, "fail_in_opened"));
  if (fail_in_opened == nullptr) return std::puts(::dlerror()), 1;
  const std::string its = message_of(fail_in_opened);
  expect(its.find("opened.cpp:5") != std::string::npos, "the line of one opened later", its);
  return wrong;
}
