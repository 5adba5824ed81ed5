"""Writes the types of nitinol._ext for type checkers: the classes as nanobind knows them, the
functions as generate.py has read them from the headers.

Usage: stubs.py <folder in which nitinol is> <generate.py's folder>
"""

from __future__ import annotations

import importlib
import json
import pathlib
import re
import sys
import types

from names import VARIADIC
from nanobind.stubgen import StubGen

HEAD = '''\
"""What the package is made of. Import from nitinol."""
# ruff: noqa

import builtins
import collections.abc
import enum
import inspect
import os
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from nitinol import _results
from nitinol._compile import Explanation
from nitinol._typing import DeviceLike, DTypeLike, Parameters, TensorLike

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")

'''
# Of compile(): what an attribute of a class is, and of an object.
BOUND = """\
    @typing.overload
    def __get__(self, instance: None, owner: Any = None, /) -> Compiled[_P, _R]: ...
    @typing.overload
    def __get__(
        self: Compiled[Concatenate[Any, _Q], _R], instance: object, owner: Any = None, /
    ) -> _CompiledMethod[_Q, _R]: ..."""
METHOD = '''\
class _CompiledMethod(Generic[_P, _R]):
    """A compiled function that is given its object."""
    @property
    def __self__(self) -> Any: ...
    @property
    def __func__(self) -> Any: ...
    @property
    def __wrapped__(self) -> Callable[_P, _R]: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def eager(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def explain(self) -> Explanation: ...
    def set_stance(self, stance: str) -> None: ...

'''
BINARY = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod and rand or ror xor "
    "rxor lshift rlshift rshift rrshift matmul rmatmul"
).split()
COMPARED = "lt le gt ge".split()
EQUAL = "eq ne".split()
UNARY = "neg pos abs invert".split()
BARE = {"dict": "[Any, Any]", "list": "[Any]"}
READ = {"bool": "bool", "int": "int", "float": "float", "index": "int", "len": "int", "hash": "int"}


def operator_of(owner: str, name: str) -> str | None:
    """The line for a slot of the class, which nanobind knows without types."""
    if name in BINARY or name in COMPARED:
        return f"    def __{name}__(self, other: TensorLike, /) -> Tensor: ..."
    if name in EQUAL:
        return (
            f"    def __{name}__(self, other: TensorLike, /) -> Tensor: ...  "
            "# type: ignore[override]"
        )
    if name in ("pow", "rpow"):
        return f"    def __{name}__(self, other: TensorLike, mod: None = None, /) -> Tensor: ..."
    if name in ("divmod", "rdivmod"):
        return f"    def __{name}__(self, other: TensorLike, /) -> tuple[Tensor, Tensor]: ..."
    if name in UNARY:
        return f"    def __{name}__(self) -> Tensor: ..."
    if name in READ:
        return f"    def __{name}__(self) -> builtins.{READ[name]}: ..."
    if name in ("iadd", "isub", "imul", "itruediv"):
        return f"    def __{name}__(self, other: TensorLike, /) -> {owner}: ..."
    if name == "getitem":
        return "    def __getitem__(self, key: Any, /) -> Tensor: ..."
    if name == "setitem":
        return "    def __setitem__(self, key: Any, value: TensorLike, /) -> None: ..."
    if name == "contains":
        return "    def __contains__(self, key: object, /) -> builtins.bool: ..."
    if name == "delitem":
        return ""
    if name == "iter":
        return "    def __iter__(self) -> collections.abc.Iterator[Tensor]: ..."
    if name == "buffer":
        return "    def __buffer__(self, flags: int, /) -> memoryview: ..."
    if name == "release_buffer":
        return ""
    if name == "call":
        return "    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ..."
    if name == "get":
        return BOUND
    if name in ("getattribute", "setattr", "delattr"):
        return ""  # a module's attributes are those that its class has
    return None


UNTYPED = re.compile(
    r'^    def __(\w+)__\((self|\$self|instance|[^)]*)\):\n(?:        """(?:.|\n)*?"""\n|        \.\.\.\n)?',
    re.MULTILINE,
)


def with_operators(text: str) -> str:
    """Types for the slots of all classes."""
    blocks = re.split(r"(?m)^(?=class )", text)
    for i, block in enumerate(blocks):
        found = re.match(r"class (\w+)", block)
        if not found:
            continue
        owner = found[1]

        def typed(match: re.Match[str]) -> str:
            line = operator_of(owner, match[1])
            return match[0] if line is None else line + "\n" if line else ""

        blocks[i] = UNTYPED.sub(typed, block)
    return "".join(blocks)


def methods_of(functions: str, names: set[str]) -> str:
    """Tensor's methods, from the functions of the same names."""
    lines = []
    for match in re.finditer(r"(?m)^def (\w+)\(x: \w+(?:, /)?(?:, )?(.*)\) -> (.*):$", functions):
        if match[1] in names:
            rest = f", {match[2]}" if match[2] else ""
            lines.append(f"    def {match[1]}(self{rest}) -> {match[3]}: ...")
    return "\n".join(lines)


def with_builtins(text: str, *names: str) -> str:
    """These types of Python, where something else has their names, too: outside of comments."""
    name = rf"(?m)(?!^)(?<![\w.`])(?<!def )({'|'.join(names)})(?![\w`])"
    code = text.split('"""')
    code[::2] = [re.sub(name, r"builtins.\1", part) for part in code[::2]]
    return '"""'.join(code)


def with_line(text: str, owner: str, line: str) -> str:
    """One more line in a class, after what the class is said to be."""
    start = rf'^class {owner}\b.*:\n    """(?:.|\n)*?"""\n'
    text, count = re.subn(rf"(?m){start}", lambda found: f"{found[0]}\n    {line}\n", text)
    assert count == 1, f"no class {owner} with a comment"
    return text


