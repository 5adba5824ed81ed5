"""nitinol for the Array API's suite, with every function compiled: each call runs eagerly, then three times compiled, and
all four have the same bits, or raise the same error."""

from __future__ import annotations

import functools
import inspect
import sys
import types

import numpy as np

import nitinol

# What makes tensors of memory, or tells of dtypes, computes nothing.
PLAIN = {
    "asarray",
    "from_dlpack",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
    "broadcast_shapes",
}


def content(result: object) -> object:
    """What two results must have in common."""
    if isinstance(result, nitinol.Tensor):
        return str(result.dtype), result.shape, np.asarray(result).tobytes()
    if isinstance(result, (tuple, list)):
        return [content(part) for part in result]
    return result


def outcome(call):
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001: whatever it is, compiled it is the same
        return None, error


def compiled(function):
    @functools.wraps(function)
    def both(*arguments, **keywords):
        eager, error = outcome(lambda: function(*arguments, **keywords))
        again = nitinol.compile(lambda *a, **k: function(*a, **k))
        for call in range(3):
            got, other = outcome(lambda: again(*arguments, **keywords))
            if error is None and other is not None:
                raise AssertionError(
                    f"compiled, call {call} raises, and eagerly nothing does"
                ) from other
            assert type(error) is type(other), f"call {call}: {other!r}, and eagerly {error!r}"
            assert content(got) == content(eager), f"call {call}: {got}, and eagerly {eager}"
        if error is not None:
            raise error
        return eager

    return both


def wrapped(source: types.ModuleType, name: str) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__getattr__ = functools.partial(getattr, source)  # what dir() does not tell
    for key in dir(source):
        value = getattr(source, key)
        is_function = (
            callable(value) and not inspect.isclass(value) and not isinstance(value, nitinol.DType)
        )
        if is_function and not key.startswith("_") and key not in PLAIN:
            value = compiled(value)
        setattr(made, key, value)
    return made


module = wrapped(nitinol, __name__)
module.linalg = wrapped(nitinol.linalg, __name__ + ".linalg")
sys.modules[__name__] = module
