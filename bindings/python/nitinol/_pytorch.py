"""What PyTorch has trained, into modules of ours: nn.load_pytorch."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nitinol import _ext, _layers
from nitinol._ext import Variable
from nitinol._module import Module, walk


class LoadedTensor(NamedTuple):
    """What was done with tensors of a file."""

    names: tuple[str, ...]  #: there; none for what is missing
    name: str  #: here; empty for what is unused
    #: "as it is", "transposed", "sum of 2", "3 side by side", ", from float16"; "missing", "unused"
    how: str


@dataclasses.dataclass(frozen=True, repr=False)
class LoadReport:
    """What load_pytorch() did: print it. All Variables in their order, then what was unused."""

    tensors: list[LoadedTensor]
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def _type_of(module: Module) -> str:
    """Which layer it is, or is derived from."""
    ours = vars(_layers)
    return next((c.__name__ for c in type(module).__mro__ if ours.get(c.__name__) is c), "")


def load_pytorch(
    source: str | os.PathLike[str] | Mapping[str, Any],
    module: Module | Mapping[str, Any] | Sequence[Any],
    *,
    rename: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    untransposed: Sequence[str] = (),
    unused: Sequence[str] = (),
    strict: bool = True,
) -> LoadReport:
    """Sets a module's Variables from a safetensors file that PyTorch's names and layouts are in, or
    from a state_dict, and says what it did. If they do not fit, nothing has changed.

    What differs between the two is decided by what a layer is, never by shapes: weights of Linear
    are transposed, the two biases of LSTMs are summed, in_proj_weight, or q_proj, k_proj and v_proj
    side by side, are qkv of MultiHeadAttention. Floating dtypes are converted.

    A pattern is a row of a name's parts, anywhere in it: "attn.c_attn" is in
    "h.0.attn.c_attn.weight". `*` stands for any one part.

    rename: each replaces the first such parts of every name, one after another; what `*` stood for
    is put back in order. "" leaves the parts out.
    untransposed: names there of weights that are [in, out] already, as those of GPT-2's Conv1D.
    unused: names there that are left out.
    strict: every Variable is in the file, and nothing else is there.
    """
    if not isinstance(module, (Module, Mapping, list, tuple)):
        got = _ext._with_article(type(module).__name__)
        raise TypeError(f"load_pytorch: {got}; expected a Module, or dicts and lists of them")
    found = list(walk("", module, set()))
    variables = {path: one for path, one in found if isinstance(one, Variable)}
    layers = [(path, _type_of(one)) for path, one in found if isinstance(one, Module)]
    pairs = list(rename.items()) if isinstance(rename, Mapping) else [(a, b) for a, b in rename]
    state = dict(source) if isinstance(source, Mapping) else source
    for name, patterns in (("untransposed", untransposed), ("unused", unused)):
        if isinstance(patterns, str):
            raise TypeError(f"load_pytorch: {name}: expected a list of str, got a str")
    made, text = _ext._load_pytorch(
        state, variables, layers, pairs, list(untransposed), list(unused), strict
    )
    return LoadReport([LoadedTensor(tuple(names), name, how) for names, name, how in made], text)
