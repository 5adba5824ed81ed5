// compile(f): CompiledFunction, the untyped half of C++'s Compiled<F>, over structures of Python.
//
// Python's lock is given away for each call, and taken by what has to run Python: f, and what looks
// at its arguments and results. So no thread waits for a lock of ours while it holds Python's.
#include "bindings/python/src/compile.h"

#include "bindings/python/src/arguments.h"
#include "bindings/python/src/bind.h"
#include "bindings/python/src/context.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/function.h"

#include <fmt/format.h>

#include <memory>

namespace nitinol::python {
namespace {

/// The recording that this thread is running f for.
struct RecordedCall {
  std::span<const Tensor> stand_ins;
  uint64_t first_epoch;  ///< tensors born from here on are the call's
  const RecordedCall* outer;
};
constinit thread_local const RecordedCall* recorded = nullptr;

class RecordedScope {
 public:
  explicit RecordedScope(std::span<const Tensor> stand_ins)
      : call_{stand_ins, current_epoch(), recorded} {
    recorded = &call_;
  }
  ~RecordedScope() { recorded = call_.outer; }
  RecordedScope(const RecordedScope&) = delete;
  RecordedScope& operator=(const RecordedScope&) = delete;

 private:
  RecordedCall call_;
};

/// The compiled function and what belongs to it.
struct Compiled {
  Compiled(nb::object f, std::shared_ptr<jit::CompiledFunction> c, std::vector<std::string> n,
           bool sees)
      : function(std::move(f)), compiled(std::move(c)), names(std::move(n)), sees_order(sees) {}
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    {
      const Unlocked release;  // it may be compiling on a thread of its own
      compiled.reset();
    }
    release_waiting();  // what its signatures held: at the interpreter's end nobody else does
    interned->clear();
  }

  nb::object function;
  std::shared_ptr<jit::CompiledFunction> compiled;
  std::vector<std::string> names;  ///< of the positional parameters
  bool sees_order;                 ///< it has **kwargs, or may have
  std::shared_ptr<Interned> interned = std::make_shared<Interned>(compiled);
  std::shared_ptr<Trees> trees = std::make_shared<Trees>();
};

class PythonCaller final : public jit::Caller {
 public:
  PythonCaller(Compiled& compiled, const ArgumentLeaves& arguments)
      : compiled_(compiled), arguments_(arguments) {}

  void run() override {
    const Locked lock;
    call({.tensors = arguments_.tensors().data()});
  }
  void run_on(std::span<const Tensor> tensors, std::span<const Tensor> scalars) override {
    const Locked lock;
    const RecordedScope scope(tensors);
    // Where there are no Scalars, none is asked for.
    call({.tensors = tensors.data(), .scalars = scalars.data()});
    if (!tree_->obstacle().empty()) obstruct(tree_->obstacle());
  }
  void result_leaves(jit::Leaves& leaves) override {
    for (const Tensor& tensor : tensors_) leaves.tensors.push_back(&tensor);
    for (const uint64_t word : words_) leaves.fixed.push_back(word);
  }
  void change_result(FunctionRef<void(Tensor&)> change) override {
    for (Tensor& tensor : tensors_) {
      const TensorData* before = tensor.handle().get();
      change(tensor);
      is_changed_ |= tensor.handle().get() != before;
    }
  }
  std::vector<jit::Word> describe_arguments(std::span<const std::string> names) override {
    const Locked lock;
    return arguments_.describe(names);
  }
  std::shared_ptr<const jit::Meaning> meaning() override {
    const Locked lock;
    return arguments_.meaning();
  }
  std::shared_ptr<const void> result_form() override { return tree_; }
  void restore(const void* form, std::span<Tensor> tensors) override {
    tree_ = static_cast<const Tree*>(form)->shared_from_this();
    tensors_.assign(std::make_move_iterator(tensors.begin()),
                    std::make_move_iterator(tensors.end()));
    is_changed_ = true;
  }

