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

import copyreg
import os
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple, Self, Sequence

from nitinol import _ext
from nitinol._ext import nn as _functions
from nitinol._ext import (
    Adam,
    AdamW,
    DataLoader,
    Device,
    DType,
    ModuleBase,
    Optimizer,
    Progress,
    RmsProp,
    Schedule,
    Sgd,
    Tensor,
    Variable,
    clip_gradient_norm,
    clip_gradient_value,
    cosine_decay,
    float32,
    parameter,
    step_decay,
    warm_up,
)
from nitinol._ext.nn import *  # noqa: F403  (losses, initial values, attention)
from nitinol._hints import names_of_module, of_parameters
from nitinol._typing import TensorLike


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Module):
        for name, child in vars(value).items():
            if name == "layers" and isinstance(value, Sequential):
                yield from _children(child)  # by position, as in C++ and PyTorch: "0.weight"
            else:
                yield name, child
    elif isinstance(value, (list, tuple)):
        for i, element in enumerate(value):
            yield str(i), element
    elif isinstance(value, dict):
        for key, element in value.items():
            yield str(key), element


def _walk(path: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Every Variable and Module below `value`, each once, in the order of the attributes."""
    if isinstance(value, (Variable, Module)):
        # The cell of a Variable is what is shared, not its object of Python.
        key = hash(value) if isinstance(value, Variable) else id(value)
        if key in seen:
            return
        seen.add(key)
        yield path, value
    for name, child in _children(value):
        yield from _walk(f"{path}.{name}" if path else name, child, seen)


class Module(ModuleBase):
    """What has Variables. Assigning a Tensor to an attribute that is a Variable sets its value.

    What a compiled function reads of a module it notes: when another object is assigned to the
    attribute, it is recorded anew. Contents of lists and dicts it does not watch.
    """

    training: bool = True

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__ and "__init__" in vars(cls):
            setattr(cls, "__init__", of_parameters(vars(cls)["__init__"]))

    def __init__(self) -> None:  # need not be called
        pass

    def __reduce__(self) -> tuple[Any, ...]:
        make = copyreg.__newobj__  # type: ignore[attr-defined]
        return make, (type(self),), dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def named_variables(self) -> dict[str, Variable]:
        """All Variables by path, each once."""
        return {path: v for path, v in _walk("", self, set()) if isinstance(v, Variable)}

    def named_parameters(self) -> dict[str, Variable]:
        """Those that gradients flow to."""
        return {path: v for path, v in self.named_variables().items() if v.tracks_gradient}

    def parameters(self) -> list[Variable]:
        """Those that gradients flow to, for optimizers."""
        return list(self.named_parameters().values())

    def buffers(self) -> dict[str, Variable]:
        """The others: running means, counts."""
        return {path: v for path, v in self.named_variables().items() if not v.tracks_gradient}

    def modules(self) -> list[Module]:
        """This module and all below it."""
        return [m for _, m in _walk("", self, set()) if isinstance(m, Module)]

    def train(self, value: bool = True) -> Self:
        """Switches dropout and running statistics on. A compiled function has a Plan for each mode."""
        for module in self.modules():
            module.training = value
        return self

    def eval(self) -> Self:
        """Switches them off."""
        return self.train(False)

    def to(self, *targets: Device | DType | str) -> Self:
        """Gives the module new Variables on another device or of another floating dtype. Call it
        before optimizers are made."""
        made: dict[int, Variable] = {}
        dtypes = [t for t in targets if isinstance(t, DType)]
        others = [t for t in targets if not isinstance(t, DType)]

        def moved(variable: Variable) -> Variable:
            if hash(variable) not in made:
                value = variable.get().to(*others)
                if value.dtype.is_floating:
                    value = value.to(*dtypes)
                made[hash(variable)] = (
                    parameter(value) if variable.tracks_gradient else Variable(value)
                )
            return made[hash(variable)]

        def replaced(value: Any) -> Any:
            if isinstance(value, Variable):
                return moved(value)
            if isinstance(value, Module):
                for name, child in list(vars(value).items()):
                    new = replaced(child)
                    if new is not child:
                        del value.__dict__[name]
                        setattr(value, name, new)
            elif isinstance(value, list):
                for i, child in enumerate(value):
                    value[i] = replaced(child)
            elif isinstance(value, dict):
                for key, child in value.items():
                    value[key] = replaced(child)
            elif type(value) is tuple:
                new_children = tuple(replaced(child) for child in value)
                if any(a is not b for a, b in zip(new_children, value)):
                    return new_children
            return value

        replaced(self)
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """The values of all Variables by path."""
        return {path: v.get() for path, v in self.named_variables().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Sets all Variables from values by path: of just these names, shapes and dtypes."""
        variables = self.named_variables()
        absent = sorted(variables.keys() - state.keys())
        unknown = sorted(state.keys() - variables.keys())
        if absent or unknown:
            raise _ext.ArgumentError(
                f"load_state_dict: missing: {', '.join(absent) or 'none'}; "
                f"unknown: {', '.join(unknown) or 'none'}"
            )
        values = {path: _ext.asarray(state[path]) for path in variables}
        for path, variable in variables.items():
            value = values[path]
            if value.shape != variable.shape or value.dtype != variable.dtype:
                raise _ext.ShapeError(
                    f"load_state_dict: {path}: expected {variable.dtype}{list(variable.shape)}, "
                    f"got {value.dtype}{list(value.shape)}"
                )
        for path, variable in variables.items():
            variable.set(values[path].to(variable.device))

    def __repr__(self) -> str:
        lines = [type(self).__name__]
        count = 0
        for path, found in _walk("", self, set()):
            if found is self:
                continue
            indent = "  " * (path.count(".") + 1)
            name = path.rsplit(".", 1)[-1]
            if isinstance(found, Module):
                lines.append(f"{indent}{name}: {type(found).__name__}")
            else:
                count += found.size
                lines.append(f"{indent}{name}: {found.dtype}{list(found.shape)}")
        return "\n".join(lines) + f"\n{count:,} elements"


class Linear(Module):
    """x @ weight + bias, over the last axis. weight: [in, out]; bias: [out]. Initial values as
    PyTorch: uniform within 1 / sqrt(in)."""

    weight: Variable
    bias: Variable | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: DType = float32
    ) -> None:
        self.weight, self.bias = _ext._make_linear(in_features, out_features, bias, dtype)

    def __call__(self, x: TensorLike) -> Tensor:
        return _ext._linear(x, self.weight, self.bias)


