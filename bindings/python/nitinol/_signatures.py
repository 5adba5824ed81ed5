"""Signatures of the functions that C++ binds, for inspect, help() and completion of arguments."""

from __future__ import annotations

import inspect
import operator
import re
from typing import Any, Mapping, NoReturn

from nitinol import _ext


def signature(function: Any) -> inspect.Signature:
    """Of a function of nanobind, which src/signatures.cpp asks for when somebody asks for it."""
    # "def f(x: float, last: float = \0) -> nitinol._ext.Schedule", and the defaults by number.
    text, _, defaults = function.__nb_signature__[0]
    text = re.sub(r"\bnitinol\._ext\.", "", re.sub(r"\\(\d+)", r"_defaults[\1]", text))
    names: dict[str, Any] = {"_defaults": defaults}
    exec(f"from __future__ import annotations\n{text}: ...", names)
    return inspect.signature(names[function.__name__])


def of_class(init: Any) -> inspect.Signature:
    """Of a class, whose __init__ this is: what it is called with."""
    whole = signature(init)
    return whole.replace(parameters=list(whole.parameters.values())[1:])


# What errors say of a parameter of such a type.
EXPECTED = {
    "bool": "True or False",
    "float": "a number",
    "int": "an integer",
    "str": "a str",
    "str | os.PathLike[str]": "a str or a path",
}


def _is_an_int(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and operator.index(value) is not None
    except TypeError:
        return False


def _fits(value: Any, annotation: str) -> bool:
    """Whether a value may be of a type, as far as it is known here."""
    if value is None:
        return any(word in annotation for word in ("None", "object", "Any"))
    if annotation == "int":
        return _is_an_int(value)
    if annotation == "float":
        return isinstance(value, float) or _is_an_int(value)
    known = {"bool": bool, "str": str, "dict": dict, "type": type}
    expected = known.get(annotation.partition("[")[0]) or getattr(_ext, annotation, None)
    return not isinstance(expected, type) or isinstance(value, expected)


def refuse(function: Any, positional: tuple[Any, ...], named: Mapping[str, Any]) -> NoReturn:
    """Raises what is wrong with a call that nanobind has refused, as functions of our own do."""
    name, owner = function.__name__, function.__qualname__.rpartition(".")[0]
    whole = signature(function)
    parameters = list(whole.parameters.values())
    if parameters and parameters[0].name == "self":
        expected = getattr(_ext, owner, object)
        if not positional or not isinstance(positional[0], expected):
            given = positional[0] if positional else None
            _ext._refuse_type("a method", "the object", given, _ext._with_article(owner))
        parameters, positional = parameters[1:], positional[1:]
        name = owner if name == "__init__" else name
    called = whole.replace(parameters=parameters)
    places = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        places += [""] * len(positional)
    for key in named:
        if key not in called.parameters:
            _ext._refuse_keyword(name, key, list(called.parameters))
        if key in places[: len(positional)]:
            raise TypeError(f"{name}() was given '{key}' twice")
    if len(positional) > len(places):
        by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        _ext._refuse_count(name, len(places), len(positional), [*by_name, ""][0])
    given = {**dict(zip(places, positional)), **named}
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in given]
    if missing:
        raise TypeError(f"{name}() misses {', '.join(map(repr, missing))}")
    for parameter in parameters:
        value, annotation = given.get(parameter.name, parameter.default), str(parameter.annotation)
        if parameter.name in given and not _fits(value, annotation):
            expected = EXPECTED.get(annotation) or _ext._with_article(annotation)
            _ext._refuse_type(name, parameter.name, value, expected)
    raise TypeError(f"{name}() takes other types: {name}{called}")
