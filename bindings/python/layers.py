"""Writes the layers and optimizers of nitinol.nn from the headers in nn/.

A struct that can be called is a layer: a class of Python with its fields as attributes, the
parameters of its factory as those of __init__, and its comments. Fields that the factory fills
(Variables, other layers) come from there; the others are set by parameters of their names.
Written are

    layers.cpp   void bind_layers(nb::module_&), which makes and calls them; void bind_optimizers(…)
    _layers.py   the classes
    bindings/python/comments.h   what the headers say of classes that are bound by hand
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator

from headers import Class, Function, Header, Parameter, Struct, Unreadable
from names import COMMENTS, LAYER_PARAMETERS, LAYER_PARAMETERS_OF, ONLY
from parameters import Argument, bare, plain

VARIABLES = {"Variable": "Variable", "std::optional<Variable>": "Variable | None"}


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
    def __init__(
        self,
        struct: Struct,
        call: Function,
        factory: Function | None,
        structs: dict[str, Struct],
        layers: dict[str, Layer | None],
    ) -> None:
        self.struct, self.call, self.factory, self.layers = struct, call, factory, layers
        self.name = struct.name
        self.options = next(
            (p for p in (factory.parameters if factory else []) if bare(p.type) in structs), None
        )
        self.state = [f for f in struct.fields if f.type in VARIABLES or f.type in layers]
        self.modes = [f for f in struct.fields if f.type == "Training"]
        others = [f for f in struct.fields if f not in self.state and f not in self.modes]
        self.held = self.settings_of(others, structs)
        self.made = self.settings_of(factory.parameters if factory else [], structs)
        self.settings = list(self.made)
        known = {setting.name for setting in self.made}
        last = [i for i, setting in enumerate(self.settings) if setting.name in ("dtype", "bias")]
        at = last[0] if last else len(self.settings)
        self.settings[at:at] = [setting for setting in self.held if setting.name not in known]
        self.groups = list(self.inputs_of(call))
        self.inputs = [name for _, group in self.groups for name in group]

    def settings_of(self, parameters: list[Parameter], structs: dict[str, Struct]) -> list[Setting]:
        return [
            Setting(self.renamed(f.name), path, bare(f.type), f.default)
            for path, f in flattened(parameters, structs)
        ]

    def renamed(self, name: str) -> str:
        return LAYER_PARAMETERS_OF.get(self.name, {}).get(name, LAYER_PARAMETERS.get(name, name))

    def inputs_of(self, call: Function) -> Iterator[tuple[str, list[str]]]:
        """The call's arguments: "" and one's name, or a struct and those that are its fields, which
        are given together or not at all."""
        for parameter in call.parameters:
            if optional := re.fullmatch(r"std::optional<(\w+)>", parameter.type):
                fields = self.struct.nested[optional[1]].fields
                if len(fields) != 2:
                    raise Unreadable(f"{call.place}: {optional[1]} has not two fields")
                yield optional[1], [field.name for field in fields]
            elif bare(parameter.type) == "Tensor":
                yield "", [parameter.name]
            else:
                raise Unreadable(f"{call.place}: an argument `{parameter.type}` of a layer")

    @property
    def results(self) -> list[tuple[str, Parameter]]:
        """Paths of the fields of a result that is a struct."""
        if self.call.result == "Tensor":
            return []
        return list(flattened(self.struct.nested[self.call.result].fields, self.struct.nested))

    @property
    def doc(self) -> str:
        made = self.factory.doc if self.factory else ""
        comments = [self.struct.doc, self.call.doc, made if made != self.struct.doc else ""]
        fields = [f"{f.name}: {f.doc}" for f in self.struct.fields if f.doc]
        text = plain("\n\n".join(filter(None, comments)), [])
        if not text:
            raise Unreadable(f"{self.call.place}: {self.name} has no comment")

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
        lines += [f"    {f.name}: {VARIABLES.get(f.type, f.type)}" for f in self.state]
        lines += [""] * bool(self.state)
        if self.settings:
            declared = ", ".join(setting.declared for setting in self.settings)
            lines.append(f"    def __init__(self, {declared}) -> None:")
            lines += [f"        {line}" for line in self.init()]
        arguments = ", ".join(
            f"{name}: TensorLike" + (" | None = None" if struct else "")
            for struct, group in self.groups
            for name in group
        )
        names = list(self.inputs)
        for field in self.state:
            inner = [f"{field.name}.{name}" for name in self.nested(field)] or [field.name]
            names += [f"self.{name}" for name in inner]
        names += [f"self.{s.name}" for s in self.held] + [f"self.{f.name}" for f in self.modes]
        call = f"_ext._call_{self.name}({', '.join(names)})"
        returned = f"{result}(*{call})" if self.results else call
        lines += [
            "",
            f"    def __call__(self, {arguments}) -> {result}:",
            f"        return {returned}",
        ]
        return "\n".join(lines) + "\n"

    def init(self) -> Iterator[str]:
        call = f"_ext._make_{self.name}({', '.join(setting.name for setting in self.made)})"
        if self.factory and not self.state:
            yield f"{call}  # refuses what makes no sense"
        elif self.factory and not any(self.nested(field) for field in self.state):
            names = ", ".join(f"self.{field.name}" for field in self.state)
            yield f"{names} = {call}" if len(self.state) > 1 else f"({names},) = {call}"
        elif self.factory:
            yield f"made = {call}"
            for i, field in enumerate(self.state):
                inner = f"{field.type}._of(**made[{i}])" if self.nested(field) else f"made[{i}]"
                yield f"self.{field.name} = {inner}"
        for setting in self.held:
            yield f"self.{setting.name}: {setting.type_in_python} = {setting.name}"
        for field in self.modes:
            yield f"self.{field.name} = True"

    def nested(self, field: Parameter) -> list[str]:
        """Names of the Variables of a field that is a layer."""
        layer = self.layers.get(field.type)
        return [inner.name for inner in layer.state] if layer else []

    # ---- C++

    @property
    def words(self) -> str:
        pairs = [(f"`{s.word}`", f"`{s.name}`") for s in self.made if s.word != s.name]
        if self.factory:
            pairs.insert(0, (self.factory.name, self.name))
        return ", ".join(f"{{{json.dumps(a)}, {json.dumps(b)}}}" for a, b in pairs)

    def given(self, type_name: str, name: str, value: str = "") -> str:
        return f'convert<{type_name}>({{"{self.name}", "{name}", {value or name + "_"}}})'

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
        made = ", ".join(
            f"state_of(made.{f.name})" if self.nested(f) else f"to_python(made.{f.name})"
            for f in self.state
        )
        parameters = ", ".join(f"nb::handle {s.name}_" for s in self.made)
        lines += [
            f"    {'' if made else '[[maybe_unused]] '}const nn::{self.name} made = in_words({{{self.words}}}, [&] {{",
            f"      return unlocked([&] {{ return nn::{self.factory.name}({', '.join(passed)}); }});",
            "    });",
            f"    return nb::make_tuple({made});",
        ]
        return self.defined("make", parameters, lines, [s.name for s in self.made])

    def cpp_call(self) -> str:
        first, lines, names = [], [], list(self.inputs)
        for field in self.state:
            inner = self.layers.get(field.type)
            if inner is None:
                first.append(f".{field.name} = {self.given(field.type, field.name)}")
                names.append(field.name)
                continue
            parts = []
            for f in inner.state:
                names.append(f"{field.name}_{f.name}")
                value = self.given(f.type, f"{field.name}.{f.name}", f"{names[-1]}_")
                parts.append(f".{f.name} = {value}")
            first.append(f".{field.name} = {{{', '.join(parts)}}}")
        for setting in self.held:
            names.append(setting.name)
            value = self.given(setting.type, setting.name)
            is_required = setting.cpp in [f.name for f in self.struct.fields if f.default is None]
            if is_required:
                first.append(f".{setting.cpp} = {value}")
            else:
                lines.append(f"    layer.{setting.cpp} = {value};")
        for field in self.modes:
            names.append(field.name)
            value = self.given("bool", field.name)
            lines.append(f"    layer.{field.name} = nn::{field.type}({value});")
        const = "" if lines else "const "
        lines.insert(0, f"    {const}nn::{self.name} layer = {{{', '.join(first)}}};")
        passed = []
        for struct, group in self.groups:
            if not struct:
                lines += [
                    f"    const auto {name} = {self.given('Tensor', name)};" for name in group
                ]
                passed += group
                continue
            a, b = group
            lines += [
                f"    if ({a}_.is_none() != {b}_.is_none())",
                f'      throw_python(PyExc_TypeError, "{self.name}: give both {a} and {b}, or '
                'neither");',
                f"    std::optional<nn::{self.name}::{struct}> given;",
                f"    if (!{a}_.is_none())",
                f"      given = nn::{self.name}::{struct}{{{self.given('Tensor', a)}, "
                f"{self.given('Tensor', b)}}};",
            ]
            passed.append("given")
        call = f"unlocked([&] {{ return layer({', '.join(passed)}); }})"
        if self.results:
            parts = ", ".join(f"to_python(result.{path})" for path, _ in self.results)
            lines += [f"    const auto result = {call};", f"    return nb::make_tuple({parts});"]
        else:
            lines.append(f"    return to_python({call});")
        return self.defined("call", ", ".join(f"nb::handle {n}_" for n in names), lines, names)

    def defined(self, what: str, parameters: str, lines: list[str], names: list[str]) -> str:
        marks = ", ".join(f'nb::arg("{name}").none()' for name in names)
        return "\n".join(
            [
                f'  m.def("_{what}_{self.name}", []({parameters}) -> nb::object {{',
                *lines,
                f"  }}{', ' if marks else ''}{marks});",
            ]
        )

    @property
    def cpp_state(self) -> str:
        """For layers that are a part of another one."""
        fields = [f'  all["{f.name}"] = to_python(layer.{f.name});' for f in self.state]
        head = f"nb::object state_of(const nn::{self.name}& layer) {{\n  nb::dict all;\n"
        return head + "\n".join(fields) + "\n  return all;\n}\n"


def layers_of(header: Header, structs: dict[str, Struct]) -> list[Layer]:
    callable_structs = {n: s.call for n, s in header.structs.items() if s.call is not None}
    options = {n: s for n, s in structs.items() if n not in callable_structs}
    layers: dict[str, Layer | None] = dict.fromkeys(callable_structs)  # all, by name
    for name, call in callable_structs.items():
        made = [f for f in header.functions if f.result == name]
        if len(made) > 1:
            raise Unreadable(f"{made[1].place}: a second factory of {name}")
        factory = made[0] if made else None
        try:
            layers[name] = layer = Layer(header.structs[name], call, factory, options, layers)
            for setting in layer.settings:
                setting.declared  # or what in it has no word in Python
        except Unreadable as error:
            place = "" if re.match(r"\S+:\d+: ", str(error)) else f"{call.place}: "
            raise Unreadable(f"{place}{error}") from None
    for function in header.functions:
        if function.result not in layers and function.name not in ONLY[header.path]:
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
        Setting(LAYER_PARAMETERS.get(f.name, f.name), f.name, f.type, f.default)
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
        calls.append(
            f'  bind_optimizer<nn::{one.name}, nn::{one.base}>(m, "{one.name}",\n'
            f"      {json.dumps(plain(one.doc, []))},\n"
            f"      nn::{options.name}{{{defaults}}}, {{{names}}}, {json.dumps(declared)},\n"
            f'      {{{{"optimizer", "{one.name}"}}{", " if words else ""}{words}}});'
        )
    return "\n".join(reads), "\n".join(calls)


# ---- files

PYTHON = '''\
"""Layers, written by bindings/python/generate.py from nn/layers.h: edit that."""
# ruff: noqa

from __future__ import annotations

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
    layers = layers_of(headers["nn/layers.h"], structs)
    parts = {field.type for layer in layers for field in layer.state} - set(VARIABLES)
    states = [layer.cpp_state for layer in layers if layer.name in parts]
    reads, optimizers = cpp_optimizers(headers["nn/optimizers.h"])
    cpp = [
        "// Written by bindings/python/generate.py from nn/layers.h and nn/optimizers.h: edit those.",
        '#include "bindings/python/src/errors.h"',
        '#include "bindings/python/src/nn.h"',
        "",
        "namespace nitinol::python {",
        "namespace {",
        "",
        *states,
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
