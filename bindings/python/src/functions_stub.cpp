#include "bindings/python/src/bind.h"
namespace nitinol::python {
void bind_functions(nb::module_& m) {
  auto r = m.def_submodule("random");
  auto n = m.def_submodule("nn");
#define U(name)                                                                 \
  m.def(                                                                        \
      #name,                                                                    \
      [](nb::handle x) {                                                        \
        auto t = convert<Tensor>({#name, "x", x});                              \
        return to_python(computed(t.size(), [&] { return nitinol::name(t); })); \
      },                                                                        \
      nb::arg("x"));
  U(exp)
  U(tanh)
  U(relu) U(sqrt) U(log) U(sigmoid)
#define R(name)                                                                    \
  m.def(                                                                           \
      #name,                                                                       \
      [](nb::handle x, nb::handle axis) {                                          \
        auto t = convert<Tensor>({#name, "x", x});                                 \
        auto a = convert<Axes>({#name, "axis", axis});                             \
        return to_python(computed(t.size(), [&] { return nitinol::name(t, a); })); \
      },                                                                           \
      nb::arg("x"), nb::arg("axis") = nb::none());
      R(sum) R(mean) R(max) m.def("reshape", [](nb::handle x, nb::handle s) {
        return to_python(nitinol::reshape(convert<Tensor>({"reshape", "x", x}),
                                          convert<Dims>({"reshape", "shape", s})));
      });
  m.def("zeros", [](nb::handle s) {
    return to_python(nitinol::zeros(convert<Dims>({"zeros", "shape", s})));
  });
  m.def("ones", [](nb::handle s) {
    return to_python(nitinol::ones(convert<Dims>({"zeros", "shape", s})));
  });
  m.def("matmul", [](nb::handle x, nb::handle s) {
    return to_python(nitinol::matmul(convert<Tensor>({"reshape", "x", x}),
                                     convert<Tensor>({"reshape", "shape", s})));
  });
  r.def("randn", [](nb::handle s) {
    return to_python(nitinol::randn(convert<Dims>({"zeros", "shape", s})));
  });
  m.def("manual_seed", [](uint64_t s) { nitinol::manual_seed(s); });
  n.def("cross_entropy", [](nb::handle x, nb::handle y) {
    return to_python(
        nitinol::nn::cross_entropy(convert<Tensor>({"x", "x", x}), convert<Tensor>({"y", "y", y})));
  });
}
}  // namespace nitinol::python