  /// What the call returns; with Python's lock.
  nb::object result() {
    if (!is_changed_) return std::move(result_);
    return tree_->unflatten(tensors_);
  }

 private:
  void call(Replacement by) {
    const Given given = arguments_.replaced(by);
    result_ = nb::steal(
        PyObject_Call(compiled_.function.ptr(), given.positional.ptr(), given.named.ptr()));
    if (!result_.is_valid()) throw nb::python_error();
    tensors_.clear();
    words_.clear();
    tree_ = Tree::of(result_, *compiled_.interned, compiled_.trees, tensors_, words_);
    is_changed_ = false;
  }

  Compiled& compiled_;
  const ArgumentLeaves& arguments_;
  nb::object result_;
  std::shared_ptr<const Tree> tree_;
  std::vector<Tensor> tensors_;
  std::vector<uint64_t> words_;
  bool is_changed_ = false;
};

enum class How : uint8_t { compiled, eagerly };

/// Keyword arguments as the signature has them: for who does not see their order f(a=1, b=2) is
/// f(b=2, a=1), in the order of the names.
nb::object ordered(nb::handle named, bool sees_order) {
  if (sees_order || PyDict_Size(named.ptr()) < 2) return nb::borrow(named);
  nb::object keys = nb::steal(PyDict_Keys(named.ptr()));
  if (PyList_Sort(keys.ptr()) != 0) throw nb::python_error();
  nb::dict in_order;
  for (const nb::handle key : keys) in_order[key] = named[key];
  return in_order;
}

nb::object call(Compiled& self, PyObject* positional, PyObject* named, How how) {
  const nb::object in_order =
      named != nullptr && PyDict_Size(named) > 0 ? ordered(named, self.sees_order) : nb::object();
  const ArgumentLeaves arguments({positional, in_order}, self.names, *self.interned);
  PythonCaller caller(self, arguments);
  {
    const Unlocked release;
    const PlaceScope place(python_place);
    if (is_watched()) {
      self.compiled->call_inlined(caller);
    } else if (how == How::eagerly) {
      self.compiled->call_eagerly(arguments.leaves(), caller);
    } else {
      self.compiled->call(arguments.leaves(), caller);
    }
  }
  return caller.result();
}

// ---- the type

Compiled& compiled_in(PyObject* self) {
  if (!nb::inst_ready(self))
    throw_python(PyExc_TypeError, "a Compiled that was made without compile()");
  return *nb::inst_ptr<Compiled>(self);
}

PyObject* call_slot(PyObject* self, PyObject* positional, PyObject* named) {
  try {
    const nb::object kept = nb::borrow(self);  // another thread may drop it meanwhile
    return call(compiled_in(self), positional, named, How::compiled).release().ptr();
  } catch (...) {
    return raised();
  }
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  Compiled& compiled = compiled_in(self);
  Py_VISIT(compiled.function.ptr());
  if (const int stopped = compiled.interned->traverse(visit, arg)) return stopped;
  return compiled.trees->traverse(visit, arg);
}

int clear(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  Compiled& compiled = compiled_in(self);
  compiled.function.reset();
  compiled.interned->clear();
  return 0;
}

const PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_slot)},
                             {Py_tp_descr_get, reinterpret_cast<void*>(bind_compiled)},
                             {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(clear)},
                             {0, nullptr}};

struct StanceContext : SettingContext {
  explicit StanceContext(Stance stance)
      : SettingContext(Setting::stance, static_cast<int>(stance)) {}
};

struct NanContext : SettingContext {
  explicit NanContext(bool infinity)
      : SettingContext(Setting::result_check,
                       static_cast<int>(infinity ? ResultCheck::infinity : ResultCheck::nan)) {}
};

struct ShadowContext : SettingContext {
  ShadowContext() : SettingContext(Setting::result_check, static_cast<int>(ResultCheck::shadow)) {}
};

Check check_named(const std::string& name) {
  if (name == "scheduled") return Check::scheduled;
  if (name == "always") return Check::always;
  if (name == "never") return Check::never;
  throw_python(class_of(ErrorKind::value),
               "compile: check is '" + name + "'; expected 'scheduled', 'always' or 'never'");
}

