// The Python module nitinol._ext: what `import nitinol` is made of.
#include "nitinol.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_ext, m) {
  m.attr("__version__") = NITINOL_VERSION;
}
