// Training curves: what nitinol/_metric_log.py wraps.
#include "bindings/python/src/bind.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/lock.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::python {
namespace {

nn::PlotStyle style_named(const std::string& name) {
  if (name == "braille") return nn::PlotStyle::braille;
  if (name == "ascii") return nn::PlotStyle::ascii;
  throw Error(ErrorKind::value, {.where = "plot",
                                 .what = "the argument `style`",
                                 .expected = "'braille', 'ascii' or None",
                                 .got = "'" + name + "'"});
}

}  // namespace

void bind_curves(nb::module_& m) {
  nb::class_<nn::MetricLog>(m, "_MetricLog")
      .def(
          "__init__",
          [](nn::MetricLog* self, nb::handle folder, double flush_seconds) {
            const auto path = convert<std::filesystem::path>({"MetricLog", "folder", folder});
            unlocked([&] { new (self) nn::MetricLog(path, {.flush_seconds = flush_seconds}); });
          },
          nb::arg("folder"), nb::arg("flush_seconds"))
      .def(
          "add",
          [](nn::MetricLog& self, nb::handle name, nb::handle value, nb::handle step) {
            const auto named = convert<std::string>({"MetricLog.add", "name", name});
            const auto at = convert<int64_t>({"MetricLog.add", "step", step});
            if (PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr())) {  // as float64
              const auto number = convert<double>({"MetricLog.add", "value", value});
              return unlocked([&] { self.add(named, number, at); });
            }
            const auto tensor = convert<Tensor>({"MetricLog.add", "value", value});
            unlocked([&] { self.add(named, tensor, at); });
          },
          nb::arg("name"), nb::arg("value"), nb::arg("step"))
      .def(
          "add_text",
          [](nn::MetricLog& self, nb::handle name, nb::handle text, nb::handle step) {
            const auto named = convert<std::string>({"MetricLog.add_text", "name", name});
            const auto said = convert<std::string>({"MetricLog.add_text", "text", text});
            const auto at = convert<int64_t>({"MetricLog.add_text", "step", step});
            unlocked([&] { self.add_text(named, said, at); });
          },
          nb::arg("name"), nb::arg("text"), nb::arg("step"))
      .def(
          "add_histogram",
          [](nn::MetricLog& self, nb::handle name, nb::handle values, nb::handle step) {
            const auto named = convert<std::string>({"MetricLog.add_histogram", "name", name});
            const auto tensor = convert<Tensor>({"MetricLog.add_histogram", "values", values});
            const auto at = convert<int64_t>({"MetricLog.add_histogram", "step", step});
            unlocked([&] { self.add_histogram(named, tensor, at); });
          },
          nb::arg("name"), nb::arg("values"), nb::arg("step"))
      .def("flush", [](nn::MetricLog& self) { unlocked([&] { self.flush(); }); })
      .def("lost", &nn::MetricLog::lost);
  m.def(
      "_plot",
      [](nb::handle values, const std::string& title, int64_t width, int64_t height,
         const std::string& unit, const std::string& style) {
        const auto numbers = convert<std::vector<double>>({"plot", "values", values});
        return nn::plot(numbers, {.title = title,
                                  .width = width,
                                  .height = height,
                                  .unit = unit,
                                  .style = style_named(style)});
      },
      nb::arg("values"), nb::arg("title"), nb::arg("width"), nb::arg("height"), nb::arg("unit"),
      nb::arg("style"));
}

}  // namespace nitinol::python
