"""Layers, losses, optimizers and data.

A module is a class that derives from Module; its Variables, modules, and lists, tuples and dicts of
them are found by their attributes' names:

    class Mlp(nn.Module):
        def __init__(self):
            self.hidden = nn.Linear(64, 128)
            self.out = nn.Linear(128, 10)

        def __call__(self, x):
            return self.out(nitinol.relu(self.hidden(x)))
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from nitinol import _ext, _layers
from nitinol._ext import nn as _functions
from nitinol._ext import (
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    AdamW,
    Adamax,
    Average,
    Group,
    Lamb,
    Lbfgs,
    Lion,
    LossScale,
    NAdam,
    Optimizer,
    Plateau,
    Progress,
    RAdam,
    RmsProp,
    Schedule,
    Sgd,
    Variable,
    autocast,
    constant_rate,
    cosine_decay,
    cosine_restarts,
    exponential_decay,
    joined,
    linear_decay,
    multi_step_decay,
    one_cycle,
    polynomial_decay,
    step_decay,
    warm_up,
)
from nitinol._ext.nn import *  # noqa: F403  (losses, initial values, attention)
from nitinol import _fit, _metric_log, _metrics
from nitinol._data import DataLoader, weighted
from nitinol._fit import *  # noqa: F403
from nitinol._hints import names_of_module
from nitinol._layers import *  # noqa: F403
from nitinol._metric_log import *  # noqa: F403
from nitinol._metrics import *  # noqa: F403
from nitinol._module import Module, Sequential, children
from nitinol import _parametrizations, _summary
from nitinol._parametrizations import *  # noqa: F403
from nitinol._results import Minimum
from nitinol._sharded import Sharded
from nitinol._summary import *  # noqa: F403
from nitinol._pytorch import LoadReport, LoadedTensor, load_pytorch

_Savable = Module | Optimizer | Average | LossScale | DataLoader | Mapping[str, Any] | Sequence[Any]


def _named(where: str, value: Any, path: str = "") -> dict[str, Variable]:
    def joined(name: str) -> str:
        return f"{path}.{name}" if path else name

    if isinstance(value, Variable):
        return {path: value}
    if isinstance(value, (Module, Optimizer, Average, LossScale, DataLoader)):
        return {joined(name): v for name, v in value.named_variables().items()}
    if isinstance(value, Sharded):
        raise TypeError(
            f"{where}: each rank of a Sharded has a part; give the optimizer that its gathered() returns"
        )
    if not isinstance(value, (Mapping, list, tuple)):
        raise TypeError(
            f"{where}: {_ext._with_article(type(value).__name__)}; expected a Module, an Optimizer, "
            "Variables, or dicts and lists of them"
        )
    found: dict[str, Variable] = {}
    for name, element in children(value):
        found.update(_named(where, element, joined(name)))
    return found


def save(path: str | os.PathLike[str], value: Any) -> None:
    """Writes all Variables of a module, an optimizer, or a dict or list of both, to a safetensors
    file, named by their paths. The file appears complete or not at all."""
    _ext._save(path, _named("save", value))


def load(path: str | os.PathLike[str], value: Any) -> None:
    """Sets them from a file, which must hold just these names with their shapes and dtypes; if it
    does not, nothing has changed."""
    _ext._load(path, _named("load", value))


def broadcast(value: Any, root: int = 0, group: Group | None = None) -> None:
    """Gives all Variables of a module, an optimizer, or a dict or list of both, the values that rank
    `root` has. Raises FileError if the ranks' modules differ in a shape or dtype."""
    _ext._dist_broadcast(_named("broadcast", value), root, group)


__all__ = [
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Average",
    "DataLoader",
    "Lamb",
    "Lbfgs",
    "Lion",
    "LoadReport",
    "LoadedTensor",
    "LossScale",
    "Minimum",
    "Module",
    "NAdam",
    "Optimizer",
    "Plateau",
    "Progress",
    "RAdam",
    "RmsProp",
    "Schedule",
    "Sequential",
    "Sgd",
    "Sharded",
    "autocast",
    "broadcast",
    "constant_rate",
    "cosine_decay",
    "cosine_restarts",
    "exponential_decay",
    "joined",
    "linear_decay",
    "load",
    "load_pytorch",
    "multi_step_decay",
    "one_cycle",
    "polynomial_decay",
    "save",
    "step_decay",
    "warm_up",
    "weighted",
]
__all__ += _layers.__all__ + _parametrizations.__all__
__all__ += _summary.__all__ + _metrics.__all__ + _metric_log.__all__ + _fit.__all__
__all__ += _functions.__all__


def _cache_of(_: None, parts: Sequence[Variable]) -> _layers.KeyValueCache:
    cache = _layers.KeyValueCache.__new__(_layers.KeyValueCache)
    cache._take(dict(zip(("keys", "values", "length"), parts)))
    return cache


# A compiled function takes a cache for its Variables, as C++'s does: one Plan serves all of a shape.
_ext.register_pytree(
    _layers.KeyValueCache,
    lambda cache: ((cache.keys, cache.values, cache.length), None),
    _cache_of,
)
load_pytorch.__module__ = __name__
for _class in (
    Module,
    Sequential,
    LoadReport,
    LoadedTensor,
    Sharded,
    *map(vars(_layers).get, _layers.__all__),
    *map(vars(_parametrizations).get, _parametrizations.__all__),
):
    _class.__module__ = __name__  # where users find it


if not TYPE_CHECKING:  # which would take it for a promise that every name is there
    __dir__, __getattr__ = names_of_module(__name__, __all__)
