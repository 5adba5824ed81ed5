// libnvrtc.so.13 that compiles nothing: its cubin is the text.
#include "tests/cuda/fake/calls.h"
#include "tests/cuda/fake/fake.h"

#include <atomic>
#include <cstring>
#include <string>

using nitinol::test::FakeImage;

FAKE_CALLS;

namespace {
struct Program {
  std::string text;
};
std::atomic<uint64_t> live = 0;
}  // namespace

#define FAKE_ENTRY                                                                       \
  if (const int failure = nitinol::test::Calls::instance().note(__func__); failure != 0) \
  return failure

extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
int nvrtcVersion(int* major, int* minor) {
  FAKE_ENTRY;
  *major = 13;
  *minor = 0;
  return 0;
}
int nvrtcCreateProgram(Program** program, const char* text, const char*, int, const char* const*,
                       const char* const*) {
  FAKE_ENTRY;
  *program = new Program{text};
  ++live;
  return 0;
}
int nvrtcCompileProgram(Program*, int, const char* const*) {
  FAKE_ENTRY;
  return 0;
}
int nvrtcGetCUBINSize(Program* program, std::size_t* bytes) {
  FAKE_ENTRY;
  *bytes = sizeof(FakeImage) + program->text.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* to) {
  FAKE_ENTRY;
  const FakeImage head = {nitinol::test::fake_magic, program->text.size()};
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + sizeof head, program->text.data(), program->text.size());
  return 0;
}
int nvrtcGetPTXSize(Program*, std::size_t* bytes) {
  FAKE_ENTRY;
  *bytes = 1;
  return 0;
}
int nvrtcGetPTX(Program*, char* to) {
  FAKE_ENTRY;
  *to = 0;
  return 0;
}
int nvrtcGetProgramLogSize(Program*, std::size_t* bytes) {
  FAKE_ENTRY;
  *bytes = 1;
  return 0;
}
int nvrtcGetProgramLog(Program*, char* to) {
  FAKE_ENTRY;
  *to = 0;
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  FAKE_ENTRY;
  delete *program;
  --live;
  *program = nullptr;
  return 0;
}
const char* nvrtcGetErrorString(int) {
  return "fake";
}
int nvrtcGetNumSupportedArchs(int* count) {
  FAKE_ENTRY;
  *count = 1;
  return 0;
}
int nvrtcGetSupportedArchs(int* list) {
  FAKE_ENTRY;
  *list = 90;
  return 0;
}
uint64_t fake_live() {
  return live;
}
// NOLINTEND(readability-identifier-naming)
}
