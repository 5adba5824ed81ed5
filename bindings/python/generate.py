"""Writes the functions of the Python module from the library's public headers.

The headers are the one table of what there is: an op that is new in one of them appears in Python
with its parameters, defaults and comment without an edit here. Written are, into a folder,

    functions_<i>.cpp   what binds them: void bind_functions(nb::module_&)
    stubs/*.pyi         with types and comments, for type checkers
    and what layers.py makes of layers and optimizers

A function is called as the Python Array API standard (2024.12) calls it, if the standard has it;
C++'s name stays as another name. Where the standard's function takes more than C++'s, it is
declared in src/standard.h, which is read like any other header and goes first.

Parameters become Python's by these rules: operands that lead are given by position only; fields of
an options struct are parameters of their own, those with a default by name only, as are dtypes that
are optional, devices, generators, keepdims and flags. An omitted argument is the C++ default.

Usage: generate.py <root of the project> <folder>
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import sys
import textwrap

import layers
from headers import Function, Header, Struct, Unreadable, read_header
from names import (
    ALSO,
    BY_NAME_ONLY,
    BY_POSITION,
    COMMENTS,
    DOCS,
    ELSEWHERE,
    HEADERS,
    LONG,
    METHODS,
    NAMES,
    NOT_BOUND,
    NOT_READ,
    ONLY,
    PARAMETERS,
    PARAMETERS_ELSEWHERE,
    PARAMETERS_OF,
    REPLACED,
    STANDARD,
    TUPLES,
    VARIADIC,
    VIEWS,
    WITHOUT_NOTES,
)
from parameters import BY_NAME, OPERANDS, RESULTS, TYPES, Argument, add_enums, bare, plain


@dataclasses.dataclass
class Bound:
    """A function of Python."""

    name: str
    module: str
    other_names: list[str]
    overloads: list[Function]  # one, or two of which the second takes more
    arguments: list[Argument]
    doc: str
    structs: dict[str, Struct]

    @property
    def function(self) -> Function:
        return self.overloads[0]

    @property
    def identifier(self) -> str:
        return f"{self.module.replace('nitinol', '').strip('.') or 'top'}_{self.name}"

    def signature(self, with_types: bool) -> str:
        parts, kind = [], "position"
        for argument in self.arguments:
            if kind == "position" != argument.kind and parts:
                parts.append("/")
            if kind != "name" == argument.kind:
                parts.append("*")
            kind = argument.kind
            text = argument.name
            equals = "="
            if with_types:
                text += ": " + argument.type_in_python
                equals = " = "
            if not argument.is_required:
                text += equals + argument.default_in_python
            parts.append(text)
        if kind == "position" and parts:
            parts.append("/")
        return f"({', '.join(parts)})"

    @property
    def result(self) -> str:
        words = []
        for function in self.overloads:
            if function.result in self.structs:
                words.append(f"_results.{function.result}")
            elif function.name in TUPLES:
                words.append("tuple[Tensor, ...]")
            else:
                words.append(RESULTS[function.result])
        return " | ".join(dict.fromkeys(words))


# ---- from declarations to functions of Python


def arguments_of(function: Function, structs: dict[str, Struct]) -> list[Argument]:
    renamed = PARAMETERS_OF.get(function.name, {})
    arguments: list[Argument] = []
    for parameter in function.parameters:
        if parameter.type == "std::source_location":
            continue
        converted = bare(parameter.type)
        if converted in structs and converted not in TYPES:
            arguments += [
                Argument(field.name, field.name, bare(field.type), field.default, field.doc,
                         struct=converted)
                for field in structs[converted].fields
            ]  # fmt: skip
            continue
        name = renamed.get(
            parameter.name, PARAMETERS.get((parameter.type, parameter.name), parameter.name)
        )
        arguments.append(Argument(name, parameter.name, converted, parameter.default))
    return arguments


def merged(few: list[Argument], many: list[Argument], place: str) -> list[Argument]:
    """Those of two overloads: what only the second takes may be left out."""
    names = {argument.name for argument in few}
    if not names < {argument.name for argument in many}:
        raise Unreadable(f"{place}: overloads of which neither takes all that the other does")
    extra = [a for a in many if a.name not in names]
    defaults = {argument.name: argument.default for argument in few}
    for argument in many:  # a default that C++ can give to one of them only
        if argument.default is None:
            argument.default = defaults.get(argument.name)
    for argument in extra:
        argument.is_extra = True
    # PyTorch's batch_norm has the mean before the weight: no order is right for all.
    first_extra = many.index(extra[0])
    for argument in many[first_extra:]:
        argument.is_by_name = any(a.is_required for a in many[first_extra:])
    required = [a for a in many if a.is_required]
    rest = [a for a in many if not a.is_required and not a.is_extra]
    is_named = any(argument.is_by_name or argument.type in BY_NAME for argument in extra)
    return required + rest + extra if is_named else required + extra + rest


def set_kinds(arguments: list[Argument], module: str) -> None:
    leads = module == "nitinol"
    by_name = False
    for argument in arguments:
        leads = leads and argument.type in OPERANDS and argument.is_required
        leads = leads and argument.name in BY_POSITION
        is_flag = argument.type in {"bool", "std::optional<bool>", *BY_NAME}
        is_option = (bool(argument.struct) or is_flag) and not argument.is_required
        by_name = by_name or is_option or argument.is_by_name or argument.cpp in BY_NAME_ONLY
        argument.kind = "position" if leads else "name" if by_name else "either"


def in_order(arguments: list[Argument]) -> list[Argument]:
    """Python wants those without a default first, but for those by name."""
    return sorted(arguments, key=lambda a: ("position", "either", "name").index(a.kind))


def doc_of(function: Function, header: Header, arguments: list[Argument]) -> str:
    text = DOCS.get(function.name) or plain(function.doc, arguments)
    if not text:
        raise Unreadable(f"{function.place}: {function.name} has no comment")
    options = [f"{a.name}: {plain(a.doc, [])}" for a in arguments if a.doc]
    has_notes = header.path not in WITHOUT_NOTES and function.result != "void"
    notes = plain(header.notes, []) if has_notes else ""
    for part, place in ((text, function.place), (notes, f"{header.path}:1")):
        if found := re.match(r"(They|These|Throw|Raise)\b", part):
            raise Unreadable(
                f"{place}: `{found[0]}`: of which? Each function has a copy of its own"
            )
    paragraphs = re.split(r"\n\n", text)
    filled = [textwrap.fill(" ".join(p.split()), 88) for p in paragraphs]
    if options:
        filled.append("\n".join(textwrap.fill(o, 88, subsequent_indent="    ") for o in options))
    if notes:
        filled += [textwrap.fill(" ".join(p.split()), 88) for p in notes.split("\n\n")]
    return "\n\n".join(filled)


def module_of(function: Function, path: str) -> str:
    if path in ("eager/ops/random.h", "eager/ops/distributions.h"):
        return "nitinol.random"
    if function.namespace in ("nitinol::dist", "nitinol::nn"):
        return function.namespace.replace("::", ".")
    return "nitinol"


def is_wanted(function: Function, path: str, structs: dict[str, Struct]) -> bool:
    if path in ONLY and function.name not in ONLY[path]:
        return False
    if function.name in NOT_BOUND or function.result == "std::span<const Op>":
        return False
    if any("std::initializer_list" in parameter.type for parameter in function.parameters):
        return False  # beside one that takes a span
    if function.full_name == "nitinol::dist::all_reduce" and "span" in function.parameters[0].type:
        return False  # several tensors at once: nitinol/dist.py
    if function.is_template or function.result not in {*RESULTS, *structs}:
        raise Unreadable(
            f"{function.place}: {function.name}, which gives {function.result}, can be neither "
            "bound nor left out: say so in generate.py"
        )
    return True


def collected(headers: list[Header]) -> list[Bound]:
    structs: dict[str, Struct] = {}
    for header in headers:
        bound_by_hand = header.path in ONLY
        for name, struct in header.structs.items():
            if not bound_by_hand or name.endswith("Options"):
                structs[name] = struct
    replaced = {
        **REPLACED,
        **{function.name: function.name for h in headers if h.path == STANDARD
           for function in h.functions},
    }  # fmt: skip
    groups: dict[tuple[str, str], list[tuple[Function, Header]]] = {}
    for header in headers:
        for function in header.functions:
            if not is_wanted(function, header.path, structs):
                continue
            if header.path != STANDARD and function.namespace == "nitinol":
                if function.name in replaced:
                    continue
            key = (module_of(function, header.path), function.name)
            groups.setdefault(key, []).append((function, header))
    bound = []
    for (module, cpp_name), overloads in groups.items():
        function, header = overloads[0]
        try:
            bound.append(bound_function(module, cpp_name, overloads, structs))
            bound[-1].signature(with_types=True)  # or what in it has no word in Python
        except (Unreadable, KeyError) as error:
            place = "" if re.match(r"\S+:\d+: ", str(error)) else f"{function.place}: "
            raise Unreadable(f"{place}{error}") from None
    bound += [dataclasses.replace(one, module="nitinol") for one in bound if one.name in ALSO]
    check_names(bound)
    return bound


def bound_function(
    module: str,
    cpp_name: str,
    overloads: list[tuple[Function, Header]],
    structs: dict[str, Struct],
) -> Bound:
    overloads = sorted(overloads, key=lambda pair: len(pair[0].parameters))
    function, header = overloads[0]
    arguments = arguments_of(function, structs)
    if len(overloads) == 2:
        arguments = merged(arguments, arguments_of(overloads[1][0], structs), function.place)
    elif len(overloads) > 2:
        raise Unreadable(f"{function.place}: three overloads of {cpp_name}")
    doc = doc_of(function, header, arguments)
    set_kinds(arguments, module)
    name = NAMES.get(cpp_name, cpp_name) if module == "nitinol" else cpp_name
    others = [cpp_name] if name != cpp_name else []
    others += [cpp for cpp, python in REPLACED.items() if python == cpp_name]
    return Bound(name, module, others, [f for f, _ in overloads], in_order(arguments), doc, structs)


def check_tables(root: pathlib.Path, headers: list[Header]) -> None:
    """That nothing new is left out, and that the tables speak of nothing that is gone."""
    included = re.findall(r'#include "(.*)"', (root / "eager/ops/ops.h").read_text("utf-8"))
    if unread := sorted(set(included) - set(HEADERS) - set(NOT_READ)):
        raise Unreadable(f"{unread[0]}:1: is neither in HEADERS nor in NOT_READ of names.py")
    present = {function.name for header in headers for function in header.functions}
    for table in (NOT_BOUND, ALSO, NAMES, REPLACED, PARAMETERS_OF, DOCS, LONG, VIEWS):
        if gone := sorted(set(table) - present):
            raise Unreadable(f"names.py: no function {gone[0]} is declared any more")


def check_names(bound: list[Bound]) -> None:
    seen: dict[str, str] = {}
    if gone := sorted(METHODS - {one.name for one in bound if one.module == "nitinol"}):
        raise Unreadable(f"names.py: no function {gone[0]} is bound any more")
    for one in bound:
        for name in (one.name, *one.other_names):
            full = f"{one.module}.{name}"
            if full in seen:
                raise Unreadable(f"{one.function.place}: {full} is also that of {seen[full]}")
            seen[full] = one.function.place
        required = [a.is_required for a in one.arguments if a.kind != "name"]
        if required != sorted(required, reverse=True):
            raise Unreadable(f"{one.function.place}: a parameter without a default follows one")


# ---- C++


def literal(text: str) -> str:
    """As lines of string literals; json's escapes of ASCII are C++'s."""
    if not text.isascii():
        raise Unreadable(f"not ASCII: {text[:60]}")
    return "\n     ".join(json.dumps(line) for line in text.splitlines(keepends=True))


def read_argument(index: int, argument: Argument) -> str:
    get = f"arguments.get<{argument.type}>({index})"
    if argument.is_required or argument.is_extra:
        return get
    default = argument.default or "{}"
    scope, colons, name = default.rpartition("::")
    default = bare(scope) + colons + name  # of an enumerator
    if default == "world()":  # in the namespace itself
        default = "dist::world()"
    make = f"{argument.type}{{}}" if default == "{}" else f"{argument.type}({default})"
    asked = "is_some" if argument.default_in_python == "None" else "is_given"
    return f"arguments.{asked}({index}) ? {get} : {make}"


def waits(bound: Bound) -> bool:
    """For other processes, which are told the line that it was called at."""
    return any(argument.type == "dist::Group" for argument in bound.arguments)


def work_of(bound: Bound) -> str:
    # What draws random numbers assigns a Variable, for which it may wait.
    draws = bound.function.place.startswith(
        ("eager/ops/random.h", "eager/ops/distributions.h", "nn/init.h")
    )
    if bound.function.name in LONG or draws or waits(bound):
        return "long_work"
    if bound.function.name in VIEWS:
        return ""
    taken = [a for a in bound.arguments if not a.struct and not a.is_extra]
    operands = [f"work_of({a.name}_)" for a in taken if a.type in OPERANDS]
    if operands:
        return " + ".join(operands)
    shapes = [f"work_of_shape({a.name}_)" for a in bound.arguments if a.cpp == "shape"]
    return shapes[0] if shapes else "long_work"


def call_of(bound: Bound, function: Function) -> str:
    by_cpp_name = {a.cpp: a for a in bound.arguments if not a.struct}
    given = []
    for parameter in function.parameters:
        if parameter.type == "std::source_location":
            continue
        is_struct = bare(parameter.type) in bound.structs and bare(parameter.type) not in TYPES
        given.append("options" if is_struct else f"{by_cpp_name[parameter.name].name}_")
    call = f"{function.full_name}({', '.join(given)})"
    work = work_of(bound)
    if function.result == "void":
        call = f"computed({work}, [&] {{ {call}; }})" if work else call
        return f"{call};\n    return nb::none();"
    if work:
        call = f"computed({work}, [&] {{ return {call}; }})"
    if bound.function.name in TUPLES:
        return f"return nb::tuple(to_python({call}));"
    if function.result not in bound.structs:
        return f"return to_python({call});"
    fields = bound.structs[function.result].fields
    parts = ", ".join(f"to_python(std::move(made.{field.name}))" for field in fields)
    return f'auto made = {call};\n    return named("{function.result}", nb::make_tuple({parts}));'


def options_of(bound: Bound) -> list[str]:
    """Lines that make the options struct: fields that are not given keep their default."""
    fields = [(i, a) for i, a in enumerate(bound.arguments) if a.struct]
    if not fields:
        return []
    lines = [f"    {bound.function.namespace}::{fields[0][1].struct} options{{}};"]
    for i, argument in fields:
        line = f"options.{argument.cpp} = arguments.get<{argument.type}>({i});"
        if not argument.is_required:
            asked = "is_some" if argument.default_in_python == "None" else "is_given"
            line = f"if (arguments.{asked}({i})) {line}"
        lines.append(f"    {line}")
    return lines


def without_axes(bound: Bound) -> list[str]:
    """axis=() means none. To reduce over none is to reduce each element, along an axis of size 1."""
    types = [a.type for a in bound.arguments]
    if "Axes" not in types:
        return []
    axes, keep = types.index("Axes"), types.index("KeepDims") if "KeepDims" in types else None
    names = [f"{a.name}_" for a in bound.arguments]
    lines = [f"    if (arguments.is_empty({axes})) {{"]
    if keep is None:
        return [*lines, f"      return to_python({names[0]});", "    }"]
    return [
        *lines,
        f"      {names[0]} = unsqueeze({names[0]}, -1);",
        f"      {names[axes]} = Axes(-1);",
        f"      {names[keep]} = KeepDims::no;",
        "    }",
    ]


def cpp_function(bound: Bound) -> str:
    names = ", ".join(f'"{a.name}"' for a in bound.arguments)
    by_position = sum(a.kind == "position" for a in bound.arguments)
    positional = sum(a.kind != "name" for a in bound.arguments)
    required = sum(1 << i for i, a in enumerate(bound.arguments) if a.is_required)
    name = bound.identifier
    lines = [
        f"// {bound.function.place}",
        f'constinit Signature {name}_signature("{bound.name}", {{{names}}}, {by_position}, '
        f"{positional}, {required:#x});",
        f"PyObject* {name}_function(PyObject*, PyObject* const* given, Py_ssize_t count, "
        "PyObject* keywords) {",
        f"  return called<{len(bound.arguments)}>({name}_signature, given, count, keywords, "
        "[](const Arguments& arguments) -> nb::object {",
    ]
    no_axes = without_axes(bound)
    const = "" if no_axes else "const "
    for i, argument in enumerate(bound.arguments):
        if not argument.struct and not argument.is_extra:
            lines.append(f"    {const}auto {argument.name}_ = {read_argument(i, argument)};")
    lines += no_axes + options_of(bound)
    if waits(bound):
        lines.append("    const PlaceScope place(python_place);")
    if len(bound.overloads) == 2:
        extra = [(i, a) for i, a in enumerate(bound.arguments) if a.is_extra]
        all_given = " && ".join(f"arguments.is_some({i})" for i, _ in extra)
        lines.append(f"    if ({all_given}) {{")
        lines += [f"    const auto {a.name}_ = {read_argument(i, a)};" for i, a in extra]
        lines.append(f"    {call_of(bound, bound.overloads[1])}")
        lines.append("    }")
        if len(extra) > 1:
            any_given = " || ".join(f"arguments.is_some({i})" for i, _ in extra)
            indices = ", ".join(str(i) for i, _ in extra)
            lines.append(f"    if ({any_given}) arguments.throw_not_together({{{indices}}});")
    lines.append(f"    {call_of(bound, bound.function)}")
    lines += ["  });", "}"]
    return "\n".join(lines)


def is_method(bound: Bound) -> bool:
    return bound.module == "nitinol" and bound.name in METHODS


def cpp_definition(bound: Bound) -> str:
    doc = f"{bound.name}{bound.signature(with_types=False)}\n--\n\n{bound.doc}"
    others = ", ".join(f'"{name}"' for name in bound.other_names)
    as_method = f"on_object<{bound.identifier}_function>" if is_method(bound) else "nullptr"
    return (
        f'    {{&{bound.identifier}_signature, method("{bound.name}", '
        f"{bound.identifier}_function,\n     {literal(doc)}),\n"
        f'     "{bound.module}", {{{others}}}, "{bound.function.full_name}", {as_method}}},'
    )


def elsewhere() -> list[tuple[str, str, str]]:
    """(module, what others call something in it, what it is called here)."""
    entries = [
        (module, name, here) for module, names in ELSEWHERE.items() for name, here in names.items()
    ]
    for here, names in PARAMETERS_ELSEWHERE.items():
        entries += [("", name, here) for name in names.split()]
    return entries


def cpp_file(bound: list[Bound], index: int, count: int) -> str:
    functions = "\n\n".join(cpp_function(one) for one in bound)
    definitions = "\n".join(cpp_definition(one) for one in bound)
    others = [f"void add_functions_{i}(nb::module_& m);" for i in range(count)]
    calls = [f"  add_functions_{i}(m);" for i in range(count)]
    words = [f"    {{{', '.join(json.dumps(word) for word in entry)}}}," for entry in elsewhere()]
    ends = [
        "std::span<const Elsewhere> elsewhere() {",
        "  static constexpr auto all = std::to_array<Elsewhere>({",
        *words,
        "  });",
        "  return all;",
        "}\n",
        *others,
        "\nvoid bind_functions(nb::module_& m) {",
        *calls,
        "}",
    ] if index == 0 else [others[index]]  # fmt: skip
    return "\n".join([
        "// Written by bindings/python/generate.py from the public headers: edit those.",
        '#include "bindings/python/src/bind.h"',
        '#include "bindings/python/src/function.h"',
        '#include "bindings/python/word_lists.h"',
        '#include "bindings/python/src/standard.h"',
        "",
        "namespace nitinol::python {",
        "namespace {",
        "",
        functions,
        "",
        "PyMethodDef method(const char* name, Method function, const char* doc) {",
        "  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),",
        "          METH_FASTCALL | METH_KEYWORDS, doc};",
        "}",
        "",
        "std::span<Definition> definitions() {",
        "  static std::array all = std::to_array<Definition>({",
        definitions,
        "  });",
        "  return all;",
        "}",
        "",
        "}  // namespace",
        "",
        *ends,
        "",
        f"void add_functions_{index}(nb::module_& m) {{",
        "  python::add_functions(m, definitions());",
        "}",
        "",
        "}  // namespace nitinol::python",
        "",
    ])  # fmt: skip


# ---- Python

IMPORTS = """\
import builtins
from collections.abc import Sequence

