"""Writes the layers, optimizers and schedules of nitinol.nn from the headers in nn/.

A struct that can be called, or whose Variables a factory makes, is a layer: a class of Python with
its fields as attributes, the parameters of its factory as those of __init__, and its comments. Fields
that the factory fills (Variables, other layers) come from there; the others are set by parameters of
their names.
Written are

    layers.cpp   void bind_layers(nb::module_&), which makes and calls them; void bind_optimizers(…),
                 bind_schedules(…)
    _layers.py   the classes
    bindings/python/comments.h   what the headers say of classes that are bound by hand
"""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
from collections.abc import Iterator

from headers import Class, Function, Header, Parameter, Struct, Unreadable
from names import COMMENTS, LAYER_PARAMETERS, LAYER_PARAMETERS_OF, LAYERS, ONLY
from parameters import Argument, bare, plain

VARIABLES = {"Variable": "Variable", "std::optional<Variable>": "Variable | None"}


def element_of(type_name: str) -> str:
    """Of a list; of another type itself."""
    found = re.fullmatch(r"std::vector<(\w+)>", type_name)
    return found[1] if found else type_name


def flattened(
    parameters: list[Parameter], structs: dict[str, Struct], prefix: str = ""
) -> Iterator[tuple[str, Parameter]]:
    """Paths of all parameters in C++, those of options structs field by field."""
    for parameter in parameters:
        struct = structs.get(bare(parameter.type))
        if struct is None:
            yield prefix + parameter.name, parameter
        else:
            yield from flattened(struct.fields, structs, f"{prefix}{parameter.name}.")


class Setting(Argument):
    """A parameter of __init__; `cpp` is the path of the factory's parameter, or of the layer's field."""

    @property
    def default_in_python(self) -> str:
        return "float32" if self.default == "f32" else super().default_in_python

    @property
    def word(self) -> str:
        """What C++'s errors call it."""
        return self.cpp.rpartition(".")[2]

    @property
    def declared(self) -> str:
        text = f"{self.name}: {self.type_in_python}"
        return text if self.is_required else f"{text} = {self.default_in_python}"


