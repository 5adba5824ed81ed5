"""Signatures of the functions that C++ binds, for inspect, help() and completion of arguments."""

from __future__ import annotations

import inspect
import re
from typing import Any


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