from nitinol import _results
from nitinol._ext import Generator, Group, Scalar, Tensor
from nitinol._typing import DeviceLike, DTypeLike, Parameters, TensorLike
"""


def python_files(bound: list[Bound]) -> dict[str, str]:
    files = {}
    for module in ("nitinol", "nitinol.dist", "nitinol.nn", "nitinol.random"):
        stubs = []
        for one in bound:
            if one.module != module or one.name in VARIADIC:
                continue
            doc = textwrap.indent(one.doc.replace("\\", "\\\\"), "    ").strip()
            stubs.append(
                f"def {one.name}{one.signature(with_types=True)} -> {one.result}:\n"
                f'    """{doc}"""\n'
            )
            stubs += [f"{other} = {one.name}\n" for other in one.other_names]
        file = module.rpartition(".")[2] if "." in module else "functions"
        files[f"stubs/{file}.pyi"] = f"{IMPORTS}\n" + "\n".join(stubs)
    return files


PARTS = 2


def main() -> None:
    root, into = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    try:
        headers = [read_header(root, path) for path in HEADERS]
        check_tables(root, headers)
        words = add_enums(headers)
        bound = collected(headers)
        files = python_files(bound)
        read = {header.path: header for header in headers}
        read.update((path, read_header(root, path)) for path in COMMENTS if path not in read)
        files.update(layers.files_of(read))
        files["bindings/python/word_lists.h"] = words
        for i in range(PARTS):
            files[f"functions_{i}.cpp"] = cpp_file(bound[i::PARTS], i, PARTS)
    except Unreadable as error:
        sys.exit(f"{error}\ngenerate.py: nothing written")
    for name, text in files.items():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        (into / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