class Layer:
    """A struct that can be called, or one of Variables that a factory makes."""

    def __init__(
        self,
        struct: Struct,
        factory: Function | None,
        structs: dict[str, Struct],
        layers: dict[str, Layer | None],
    ) -> None:
        self.struct, self.call, self.factory, self.layers = struct, struct.call, factory, layers
        self.name, self.structs = struct.name, structs
        self.options = next(
            (p for p in (factory.parameters if factory else []) if bare(p.type) in structs), None
        )
        self.parts = {f.name: t for f in struct.fields if (t := element_of(f.type)) in layers}
        self.state = [f for f in struct.fields if f.type in VARIABLES or f.name in self.parts]
        self.modes = [f for f in struct.fields if f.type == "Training"]
        others = [f for f in struct.fields if f not in self.state and f not in self.modes]
        self.held = self.settings_of(others)
        self.made = self.settings_of(factory.parameters if factory else [])
        self.settings = list(self.made)
        known = {setting.name for setting in self.made}
        last = [i for i, setting in enumerate(self.settings) if setting.name in ("dtype", "bias")]
        at = last[0] if last else len(self.settings)
        self.settings[at:at] = [setting for setting in self.held if setting.name not in known]
        self.inputs = list(self.inputs_of(self.call)) if self.call else []

    @property
    def has_weight(self) -> bool:
        """Whether it is called with another weight, too."""
        return self.struct.has("with_weight(const Tensor& other, const Tensor& x)")

    @property
    def place(self) -> str:
        one = self.call or self.factory
        return one.place if one else self.struct.path

    def settings_of(self, parameters: list[Parameter]) -> list[Setting]:
        return [
            Setting(self.renamed(f.name), path, bare(f.type), f.default)
            for path, f in flattened(parameters, self.structs)
        ]

    def renamed(self, name: str) -> str:
        return LAYER_PARAMETERS_OF.get(self.name, {}).get(name, LAYER_PARAMETERS.get(name, name))

    def inputs_of(self, call: Function) -> Iterator[Input]:
        """The call's arguments; of an options struct its fields."""
        for path, parameter in flattened(call.parameters, self.structs):
            if parameter.name == call.parameters[0].name and bare(parameter.type) == "Tensor":
                yield Input(parameter.name, path, "Tensor")
                continue
            type_name = bare(parameter.type)
            optional = re.fullmatch(r"std::optional<(\w+)>", type_name)
            if optional and optional[1] in self.struct.nested:
                fields = self.struct.nested[optional[1]].fields
                group = [f.name for f in fields]
                for field in fields:
                    yield Input(field.name, path, "Tensor", True, optional[1], group)
            elif type_name == "Tensor":
                yield Input(parameter.name, path, "Tensor")
            elif optional and (optional[1] == "Tensor" or optional[1] in self.layers):
                yield Input(parameter.name, path, optional[1], True)
            else:
                raise Unreadable(f"{call.place}: an argument `{parameter.type}` of a layer")

    @property
    def results(self) -> list[tuple[str, Parameter]]:
        """Paths of the fields of a result that is a struct."""
        if self.call is None or self.call.result == "Tensor":
            return []
        return list(flattened(self.struct.nested[self.call.result].fields, self.struct.nested))

    @property
    def doc(self) -> str:
        made = self.factory.doc if self.factory else ""
        called = self.call.doc if self.call else ""
        comments = [self.struct.doc, called, made if made != self.struct.doc else ""]
        fields = [f"{f.name}: {f.doc}" for f in self.struct.fields if f.doc]
        text = plain("\n\n".join(filter(None, comments)), [])
        if not text:
            raise Unreadable(f"{self.place}: {self.name} has no comment")

        def renamed(found: re.Match[str]) -> str:
            code = found[0]
            for setting in self.made:
                code = re.sub(rf"\b{setting.word}\b", setting.name, code)
            return code

        code = r"\[[^\]]*\]|`[^`]*`|sqrt\([^)]*\)"  # `in` is a word of English, too
        parts = [textwrap.fill(" ".join(p.split()), 92) for p in text.split("\n\n")]
        parts.append("\n".join(fields))
        return re.sub(code, renamed, "\n\n".join(filter(None, parts)))

    # ---- Python

    @property
    def python(self) -> str:
        result = "Tensor"
        lines = []
        if self.results:
            result = f"{self.name}Output"
            lines += [f"class {result}(NamedTuple):", f'    """What {self.name} returns."""', ""]
            lines += [f"    {f.name}: Tensor  #: {f.doc}".rstrip(" #:") for _, f in self.results]
            lines += ["", ""]
        doc = textwrap.indent(self.doc, "    ").strip()
        lines += [f"class {self.name}(Module):", f'    """{doc}"""', ""]
        if self.struct.has("constexpr int64_t output_axis = 1;"):
            lines.append("    output_axis = 1  #: of the weight")
        if self.parts:
            parts = ", ".join(f'"{name}": {part}' for name, part in self.parts.items())
            lines.append(f"    _parts = {{{parts}}}")
        for f in self.state:
            held = self.parts.get(f.name, "")
            kind = VARIABLES.get(f.type) or (held if held == f.type else f"list[{held}]")
            lines.append(f"    {f.name}: {kind}")
        lines += [""] * bool(self.state)
        if self.settings:
            declared = ", ".join(setting.declared for setting in self.settings)
            lines.append(f"    def __init__(self, {declared}) -> None:")
            lines += [f"        {line}" for line in self.init()]
        if self.call is None:
            return "\n".join(lines) + "\n"
        arguments = ", ".join(one.declared for one in self.inputs)
        names = ", ".join(one.name for one in self.inputs)
        call = f"_ext._call_{self.name}(self, {names})"
        returned = f"{result}(*{call})" if self.results else call
        lines += [
            "",
            f"    def __call__(self, {arguments}) -> {result}:",
            f"        return {returned}",
        ]
        if self.has_weight:
            lines += [
                "",
                "    def with_weight(self, other: TensorLike, x: TensorLike) -> Tensor:",
                '        """What it computes with another weight."""',
                f"        return _ext._with_weight_{self.name}(self, other, x)",
            ]
        return "\n".join(lines) + "\n"

    def init(self) -> Iterator[str]:
        call = f"_ext._make_{self.name}({', '.join(setting.name for setting in self.made)})"
        if self.factory and not self.state:
            yield f"{call}  # refuses what makes no sense"
        elif self.factory:
            yield f"self._take({call})"
        for setting in self.held:
            yield f"self.{setting.name}: {setting.type_in_python} = {setting.name}"
        for field in self.modes:
            yield f"self.{field.name} = True"

    # ---- C++

    @property
    def words(self) -> str:
        pairs = [(f"`{s.word}`", f"`{s.name}`") for s in self.made if s.word != s.name]
        if self.factory:
            pairs.insert(0, (self.factory.name, self.name))
        return ", ".join(f"{{{json.dumps(a)}, {json.dumps(b)}}}" for a, b in pairs)

    def given(self, type_name: str, name: str) -> str:
        return f'convert<{type_name}>({{"{self.name}", "{name}", {name}_}})'

    def cpp_make(self) -> str:
        if not self.factory:
            return ""
        arguments = [s for s in self.made if "." not in s.cpp]
        lines = [f"    const auto {s.name} = {self.given(s.type, s.name)};" for s in arguments]
        if self.options:
            lines.append(f"    nn::{bare(self.options.type)} {self.options.name};")
        for s in self.made:
            if "." in s.cpp:
                lines.append(f"    {s.cpp} = {self.given(s.type, s.name)};")
        passed = [
            p.name if p is self.options else self.renamed(p.name) for p in self.factory.parameters
        ]
        parameters = ", ".join(f"nb::handle {s.name}_" for s in self.made)
        lines += [
            f"    {'' if self.state else '[[maybe_unused]] '}const nn::{self.name} made = in_words({{{self.words}}}, [&] {{",
            f"      return unlocked([&] {{ return nn::{self.factory.name}({', '.join(passed)}); }});",
            "    });",
            "    nb::dict all;",
            *(f'    all["{f.name}"] = {self.state_in_cpp(f, "made")};' for f in self.state),
            "    return all;",
        ]
        return self.defined("make", parameters, lines, [s.name for s in self.made])

    def value_of(self, field: Parameter) -> str:
        """C++ that reads what a field is from an attribute of `self`."""
        name = field.name if field in self.state else self.renamed(field.name)
        if field.name in self.parts:
            read = f"read_{self.parts[field.name]}"
            value = f'attribute(self, "{name}"_name)'
            return f"{read}({value})" if field.type in self.layers else f"read_all({value}, {read})"
        if bare(field.type) in self.structs:
            fields = self.structs[bare(field.type)].fields
            return "{" + ", ".join(f".{f.name} = {self.value_of(f)}" for f in fields) + "}"
        type_name = "bool" if field.type == "Training" else bare(field.type)
        value = f'read<{type_name}>("{self.name}", self, "{name}"_name)'
        return f"nn::Training({value})" if field.type == "Training" else value

    @property
    def cpp_read(self) -> str:
        """What makes the struct of an object of Python."""
        fields = ",\n          ".join(f".{f.name} = {self.value_of(f)}" for f in self.struct.fields)
        unused = "" if self.struct.fields else "[[maybe_unused]] "
        return (f"nn::{self.name} read_{self.name}({unused}nb::handle self) {{\n"
                f"  return {{{fields}}};\n}}\n")  # fmt: skip

    def cpp_call(self) -> str:
        if self.call is None:
            return ""
        lines = [f"    const nn::{self.name} layer = read_{self.name}(self);"]
        passed: list[str] = []
        for one in self.inputs:
            options, _, _ = one.path.rpartition(".")
            if options and options not in passed:
                struct = next(p for p in self.call.parameters if p.name == options)
                lines.append(f"    nn::{bare(struct.type)} {options};")
                passed.append(options)
            if one.group and one.name == one.group[0]:
                lines += self.cpp_together(one)
                passed.append(one.path)
            elif not one.group and options:
                lines.append(f"    {one.path} = {self.argument(one)};")
            elif not one.group:
                lines.append(f"    const auto {one.name} = {self.argument(one)};")
                passed.append(one.name)
        call = f"unlocked([&] {{ return layer({', '.join(passed)}); }})"
        if self.results:
            parts = ", ".join(f"to_python(result.{path})" for path, _ in self.results)
            lines += [f"    const auto result = {call};", f"    return nb::make_tuple({parts});"]
        else:
            lines.append(f"    return to_python({call});")
        names = [one.name for one in self.inputs]
        parameters = ", ".join(["nb::handle self", *(f"nb::handle {n}_" for n in names)])
        defined = self.defined("call", parameters, lines, ["self", *names])
        if not self.has_weight:
            return defined
        lines = [
            f"    const nn::{self.name} layer = read_{self.name}(self);",
            f"    const auto other = {self.given('Tensor', 'other')}, x = {self.given('Tensor', 'x')};",
            "    return to_python(unlocked([&] { return layer.with_weight(other, x); }));",
        ]
        parameters = "nb::handle self, nb::handle other_, nb::handle x_"
        return (
            defined + "\n" + self.defined("with_weight", parameters, lines, ["self", "other", "x"])
        )

    def argument(self, one: Input) -> str:
        if one.type == "Tensor":
            return self.given("std::optional<Tensor>" if one.is_optional else "Tensor", one.name)
        none = f"std::optional<nn::{one.type}>()"
        return f"{one.name}_.is_none() ? {none} : std::optional(read_{one.type}({one.name}_))"

    def cpp_together(self, one: Input) -> list[str]:
        """Fields of a struct that are given all or not at all."""
        is_none = [f"{name}_.is_none()" for name in one.group]
        values = ", ".join(self.given("Tensor", name) for name in one.group)
        lines = [f"    std::optional<nn::{self.name}::{one.struct}> {one.path};"]
        if len(one.group) == 2:
            a, b = one.group
            lines += [
                f"    if ({is_none[0]} != {is_none[1]})",
                f'      throw_python(PyExc_TypeError, "{self.name}: give both {a} and {b}, or '
                'neither");',
            ]
        elif len(one.group) > 2:
            raise Unreadable(f"{self.place}: {one.struct} has more than two fields")
        lines.append(
            f"    if (!{is_none[0]}) {one.path} = nn::{self.name}::{one.struct}{{{values}}};"
        )
        return lines

    def defined(self, what: str, parameters: str, lines: list[str], names: list[str]) -> str:
        marks = ", ".join(f'nb::arg("{name}").none()' for name in names)
        return "\n".join(
            [
                f'  m.def("_{what}_{self.name}", []({parameters}) -> nb::object {{',
                *lines,
                f"  }}{', ' if marks else ''}{marks});",
            ]
        )

    def state_in_cpp(self, field: Parameter, of: str) -> str:
        value = f"{of}.{field.name}"
        if field.name not in self.parts or field.type in self.layers:
            return f"state_of({value})"
        return f"states_of({value}, [](const auto& one) {{ return state_of(one); }})"

    @property
    def cpp_state(self) -> str:
        """The attributes of a layer that is a part of another one."""
        named = [(f.name, self.state_in_cpp(f, "layer")) for f in self.state]
        named += [(s.name, f"state_of(layer.{s.cpp})") for s in self.held]
        fields = [f'  all["{name}"] = {value};' for name, value in named]
        fields += [f'  all["{f.name}"] = nb::bool_(true);' for f in self.modes]
        head = f"nb::object state_of(const nn::{self.name}& layer) {{\n  nb::dict all;\n"
        return head + "\n".join(fields) + "\n  return all;\n}\n"


