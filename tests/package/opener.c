/* A program in C that links neither the library nor C++, as an interpreter with modules does:
 *
 *     opener <libnitinol.so> <the consumer's part> [llvm]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void* open_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  return library;
}

int main(int argc, char** argv) {
  void* library;
  void* part;
  int (*num_threads)(void);
  int (*consume)(int);
  int status;
  if (argc < 3) return 10;
  library = open_library(argv[1]);
  if (library == NULL) return 11;
  num_threads = (int (*)(void))dlsym(library, "_ZN7nitinol11num_threadsEv");
  if (num_threads == NULL || num_threads() < 1) return 12;
  part = open_library(argv[2]);
  if (part == NULL) return 13;
  consume = (int (*)(int))dlsym(part, "consume");
  if (consume == NULL) return 14;
  status = consume(argc > 3 && strcmp(argv[3], "llvm") == 0);
  if (status != 0) return status;
  /* A second user of the library, after the first is gone. */
  if (dlclose(part) != 0) return 15;
  part = open_library(argv[2]);
  if (part == NULL) return 16;
  consume = (int (*)(int))dlsym(part, "consume");
  return consume == NULL ? 17 : consume(0);
}
