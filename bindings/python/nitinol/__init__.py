"""Nitinol: tensors that run eagerly, and functions that remember the shapes they have seen.

Code runs as it is written. `nitinol.compile(f)` records what f does, fuses it and keeps machine
code for each combination of shapes and dtypes; results have the same bits either way.
"""

import copyreg as _copyreg
import importlib as _importlib
from typing import TYPE_CHECKING
from typing import Any as _Any

from nitinol import _ext
from nitinol._autograd import (
    check_gradients,
    checkpoint,
    custom_gradient,
    grad,
    hessian,
    jvp,
    no_gradients,
    value_and_grad,
    vjp,
)
from nitinol._compile import Explanation, compile, eager
from nitinol._ext import *  # noqa: F403  (the vocabulary, one function for each of C++'s)
from nitinol._ext import __version__, bool  # noqa: A004
from nitinol._files import load_csv
from nitinol._hints import names_of_module as _names_of_module
from nitinol._hints import refuse_subclasses as _refuse_subclasses
from nitinol._information import (
    __array_namespace_info__,
    can_cast,
    finfo,
    iinfo,
    isdtype,
    result_type,
)
from nitinol._memory import MemoryNotes, MemorySnapshot, memory_notes, memory_snapshot
from nitinol._profile import Profile, ProfileEvent, profile
from nitinol._variadic import (
    broadcast_arrays,
    broadcast_shapes,
    einsum,
    matrix_norm,
    meshgrid,
    tensordot,
    where,
)
from nitinol import dist, linalg, nn, random  # after the names of _ext, of which some are the same


def _function_named(module: str, name: str) -> _Any:
    return getattr(_importlib.import_module(module), name)


def _by_name(function: _Any) -> tuple[_Any, ...]:
    return _function_named, (function.__module__, function.__name__)


# A function of ours is pickled by name, as Python's own are.
_copyreg.pickle(type(_ext.asarray), _by_name)

for _name in ("Tensor", "Variable", "Scalar", "Compiled", "Device", "Generator", "HostValue"):
    _refuse_subclasses(
        getattr(_ext, _name),
        "Hold one as an attribute: of a dataclass, of a class given to register_pytree(), or of an "
        "nn.Module.",
    )

newaxis: None = None
pi: float = 3.141592653589793
e: float = 2.718281828459045
inf: float = float("inf")
nan: float = float("nan")

__array_api_version__: str = "2024.12"

__all__ = [
    "Explanation",
    "Profile",
    "ProfileEvent",
    "__array_namespace_info__",
    "__version__",
    "broadcast_arrays",
    "broadcast_shapes",
    "can_cast",
    "check_gradients",
    "checkpoint",
    "compile",
    "custom_gradient",
    "dist",
    "e",
    "eager",
    "einsum",
    "finfo",
    "grad",
    "hessian",
    "iinfo",
    "inf",
    "isdtype",
    "jvp",
    "linalg",
    "load_csv",
    "matrix_norm",
    "memory_notes",
    "memory_snapshot",
    "meshgrid",
    "nan",
    "newaxis",
    "nn",
    "no_gradients",
    "pi",
    "profile",
    "random",
    "result_type",
    "tensordot",
    "value_and_grad",
    "vjp",
    "where",
]
__all__ += _ext.__all__


if not TYPE_CHECKING:  # which would take it for a promise that every name is there
    __dir__, __getattr__ = _names_of_module(__name__, sorted(set(__all__)))
