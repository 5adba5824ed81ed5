#include "tracer/shapes.h"

#include "core/error.h"

namespace nitinol::tracer {
namespace {

[[noreturn]] void throw_read(const char* what) {
  throw Error(ErrorKind::unsupported, {.where = what,
                                       .what = "a gradient rule looks at data",
                                       .expected = "a rule made of operations on Tensors alone",
                                       .got = "a look at data while a compiled function's gradient "
                                              "is worked out",
                                       .fix = "Express the decision with where()."});
}

class Shapes final : public Interpreter {
 public:
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override {
    if (op.kind == OpKind::view) {
      const TensorData& data = inputs[0]->internals();
      const ViewMap map = op.view(data.spec, data.strides, attrs);
      if (map.is_possible) return make_tensor(spec, map.strides, 0, {});
    }
    return make_tensor(spec, strides_of(spec.shape), 0, {});
  }
  void read(const Tensor&, const ReadSite& site) override { throw_read(site.what); }
  Tensor get(const Variable&) override { throw_read("Variable::get"); }
  void set(const Variable&, const Tensor&) override { throw_read("Variable::set"); }
  void created(const Tensor&) override {}
  void guard(const HostValueGuard&) override {}
};

}  // namespace

Interpreter& shapes_only() {
  static auto& shapes = *new Shapes;  // never destroyed
  return shapes;
}

}  // namespace nitinol::tracer
