"""What errors say of names that other libraries have: the tables of names.py."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from typing import Any, Callable, ParamSpec

from nitinol import _ext

_P = ParamSpec("_P")


# Whose public names users look for in one another.
_MODULES = ("nitinol", "nitinol.nn", "nitinol.random", "nitinol.linalg", "nitinol.dist")


def _here(module: str, name: str) -> str | None:
    """Where this package has what others have as this name of the module, if it does."""
    known = {where: here for where, other, here in _ext._elsewhere() if where and other == name}
    if module in known:
        return str(known[module])
    for other in _MODULES:
        if name in getattr(sys.modules.get(other), "__all__", ()):
            return f"{other}.{name}"
    return next(iter(known.values()), None)


def names_of_module(
    module: str, public: list[str]
) -> tuple[Callable[[], list[str]], Callable[[str], Any]]:
    """The __dir__ of a module, and its __getattr__, which raises."""

    def missing(name: str) -> Any:
        text = f"module {module!r} has no attribute {name!r}"
        here = _here(module, name)
        if here is not None:
            text += f"; here it is {here}"
        raise AttributeError(text, name=name, obj=sys.modules[module])

    return lambda: public, missing


def of_parameters(init: Callable[_P, None]) -> Callable[_P, None]:
    """The __init__ of a layer, which refuses arguments as functions of C++ do."""
    code: types.CodeType = getattr(init, "__code__")
    parameters = list(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
    by_place = code.co_argcount  # self, too
    is_limited = not code.co_flags & inspect.CO_VARARGS

    @functools.wraps(init)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> None:
        kind = type(args[0]).__name__
        for name in kwargs:
            if name not in parameters:
                _ext._refuse_keyword(kind, name, parameters)
        if is_limited and len(args) > by_place and len(parameters) >= by_place:
            _ext._refuse_count(kind, by_place - 1, len(args) - 1, parameters[by_place - 1])
        init(*args, **kwargs)

    return checked


def refuse_subclasses(of: type, instead: str) -> None:
    """Says, to who derives a class from one that has no subclasses, what to do instead."""

    def refuse(derived: type, /, **options: Any) -> None:
        raise TypeError(
            f"{of.__name__}: no class can derive from it, since what functions give would not be of "
            f"that class; got the class {derived.__name__}.\n{instead}"
        )

    setattr(of, "__init_subclass__", classmethod(refuse))
