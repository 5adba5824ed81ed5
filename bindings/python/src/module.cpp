// The Python module nitinol._ext: what `import nitinol` is made of.
#include "bindings/python/src/array.h"
#include "bindings/python/src/bind.h"

namespace nb = nanobind;

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
  bind_nn(m);
  bind_system(m);
  bind_functions(m);
  bind_end(m);  // atexit: first, as what was registered last
}
