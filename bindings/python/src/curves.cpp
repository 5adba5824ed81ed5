// Training curves and summaries: what nitinol/_metric_log.py and _summary.py wrap.
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

/// Fields of rows, as _summary.py names them.
nb::list rows_of(const nn::Summary& summary) {
  nb::list rows;
  for (const nn::SummaryRow& row : summary.rows) {
    rows.append(nb::make_tuple(row.path, row.type, row.depth,
                               row.output ? describe(*row.output) : std::string(), row.parameters,
                               row.others, row.bytes, row.operations, row.shared, row.shared_with));
  }
  return rows;
}

/// `modules`: paths and types; `variables`: paths and Variables; `call`: None, or calls the model.
nn::Summary summary_of(nb::list modules, nb::list variables, nb::object call) {
  std::vector<nn::summaries::Part> parts;
  std::vector<nn::NamedVariable> named;
  for (const nb::handle part : modules)
    parts.push_back({nb::cast<std::string>(part[0]), nb::cast<std::string>(part[1])});
  for (const nb::handle one : variables) {
    const nb::object variable = one[1];
    named.push_back(
        {nb::cast<std::string>(one[0]), convert<Variable>({"summary", "a Variable", variable})});
  }
  const auto called = [&]() -> Tensor {
    const nb::object result = call();
    return is_tensor(result) ? convert<Tensor>({"summary", "the result", result}) : Tensor();
  };
  const FunctionRef<Tensor()> wanted = called;
  return nn::summaries::of(parts, named, call.is_none() ? nullptr : &wanted);
}

}  // namespace

void bind_curves(nb::module_& m) {
  nb::class_<nn::MetricLog>(m, "_MetricLog")
      .def(
          "__init__",
          [](nn::MetricLog* self, nb::handle folder, nb::handle flush_seconds) {
            const auto path = convert<std::filesystem::path>({"MetricLog", "folder", folder});
            const auto pause = convert<double>({"MetricLog", "flush_seconds", flush_seconds});
            unlocked([&] { new (self) nn::MetricLog(path, {.flush_seconds = pause}); });
          },
          nb::arg("folder").none(), nb::arg("flush_seconds").none())
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
          nb::arg("name").none(), nb::arg("value").none(), nb::arg("step").none())
      .def(
          "add_text",
          [](nn::MetricLog& self, nb::handle name, nb::handle text, nb::handle step) {
            const auto named = convert<std::string>({"MetricLog.add_text", "name", name});
            const auto said = convert<std::string>({"MetricLog.add_text", "text", text});
            const auto at = convert<int64_t>({"MetricLog.add_text", "step", step});
            unlocked([&] { self.add_text(named, said, at); });
          },
          nb::arg("name").none(), nb::arg("text").none(), nb::arg("step").none())
      .def(
          "add_histogram",
          [](nn::MetricLog& self, nb::handle name, nb::handle values, nb::handle step) {
            const auto named = convert<std::string>({"MetricLog.add_histogram", "name", name});
            const auto tensor = convert<Tensor>({"MetricLog.add_histogram", "values", values});
            const auto at = convert<int64_t>({"MetricLog.add_histogram", "step", step});
            unlocked([&] { self.add_histogram(named, tensor, at); });
          },
          nb::arg("name").none(), nb::arg("values").none(), nb::arg("step").none())
      .def("flush", [](nn::MetricLog& self) { unlocked([&] { self.flush(); }); })
      .def("lost", &nn::MetricLog::lost);
  nb::class_<nn::Summary>(m, "_Summary")
      .def("rows", &rows_of)
      .def(
          "table",
          [](const nn::Summary& self, nb::handle depth) {
            return nn::to_string(self, convert<int64_t>({"Summary.table", "depth", depth}));
          },
          nb::arg("depth").none());
  m.def("_summary", &summary_of, nb::arg("modules"), nb::arg("variables"), nb::arg("call").none());
  m.def(
      "_plot",
      [](nb::handle values, nb::handle title, nb::handle width, nb::handle height, nb::handle unit,
         nb::handle style) {
        const auto numbers = convert<std::vector<double>>({"plot", "values", values});
        return nn::plot(numbers,
                        {.title = convert<std::string>({"plot", "title", title}),
                         .width = convert<int64_t>({"plot", "width", width}),
                         .height = convert<int64_t>({"plot", "height", height}),
                         .unit = convert<std::string>({"plot", "unit", unit}),
                         .style = style_named(convert<std::string>({"plot", "style", style}))});
      },
      nb::arg("values").none(), nb::arg("title").none(), nb::arg("width").none(),
      nb::arg("height").none(), nb::arg("unit").none(), nb::arg("style").none());
}

}  // namespace nitinol::python