@dataclasses.dataclass
class Input:
    """An argument of a layer's call."""

    name: str
    path: str  # the parameter of C++, or `parameter.field`
    type: str  # Tensor, or what has Variables
    is_optional: bool = False
    struct: str = ""  # nested in the layer: what its fields are given for
    group: list[str] = dataclasses.field(default_factory=list)  # these fields

    @property
    def declared(self) -> str:
        text = f"{self.name}: {'TensorLike' if self.type == 'Tensor' else self.type}"
        return f"{text} | None = None" if self.is_optional else text


def layers_of(headers: list[Header], structs: dict[str, Struct]) -> list[Layer]:
    functions = [(header.path, f) for header in headers for f in header.functions]
    made = {function.result for _, function in functions}
    found = {
        name: struct
        for header in headers
        for name, struct in header.structs.items()
        if struct.call is not None or name in made
    }
    options = {n: s for n, s in structs.items() if n not in found}
    layers: dict[str, Layer | None] = dict.fromkeys(found)  # all, by name
    for name, struct in found.items():
        factories = [function for _, function in functions if function.result == name]
        if len(factories) > 1:
            raise Unreadable(f"{factories[1].place}: a second factory of {name}")
        factory = factories[0] if factories else None
        place = struct.call.place if struct.call else factories[0].place
        try:
            layers[name] = layer = Layer(struct, factory, options, layers)
            for setting in layer.settings:
                setting.declared  # or what in it has no word in Python
        except Unreadable as error:
            known = "" if re.match(r"\S+:\d+: ", str(error)) else f"{place}: "
            raise Unreadable(f"{known}{error}") from None
    for path, function in functions:
        if function.result not in layers and function.name not in ONLY[path]:
            raise Unreadable(
                f"{function.place}: {function.name} makes no layer, and ONLY of names.py has it not"
            )
    return [layer for layer in layers.values() if layer is not None]


