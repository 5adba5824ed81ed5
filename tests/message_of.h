// What the Error says that a call throws.
#pragma once

#include "nitinol.h"

#include <string>

namespace nitinol::test {

/// Its message; nothing, if there is none.
std::string message_of(const auto& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace nitinol::test
