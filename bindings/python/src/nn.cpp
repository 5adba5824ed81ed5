// Layers, optimizers and data: the package's classes hold the Variables, C++ computes.
#include "bindings/python/src/bind.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/function.h"

#include <algorithm>
#include <memory>

namespace nitinol::python {
namespace {

/// convert<T> of an argument of `where`.
template <class T>
T given(const char* where, const char* name, nb::handle value) {
  return convert<T>({where, name, value});
}

nb::object optional(const std::optional<Variable>& variable) {
  return variable ? to_python(*variable) : nb::none();
}

/// What a layer with weights and a bias holds.
template <class Layer>
nb::tuple parts_of(const Layer& layer) {
  return nb::make_tuple(to_python(layer.weight), optional(layer.bias));
}

/// A layer's result; layers are long work.
template <class Layer>
nb::object applied(const Layer& layer, const Tensor& x) {
  return to_python(unlocked([&] { return layer(x); }));
}

/// What C++ makes of settings; Errors have the names of Python's class and its parameters.
template <class F>
auto made(Words words, F&& make) {
  return in_words(words, [&] { return unlocked(make); });
}

nn::Linear linear_of(nb::handle weight, nb::handle bias) {
  return {.weight = given<Variable>("Linear", "weight", weight),
          .bias = given<std::optional<Variable>>("Linear", "bias", bias)};
}

void bind_linear(nb::module_& m) {
  m.def("_make_linear", [](nb::handle in, nb::handle out, bool has_bias, nb::handle dtype) {
    const auto from = given<Integer>("Linear", "in_features", in);
    const auto to = given<Integer>("Linear", "out_features", out);
    const nn::LinearOptions options = {.has_bias = has_bias,
                                       .dtype = given<DType>("Linear", "dtype", dtype)};
    const Words words = {
        {"linear", "Linear"}, {"`in`", "`in_features`"}, {"`out`", "`out_features`"}};
    return parts_of(made(words, [&] { return nn::linear(from, to, options); }));
  });
  m.def(
      "_linear",
      [](nb::handle x, nb::handle weight, nb::handle bias) {
        return applied(linear_of(weight, bias), given<Tensor>("Linear", "x", x));
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias").none());
}

Conv2dOptions conv_options(nb::handle stride, nb::handle padding, nb::handle dilation,
                           nb::handle groups) {
  return {.stride = given<Pair>("Conv2d", "stride", stride),
          .padding = given<Pair>("Conv2d", "padding", padding),
          .dilation = given<Pair>("Conv2d", "dilation", dilation),
          .groups = given<int64_t>("Conv2d", "groups", groups)};
}

void bind_conv(nb::module_& m) {
  m.def("_make_conv2d", [](nb::handle in, nb::handle out, nb::handle kernel, nb::handle stride,
                           nb::handle padding, nb::handle dilation, nb::handle groups,
                           bool has_bias, nb::handle dtype) {
    const auto from = given<Integer>("Conv2d", "in_channels", in);
    const auto to = given<Integer>("Conv2d", "out_channels", out);
    const auto window = given<Pair>("Conv2d", "kernel_size", kernel);
    const nn::Conv2dLayerOptions options = {.conv = conv_options(stride, padding, dilation, groups),
                                            .has_bias = has_bias,
                                            .dtype = given<DType>("Conv2d", "dtype", dtype)};
    const Words words = {{"conv2d", "Conv2d"},
                         {"`in`", "`in_channels`"},
                         {"`out`", "`out_channels`"},
                         {"`kernel`", "`kernel_size`"}};
    return parts_of(made(words, [&] { return nn::conv2d(from, to, window, options); }));
  });
  m.def(
      "_conv2d",
      [](nb::handle x, nb::handle weight, nb::handle bias, nb::handle stride, nb::handle padding,
         nb::handle dilation, nb::handle groups) {
        const nn::Conv2d layer = {.weight = given<Variable>("Conv2d", "weight", weight),
                                  .bias = given<std::optional<Variable>>("Conv2d", "bias", bias),
                                  .options = conv_options(stride, padding, dilation, groups)};
        return applied(layer, given<Tensor>("Conv2d", "x", x));
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias").none(), nb::arg("stride"),
      nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
}

void bind_normalisation(nb::module_& m) {
  m.def("_make_layer_norm", [](nb::handle features, double eps, nb::handle dtype) {
    const auto width = given<Integer>("LayerNorm", "features", features);
    const auto type = given<DType>("LayerNorm", "dtype", dtype);
    const nn::LayerNorm layer =
        made({{"layer_norm", "LayerNorm"}}, [&] { return nn::layer_norm(width, eps, type); });
    return nb::make_tuple(layer.weight, layer.bias);
  });
  m.def("_layer_norm", [](nb::handle x, nb::handle weight, nb::handle bias, double eps) {
    return applied(nn::LayerNorm{.weight = given<Variable>("LayerNorm", "weight", weight),
                                 .bias = given<Variable>("LayerNorm", "bias", bias),
                                 .eps = eps},
                   given<Tensor>("LayerNorm", "x", x));
  });
  m.def("_make_rms_norm", [](nb::handle features, double eps, nb::handle dtype) {
    const auto width = given<Integer>("RmsNorm", "features", features);
    const auto type = given<DType>("RmsNorm", "dtype", dtype);
    return made({{"rms_norm", "RmsNorm"}}, [&] { return nn::rms_norm(width, eps, type); }).weight;
  });
  m.def("_rms_norm", [](nb::handle x, nb::handle weight, double eps) {
    return applied(nn::RmsNorm{.weight = given<Variable>("RmsNorm", "weight", weight), .eps = eps},
                   given<Tensor>("RmsNorm", "x", x));
  });
  m.def("_make_batch_norm", [](nb::handle features, nb::handle dtype) {
    const auto width = given<Integer>("BatchNorm", "features", features);
    const auto type = given<DType>("BatchNorm", "dtype", dtype);
    const nn::BatchNorm layer =
        made({{"batch_norm", "BatchNorm"}}, [&] { return nn::batch_norm(width, type); });
    return nb::make_tuple(layer.weight, layer.bias, layer.running_mean, layer.running_var);
  });
  m.def("_batch_norm", [](nb::handle x, nb::handle weight, nb::handle bias, nb::handle mean,
                          nb::handle var, double eps, double momentum, bool is_training) {
    const nn::BatchNorm layer = {.weight = given<Variable>("BatchNorm", "weight", weight),
                                 .bias = given<Variable>("BatchNorm", "bias", bias),
                                 .running_mean = given<Variable>("BatchNorm", "running_mean", mean),
                                 .running_var = given<Variable>("BatchNorm", "running_var", var),
                                 .eps = eps,
                                 .momentum = momentum,
                                 .training = is_training};
    return applied(layer, given<Tensor>("BatchNorm", "x", x));
  });
}

void bind_others(nb::module_& m) {
  m.def("_make_embedding", [](nb::handle count, nb::handle width, nb::handle dtype) {
    const auto rows = given<Integer>("Embedding", "count", count);
    const auto columns = given<Integer>("Embedding", "width", width);
    const auto type = given<DType>("Embedding", "dtype", dtype);
    const Words words = {{"embedding", "Embedding"}};
    return made(words, [&] { return nn::embedding(rows, columns, type); }).weight;
  });
  m.def("_embedding", [](nb::handle indices, nb::handle weight) {
    return applied(nn::Embedding{.weight = given<Variable>("Embedding", "weight", weight)},
                   given<Tensor>("Embedding", "indices", indices));
  });
  m.def("_dropout", [](nb::handle x, double rate, bool is_training) {
    nn::Dropout layer = made({{"dropout", "Dropout"}}, [&] { return nn::dropout(rate); });
    layer.training = nn::Training(is_training);
    return applied(layer, given<Tensor>("Dropout", "x", x));
  });
  m.def("_make_lstm", [](nb::handle in, nb::handle hidden, nb::handle dtype) {
    const auto from = given<Integer>("Lstm", "in_features", in);
    const auto width = given<Integer>("Lstm", "hidden", hidden);
    const auto type = given<DType>("Lstm", "dtype", dtype);
    const nn::Lstm layer = made({{"lstm", "Lstm"}, {"`in`", "`in_features`"}},
                                [&] { return nn::lstm(from, width, type); });
    return nb::make_tuple(layer.input_weight, layer.hidden_weight, layer.bias);
  });
  m.def(
      "_lstm",
      [](nb::handle x, nb::handle input_weight, nb::handle hidden_weight, nb::handle bias,
         nb::handle hidden, nb::handle cell) {
        const nn::Lstm layer = {
            .input_weight = given<Variable>("Lstm", "input_weight", input_weight),
            .hidden_weight = given<Variable>("Lstm", "hidden_weight", hidden_weight),
            .bias = given<Variable>("Lstm", "bias", bias)};
        std::optional<nn::Lstm::State> state;
        if (!hidden.is_none())
          state = nn::Lstm::State{given<Tensor>("Lstm", "hidden", hidden),
                                  given<Tensor>("Lstm", "cell", cell)};
        const auto input = given<Tensor>("Lstm", "x", x);
        nn::Lstm::Output output = unlocked([&] { return layer(input, state); });
        return nb::make_tuple(to_python(output.sequence), to_python(output.last.hidden),
                              to_python(output.last.cell));
      },
      nb::arg("x"), nb::arg("input_weight"), nb::arg("hidden_weight"), nb::arg("bias"),
      nb::arg("hidden").none(), nb::arg("cell").none());
  m.def("_make_multi_head_attention",
        [](nb::handle width_given, nb::handle heads_given, bool has_bias, nb::handle dtype) {
          const auto width = given<Integer>("MultiHeadAttention", "width", width_given);
          const auto heads = given<Integer>("MultiHeadAttention", "heads", heads_given);
          const nn::AttentionOptions options = {
              .has_bias = has_bias, .dtype = given<DType>("MultiHeadAttention", "dtype", dtype)};
          const nn::MultiHeadAttention layer =
              made({{"multi_head_attention", "MultiHeadAttention"}},
                   [&] { return nn::multi_head_attention(width, heads, options); });
          return nb::make_tuple(parts_of(layer.qkv), parts_of(layer.proj));
        });
  m.def(
      "_multi_head_attention",
      [](nb::handle x, nb::handle qkv_weight, nb::handle qkv_bias, nb::handle proj_weight,
         nb::handle proj_bias, nb::handle heads, bool is_causal) {
        const nn::MultiHeadAttention layer = {
            .qkv = linear_of(qkv_weight, qkv_bias),
            .proj = linear_of(proj_weight, proj_bias),
            .heads = given<int64_t>("MultiHeadAttention", "heads", heads),
            .is_causal = is_causal};
        return applied(layer, given<Tensor>("MultiHeadAttention", "x", x));
      },
      nb::arg("x"), nb::arg("qkv_weight"), nb::arg("qkv_bias").none(), nb::arg("proj_weight"),
      nb::arg("proj_bias").none(), nb::arg("heads"), nb::arg("is_causal"));
}

// ---- optimizers

std::vector<Variable> parameters_of(const char* where, nb::handle value) {
  // A module says what it has.
  if (nb::hasattr(value, "parameters") && !is_variable(value))
    return given<std::vector<Variable>>(where, "parameters", value.attr("parameters")());
  return given<std::vector<Variable>>(where, "parameters", value);
}

nb::object named(const std::vector<nn::NamedVariable>& variables) {
  nb::dict all;
  for (const nn::NamedVariable& one : variables)
    all[nb::str(one.name.c_str())] = to_python(one.variable);
  return all;
}

/// Sets the fields that are given; refuses names that are none.
class Given {
 public:
  Given(const char* where, nb::kwargs given) : where_(where), given_(std::move(given)) {}
  template <class T>
  Given& field(const char* name, T& into) {
    names_.push_back(name);
    if (given_.contains(name)) into = convert<T>({where_, name, given_[name]});
    return *this;
  }
  void check() const {
    for (const auto [name, value] : given_) {
      const bool is_known = std::any_of(names_.begin(), names_.end(), [&](const char* known) {
        return PyUnicode_CompareWithASCIIString(name.ptr(), known) == 0;
      });
      if (!is_known) refuse_keyword(where_, name.ptr(), names_);
    }
  }

 private:
  const char* where_;
  nb::kwargs given_;
  std::vector<const char*> names_;
};

void read(Given given, nn::SgdOptions& options) {
  given.field("rate", options.rate).field("momentum", options.momentum);
  given.field("weight_decay", options.weight_decay).field("nesterov", options.is_nesterov).check();
}

void read(Given given, nn::AdamOptions& options) {
  given.field("rate", options.rate).field("beta1", options.beta1).field("beta2", options.beta2);
  given.field("eps", options.eps).field("weight_decay", options.weight_decay).check();
}

void read(Given given, nn::RmsPropOptions& options) {
  given.field("rate", options.rate).field("decay", options.decay).field("eps", options.eps);
  given.field("momentum", options.momentum).field("weight_decay", options.weight_decay).check();
}

/// `parameters`: as Python writes those of the options.
template <class O, class Base, class Options>
void bind_optimizer(nb::module_& m, const char* name, const char* doc, const Options& defaults,
                    const std::string& parameters) {
  const auto with_options = [name, defaults](nb::handle variables, nb::kwargs named, auto&& use) {
    Options options = defaults;
    read(Given(name, std::move(named)), options);
    const std::vector<Variable> all = parameters_of(name, variables);
    in_words({{"optimizer", name}, {"is_nesterov", "nesterov"}}, [&] { use(all, options); });
  };
  const std::string signature = "(self, parameters: Parameters, *, " + parameters + ") -> None";
  nb::class_<O, Base>(m, name, doc)
      .def(
          "__init__",
          [with_options](O* self, nb::handle variables, nb::kwargs named) {
            with_options(
                variables, std::move(named),
                [self](const auto& all, const Options& options) { new (self) O(all, options); });
          },
          nb::arg("parameters"), nb::arg("options"), nb::sig(("def __init__" + signature).c_str()))
      .def(
          "add",
          [with_options](O& self, nb::handle variables, nb::kwargs named) {
            with_options(
                variables, std::move(named),
                [&self](const auto& all, const Options& options) { self.add(all, options); });
          },
          nb::arg("parameters"), nb::arg("options"), nb::sig(("def add" + signature).c_str()),
          "Adds a group with options of its own.");
}

void bind_optimizers(nb::module_& m) {
  nb::class_<nn::Optimizer>(m, "Optimizer",
                            "Moves parameters against their gradients. All state, the rate "
                            "included, is in Variables: a step inside compile() is part of its "
                            "Plan, and changing the rate compiles nothing.")
      .def(
          "zero_grad",
          [](const nn::Optimizer& self) {
            const Unlocked release;
            self.zero_grad();
          },
          "Forgets all gradients. Call it before backward(), or those of several calls add up.")
      .def(
          "step",
          [](const nn::Optimizer& self) {
            const Unlocked release;
            self.step();
          },
          "Updates every parameter that has a gradient.")
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
  bind_optimizer<nn::Sgd, nn::Optimizer>(
      m, "Sgd",
      "Stochastic gradient descent, with momentum as in PyTorch: v = momentum v + g; p -= rate v.",
      nn::SgdOptions{},
      "rate: float = 1e-2, momentum: float = 0.0, weight_decay: float = 0.0, "
      "nesterov: bool = False");
  bind_optimizer<nn::Adam, nn::Optimizer>(
      m, "Adam", "D. Kingma, J. Ba, arXiv:1412.6980; weight decay is added to the gradient.",
      nn::AdamOptions{},
      "rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, "
      "weight_decay: float = 0.0");
  bind_optimizer<nn::AdamW, nn::Adam>(
      m, "AdamW",
      "I. Loshchilov, F. Hutter, arXiv:1711.05101: weight decay is apart from the gradient.",
      nn::AdamOptions{.weight_decay = 1e-2},
      "rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, "
      "weight_decay: float = 1e-2");
  bind_optimizer<nn::RmsProp, nn::Optimizer>(
      m, "RmsProp", "T. Tieleman, G. Hinton, lecture 6.5 (2012), as in PyTorch.",
      nn::RmsPropOptions{},
      "rate: float = 1e-2, decay: float = 0.99, eps: float = 1e-8, momentum: float = 0.0, "
      "weight_decay: float = 0.0");
  m.def(
      "clip_gradient_norm",
      [](nb::handle parameters, double largest) {
        const auto all = parameters_of("clip_gradient_norm", parameters);
        return to_python(unlocked([&] { return nn::clip_gradient_norm(all, largest); }));
      },
      nb::arg("parameters"), nb::arg("largest"),
      nb::sig("def clip_gradient_norm(parameters: Parameters, largest: float) -> Tensor"),
      "Scales all gradients so that their common 2-norm is at most `largest`; returns what it "
      "was.");
  m.def(
      "clip_gradient_value",
      [](nb::handle parameters, double largest) {
        const auto all = parameters_of("clip_gradient_value", parameters);
        const Unlocked release;
        nn::clip_gradient_value(all, largest);
      },
      nb::arg("parameters"), nb::arg("largest"),
      nb::sig("def clip_gradient_value(parameters: Parameters, largest: float) -> None"),
      "Limits each gradient's elements to [-largest, largest].");
}

struct PythonSchedule {
  nn::Schedule schedule;
};

void bind_schedules(nb::module_& m) {
  nb::class_<PythonSchedule>(m, "Schedule", "The learning rate of step 0, 1, 2, ...")
      .def(
          "__call__", [](const PythonSchedule& self, int64_t step) { return self.schedule(step); },
          nb::arg("step"));
  m.def(
      "step_decay",
      [](double rate, int64_t every, double factor) {
        return PythonSchedule{nn::step_decay(rate, every, factor)};
      },
      nb::arg("rate"), nb::arg("every"), nb::arg("factor") = 0.1,
      "rate * factor^(step / every), rounded down.");
  m.def(
      "cosine_decay",
      [](double rate, int64_t steps, double last) {
        return PythonSchedule{nn::cosine_decay(rate, steps, last)};
      },
      nb::arg("rate"), nb::arg("steps"), nb::arg("last") = 0.0,
      "From `rate` to `last` along half a cosine over `steps`, then `last`.");
  m.def(
      "warm_up",
      [](int64_t steps, const PythonSchedule& then) {
        return PythonSchedule{nn::warm_up(steps, then.schedule)};
      },
      nb::arg("steps"), nb::arg("then"),
      "Rises linearly to the first rate of `then` during `steps` steps, then follows it.");
}

/// One pass over a DataLoader.
struct Pass {
  nb::object owner;
  nn::DataLoader::Iterator next, end;
};

void bind_data(nb::module_& m) {
  nb::class_<Pass>(m, "_Pass")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", [](Pass& self) {
        if (self.next == self.end) throw nb::stop_iteration();
        std::vector<Tensor> batch = unlocked([&] { return *self.next; });
        ++self.next;
        nb::list rows;
        for (Tensor& tensor : batch) rows.append(to_python(std::move(tensor)));
        return nb::tuple(rows);
      });
  nb::class_<nn::DataLoader>(m, "DataLoader",
                             "Rows of several tensors that belong together, batch by batch. Each "
                             "pass over it takes a fresh order, a function of the seed and the "
                             "number of passes before.")
      .def(
          "__init__",
          [](nn::DataLoader* self, nb::handle tensors, nb::handle batch, bool shuffle,
             bool drop_last, nb::handle seed, nb::handle device) {
            const From from = {"DataLoader", "tensors", tensors};
            auto all = is_tensor(tensors) || is_array(tensors)
                           ? std::vector<Tensor>{convert<Tensor>(from)}
                           : convert<std::vector<Tensor>>(from);
            new (self) nn::DataLoader(
                std::move(all),
                {.batch = given<Integer>("DataLoader", "batch", batch),
                 .is_shuffled = shuffle,
                 .drops_last = drop_last,
                 .seed = given<uint64_t>("DataLoader", "seed", seed),
                 .device = given<std::optional<Device>>("DataLoader", "device", device)});
          },
          nb::arg("tensors"), nb::arg("batch") = 32, nb::kw_only(), nb::arg("shuffle") = true,
          nb::arg("drop_last") = false, nb::arg("seed") = 0, nb::arg("device") = nb::none(),
          nb::sig("def __init__(self, tensors: TensorLike | collections.abc.Sequence[TensorLike], "
                  "batch: int = 32, *, shuffle: bool = True, drop_last: bool = False, seed: int = "
                  "0, device: DeviceLike | None = None) -> None"))
      .def("__len__", &nn::DataLoader::size)
      .def(
          "__iter__",
          [](nb::handle self) {
            auto& loader = nb::cast<nn::DataLoader&>(self);
            return Pass{nb::borrow(self), loader.begin(), loader.end()};
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[tuple[Tensor, ...]]"));
  nb::class_<nn::Progress>(m, "Progress", "How far a loop is, how fast, and how long it will take.")
      .def(
          "__init__",
          [](nn::Progress* self, std::string name, int64_t steps, int64_t items, std::string unit) {
            new (self) nn::Progress(
                {.name = std::move(name), .steps = steps, .items = items, .unit = std::move(unit)});
          },
          nb::arg("name"), nb::arg("steps"), nb::arg("items") = 1, nb::arg("unit") = "steps")
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

}  // namespace

void bind_nn(nb::module_& parent) {
  nb::module_ m = parent;
  bind_linear(m);
  bind_conv(m);
  bind_normalisation(m);
  bind_others(m);
  bind_optimizers(m);
  bind_schedules(m);
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
}

}  // namespace nitinol::python