# ---- optimizers


def optimizers_of(header: Header) -> list[tuple[Class, Struct, dict[str, str]]]:
    """Each with its options, and those of their defaults that are its own."""
    found = []
    for one in header.classes.values():
        for constructor in one.constructors:
            parameter = constructor[-1]
            own = dict(re.findall(r"\.(\w+) = ([^,}]+)", parameter.default or ""))
            found.append((one, header.structs[bare(parameter.type)], own))
    return found


def options_of(options: Struct) -> list[Setting]:
    return [
        Setting(LAYER_PARAMETERS.get(f.name, f.name), f.name, f.type, f.default, f.doc)
        for f in options.fields
        if f.type != "LearningRate"
    ]


def cpp_optimizers(header: Header) -> tuple[str, str]:
    """Functions that read options, and calls that bind the classes."""
    optimizers = optimizers_of(header)
    reads = []
    for options in {o.name: o for _, o, _ in optimizers}.values():
        fields = "".join(f"\n      .field(options.{s.cpp})" for s in options_of(options))
        reads.append(f"void read_options(Given given, nn::{options.name}& options) {{\n  given{fields};\n"
                     "}\n")  # fmt: skip
    calls = []
    for one, options, own in optimizers:
        settings = options_of(options)
        for setting in settings:
            setting.default = own.get(setting.cpp, setting.default)
        declared = ", ".join(setting.declared for setting in settings)
        defaults = ", ".join(f".{field} = {value}" for field, value in own.items())
        words = ", ".join(f'{{"{s.cpp}", "{s.name}"}}' for s in settings if s.cpp != s.name)
        names = ", ".join(json.dumps(name) for name in ["parameters", *(s.name for s in settings)])
        said = "\n".join(f"{s.name}: {plain(s.doc, [])}" for s in settings if s.doc)
        doc = f"{plain(one.doc, [])}\n\n{said}".strip()
        calls.append(
            f'  bind_optimizer<nn::{one.name}, nn::{one.base}>(m, "{one.name}",\n'
            f"      {json.dumps(doc)},\n"
            f"      nn::{options.name}{{{defaults}}}, {{{names}}}, {json.dumps(declared)},\n"
            f'      {{{{"optimizer", "{one.name}"}}{", " if words else ""}{words}}});'
        )
    return "\n".join(reads), "\n".join(calls)


