// What optimizers share, schedules, data and files. layers.py writes layers and optimizers.
#include "bindings/python/src/nn.h"

#include "bindings/python/comments.h"
#include "bindings/python/src/bind.h"
#include "bindings/python/src/context.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace nitinol::python {

namespace {

/// convert<T> of an argument of `where`.
template <class T>
T given(const char* where, const char* name, nb::handle value) {
  return convert<T>({where, name, value});
}

nb::object named(const std::vector<nn::NamedVariable>& variables) {
  nb::dict all;
  for (const nn::NamedVariable& one : variables)
    all[nb::str(one.name.c_str())] = to_python(one.variable);
  return all;
}

void bind_optimizer(nb::module_& m) {
  nb::class_<nn::Optimizer>(m, "Optimizer", comments::Optimizer)
      .def("__init__",
           [](nn::Optimizer*, nb::args, nb::kwargs) {
             throw_python(PyExc_TypeError, "Optimizer: make one of Sgd, Adam and the others");
           })
      .def(
          "zero_grad",
          [](const nn::Optimizer& self) {
            const Unlocked release;
            self.zero_grad();
          },
          "Forgets all gradients. Call it before backward(), or those of several calls add up.")
      .def(
          "step",
          [](const nn::Optimizer& self, nb::handle when) {
            std::optional<Tensor> condition;
            if (!when.is_none()) condition = given<Tensor>("Optimizer.step", "when", when);
            const Unlocked release;
            condition ? self.step(*condition) : self.step();
          },
          nb::arg("when") = nb::none(),
          nb::sig("def step(self, when: TensorLike | None = None) -> None"),
          "Updates every parameter that has a gradient. when: one boolean, which is not read in "
          "Python; where it is False nothing changes.")
      .def(
          "rate", [](const nn::Optimizer& self, std::size_t group) { return self.rate(group); },
          nb::arg("group") = 0, "The learning rate of a group, a float64 number.")
      .def(
          "set_rate",
          [](const nn::Optimizer& self, double rate) {
            const Unlocked release;
            self.set_rate(rate);
          },
          nb::arg("rate"), "Sets the learning rate of all groups.")
      .def(
          "named_variables",
          [](const nn::Optimizer& self) { return named(nn::named_variables(self)); },
          nb::sig("def named_variables(self) -> dict[str, Variable]"),
          "Rate, step counts, running averages and parameters by name: what save() writes.");
}

void bind_rates(nb::module_& m) {
  nb::class_<PythonSchedule>(m, "Schedule", comments::Schedule)
      .def("__init__",
           [](PythonSchedule*, nb::args, nb::kwargs) {
             throw_python(PyExc_TypeError,
                          "Schedule: step_decay(), warm_up() and others make schedules");
           })
      .def(
          "__call__", [](const PythonSchedule& self, int64_t step) { return self.schedule(step); },
          nb::arg("step"), "The rate of a step, from 0 on.");
  bind_schedules(m);
  static Signature of_plateau(
      "Plateau",
      {"rate", "factor", "patience", "threshold", "absolute", "maximize", "cooldown", "last"}, 0, 1,
      1);
  of_plateau.intern();
  nb::class_<nn::Plateau>(m, "Plateau", comments::Plateau)
      .def("__init__",
           with_arguments<8, nn::Plateau*>(of_plateau,
                                           [](nn::Plateau* self, const Arguments& given) {
                                             nn::PlateauOptions o;
                                             Given(given)
                                                 .field(o.factor)
                                                 .field(o.patience)
                                                 .field(o.threshold)
                                                 .field(o.is_absolute)
                                                 .field(o.is_maximizing)
                                                 .field(o.cooldown)
                                                 .field(o.last);
                                             new (self) nn::Plateau(given.get<double>(0), o);
                                           }),
           nb::sig("def __init__(self, rate: float, *, factor: float = 0.1, patience: int = 10, "
                   "threshold: float = 0.0001, absolute: bool = False, maximize: bool = False, "
                   "cooldown: int = 0, last: float = 0.0) -> None"))
      .def("__call__", &nn::Plateau::operator(), nb::arg("metric"),
           "Takes the next metric and gives the rate that follows from it.")
      .def("rate", &nn::Plateau::rate, "The present rate.");
}

/// What _parametrizations.py computes by.
void bind_parametrizations(nb::module_& m) {
  namespace p = nn::parametrization;
  static const Words words = {{"weight_norm", "WeightNorm"}, {"spectral_norm", "SpectralNorm"}};
  const auto computed = [](auto&& f) {
    return in_words(words, [&] { return to_python(unlocked(f)); });
  };
  m.def("_norms", [=](const Tensor& weight, int64_t axis) {
    return computed([&] { return p::norms(weight, axis); });
  });
  m.def("_with_norms", [=](const Tensor& direction, const Tensor& norms, int64_t axis) {
    return computed([&] { return p::with_norms(direction, norms, axis); });
  });
  m.def("_check_spectral_norm", [](int64_t steps, double eps) {
    in_words(words, [&] { p::check_spectral_norm(steps, eps); });
  });
  m.def("_spectrum", [](const Tensor& weight, int64_t axis, double eps) {
    const p::Spectrum made = unlocked([&] { return p::spectrum(weight, axis, eps); });
    return nb::make_tuple(made.left, made.right);
  });
  m.def("_with_unit_spectrum", [=](const Tensor& weight, const Variable& left,
                                   const Variable& right, int64_t axis, int64_t steps, double eps) {
    return computed([&] { return p::with_unit_spectrum(weight, {left, right}, axis, steps, eps); });
  });
}

/// What Lbfgs has beside the others, whose class is written from nn/optimizers.h.
void bind_minimize(nb::module_& m) {
  const nn::MinimizeOptions usual;
  nb::object of_lbfgs = m.attr("Lbfgs");
  of_lbfgs.attr("minimize") = nb::cpp_function(
      [](const nn::Lbfgs& self, nb::callable loss, int64_t iterations, int64_t evaluations,
         double gradient_tolerance, double change_tolerance) {
        const auto call = [&]() -> Tensor {
          const Locked lock;
          return given<Tensor>("Lbfgs.minimize", "the loss", loss());
        };
        const nn::Minimum found = unlocked([&] {
          return self.minimize(call, {.iterations = iterations,
                                      .evaluations = evaluations,
                                      .gradient_tolerance = gradient_tolerance,
                                      .change_tolerance = change_tolerance});
        });
        return nb::module_::import_("nitinol._results")
            .attr("Minimum")(found.loss, found.iterations, found.evaluations, found.is_converged);
      },
      nb::name("minimize"), nb::scope(of_lbfgs), nb::is_method(), nb::arg("loss"), nb::kw_only(),
      nb::arg("iterations") = usual.iterations, nb::arg("evaluations") = usual.evaluations,
      nb::arg("gradient_tolerance") = usual.gradient_tolerance,
      nb::arg("change_tolerance") = usual.change_tolerance,
      nb::sig("def minimize(self, loss: typing.Callable[[], Tensor], *, iterations: int = 20, "
              "evaluations: int = 25, gradient_tolerance: float = 1e-07, change_tolerance: float = "
              "1e-09) -> _results.Minimum"),
      "Steps whose lengths a line search finds, by the strong Wolfe conditions. loss() computes "
      "the loss of the present parameters, calls backward() and returns it; gradients are cleared "
      "before. It may be compiled. It ends after so many iterations, each of at most so many "
      "evaluations of the loss, or where no element of a gradient, or no change, is larger than "
      "its "
      "tolerance.");
}

void bind_average(nb::module_& m) {
  static Signature of_average("Average", {"parameters", "decay"}, 0, 2, 1);
  of_average.intern();
  nb::class_<nn::Average>(m, "Average", comments::Average)
      .def("__init__",
           with_arguments<2, nn::Average*>(of_average,
                                           [](nn::Average* self, const Arguments& given) {
                                             new (self)
                                                 nn::Average(given.get<std::vector<Variable>>(0),
                                                             {.decay = given.get_or<double>(1, 1)});
                                           }),
           nb::sig("def __init__(self, parameters: Parameters, decay: float = 1.0) -> None"))
      .def(
          "update",
          [](const nn::Average& self) {
            const Unlocked release;
            self.update();
          },
          "Takes the present values in.")
      .def(
          "swap",
          [](const nn::Average& self) {
            const Unlocked release;
            self.swap();
          },
          "Exchanges the parameters' values and the averages; a second call exchanges them back.")
      .def(
          "copy_to",
          [](const nn::Average& self, nb::handle others) {
            const auto all = given<std::vector<Variable>>("Average.copy_to", "others", others);
            const Unlocked release;
            self.copy_to(all);
          },
          nb::arg("others"), nb::sig("def copy_to(self, others: Parameters) -> None"),
          "Sets other Variables, of the same shapes in the same order: those of a second model.")
      .def(
          "count", [](const nn::Average& self) { return self.count(); },
          "How many updates there were, a float64 number.")
      .def(
          "named_variables",
          [](const nn::Average& self) { return named(nn::named_variables(self)); },
          nb::sig("def named_variables(self) -> dict[str, Variable]"),
          "The count and the averages by name: what save() writes.");
}

struct AutocastContext : SettingContext {
  explicit AutocastContext(DType dtype)
      : SettingContext(Setting::autocast, static_cast<int>(dtype)) {}
};

void bind_precision(nb::module_& m) {
  static Signature of_autocast("autocast", {"dtype"}, 0, 1, 1);
  of_autocast.intern();
  bind_context<AutocastContext>(m, "autocast", comments::Autocast)
      .def("__init__",
           with_arguments<1, AutocastContext*>(of_autocast,
                                               [](AutocastContext* self, const Arguments& given) {
                                                 const DType dtype = given.get<DType>(0);
                                                 static_cast<void>(
                                                     nn::Autocast(dtype));  // checks it
                                                 new (self) AutocastContext(dtype);
                                               }),
           nb::sig("def __init__(self, dtype: DTypeLike) -> None"));
  static Signature of_scale("LossScale", {"initial", "growth", "backoff", "interval"}, 0, 0, 0);
  of_scale.intern();
  nb::class_<nn::LossScale>(m, "LossScale", comments::LossScale)
      .def(
          "__init__",
          with_arguments<4, nn::LossScale*>(
              of_scale,
              [](nn::LossScale* self, const Arguments& given) {
                nn::LossScaleOptions o;
                Given(given, 0).field(o.initial).field(o.growth).field(o.backoff).field(o.interval);
                new (self) nn::LossScale(o);
              }),
          nb::sig("def __init__(self, *, initial: float = 65536.0, growth: float = 2.0, "
                  "backoff: float = 0.5, interval: int = 2000) -> None"))
      .def(
          "__call__",
          [](const nn::LossScale& self, nb::handle loss) {
            const auto unscaled = given<Tensor>("LossScale", "loss", loss);
            return computed(0, [&] { return self(unscaled); });
          },
          nb::arg("loss"), nb::sig("def __call__(self, loss: TensorLike) -> Tensor"),
          "The loss as backward() should get it.")
      .def(
          "unscale",
          [](const nn::LossScale& self, nb::handle parameters, nb::handle group) {
            const auto all =
                given<std::vector<Variable>>("LossScale.unscale", "parameters", parameters);
            if (group.is_none()) return computed(0, [&] { return self.unscale(all); });
            const auto members = convert<dist::Group>({"LossScale.unscale", "group", group});
            return computed(long_work, [&] { return self.unscale(all, members); });
          },
          nb::arg("parameters"), nb::arg("group") = nb::none(),
          nb::sig(
              "def unscale(self, parameters: Parameters, group: Group | None = None) -> Tensor"),
          "Divides their gradients by the scale and adapts it; whether all of them are finite, for "
          "Optimizer.step().")
      .def(
          "value", [](const nn::LossScale& self) { return to_python(self.value()); },
          nb::sig("def value(self) -> Tensor"), "The scale now.")
      .def(
          "named_variables",
          [](const nn::LossScale& self) { return named(nn::named_variables(self)); },
          nb::sig("def named_variables(self) -> dict[str, Variable]"),
          "The scale and how long it has held, by name: what save() writes.");
}

/// A sampler of Python's: f(pass) returns numbers of samples.
nn::Sampler sampler_of(nb::handle f) {
  if (f.is_none()) return {};
  if (PyCallable_Check(f.ptr()) == 0)
    throw_type({"DataLoader", "sampler", f}, "a function of the pass, such as weighted() makes");
  return [f = nb::borrow(f)](uint64_t pass) {
    const nb::object numbers = f(pass);
    return convert<std::vector<int64_t>>({"DataLoader", "what the sampler gives", numbers});
  };
}

/// {number, of}.
nn::Shard shard_of(nb::handle shard) {
  if (shard.is_none()) return {};
  if (shard.type().is(types().group)) return nn::shard_of(nb::cast<dist::Group>(shard));
  const auto parts = convert<std::vector<int64_t>>({"DataLoader", "shard", shard});
  if (parts.size() != 2) throw_type({"DataLoader", "shard", shard}, "(number, of) or a dist.Group");
  return {.number = parts[0], .of = parts[1]};
}

void bind_data(nb::module_& m) {
  static Signature of_progress("Progress", {"name", "steps", "items", "unit"}, 0, 4, 0b11);
  of_progress.intern();
  m.def("_rows_of", [](nb::handle tensors) {
    auto all = given<std::vector<Tensor>>("DataLoader", "data", tensors);
    static_cast<void>(nn::DataLoader(all));  // checks them
    nb::list rows;
    for (Tensor& tensor : all) rows.append(to_python(std::move(tensor)));
    return rows;
  });
  nb::class_<nn::Metric>(m, "_Metric")
      .def_prop_ro("name", [](const nn::Metric& self) { return self.name; })
      .def("part",
           [](const nn::Metric& self, nb::handle out, nb::handle target) {
             const std::string name = self.name;
             const Tensor x = convert<Tensor>({name.c_str(), "out", out}),
                          y = convert<Tensor>({name.c_str(), "target", target});
             return computed(x.size(), [&] { return self.part(x, y); });
           })
      .def("of_rows", [](const nn::Metric& self, const Tensor& rows) {
        return computed(rows.size(), [&] { return self.of_rows(rows); });
      });
  m.def("_accuracy", &nn::accuracy);
  m.def("_mean_absolute_error", &nn::mean_absolute_error);
  m.def("_area_under_curve", &nn::area_under_curve);
  m.def("_top_k", [](nb::handle k) { return nn::top_k(given<int64_t>("top_k", "k", k)); });
  static Signature of_weighted("weighted", {"weights", "count", "seed"}, 0, 3, 0b11);
  of_weighted.intern();
  nb::class_<nn::Sampler>(m, "_Sampler")
      .def("__init__", with_arguments<3, nn::Sampler*>(
                           of_weighted,
                           [](nn::Sampler* self, const Arguments& given) {
                             new (self) nn::Sampler(nn::weighted(given.get<std::vector<double>>(0),
                                                                 given.get<Integer>(1),
                                                                 given.get_or<uint64_t>(2, 0)));
                           }))
      .def("__call__", [](const nn::Sampler& self, uint64_t pass) {
        nb::list numbers;
        for (const int64_t number : self(pass)) numbers.append(number);
        return numbers;
      });
  static Signature of_sampling("DataLoader",
                               {"data", "batch", "shuffle", "drop_last", "seed", "device",
                                "sampler", "shard", "workers", "prefetch"},
                               0, 2, 1);
  of_sampling.intern();
  // The options of nn.DataLoader (nitinol/_data.py), checked, and which samples make which batch.
  struct Order {
    nn::DataLoaderOptions options;
    nn::Sampling sampling;
  };
  nb::class_<Order>(m, "_Order")
      .def("__init__", with_arguments<10, Order*>(
                           of_sampling,
                           [](Order* self, const Arguments& given) {
                             const auto samples = given.get<int64_t>(0);
                             nn::DataLoaderOptions options = {
                                 .batch = given.get_or<Integer>(1, 32),
                                 .is_shuffled = given.get_or<std::optional<bool>>(2, {}),
                                 .drops_last = given.get_or(3, false),
                                 .seed = given.get_or<uint64_t>(4, 0),
                                 .device = given.get_or<std::optional<Device>>(5, {}),
                                 .workers = given.get_or<Integer>(8, 0),
                                 .prefetch = given.get_or<Integer>(9, 2)};
                             if (given.is_given(6)) options.sampler = sampler_of(given.value(6));
                             if (given.is_given(7)) options.shard = shard_of(given.value(7));
                             const nn::SamplingOptions sampling =
                                 nn::sampling_of(options, samples < 0);
                             new (self) Order{std::move(options), nn::Sampling(samples, sampling)};
                           }))
      .def("batches", [](const Order& self) { return self.sampling.batches(); })
      .def("range",
           [](const Order& self, int64_t i) {
             const auto [first, last] = self.sampling.range(i);
             return nb::make_tuple(first, last);
           })
      .def("begin",
           [](Order& self) {
             const nn::Sampling::Place place = self.sampling.begin();
             return nb::make_tuple(place.pass, place.batch);
           })
      .def("place",
           [](const Order& self) {
             const nn::Sampling::Place place = self.sampling.place();
             return nb::make_tuple(place.pass, place.batch);
           })
      .def("end_pass", [](Order& self) { self.sampling.end_pass(); })
      .def("reached",
           [](Order& self, uint64_t pass, int64_t batch) {
             self.sampling.reached({pass, batch});
           })
      .def("order",
           [](const Order& self, uint64_t pass) -> nb::object {
             const Tensor order = self.sampling.order(pass);
             return order.is_defined() ? to_python(order) : nb::none();
           })
      .def_prop_ro("batch", [](const Order& self) { return int64_t{self.options.batch}; })
      .def_prop_ro("drop_last", [](const Order& self) { return self.options.drops_last; })
      .def_prop_ro("device",
                   [](const Order& self) -> nb::object {
                     return self.options.device ? nb::cast(*self.options.device) : nb::none();
                   })
      .def_prop_ro("workers", [](const Order& self) { return int64_t{self.options.workers}; })
      .def_prop_ro("prefetch", [](const Order& self) { return int64_t{self.options.prefetch}; })
      .def("named_variables",
           [](const Order& self) { return named(nn::named_variables(self.sampling)); });
  nb::class_<nn::Progress>(m, "Progress", comments::Progress)
      .def("__init__",
           with_arguments<4, nn::Progress*>(of_progress,
                                            [](nn::Progress* self, const Arguments& given) {
                                              new (self) nn::Progress(
                                                  {.name = given.get<std::string>(0),
                                                   .steps = given.get<int64_t>(1),
                                                   .items = given.get_or<int64_t>(2, 1),
                                                   .unit = given.get_or<std::string>(3, "steps")});
                                            }),
           nb::sig("def __init__(self, name: str, steps: int, items: int = 1, unit: str = 'steps') "
                   "-> None"))
      .def("step", &nn::Progress::step, nb::arg("remark") = "",
           "Says that one more step is done. `remark` is shown as it is.")
      .def("is_due", &nn::Progress::is_due, "Whether step() would write now.");
}

std::vector<nn::NamedVariable> named_from(nb::dict variables) {
  std::vector<nn::NamedVariable> all;
  for (const auto [name, variable] : variables)
    all.push_back({given<std::string>("save", "a name", name),
                   given<Variable>("save", "a Variable", variable)});
  return all;
}

/// What load_pytorch() of Python has found: a state_dict or a file, Variables, which layers there
/// are, and the options.
nb::tuple load_pytorch_into(nb::handle source, nb::dict variables, nb::list layers,
                            nb::list renames, nb::handle untransposed, nb::handle unused,
                            bool is_strict) {
  const char* const where = "load_pytorch";
  const auto text = [&](const char* what, nb::handle value) {
    return given<std::string>(where, what, value);
  };
  SafetensorsFile file;
  std::string name = "the state";
  if (nb::isinstance<nb::dict>(source)) {
    for (const auto [key, tensor] : nb::borrow<nb::dict>(source))
      file.tensors.emplace_back(text("a name", key), given<Tensor>(where, "a tensor", tensor));
  } else {
    const auto path = given<std::filesystem::path>(where, "source", source);
    name = '"' + path.string() + '"';
    file = unlocked([&] { return nn::module::read_pytorch(path, {}); });
  }
  std::vector<nn::NamedVariable> all;
  for (const auto [key, variable] : variables)
    all.push_back({text("a name", key), given<Variable>(where, "a Variable", variable)});
  std::vector<nn::module::Layer> types;
  for (const nb::handle pair : layers)
    types.push_back({text("a path", pair[0]), text("a type", pair[1])});
  nn::PytorchOptions options;
  for (const nb::handle pair : renames)
    options.rename.emplace_back(text("rename", pair[0]), text("rename", pair[1]));
  for (const nb::handle one : nb::borrow<nb::list>(untransposed))
    options.untransposed.push_back(text("untransposed", one));
  for (const nb::handle one : nb::borrow<nb::list>(unused))
    options.unused.push_back(text("unused", one));
  options.is_strict = is_strict;
  const nn::LoadReport report =
      unlocked([&] { return nn::module::load_pytorch(name, file, all, types, options, {}); });
  nb::list rows;
  for (const nn::LoadedTensor& one : report.tensors) {
    nb::list names;
    for (const std::string& from : one.from) names.append(nb::str(from.c_str(), from.size()));
    rows.append(nb::make_tuple(names, nb::str(one.to.c_str(), one.to.size()), one.how));
  }
  const std::string said = to_string(report);
  return nb::make_tuple(rows, nb::str(said.c_str(), said.size()));
}

}  // namespace

template <>
nn::Schedule convert<nn::Schedule>(const From& from) {
  if (!nb::isinstance<PythonSchedule>(from.value))
    throw_type(from, "a Schedule, such as cosine_decay() makes");
  return nb::cast<const PythonSchedule&>(from.value).schedule;
}

void bind_nn(nb::module_& parent) {
  nb::module_ m = parent;
  bind_layers(m);
  bind_optimizer(m);
  bind_optimizers(m);
  bind_minimize(m);
  bind_parametrizations(m);
  bind_rates(m);
  bind_average(m);
  bind_precision(m);
  bind_data(m);
  m.def("_save", [](nb::handle path, nb::dict variables) {
    const auto file = given<std::filesystem::path>("save", "path", path);
    const auto all = named_from(std::move(variables));
    const Unlocked release;
    nn::save(file, all);
  });
  m.def("_load", [](nb::handle path, nb::dict variables) {
    const auto file = given<std::filesystem::path>("load", "path", path);
    const auto all = named_from(std::move(variables));
    const Unlocked release;
    nn::load(file, all);
  });
  m.def("_load_pytorch", &load_pytorch_into);
}

}  // namespace nitinol::python
