#include "core/own_file.h"

#include <dlfcn.h>
#include <sys/auxv.h>

namespace nitinol {

std::string own_file() {
  Dl_info here = {}, program = {};
  if (dladdr(reinterpret_cast<const void*>(&own_file), &here) == 0 || here.dli_fname == nullptr)
    return {};
  const bool is_program =
      dladdr(reinterpret_cast<const void*>(getauxval(AT_PHDR)), &program) != 0 &&
      program.dli_fbase == here.dli_fbase;
  return is_program ? "" : here.dli_fname;
}

std::string beside_own_file(std::string_view name) {
  const std::string library = own_file();
  return library.substr(0, library.rfind('/') + 1).append(name);
}

}  // namespace nitinol