# ---- schedules


def cpp_schedules(header: Header) -> str:
    """Calls that bind the functions which make schedules."""
    calls = []
    for made in header.functions:
        if made.result != "Schedule":
            raise Unreadable(f"{made.place}: {made.name} makes no schedule")
        settings = [Setting(p.name, p.name, bare(p.type), p.default) for p in made.parameters]
        declared = ", ".join(setting.declared for setting in settings)
        handles = ", ".join(f"nb::handle {s.name}_" for s in settings)
        converted = "".join(
            f'\n        const auto {s.name} = convert<{s.type}>({{"{made.name}", "{s.name}", {s.name}_}});'
            for s in settings
        )
        marks = "".join(
            f'\n      nb::arg("{s.name}"){"" if s.is_required else f" = {s.default}"},'
            for s in settings
        )
        names = ", ".join(s.name for s in settings)
        signature = f"def {made.name}({declared}) -> Schedule"
        calls.append(
            f'  m.def("{made.name}",\n      []({handles}) {{{converted}\n'
            f"        return PythonSchedule{{nn::{made.name}({names})}};\n      }},{marks}\n"
            f"      nb::sig({json.dumps(signature)}),\n      {json.dumps(plain(made.doc, []))});"
        )
    return "\n".join(calls)


# ---- files

