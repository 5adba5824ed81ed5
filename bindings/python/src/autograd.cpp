// What grad(), vjp() and others of the package are made of: the arguments of one differentiation,
// and functions with gradients of their own.
#include "autograd/node.h"
#include "bindings/python/src/bind.h"
#include "bindings/python/src/context.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/tape.h"

#include <memory>

namespace nitinol::python {
namespace {

struct GradientsContext : SettingContext {
  explicit GradientsContext(bool notes) : SettingContext(Setting::gradients, notes ? 1 : 0) {}
};

/// A callable of Python in a std::function, which may be called and die on any thread.
std::shared_ptr<PyObject> shared(nb::object callable) {
  return {callable.release().ptr(), [](PyObject* object) { release_later(object); }};
}
/// The same for a node's rule.
std::shared_ptr<PyObject> shared(nb::object callable, HeldCallables& held) {
  std::shared_ptr<PyObject> made = shared(std::move(callable));
  std::erase_if(held, [](const auto& one) { return one.expired(); });  // of gradients before
  held.push_back(made);
  return made;
}

std::vector<Tensor> tensors_of(const char* where, nb::handle given) {
  return convert<std::vector<Tensor>>({where, "the tensors", given});
}

nb::object list_of(const std::vector<Tensor>& tensors) {
  return to_python(std::vector<Tensor>(tensors));
}

nb::object call(PyObject* callable, nb::handle argument) {
  return nb::handle(callable)(argument);
}

/// One per argument; None for none.
std::vector<Tensor> gradients_of(nb::handle given) {
  std::vector<Tensor> gradients;
  if (is_tensor(given) || given.is_none()) {
    gradients.push_back(given.is_none() ? Tensor() : tensor_in(given));
    return gradients;
  }
  for (const nb::object& one : parts::elements({"custom_gradient", "the gradients", given},
                                               "a Tensor, or one for each argument"))
    gradients.push_back(one.is_none() ? Tensor()
                                      : convert<Tensor>({"custom_gradient", "a gradient", one}));
  return gradients;
}

nb::object customized(nb::object f, nb::handle arguments) {
  const auto held = std::make_shared<HeldCallables>();
  const std::shared_ptr<PyObject> callable = shared(std::move(f), *held);
  const std::vector<Tensor> tensors = tensors_of("custom_gradient", arguments);
  Tensor result = unlocked([&] {
    return autograd::customized(
        [callable, held](const std::vector<Tensor>& x) {
          const Locked lock;
          const nb::object both = call(callable.get(), list_of(x));
          if (!PyTuple_Check(both.ptr()) || nb::len(both) != 2)
            throw_python(PyExc_TypeError,
                         "custom_gradient: the function must return (result, pull)");
          const std::shared_ptr<PyObject> pull = shared(both[1], *held);
          return std::pair<Tensor, autograd::Pull>(
              convert<Tensor>({"custom_gradient", "the result", both[0]}),
              [pull](const Tensor& gradient) {
                const Locked again;
                return gradients_of(call(pull.get(), to_python(gradient)));
              });
        },
        tensors);
  });
  note_held(result, held);
  return to_python(std::move(result));
}

nb::object checkpointed(nb::object f, nb::handle arguments) {
  const auto held = std::make_shared<HeldCallables>();
  const std::shared_ptr<PyObject> callable = shared(std::move(f), *held);
  const std::vector<Tensor> tensors = tensors_of("checkpoint", arguments);
  std::vector<Tensor> results = unlocked([&] {
    return autograd::checkpointed(
        [callable, held](const std::vector<Tensor>& x) {
          const Locked lock;
          return tensors_of("checkpoint", call(callable.get(), list_of(x)));
        },
        tensors);
  });
  for (const Tensor& result : results) note_held(result, held);
  return to_python(std::move(results));
}

}  // namespace

void bind_autograd(nb::module_& m) {
  using autograd::Arguments;
  nb::class_<Arguments>(m, "_Arguments", "Arguments that gradients are asked for.")
      .def(nb::init<>())
      .def("add",
           [](Arguments& self, nb::handle value) {
             return to_python(self.add(convert<Tensor>({"grad", "an argument", value})));
           })
      .def(
          "gradients",
          [](Arguments& self, nb::handle results, nb::handle seeds, bool keep) {
            const std::vector<Tensor> of = tensors_of("grad", results);
            const std::vector<Tensor> by =
                seeds.is_none() ? autograd::ones_for(of) : tensors_of("grad", seeds);
            return to_python(unlocked([&] { return self.gradients(of, by, keep); }));
          },
          nb::arg("results"), nb::arg("seeds") = nb::none(), nb::arg("keep") = false)
      .def("push_forward",
           [](Arguments& self, nb::handle results, nb::handle tangents) {
             const std::vector<Tensor> of = tensors_of("jvp", results);
             const std::vector<Tensor> along = tensors_of("jvp", tangents);
             return to_python(unlocked([&] { return autograd::push_forward(self, of, along); }));
           })
      .def("released", [](const Arguments& self, nb::handle result) {
        return to_python(self.released(tensor_in(result)));
      });
  m.def("_check_scalar", [](const std::string& where, nb::handle result) {
    autograd::check_scalar(where.c_str(), convert<Tensor>({"grad", "the loss", result}));
  });
  m.def("_hessian", [](nb::object f, nb::handle argument) {
    const std::shared_ptr<PyObject> callable = shared(std::move(f));
    const auto x = convert<Tensor>({"hessian", "the argument", argument});
    return to_python(unlocked([&] {
      return hessian(
          [callable](const Tensor& at) {
            const Locked lock;
            return convert<Tensor>({"hessian", "the result", call(callable.get(), to_python(at))});
          },
          x);
    }));
  });
  m.def("_check_gradients", [](nb::object f, nb::handle inputs, double step, double tolerance) {
    const std::shared_ptr<PyObject> callable = shared(std::move(f));
    const std::vector<Tensor> tensors = tensors_of("check_gradients", inputs);
    const Unlocked release;
    autograd::check_gradients(
        [callable](const std::vector<Tensor>& x) {
          const Locked lock;
          return tensors_of("check_gradients", call(callable.get(), list_of(x)));
        },
        tensors, {.order = 1, .step = step, .tolerance = tolerance});
  });
  m.def("_customized", customized);
  m.def("_checkpointed", checkpointed);
  m.def(
      "stop_gradient",
      [](nb::handle x) {
        return to_python(stop_gradient(convert<Tensor>({"stop_gradient", "x", x})));
      },
      nb::arg("x"), nb::sig("def stop_gradient(x: TensorLike) -> Tensor"),
      "The same value, for which no gradient flows.");
  bind_context<GradientsContext>(m, "_Gradients", "Notes operations, or not.")
      .def(nb::init<bool>(), nb::arg("argument"));
  bind_context<Context<autograd::DifferentiationScope, int>>(m, "_Differentiation",
                                                             "Inside so many differentiations.")
      .def(nb::init<int>(), nb::arg("argument"));
}

}  // namespace nitinol::python
