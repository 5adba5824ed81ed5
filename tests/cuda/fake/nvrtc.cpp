// libnvrtc.so.13 that compiles nothing: its cubin is the text.
#include "tests/cuda/fake/fake.h"

#include <cstring>
#include <string>

using nitinol::test::FakeImage;

namespace {
struct Program {
  std::string text;
};
}  // namespace

extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
int nvrtcCreateProgram(Program** program, const char* text, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{text};
  return 0;
}
int nvrtcCompileProgram(Program*, int, const char* const*) {
  return 0;
}
int nvrtcGetCUBINSize(Program* program, std::size_t* bytes) {
  *bytes = sizeof(FakeImage) + program->text.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* to) {
  const FakeImage head = {nitinol::test::fake_magic, program->text.size()};
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + sizeof head, program->text.data(), program->text.size());
  return 0;
}
int nvrtcGetPTXSize(Program*, std::size_t* bytes) {
  *bytes = 1;
  return 0;
}
int nvrtcGetPTX(Program*, char* to) {
  *to = 0;
  return 0;
}
int nvrtcGetProgramLogSize(Program*, std::size_t* bytes) {
  *bytes = 1;
  return 0;
}
int nvrtcGetProgramLog(Program*, char* to) {
  *to = 0;
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
const char* nvrtcGetErrorString(int) {
  return "fake";
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return 0;
}
int nvrtcGetSupportedArchs(int* list) {
  *list = 90;
  return 0;
}
// NOLINTEND(readability-identifier-naming)
}
