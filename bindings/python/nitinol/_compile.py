"""compile(): the same function, recorded, fused and compiled for each signature it is called with."""

from __future__ import annotations

from typing import Any, Callable, ParamSpec, Sequence, TypeVar, overload

from nitinol._ext import Compiled, stance
from nitinol._typing import DTypeLike

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Explanation:
    """What happened to the calls of a compiled function and why."""

    def __init__(self, text: str, data: str) -> None:
        self._text = text
        self._json = data

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        import html  # here: importing the package is quick

        return f"<pre>{html.escape(self._text)}</pre>"

    def to_json(self) -> str:
        """The same as one JSON object."""
        return self._json

    @property
    def data(self) -> dict[str, Any]:
        """The same as dicts and lists."""
        import json

        data: dict[str, Any] = json.loads(self._json)
        return data

    def __getitem__(self, key: str) -> Any:
        return self.data[key]


def _explain(self: Compiled[..., Any]) -> Explanation:
    """What happened to the calls of this function and why: print it."""
    return Explanation(*self._explain())


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
