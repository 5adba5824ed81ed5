"""What parameters of C++ are in Python: their types, their defaults, and how comments speak of them."""

from __future__ import annotations

import dataclasses
import re

from headers import Unreadable

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
    "nn::Reduction": 'typing.Literal["none", "mean", "sum"]',
    "nn::Pooling": 'typing.Literal["sum", "mean", "max"]',
    "nn::Nonlinearity": 'typing.Literal["relu", "gelu", "tanh"]',
    "Scalar": "float | Scalar",
    "DType": "DTypeLike",
    "Device": "DeviceLike",
    "Generator": "Generator",
}
RESULTS = {"Tensor": "Tensor", "std::vector<Tensor>": "list[Tensor]", "void": "None"}
CONVERTED = {
    "Argument": "Operand",
    "std::string_view": "std::string",
    "Shape": "Dims",
    "std::span<const Tensor>": "std::vector<Tensor>",
    "std::span<const Padding>": "std::vector<Padding>",
    "std::optional<Argument>": "std::optional<Operand>",
    "Reduction": "nn::Reduction",
    "Nonlinearity": "nn::Nonlinearity",
    "Pooling": "nn::Pooling",
    "Schedule": "nn::Schedule",
    "std::vector<Schedule>": "std::vector<nn::Schedule>",
}
OPERANDS = {"Tensor", "Operand", "Fill", "std::vector<Tensor>"}
BY_NAME = {"std::optional<DType>", "Device", "std::optional<Device>", "Generator", "KeepDims"}
ERRORS = {"shape": "ShapeError", "dtype": "DTypeError", "device": "DeviceError",
          "value": "ArgumentError", "io": "FileError", "unsupported": "UnsupportedError",
          "compile": "CompileError"}  # fmt: skip


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
        if text in ("{}", "default_device()", "default_generator()") or self.type == "DType":
            return "None"
        words = {
            "KeepDims::no": "False",
            "KeepDims::yes": "True",
            "Reduction::mean": '"mean"',
            "Nonlinearity::relu": '"relu"',
            "Pooling::mean": '"mean"',
            "Nonlinearity::tanh": '"tanh"',
            "true": "True",
            "false": "False",
        }
        if text in words:
            return words[text]
        if re.fullmatch(r'"[\w-]*"', text):
            return text
        if listed := re.fullmatch(r"\{(-?\d+(, -?\d+)+)\}", text):
            return f"({listed[1]})"
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
    text = re.sub(r"\s\((core|eager|design|docs)[/,][^)]*\)", "", text)
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
