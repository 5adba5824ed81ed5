// The Python module nitinol._ext: what `import nitinol` is made of.
#include "bindings/python/src/array.h"
#include "bindings/python/src/bind.h"

#include <cstdlib>
#include <set>
#include <string_view>

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

/// The module as it was made, until the interpreter ends.
PyObject* first = nullptr;
bool has_begun = false;

/// Fills a module that was imported after the first was taken out of sys.modules: classes cannot be
/// bound twice, and objects of the first are about, so it has the same.
void fill_again(nb::module_& m) {
  const nb::dict modules = nb::module_::import_("sys").attr("modules");
  const nb::dict content = nb::handle(first).attr("__dict__");
  for (const auto [name, value] : content) {
    if (nb::cast<std::string>(nb::str(name)).starts_with("__")) continue;
    m.attr(name) = value;
    if (PyModule_Check(value.ptr())) modules[value.attr("__name__")] = value;
  }
  for (const char* name : {"__version__", "__all__"}) m.attr(name) = content[name];
}

void fill(nb::module_& m) {
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
  bind_dist(m);
  std::set<std::string> of_modules = names_in(m);  // nn and dist, which import them by their names
  std::erase_if(of_modules, [&](const std::string& name) { return before.contains(name); });
  of_modules.insert("ModuleBase");
  bind_profile(m);
  bind_curves(m);
  bind_system(m);
  bind_functions(m);
  add_signatures(m);
  set_all(m, of_modules);
  set_all(nb::borrow<nb::module_>(m.attr("dist")));
  set_all(nb::borrow<nb::module_>(m.attr("nn")));
  set_all(nb::borrow<nb::module_>(m.attr("random")));
  bind_end(m);  // atexit: first, as what was registered last
}

}  // namespace

NB_MODULE(_bound, m) {
  if (first != nullptr) return fill_again(m);
  has_begun = true;
  // What is alive when the process ends is no fault: torch.compile keeps frames, a daemon thread
  // what it computes with. The tests ask for the report, in processes where nothing may be.
  const char* const reports = std::getenv("NITINOL_REPORT_LEAKS");
  nb::set_leak_warnings(reports != nullptr && std::string_view(reports) == "1");
  fill(m);
  first = m.inc_ref().ptr();
  // Else everything in it would be there still when nanobind looks for leaks.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { Py_CLEAR(first); }));
}

/// What Python looks for. The library's state, and what its threads know of Python, are those of
/// one interpreter.
extern "C" NB_EXPORT PyObject* PyInit__ext();
PyObject* PyInit__ext() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError, "nitinol can be imported in the main interpreter only");
    return nullptr;
  }
  if (has_begun && first == nullptr) {
    PyErr_SetString(PyExc_ImportError,
                    "nitinol cannot be imported again: an earlier import failed, or the "
                    "interpreter is about to end");
    return nullptr;
  }
  return PyInit__bound();
}