class Conv2d(Module):
    """Convolution of images [n, in, h, w]: [n, out, oh, ow]. weight: [out, in / groups, kh, kw]."""

    weight: Variable
    bias: Variable | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: DType = float32,
    ) -> None:
        self.stride: int | tuple[int, int] = stride
        self.padding: int | tuple[int, int] = padding
        self.dilation: int | tuple[int, int] = dilation
        self.groups: int = groups
        self.weight, self.bias = _ext._make_conv2d(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype
        )

    def __call__(self, x: TensorLike) -> Tensor:
        return _ext._conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )


class _Pool2d(Module):
    def __init__(
        self,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] | None = None,
        padding: int | tuple[int, int] = 0,
    ) -> None:
        self.kernel_size: int | tuple[int, int] = kernel_size
        self.stride: int | tuple[int, int] | None = stride
        self.padding: int | tuple[int, int] = padding


class MaxPool2d(_Pool2d):
    """The largest number of each window of images [n, c, h, w]."""

    def __call__(self, x: TensorLike) -> Tensor:
        return _ext.max_pool2d(x, self.kernel_size, stride=self.stride, padding=self.padding)


class AvgPool2d(_Pool2d):
    """The mean of each window of images [n, c, h, w]."""

    def __call__(self, x: TensorLike) -> Tensor:
        return _ext.avg_pool2d(x, self.kernel_size, stride=self.stride, padding=self.padding)


class Embedding(Module):
    """Rows of a table: indices of shape [...] give [..., width]. weight: [count, width]."""

    weight: Variable

    def __init__(self, count: int, width: int, dtype: DType = float32) -> None:
        self.weight = _ext._make_embedding(count, width, dtype)

    def __call__(self, indices: TensorLike) -> Tensor:
        return _ext._embedding(indices, self.weight)


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last axis."""

    weight: Variable
    bias: Variable

    def __init__(self, features: int, eps: float = 1e-5, dtype: DType = float32) -> None:
        self.eps: float = eps
        self.weight, self.bias = _ext._make_layer_norm(features, eps, dtype)

    def __call__(self, x: TensorLike) -> Tensor:
        return _ext._layer_norm(x, self.weight, self.bias, self.eps)


class RmsNorm(Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last axis (arXiv:1910.07467)."""

    weight: Variable

    def __init__(self, features: int, eps: float = 1e-6, dtype: DType = float32) -> None:
        self.eps: float = eps
        self.weight = _ext._make_rms_norm(features, eps, dtype)

    def __call__(self, x: TensorLike) -> Tensor:
        return _ext._rms_norm(x, self.weight, self.eps)


class BatchNorm(Module):
    """Normalises each feature (axis 1) over the batch and all other axes (arXiv:1502.03167), while
    training by the batch's statistics, else by the running ones."""

    weight: Variable
    bias: Variable
    running_mean: Variable
    running_var: Variable

    def __init__(
        self, features: int, eps: float = 1e-5, momentum: float = 0.1, dtype: DType = float32
    ) -> None:
        self.eps: float = eps
        self.momentum: float = momentum
        self.training = True
        self.weight, self.bias, self.running_mean, self.running_var = _ext._make_batch_norm(
            features, dtype
        )

    def __call__(self, x: TensorLike) -> Tensor:
        return _ext._batch_norm(
            x,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            self.momentum,
            self.training,
        )


