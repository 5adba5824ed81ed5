// The arguments say where kernels are expected to come from: llvm, shipped.
#include <cstring>

extern "C" int consume(int expects_llvm);
extern "C" int consume_shipped();

int main(int argc, char** argv) {
  int expects_llvm = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "llvm") == 0) expects_llvm = 1;
    if (std::strcmp(argv[i], "shipped") == 0 && consume_shipped() != 0) return 1;
  }
  return consume(expects_llvm);
}