def all_of(names: list[str]) -> str:
    """`__all__`, which type checkers do not compute."""
    return f"__all__: list[str] = {json.dumps(names)}\n"


def errors_of(ext: types.ModuleType) -> str:
    classes = [c for c in vars(ext).values() if isinstance(c, type) and issubclass(c, Exception)]
    return "".join(
        f"class {c.__name__}({', '.join(base.__name__ for base in c.__bases__)}):\n"
        f'    """{c.__doc__}"""\n\n'
        for c in sorted(classes, key=lambda c: len(c.__mro__))
    )


def main() -> None:
    folder, generated = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(folder))
    package = importlib.import_module("nitinol")
    ext = package._ext
    methods = set()
    for module, name, others, _ in ext._functions:
        where = ext if module == "nitinol" else getattr(ext, module.split(".")[1])
        for each in (name, *others):
            if hasattr(where, each):
                delattr(where, each)
        # x.to(...) and x.reshape(...) are bound by themselves, as they take more.
        if module == "nitinol" and isinstance(
            vars(ext.Tensor).get(name), types.MethodDescriptorType
        ):
            methods.add(name)
            delattr(ext.Tensor, name)
    delattr(ext.Compiled, "explain")
    delattr(ext, "_CompiledMethod")  # METHOD
    # nanobind's own, which it knows (src/signatures.cpp).
    for owner in (ext, *(v for v in vars(ext).values() if isinstance(v, type))):
        for name, value in list(vars(owner).items()):
            if hasattr(value, "_bound"):
                setattr(owner, name, value._bound)
    own = [name for name in ext.__all__ if name not in VARIADIC]
    modules = ("dist", "nn", "random")
    exported = {module: getattr(ext, module).__all__ for module in modules}
    for name in (*modules, "__all__", "_functions"):
        delattr(ext, name)

    generator = StubGen(ext, include_private=True)
    generator.put(ext)
    text = generator.get()
    text = re.sub(r"(?m)^from \S+ import \((?:.|\n)*?\)\n", "", text)
    text = re.sub(r"(?m)^(?:from|import) .*\n", "", text)
    text = re.sub(r"(?m)^    __class__: .*\n", "", text)
    # What nanobind says of values that it does not look into.
    text = re.sub(r"(?<=-> )object(?=:)", "Any", text)
    text = re.sub(r"(?<=-> )tuple(?=:)", "tuple[Any, ...]", text)
    text = re.sub(r"(?<=-> )list(?=:)", "list[Any]", text)
    text = text.replace("(*shapes)", "(*shapes: Any)")
    text = text.replace("*args, **kwargs)", "*args: Any, **kwargs: Any)")
    text = re.sub(r"(?<=: )(dict|list)(?=[,)])", lambda f: f[0] + BARE[f[0]], text)
    text = text.replace(
        "    __hash__: None = None\n", "    __hash__: typing.ClassVar[None]  # type: ignore\n"
    )
    text = text.replace(  # which nanobind takes for another name of the constructor
        "    __signature__ = __init__\n", "    __signature__: typing.ClassVar[inspect.Signature]\n"
    )
    text = errors_of(ext) + with_builtins(with_operators(text), "bool")  # which is a dtype, too

    stubs = generated / "stubs"
    functions = {path.stem: path.read_text() for path in stubs.glob("*.pyi")}
    body_of = {
        name: re.sub(r"(?m)^(?:from|import) .*\n", "", body) for name, body in functions.items()
    }
    body_of["functions"] = with_builtins(body_of["functions"], "bool")
    body_of["dist"] = re.sub(  # nitinol/dist.py takes lists, too
        r"(?m)^(def all_reduce\()x: TensorLike(, .*\) -> )Tensor:\n    \"\"\"(?:.|\n)*?\"\"\"\n",
        r"@typing.overload\n\g<0>@typing.overload\n\1x: Sequence[TensorLike]\2list[Tensor]: ...\n",
        body_of["dist"],
    )
    for owner, line in (
        ("Tensor", "def __new__(cls, obj: object) -> Tensor: ..."),
        ("Tensor", "def __buffer__(self, flags: int, /) -> memoryview: ..."),
        ("Variable", "def __new__(cls, initial: TensorLike) -> Variable: ..."),
        ("Scalar", "def __new__(cls, value: float | int | builtins.bool) -> Scalar: ..."),
        ("Compiled", "def explain(self) -> Explanation: ..."),
    ):
        text = with_line(text, owner, line)
    text = text.replace("class Compiled(", METHOD + "class Compiled(", 1)
    end = re.search(r"(?ms)^class Tensor:.*?(?=^\S)", text)
    assert end, "no class Tensor"
    body = end[0].rstrip() + "\n\n" + methods_of(body_of["functions"], methods) + "\n\n"
    body = with_builtins(body, "int", "float")  # which are methods
    text = text[: end.start()] + body + text[end.end() :]

    out = folder / "nitinol" / "_ext"
    out.mkdir(exist_ok=True)
    parts = "from nitinol._ext import dist as dist, nn as nn, random as random\n__version__: str\n"
    parts += "_functions: list[tuple[str, str, list[str], str]]\n"
    (out / "__init__.pyi").write_text(
        HEAD + parts + all_of(own) + text + "\n" + body_of["functions"]
    )
    for module in modules:
        (out / f"{module}.pyi").write_text(
            HEAD.replace("from nitinol._compile import Explanation\n", "")
            + "from nitinol._ext import Generator, Group, Tensor\n"
            + all_of(exported[module])
            + body_of[module]
        )


if __name__ == "__main__":
    main()
