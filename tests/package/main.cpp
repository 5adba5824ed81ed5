// The first argument says whether kernels are expected to come from LLVM.
#include <cstring>

extern "C" int consume(int expects_llvm);

int main(int argc, char** argv) {
  return consume(argc > 1 && std::strcmp(argv[1], "llvm") == 0 ? 1 : 0);
}