Stance stance_named(const std::string& name) {
  constexpr std::pair<const char*, Stance> all[] = {
      {"normal", Stance::normal},
      {"eager", Stance::eager},
      {"fail_on_recompile", Stance::fail_on_recompile},
      {"fail_on_fallback", Stance::fail_on_fallback}};
  for (const auto& [text, stance] : all) {
    if (name == text) return stance;
  }
  throw_python(class_of(ErrorKind::value),
               "stance '" + name +
                   "'; expected 'normal', 'eager', 'fail_on_recompile' or "
                   "'fail_on_fallback'");
}

void make_compiled(Compiled* self, const Arguments& given) {
  const nb::handle function = given.value(0);
  if (PyCallable_Check(function.ptr()) == 0)
    throw_type({"compile", "f", function}, "something that can be called");
  CompileOptions options;
  options.name = given.get<std::string>(1);
  options.arguments = given.get<std::vector<std::string>>(2);
  const auto sees_order = given.get<bool>(3);
  options.check = check_named(given.get<std::string>(4));
  options.check_interval = std::chrono::milliseconds(static_cast<int64_t>(given.get<double>(5)));
  options.signature_limit = given.get<uint64_t>(6);
  options.in_background = given.get<bool>(7);
  options.quick_code = given.get<bool>(8);
  if (!given.value(9).is_none()) options.autocast = given.get<DType>(9);
  options.check_nan = given.get<bool>(10);
  options.shadow = given.get<bool>(11);
  std::vector<std::string> names = options.arguments;
  // is_const: Python orders calls of one function itself.
  auto compiled = std::make_shared<jit::CompiledFunction>(std::move(options), true);
  new (self) Compiled(nb::borrow(function), std::move(compiled), std::move(names), sees_order);
}

}  // namespace

void obstruct(const std::string& reason) {
  if (auto* recorder = dynamic_cast<tracer::Recorder*>(&current())) recorder->obstruct(reason);
}

void note_read(const Tensor& tensor, const char* what) {
  if (is_watched()) current().read(tensor, {.what = what, .place = {}});
}

void note_look(const Scalar& number, const char* what) {
  if (number.traced().is_defined()) note_read(number.traced(), what);
}

bool is_of_this_call(uint64_t birth) {
  return recorded != nullptr && birth >= recorded->first_epoch;
}

void check_assignable(const Tensor& tensor) {
  if (recorded == nullptr || !tracer::is_recording()) return;
  if (is_of_this_call(tensor.internals().birth)) return;
  for (const Tensor& stand_in : recorded->stand_ins) {
    if (stand_in.handle() == tensor.handle()) return;
  }
  obstruct(
      "the function assigns elements of a tensor that was made outside of it; pass it as an "
      "argument and return the new one, or hold it in a Variable");
}

