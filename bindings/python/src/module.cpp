// The Python module nitinol._ext: what `import nitinol` is made of.
#include "bindings/python/src/array.h"
#include "bindings/python/src/bind.h"

#include <set>

namespace nb = nanobind;

namespace {

std::set<std::string> names_in(const nb::module_& m) {
  std::set<std::string> names;
  const nb::object all = m.attr("__dict__");
  for (const nb::handle name : all) names.insert(nb::cast<std::string>(nb::str(name)));
  return names;
}

}  // namespace

NB_MODULE(_ext, m) {
  using namespace nitinol::python;  // NOLINT(google-build-using-namespace)
  m.attr("__version__") = NITINOL_VERSION;
  bind_errors(m);
  bind_types(m);
  bind_tensor(m);
  bind_variables(m);
  bind_arrays(m);
  bind_compile(m);
  bind_autograd(m);
  const std::set<std::string> before = names_in(m);
  bind_nn(m);
  const std::set<std::string> after = names_in(m);
  bind_system(m);
  bind_functions(m);
  // What `from nitinol._ext import *` means: layers and their like are nitinol.nn's.
  nb::list all;
  for (const std::string& name : names_in(m)) {
    const bool is_of_nn = after.contains(name) && !before.contains(name);
    if (!is_of_nn && !name.starts_with('_')) all.append(name);
  }
  m.attr("__all__") = all;
  bind_end(m);  // atexit: first, as what was registered last
}
