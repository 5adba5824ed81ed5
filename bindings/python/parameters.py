"""What parameters of C++ are in Python: their types, their defaults, and how comments speak of them."""

from __future__ import annotations

import dataclasses
import re

from collections.abc import Iterable

from headers import Header, Unreadable

# What Python gives for a C++ type, in signatures. A type that is not here is an error.
TYPES = {
    "Tensor": "TensorLike",
    "Operand": "TensorLike",
    "Fill": "TensorLike",
    "std::vector<Tensor>": "Sequence[TensorLike]",
    "std::vector<Variable>": "Parameters",
    "std::vector<Padding>": "Sequence[tuple[int, int]]",
    "std::vector<int64_t>": "Sequence[int]",
    "nn::Schedule": "Schedule",
    "std::vector<nn::Schedule>": "Sequence[Schedule]",
    "Axes": "int | Sequence[int] | None",
    "Dims": "int | Sequence[int]",
    "Lengths": "int | Sequence[int]",
    "Pair": "int | tuple[int, int]",
    "Range": "builtins.slice | tuple[int, ...]",
    "Integer": "int",
    "int64_t": "int",
    "uint64_t": "int",
    "double": "float",
    "bool": "bool",
    "std::string": "str",
    "KeepDims": "bool",
    "Scalar": "float | Scalar",
    "DType": "DTypeLike",
    "Device": "DeviceLike",
    "Generator": "Generator",
    "dist::Group": "Group",
}
RESULTS = {"Tensor": "Tensor", "std::vector<Tensor>": "list[Tensor]", "void": "None"}
CONVERTED = {
    "Argument": "Operand",
    "std::string_view": "std::string",
    "Shape": "Dims",
    "std::span<const Tensor>": "std::vector<Tensor>",
    "std::span<const Padding>": "std::vector<Padding>",
    "std::optional<Argument>": "std::optional<Operand>",
    "Group": "dist::Group",
    "Schedule": "nn::Schedule",
    "std::vector<Schedule>": "std::vector<nn::Schedule>",
}
OPERANDS = {"Tensor", "Operand", "Fill", "std::vector<Tensor>"}
BY_NAME = {"std::optional<DType>", "Device", "std::optional<Device>", "Generator", "KeepDims"}
ERRORS = {"shape": "ShapeError", "dtype": "DTypeError", "device": "DeviceError",
          "value": "ArgumentError", "io": "FileError", "unsupported": "UnsupportedError",
          "compile": "CompileError"}  # fmt: skip


# Values of enumerations, which are words in Python: what add_enums() has found.
WORDS: dict[str, str] = {}


def add_enums(headers: Iterable[Header]) -> str:
    """Makes their types known, and returns C++ that lists their words."""
    lines = []
    for header in headers:
        for name, enum in header.enums.items():
            if name == "KeepDims":  # a bool
                continue
            full = f"{enum.namespace}::{name}".removeprefix("nitinol::")
            words = ", ".join(f'"{value}"' for value in enum.values)
            TYPES[full] = f"typing.Literal[{words}]"
            if full != name:
                CONVERTED[name] = full
            WORDS.update((f"{name}::{value}", f'"{value}"') for value in enum.values)
            lines += [
                "template <>",
                f"inline std::span<const std::string_view> words_of<{full}>() {{",
                f"  static constexpr auto all = std::to_array<std::string_view>({{{words}}});",
                "  return all;",
                "}",
            ]
    return "\n".join([
        "// Written by bindings/python/generate.py from the public headers: edit those.",
        "#pragma once", "", '#include "bindings/python/src/words.h"', "", "#include <array>", "",
        "namespace nitinol::python {", "", *lines, "", "}  // namespace nitinol::python", "",
    ])  # fmt: skip


@dataclasses.dataclass
class Argument:
    """A parameter of a function of Python."""

    name: str
    cpp: str  # the parameter or field that it becomes
    type: str  # what it is converted to
    default: str | None  # in C++
    doc: str = ""
    struct: str = ""  # the options that it is a field of
    kind: str = "either"  # or "position", "name"
    is_extra: bool = False  # only one of two overloads takes it
    is_by_name: bool = False

    @property
    def is_required(self) -> bool:
        return self.default is None and not self.is_extra

    @property
    def default_in_python(self) -> str:
        if self.is_extra:
            return "None"
        text = self.default or ""
        if (
            text in ("{}", "default_device()", "default_generator()", "world()", "dist::world()")
            or self.type == "DType"
        ):
            return "None"
        words = {
            "KeepDims::no": "False",
            "KeepDims::yes": "True",
            "true": "True",
            "false": "False",
        }
        words.update(WORDS)
        if text in words:
            return words[text]
        if re.fullmatch(r'"[\w-]*"', text):
            return text
        if listed := re.fullmatch(r"\{(-?\d+(, -?\d+)*)\}", text):  # one stands for all
            return f"({listed[1]})" if "," in text else listed[1]
        text = text.replace("'", "")  # of 8'000'000
        if not re.fullmatch(r"-?\d+(\.\d*)?(e-?\d+)?", text):
            raise Unreadable(f"the default `{text}` of {self.name} has no word in Python")
        return repr(float(text)) if self.type == "double" else text

    @property
    def type_in_python(self) -> str:
        name = self.type
        if optional := re.fullmatch(r"std::optional<(.*)>", name):
            name = optional[1]
        if name not in TYPES:
            raise Unreadable(f"no Python type is known for `{self.type} {self.cpp}`")
        text = TYPES[name]
        if not self.is_required and self.default_in_python == "None" and "None" not in text:
            text += " | None"
        elif optional and "None" not in text:
            text += " | None"
        return text


def bare(type_name: str) -> str:
    name = re.sub(r"^const (.*)&$", r"\1", type_name).strip()
    return CONVERTED.get(name, name)


def plain(text: str, arguments: list[Argument]) -> str:
    """A comment of a header as Python's users read it."""
    text = re.sub(r"Error\((\w+)\)", lambda found: ERRORS[found[1]], text)
    text = re.sub(r"\bThrows\b", "Raises", text)
    text = re.sub(r"\bthrows\b", "raises", text)
    text = re.sub(r"\bthrow\b", "raise", text)
    text = re.sub(r"\s\((core|dist|eager|design|docs)[/,][^)]*\)", "", text)
    text = re.sub(r"\b(\w+)\.h\b", r"\1", text.replace("nitinol::", ""))
    text = re.sub(r"\{([^{}]*)\}", r"(\1)", text)  # shapes
    text = text.replace(", keepdims)", ", keepdims=True)")
    for argument in arguments:
        if argument.name == argument.cpp or argument.cpp in ("axes", "keep", "like"):
            continue
        word = rf"\b{argument.cpp}\b"
        if argument.cpp == "a":  # not the article
            word += r"(?! (?!and\b|to\b|shifted\b)[a-z]{3,})"
        text = re.sub(word, argument.name, text)
    return text
