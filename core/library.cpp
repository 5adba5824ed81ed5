#include "core/library.h"

namespace nitinol {

std::string_view name_of(LibraryCall::Kind kind) {
  switch (kind) {
    case LibraryCall::Kind::matmul:
      return "matmul";
    case LibraryCall::Kind::take:
      return "take";
  }
  return "?";
}

}  // namespace nitinol