void bind_compile(nb::module_& m) {
  bind_pytrees(m);
  bind_compiled_methods(m);
  static Signature of_compile(
      "compile",
      {"function", "name", "arguments", "sees_order", "check", "check_interval_ms",
       "signature_limit", "in_background", "quick_code", "autocast", "check_nan", "shadow"},
      0, 12, 0xfff);
  of_compile.intern();
  bind_explanation(m);
  nb::class_<Compiled> compiled(m, "Compiled", nb::type_slots(slots), nb::is_final(),
                                nb::is_generic(), nb::is_weak_referenceable(),
                                nb::sig("class Compiled(typing.Generic[_P, _R])"),
                                "What compile() returns.");
  compiled
      .def(
          "__init__", with_arguments<12, Compiled*>(of_compile, make_compiled),
          nb::sig("def __init__(self, function: collections.abc.Callable[_P, _R], name: str, "
                  "arguments: collections.abc.Sequence[str], sees_order: bool, check: str, "
                  "check_interval_ms: float, signature_limit: int, in_background: bool, "
                  "quick_code: bool, autocast: DTypeLike | None, check_nan: bool, shadow: bool) -> "
                  "None"))
      .def(
          "eager",
          [](Compiled& self, nb::args positional, nb::kwargs named) {
            return call(self, positional.ptr(), named.ptr(), How::eagerly);
          },
          nb::sig("def eager(self, *args: _P.args, **kwargs: _P.kwargs) -> _R"),
          "Calls the function as it is written.")
      .def("_explain",
           [](const Compiled& self) { return unlocked([&] { return self.compiled->explain(); }); })
      .def(
          "set_stance",
          [](const Compiled& self, const std::string& stance) {
            const Stance wanted = stance_named(stance);
            const Unlocked release;
            self.compiled->set_stance(static_cast<int>(wanted));
          },
          nb::arg("stance"), "Overrides the thread's and the process's stance for this function.")
      .def_prop_ro(
          "__wrapped__", [](const Compiled& self) { return self.function; },
          nb::sig("def __wrapped__(self) -> collections.abc.Callable[_P, _R]"));

  static Signature of_stance("stance", {"name"}, 0, 1, 1);
  of_stance.intern();
  bind_context<StanceContext>(
      m, "stance",
      "with stance(name): how this thread's compiled functions behave: 'normal', 'eager' (as they "
      "are written), 'fail_on_recompile' or 'fail_on_fallback'.")
      .def("__init__",
           with_arguments<1, StanceContext*>(of_stance,
                                             [](StanceContext* self, const Arguments& given) {
                                               new (self) StanceContext(
                                                   stance_named(given.get<std::string>(0)));
                                             }),
           nb::sig("def __init__(self, name: str) -> None"));
  static Signature of_debug_nans("debug_nans", {"infinity"}, 0, 0, 0);
  of_debug_nans.intern();
  bind_context<NanContext>(
      m, "debug_nans",
      "with debug_nans(): an operation of this thread that gives NaN, out of operands that have\n"
      "none, raises an Error with element and operands; a compiled call is looked through at its\n"
      "end, before anything is assigned, and runs again op by op to tell. infinity=True: infinity\n"
      "too. NITINOL_CHECK=nan (or infinity) is that for the whole process.")
      .def("__init__",
           with_arguments<1, NanContext*>(of_debug_nans,
                                          [](NanContext* self, const Arguments& given) {
                                            new (self)
                                                NanContext(given.is_given(0) && given.get<bool>(0));
                                          }),
           nb::sig("def __init__(self, *, infinity: bool = False) -> None"));
  static Signature of_shadow("shadow", {}, 0, 0, 0);
  of_shadow.intern();
  bind_context<ShadowContext>(
      m, "shadow",
      "with shadow(): each compiled call of this thread also runs op by op. If the bits differ,\n"
      "which is a mistake of this library, an Error says what causes it and where a program is\n"
      "that shows it; nothing is assigned. NITINOL_CHECK=shadow is that for the whole process.")
      .def(
          "__init__",
          with_arguments<1, ShadowContext*>(
              of_shadow, [](ShadowContext* self, const Arguments&) { new (self) ShadowContext(); }),
          nb::sig("def __init__(self) -> None"));
  m.def(
      "shadow_difference",
      [](const std::string& graph, nb::handle inputs) {
        return shadow_difference(
            graph, convert<std::vector<Tensor>>({"shadow_difference", "inputs", inputs}));
      },
      nb::arg("graph"), nb::arg("inputs"),
      nb::sig("def shadow_difference(graph: str, inputs: collections.abc.Sequence[TensorLike]) -> "
              "str"),
      "Computes a graph, given as text, compiled and op by op. Returns the first difference as a\n"
      "sentence, or an empty text. inputs: one for each of the graph's.");
  m.def(
      "set_stance", [](const std::string& name) { set_stance(stance_named(name)); },
      nb::arg("name"), "The same for the whole process.");
  m.def(
      "is_recording", [] { return tracer::is_recording(); },
      "Whether this thread is recording a call of a compiled function.");
}

}  // namespace nitinol::python
