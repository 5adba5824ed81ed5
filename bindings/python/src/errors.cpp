// What leaves C++ becomes an exception that is nitinol.Error and one of Python's own, so that both
// `except nitinol.Error` and `except ValueError` catch what their readers expect.
#include "bindings/python/src/errors.h"

#include "bindings/python/src/bind.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <mutex>
#include <new>

namespace nitinol::python {
namespace {

constexpr int kinds = static_cast<int>(ErrorKind::internal) + 1;
std::array<PyObject*, kinds> classes = {};
PyObject* bounds_class = nullptr;

PyObject* new_class(nb::module_& m, const char* name, const nb::tuple& bases, const char* doc) {
  const std::string full = std::string("nitinol.") + name;
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
  if (made == nullptr) throw nb::python_error();
  m.attr(name) = nb::handle(made);
  return made;
}

// What messages name that has another name in Python.
constexpr std::pair<std::string_view, std::string_view> all_words[] = {
    {"nn::parameters(model)", "model.parameters()"},
    {"nn::to(model, device)", "model.to(device)"},
    {"outside NoGradients", "outside no_gradients()"},
    {"DataLoader({images, labels}, …)", "DataLoader((images, labels))"},
    {"CompileOptions::signature_limit", "signature_limit"},
    {"Give {0, 0}", "Give (0, 0)"},
    {".to(f32)", ".to(nitinol.float32)"},
    {".to(f64)", ".to(nitinol.float64)"},
    {".to(i8)", ".to(nitinol.int8)"},
    {".to(i16)", ".to(nitinol.int16)"},
    {".to(i32)", ".to(nitinol.int32)"},
    {".to(i64)", ".to(nitinol.int64)"},
    {"; clamp limits", "; clip limits"},
    {"b.shape[", "x2.shape["},
    {", ddof", ", correction"},
    {"::", "."},
};

template <class Words>
std::string said_in(const Words& words, std::string text) {
  for (const auto& [from, to] : words) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }
  return text;
}

void translate(const std::exception_ptr& exception, void*) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    // Python's traceback says where.
    PyErr_SetString(class_of(error.kind()).ptr(), message_of(error).c_str());
  }
}

/// What waits for Python's lock.
struct Waiting {
  std::mutex mutex;
  std::vector<PyObject*> objects;
};
Waiting& waiting() {
  static auto* all = new Waiting;  // used until the very end
  return *all;
}

int when_locked(void*) {
  release_waiting();
  return 0;
}

}  // namespace

void release_waiting() {
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(waiting().mutex);
    objects.swap(waiting().objects);
  }
  for (PyObject* object : objects) Py_DECREF(object);
}

std::string message_of(const Error& error, const char* where) {
  if (where == nullptr) return said_in(all_words, error.message());
  ErrorReport report = error.report();
  if (!report.where.empty()) report.where = where;  // else it is about what all processes do
  return said_in(all_words, Error(error.kind(), std::move(report)).message());
}

Error in_words(const Words& words, const Error& error) {
  ErrorReport report = error.report();
  report.where = said_in(words, std::move(report.where));
  report.what = said_in(words, std::move(report.what));
  return {error.kind(), std::move(report)};
}

std::string with_article(std::string_view name) {
  const bool is_vowel =
      !name.empty() && std::string_view("aeioAEIO").find(name[0]) != std::string_view::npos;
  return fmt::format("{} {}", is_vowel ? "an" : "a", name);
}

nb::handle class_of(ErrorKind kind) {
  return classes[static_cast<std::size_t>(kind)];
}

nb::handle bounds_error() {
  return bounds_class;
}

void throw_python(nb::handle exception_class, const std::string& text) {
  PyErr_SetString(exception_class.ptr(), text.c_str());
  throw nb::python_error();
}

PyObject* raised() noexcept {
  try {
    throw;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const Error& error) {
    PyErr_SetString(class_of(error.kind()).ptr(), message_of(error).c_str());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of unknown type");
  }
  return nullptr;
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) noexcept {
  if (object == nullptr || object == Py_None) return Py_NewRef(self);
  try {
    const nb::object method = nb::module_::import_("types").attr("MethodType");
    return method(nb::handle(self), nb::handle(object)).release().ptr();
  } catch (...) {
    return raised();
  }
}

/// Runs no Python code: an interrupt would be raised in it, and lost.
std::string python_place(void*) {
  const Locked lock;
  const nb::error_scope kept;  // asked while an exception is on its way, too
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  if (!frame.is_valid()) return "";  // a thread that runs no Python
  for (; !frame.is_none(); frame = frame.attr("f_back")) {
    const nb::object name = frame.attr("f_globals").attr("get")("__name__", "");
    if (!PyUnicode_Check(name.ptr())) continue;
    const auto module = nb::cast<std::string>(name);
    if (module == "nitinol" || module.starts_with("nitinol.")) continue;
    auto file = nb::cast<std::string>(frame.attr("f_code").attr("co_filename"));
    std::error_code failed;
    const std::filesystem::path here = std::filesystem::current_path(failed);
    if (!failed && file.starts_with(here.native() + "/"))
      file = file.substr(here.native().size() + 1);
    const nb::object line = frame.attr("f_lineno");
    return file + ":" + std::to_string(PyLong_AsLong(line.ptr()));
  }
  return "";
}

void release_later(PyObject* object) noexcept {
  if (object == nullptr) return;
  try {
    const std::lock_guard lock(waiting().mutex);
    waiting().objects.push_back(object);
  } catch (...) {
    return;  // no memory: the object is leaked
  }
  // Refused where the list of such calls is full: then with the next object's.
  if (Py_IsInitialized() != 0) Py_AddPendingCall(when_locked, nullptr);
}

void bind_errors(nb::module_& m) {
  const auto base = nb::borrow(new_class(m, "Error", nb::make_tuple(nb::handle(PyExc_Exception)),
                                         "What Nitinol raises; see the classes derived from it."));
  const auto kind = [&](ErrorKind of, const char* name, PyObject* builtin, const char* doc) {
    classes[static_cast<std::size_t>(of)] =
        new_class(m, name, nb::make_tuple(base, nb::handle(builtin)), doc);
  };
  kind(ErrorKind::shape, "ShapeError", PyExc_ValueError, "Shapes, axes or indices do not fit.");
  kind(ErrorKind::dtype, "DTypeError", PyExc_TypeError,
       "An element type that the operation does not take.");
  kind(ErrorKind::device, "DeviceError", PyExc_RuntimeError,
       "No such device, or tensors on different ones.");
  kind(ErrorKind::value, "ArgumentError", PyExc_ValueError,
       "An argument or element out of its range; also memory that cannot be had.");
  kind(
      ErrorKind::io, "FileError", PyExc_OSError,
      "A file that cannot be read or written; or other processes (nitinol.dist) that do something\n"
      "else, or do not come in time.");
  kind(ErrorKind::compile, "CompileError", PyExc_RuntimeError,
       "Code generation failed, or a stance forbids what a call would do.");
  kind(ErrorKind::unsupported, "UnsupportedError", PyExc_NotImplementedError,
       "Meaningful, but not offered.");
  kind(ErrorKind::internal, "InternalError", PyExc_RuntimeError, "A bug in Nitinol.");
  bounds_class = new_class(m, "BoundsError",
                           nb::make_tuple(class_of(ErrorKind::shape), nb::handle(PyExc_IndexError)),
                           "An index that does not exist.");
  nb::register_exception_translator(translate);
}

}  // namespace nitinol::python
