#include "core/library.h"

namespace nitinol {

std::string_view name_of(LibraryCall::Kind kind) {
  switch (kind) {
    case LibraryCall::Kind::matmul:
      return "matmul";
    case LibraryCall::Kind::take:
      return "take";
    case LibraryCall::Kind::scatter_add:
      return "scatter_add";
    case LibraryCall::Kind::check_nonzero:
      return "check_nonzero";
  }
  return "?";
}

}  // namespace nitinol
