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

/// Sets `__all__`, of which `import *` takes what is not left out: public names that are no
/// modules.
void set_all(nb::module_ m, const std::set<std::string>& left_out = {}) {
  nb::list all;
  for (const std::string& name : names_in(m)) {
    const nb::object value = m.attr(name.c_str());
    if (!name.starts_with('_') && !left_out.contains(name) && !PyModule_Check(value.ptr()))
      all.append(name);
  }
  m.attr("__all__") = all;
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
  std::set<std::string> of_nn = names_in(m);  // which imports them by their names
  std::erase_if(of_nn, [&](const std::string& name) { return before.contains(name); });
  of_nn.insert("ModuleBase");
  bind_system(m);
  bind_functions(m);
  add_signatures(m);
  set_all(m, of_nn);
  set_all(nb::borrow<nb::module_>(m.attr("nn")));
  set_all(nb::borrow<nb::module_>(m.attr("random")));
  bind_end(m);  // atexit: first, as what was registered last
}
