// What lines.cpp opens after its first Error.
#include "nitinol.h"

extern "C" [[gnu::visibility("default")]] void fail_in_opened() {
  static_cast<void>(nitinol::ones({2}) + nitinol::ones({3}));  // line 5
}
