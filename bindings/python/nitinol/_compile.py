"""compile(): the same function, recorded, fused and compiled for each signature it is called with."""

from __future__ import annotations

import os
from typing import Any, Callable, ParamSpec, Sequence, TypeVar, overload

from nitinol import _ext
from nitinol._ext import Compiled, stance
from nitinol._typing import DTypeLike

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Explanation:
    """What happened to the calls of a compiled function and why."""

    def __init__(self, explanation: _ext._Explanation) -> None:
        self._explanation = explanation

    def __str__(self) -> str:
        return self._explanation.text()

    def __repr__(self) -> str:
        return self._explanation.text()

    def _repr_html_(self) -> str:
        # Without generated code, which takes its time and would stay in the notebook. In a frame, as
        # the page has styles of its own; `base` makes its links lead to places inside of it.
        import html  # here: importing the package is quick

        page = self.to_html(code=False).replace("<head>", '<head><base href="about:srcdoc">', 1)
        return (
            f'<iframe sandbox="" srcdoc="{html.escape(page)}" title="explain()" '
            'style="width: 100%; height: 40rem; border: 0"></iframe>'
        )

    def to_html(self, *, code: bool = True) -> str:
        """A page of its own, which loads nothing and runs no script: the steps as a graph with bytes
        on its edges, of each the lines it comes from, its kernel, its code and what the machine needs
        for it at least, and memory over the steps. code=False: without generated code, which takes
        about 20 ms a kernel to write."""
        return self._explanation.to_html(code)

    def save_html(self, path: str | os.PathLike[str], *, code: bool = True) -> None:
        """Writes to_html() to a file."""
        self._explanation.save_html(path, code)

    def show(self, *, code: bool = True) -> str:
        """Opens to_html() in the browser, from a new file among the temporary ones that is yours
        alone; prints and returns its path."""
        import pathlib
        import tempfile
        import webbrowser

        file, path = tempfile.mkstemp(prefix="nitinol-", suffix=".html")
        with open(file, "w", encoding="utf-8") as page:
            page.write(self.to_html(code=code))
        print(path)
        webbrowser.open(pathlib.Path(path).as_uri())
        return path

    def to_dot(self, signature: int | None = None, *, backward: bool = False) -> str:
        """The graph of a signature after the passes in the language of Graphviz, whose `dot -Tsvg`
        draws it, with a box around what one step computes. signature: its number, from 0 on; None:
        the first that is compiled. backward: of its backward plan."""
        return self._explanation.to_dot(-1 if signature is None else signature, backward)

    def to_json(self, *, bounds: bool = False) -> str:
        """The same as one JSON object. bounds: with what the machine needs at least for each step,
        "bound_s"; it is measured for that once, in a quarter of a second."""
        return self._explanation.to_json(bounds)

    @property
    def data(self) -> dict[str, Any]:
        """The same as dicts and lists."""
        import json

        data: dict[str, Any] = json.loads(self.to_json())
        return data

    def __getitem__(self, key: str) -> Any:
        return self.data[key]


def _explain(self: Compiled[..., Any]) -> Explanation:
    """What happened to the calls of this function and why: print it."""
    return Explanation(self._explain())


Compiled.explain = _explain  # type: ignore[method-assign]


_HAS_KWARGS = 8  # inspect.CO_VARKEYWORDS, which takes long to import


def _parameters_of(function: Callable[..., Any]) -> tuple[list[str], bool]:
    """Names of the positional parameters, and whether there is a **kwargs, as far as is known."""
    method = getattr(function, "__func__", None)
    code = getattr(function, "__code__", None)
    if code is None:
        method = getattr(type(function), "__call__", None)
        code = getattr(method, "__code__", None)
        if code is None:
            return [], True
    first = 0 if method is None else 1  # self, which is not given
    names = list(code.co_varnames[first : code.co_argcount])
    return names, code.co_flags & _HAS_KWARGS != 0


@overload
def compile(
    function: Callable[_P, _R],
    *,
    name: str | None = None,
    check: str = "scheduled",
    check_interval_ms: float = 10,
    signature_limit: int = 256,
    in_background: bool = False,
    quick_code: bool = False,
    autocast: DTypeLike | None = None,
    check_nan: bool = False,
    shadow: bool = False,
    arguments: Sequence[str] | None = None,
) -> Compiled[_P, _R]: ...
@overload
def compile(
    *,  # not `function: None`, which a checker would take for what it knows nothing of
    name: str | None = None,
    check: str = "scheduled",
    check_interval_ms: float = 10,
    signature_limit: int = 256,
    in_background: bool = False,
    quick_code: bool = False,
    autocast: DTypeLike | None = None,
    check_nan: bool = False,
    shadow: bool = False,
    arguments: Sequence[str] | None = None,
) -> Callable[[Callable[_P, _R]], Compiled[_P, _R]]: ...
def compile(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    check: str = "scheduled",
    check_interval_ms: float = 10,
    signature_limit: int = 256,
    in_background: bool = False,
    quick_code: bool = False,
    autocast: DTypeLike | None = None,
    check_nan: bool = False,
    shadow: bool = False,
    arguments: Sequence[str] | None = None,
) -> Any:
    """Wraps a function, a method or another callable; also a decorator, with options or without.

    Arguments and results are tensors, numbers, and structures of them: tuples, lists, dicts, named
    tuples, dataclasses and classes given to register_pytree(). Of arguments, tensors, arrays and
    floats may change from call to call; what else there is (bool, int, str, None, an enum, an
    nn.Module) is a fixed part of the signature, of which each has a Plan of its own. Inside the
    function a float argument is a Scalar.

    check: when trusted recordings are repeated and compared: "scheduled", "always" or "never".
    check_interval_ms: a recording is repeated when so much time has passed since the last one.
    signature_limit: how many signatures are kept; calls with others run eagerly.
    in_background: compile on a thread of the function's own; calls run eagerly until then.
    quick_code: code that is not on disk yet is made quickly first, and better in the background.
    autocast: the function runs inside nn.autocast(dtype).
    check_nan: it runs inside debug_nans().
    shadow: it runs inside shadow().
    arguments: names of the parameters, for explain() and errors, where they cannot be found.
    """

    for option, value, kind, expected in (
        ("check", check, str, "'scheduled', 'always' or 'never'"),
        ("check_interval_ms", check_interval_ms, (int, float), "a number of milliseconds"),
        ("signature_limit", signature_limit, int, "a whole number"),
        ("in_background", in_background, bool, "True or False"),
        ("quick_code", quick_code, bool, "True or False"),
        ("check_nan", check_nan, bool, "True or False"),
        ("shadow", shadow, bool, "True or False"),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"compile: {option} is {value!r}; expected {expected}")

    def wrap(wrapped: Callable[..., Any]) -> Compiled[..., Any]:
        if isinstance(wrapped, (staticmethod, classmethod)):
            raise TypeError("compile: put @staticmethod or @classmethod above @compile, not below")
        called = name or getattr(wrapped, "__qualname__", None) or type(wrapped).__qualname__
        names, sees_order = _parameters_of(wrapped)
        if arguments is not None:
            names = list(arguments)
        return Compiled(
            wrapped,
            called,
            names,
            sees_order,
            check,
            check_interval_ms,
            signature_limit,
            in_background,
            quick_code,
            autocast,
            check_nan,
            shadow,
        )

    return wrap if function is None else wrap(function)


def eager() -> stance:
    """A context in which this thread runs compiled functions as they are written."""
    return stance("eager")


__all__ = ["Explanation", "compile", "eager"]
