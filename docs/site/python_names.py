"""The public names of the Python package: what each is, its signature with types, its docstring."""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import pathlib
import re
import types
from typing import Any

MODULES = ("nitinol", "nitinol.dist", "nitinol.nn", "nitinol.random", "nitinol.linalg")


@dataclasses.dataclass
class Name:
    kind: str  # function, class, exception, data; of members method, property
    module: str
    name: str
    signature: str
    doc: str
    cpp: str = ""  # the C++ function that it calls, if one of the same kind
    other_names: list[str] = dataclasses.field(default_factory=list)  # full
    members: list[Name] = dataclasses.field(default_factory=list)
    bases: list[str] = dataclasses.field(default_factory=list)  # that are public: nn.Module

    @property
    def full(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def text(self) -> str:
        """What is said of it: nanobind writes a property's type first."""
        return re.sub(r"^\w*\(self\) -> [^\n]+\n*", "", self.doc)

    @property
    def short(self) -> str:
        """As in code: nn.Linear, softmax."""
        return self.full.removeprefix("nitinol.")


class Stubs:
    """Signatures of what nanobind binds, from the files that are written for type checkers."""

    def __init__(self, package: pathlib.Path) -> None:
        self.functions: dict[str, str] = {}
        for path in (package / "_ext").glob("*.pyi"):
            module = "" if path.stem == "__init__" else f"{path.stem}."
            self.read(ast.parse(path.read_text("utf-8")), module)

    def read(self, tree: ast.Module | ast.ClassDef, prefix: str) -> None:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                if prefix + node.name not in self.functions:
                    self.functions[prefix + node.name] = signature_of(node)
            elif isinstance(node, ast.ClassDef):
                self.read(node, f"{prefix}{node.name}.")


def signature_of(node: ast.FunctionDef) -> str:
    arguments = node.args
    for one in (arguments.posonlyargs, arguments.args):
        if one and one[0].arg == "self":
            del one[0]
            break
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return plain(f"({ast.unparse(arguments)}){returns}")


def plain(signature: str) -> str:
    for word in ("builtins.", "collections.abc.", "typing.", "nitinol._results.", "_results."):
        signature = signature.replace(word, "")
    return signature.replace("(/, ", "(").replace("(/)", "()")


def inspected(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        words = parameter.annotation
        if words is not inspect.Parameter.empty and not isinstance(words, str):
            words = getattr(words, "__forward_arg__", None) or getattr(
                words, "__name__", str(words)
            )
        default = parameter.default
        if default is inspect.Parameter.empty:
            pass
        elif isinstance(default, types.FunctionType | type):
            default = Written(default.__name__)
        elif type(default).__name__ == "DType":
            default = Written(repr(default).removeprefix("nitinol."))
        parameters.append(parameter.replace(annotation=Written(words), default=default)
                          if isinstance(words, str) else parameter.replace(default=default))  # fmt: skip
    returns = signature.return_annotation
    if isinstance(returns, str):
        returns = Written(returns)
    text = plain(str(signature.replace(parameters=parameters, return_annotation=returns)))
    return "()" if text == "(*args, **kwargs)" else text  # of what nanobind does not tell


class Written(str):
    """Text that a signature shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


class Reader:
    def __init__(self) -> None:
        self.package = importlib.import_module("nitinol")
        assert self.package.__file__
        self.stubs = Stubs(pathlib.Path(self.package.__file__).parent)
        self.cpp_of = {
            f"{module}.{name}": cpp for module, name, _, cpp in self.package._ext._functions
        }

    def read(self) -> list[Name]:
        found: list[Name] = []
        seen: dict[int, Name] = {}
        for module in MODULES:
            holder = importlib.import_module(module)
            names = [name for name in dir(holder) if not name.startswith("_")]
            # What a function calls itself first: other names are found after it.
            names.sort(key=lambda n: getattr(getattr(holder, n), "__name__", n) != n)
            for name in names:
                value = getattr(holder, name)
                if isinstance(value, types.ModuleType) or f"{module}.{name}" in MODULES:
                    continue
                is_known = callable(value) and id(value) in seen
                if is_known:
                    seen[id(value)].other_names.append(f"{module}.{name}")
                    continue
                made = self.name(module, name, value)
                found.append(made)
                seen[id(value)] = made
        return found

    def name(self, module: str, name: str, value: Any) -> Name:
        doc = inspect.getdoc(value) or ""
        if isinstance(value, type):
            kind = "exception" if issubclass(value, BaseException) else "class"
            made = Name(kind, module, name, self.constructor(module, name, value), doc)
            if kind == "class":
                made.members = list(self.members(made, value))
            for base in value.__bases__:
                holder = self.package.nn if module == "nitinol.nn" else self.package
                if getattr(holder, base.__name__, None) is base:
                    made.bases.append(base.__name__)
            return made
        if callable(value):
            full = f"{module}.{name}"
            made = Name("function", module, name, self.signature(module, name, value), doc)
            made.cpp = self.cpp_of.get(full, "")
            return made
        kind = type(value).__name__
        doc = "" if kind in ("float", "NoneType", "DType") else doc
        return Name("data", module, name, "" if kind != "float" else repr(value), doc)

    def signature(self, module: str, name: str, value: Any) -> str:
        short = f"{module}.{name}".removeprefix("nitinol.")
        return self.stubs.functions.get(short) or inspected(value)

    def constructor(self, module: str, name: str, value: type) -> str:
        short = f"{module}.{name}".removeprefix("nitinol.")
        for made in ("__init__", "__new__"):
            if found := self.stubs.functions.get(f"{short}.{made}"):
                return without_result(found.replace("(cls, ", "(").replace("(cls)", "()"))
        if issubclass(value, BaseException | enum.Enum):
            return ""
        return without_result(inspected(value))

    def members(self, owner: Name, value: type) -> Any:
        """What the class itself has; and, of classes made here, without the operators."""
        for name, member in vars(value).items():
            if name.startswith("_") and name != "__call__":
                continue
            short = f"{owner.short}.{name}"
            doc = inspect.getdoc(getattr(value, name, None)) or ""
            if isinstance(member, property) or type(member).__name__ in (
                "getset_descriptor",
                "member_descriptor",
                "cached_property",
            ):
                getter = getattr(member, "fget", None)
                # A class that is bound stands in _ext, whatever module shows it.
                made = self.stubs.functions.get(short) or self.stubs.functions.get(
                    f"{owner.name}.{name}"
                )
                made = made or (inspected(getter) if getter else "")
                kind = made.rpartition(" -> ")[2]  # its type
                yield Name("property", owner.module, f"{owner.name}.{name}", kind, doc)
            elif callable(member) or isinstance(member, staticmethod | classmethod):
                bound = getattr(value, name)
                signature = self.stubs.functions.get(short) or inspected(bound)
                yield Name("method", owner.module, f"{owner.name}.{name}", signature, doc)


def without_result(signature: str) -> str:
    head, arrow, _ = signature.rpartition(" -> ")
    text = head if arrow else signature
    return "" if text == "(*args, **kwargs)" else text


def read_names() -> list[Name]:
    return Reader().read()