class Dropout(Module):
    """Zeroes elements with probability `rate` while training, and scales the rest by
    1 / (1 - rate)."""

    def __init__(self, rate: float = 0.5) -> None:
        self.rate: float = rate
        self.training = True
        _ext._dropout(_ext.asarray(0.0), rate, False)  # refuses a rate that is none

    def __call__(self, x: TensorLike) -> Tensor:
        return _ext._dropout(x, self.rate, self.training)


class LstmOutput(NamedTuple):
    """What an Lstm returns."""

    sequence: Tensor  #: [steps, batch, hidden]
    hidden: Tensor  #: the last, [batch, hidden]
    cell: Tensor  #: the last, [batch, hidden]


class Lstm(Module):
    """A recurrent layer with long short-term memory (S. Hochreiter, J. Schmidhuber, 1997), gates in
    PyTorch's order: input, forget, cell, output. x: [steps, batch, in]."""

    input_weight: Variable
    hidden_weight: Variable
    bias: Variable

    def __init__(self, in_features: int, hidden: int, dtype: DType = float32) -> None:
        self.input_weight, self.hidden_weight, self.bias = _ext._make_lstm(
            in_features, hidden, dtype
        )

    def __call__(
        self, x: TensorLike, hidden: TensorLike | None = None, cell: TensorLike | None = None
    ) -> LstmOutput:
        if (hidden is None) != (cell is None):
            raise TypeError("Lstm: give both hidden and cell, or neither")
        return LstmOutput(
            *_ext._lstm(x, self.input_weight, self.hidden_weight, self.bias, hidden, cell)
        )


class MultiHeadAttention(Module):
    """Attention of every position to every other one with several heads (arXiv:1706.03762).
    x: [batch, positions, width]."""

    qkv: Linear
    proj: Linear

    def __init__(
        self,
        width: int,
        heads: int,
        is_causal: bool = False,
        bias: bool = True,
        dtype: DType = float32,
    ) -> None:
        made = _ext._make_multi_head_attention(width, heads, bias, dtype)
        self.heads: int = heads
        self.is_causal: bool = is_causal
        self.qkv, self.proj = (Linear.__new__(Linear) for _ in made)
        for linear, variables in zip((self.qkv, self.proj), made):
            linear.weight, linear.bias = variables

    def __call__(self, x: TensorLike) -> Tensor:
        return _ext._multi_head_attention(
            x,
            self.qkv.weight,
            self.qkv.bias,
            self.proj.weight,
            self.proj.bias,
            self.heads,
            self.is_causal,
        )


class Sequential(Module):
    """Modules and functions, one after another."""

    def __init__(self, *layers: Callable[[Any], Tensor]) -> None:
        for layer in layers:
            if not callable(layer):
                raise TypeError(f"Sequential: {layer!r} cannot be called")
        self.layers: tuple[Callable[[Any], Tensor], ...] = tuple(layers)

    def __call__(self, x: TensorLike) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x  # type: ignore[return-value]  # a Tensor, unless there are no layers

    def __getitem__(self, i: int) -> Any:
        return self.layers[i]

    def __len__(self) -> int:
        return len(self.layers)


_Savable = Module | Optimizer | Mapping[str, Any] | Sequence[Any]


def _named(value: Any, path: str = "") -> dict[str, Variable]:
    def joined(name: str) -> str:
        return f"{path}.{name}" if path else name

    if isinstance(value, Variable):
        return {path: value}
    if isinstance(value, (Module, Optimizer)):
        return {joined(name): v for name, v in value.named_variables().items()}
    found: dict[str, Variable] = {}
    if isinstance(value, Mapping):
        parts = [(str(key), element) for key, element in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(str(i), element) for i, element in enumerate(value)]
    else:
        raise TypeError(
            f"save, load: a {type(value).__name__}; expected a Module, an Optimizer, "
            "Variables, or dicts and lists of them"
        )
    for name, element in parts:
        found.update(_named(element, joined(name)))
    return found


def save(path: str | os.PathLike[str], value: Any) -> None:
    """Writes all Variables of a module, an optimizer, or a dict or list of both, to a safetensors
    file, named by their paths. The file appears complete or not at all."""
    _ext._save(path, _named(value))


def load(path: str | os.PathLike[str], value: Any) -> None:
    """Sets them from a file, which must hold just these names with their shapes and dtypes; if it
    does not, nothing has changed."""
    _ext._load(path, _named(value))


__all__ = [
    "Adam",
    "AdamW",
    "AvgPool2d",
    "BatchNorm",
    "Conv2d",
    "DataLoader",
    "Dropout",
    "Embedding",
    "LayerNorm",
    "Linear",
    "Lstm",
    "LstmOutput",
    "MaxPool2d",
    "Module",
    "MultiHeadAttention",
    "Optimizer",
    "Progress",
    "RmsNorm",
    "RmsProp",
    "Schedule",
    "Sequential",
    "Sgd",
    "clip_gradient_norm",
    "clip_gradient_value",
    "cosine_decay",
    "load",
    "save",
    "step_decay",
    "warm_up",
]
__all__ += _functions.__all__


if not TYPE_CHECKING:  # which would take it for a promise that every name is there
    __dir__, __getattr__ = names_of_module(__name__, __all__)