PYTHON = '''\
"""Layers, written by bindings/python/generate.py from the headers in nn/: edit those."""
# ruff: noqa

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import NamedTuple

from nitinol import _ext
from nitinol._ext import Tensor, Variable, float32
from nitinol._module import Module
from nitinol._typing import DTypeLike, TensorLike

'''


def comments(headers: list[Header]) -> str:
    """What is said of classes and functions that are bound by hand."""
    lines = ["// Written by bindings/python/generate.py from the public headers: edit those.",
             "#pragma once", "", "namespace nitinol::python::comments {", ""]  # fmt: skip
    for header in headers:
        said = {one.name: one.doc for one in (*header.functions, *header.classes.values())}
        said.update(header.aliases)
        for name in COMMENTS.get(header.path, ()):
            if not said.get(name):
                raise Unreadable(f"{header.path}:1: {name} of names.py has no comment")
            text = " ".join(plain(said[name], []).split())
            lines.append(f"inline constexpr char {name}[] =\n    {json.dumps(text)};")
    return "\n".join([*lines, "", "}  // namespace nitinol::python::comments", ""])


def files_of(headers: dict[str, Header]) -> dict[str, str]:
    structs = {
        name: struct for header in headers.values() for name, struct in header.structs.items()
    }
    layers = layers_of([headers[path] for path in LAYERS], structs)
    parts = {part for layer in layers for part in layer.parts.values()}
    states = [layer.cpp_state for layer in layers if layer.name in parts]
    reads, optimizers = cpp_optimizers(headers["nn/optimizers.h"])
    cpp = [
        "// Written by bindings/python/generate.py from the headers in nn/: edit those.",
        '#include "bindings/python/src/errors.h"',
        '#include "bindings/python/src/nn.h"',
        '#include "bindings/python/word_lists.h"',
        "",
        "namespace nitinol::python {",
        "namespace {",
        "",
        "using python::state_of;",
        "",
        *states,
        *(layer.cpp_read for layer in layers),
        "}  // namespace",
        "",
        reads,
        "void bind_layers(nb::module_& m) {",
        *filter(None, (text for layer in layers for text in (layer.cpp_make(), layer.cpp_call()))),
        "}",
        "",
        "void bind_optimizers(nb::module_& m) {",
        optimizers,
        "}",
        "",
        "void bind_schedules(nb::module_& m) {",
        cpp_schedules(headers["nn/schedules.h"]),
        "}",
        "",
        "}  // namespace nitinol::python",
        "",
    ]
    names = [layer.name for layer in layers] + [f"{l.name}Output" for l in layers if l.results]
    listed = "".join(f"    {json.dumps(name)},\n" for name in sorted(names))
    python = PYTHON + "\n" + "\n\n".join(layer.python for layer in layers)
    python += f"\n\n__all__ = [\n{listed}]\n"
    return {
        "layers.cpp": "\n".join(cpp),
        "_layers.py": python,
        "bindings/python/comments.h": comments(list(headers.values())),
    }
