"""Layers whose weight is computed at each call of what is learned in its place: nn/parametrizations.h."""

from __future__ import annotations

from typing import Any, Protocol

from nitinol import _ext, linalg, random
from nitinol._autograd import no_gradients
from nitinol._ext import Tensor, Variable, parameter
from nitinol._module import Module
from nitinol._typing import TensorLike

__all__ = ["SpectralNorm", "WeightNorm"]


class HasWeight(Protocol):
    """A Linear, a convolution, or a layer of yours: with_weight(weight, x) is what its call is with
    another weight. `output_axis`, 0 if it is missing, is the weight's axis of outputs."""

    weight: Variable

    def with_weight(self, other: Tensor, x: TensorLike, /) -> Tensor: ...


def _norms(weight: Tensor, axis: int) -> Tensor:
    others = tuple(i for i in range(weight.ndim) if i != axis)
    norms = linalg.vector_norm(_wide(weight), axis=others, keepdims=True)
    return norms.to(weight.dtype)


def _wide(x: Tensor) -> Tensor:
    """16-bit numbers as float32."""
    return x.to(_ext.float32) if x.dtype in (_ext.float16, _ext.bfloat16) else x


def _checked(where: str, layer: Any) -> Any:
    if isinstance(getattr(layer, "weight", None), Variable) and hasattr(layer, "with_weight"):
        return layer
    raise TypeError(
        f"{where}: {_ext._with_article(type(layer).__name__)} has no weight that can be another one; "
        "expected a Linear, a convolution, or what has a Variable `weight` and with_weight(weight, x)"
    )


def _output_axis(layer: HasWeight) -> int:
    return int(getattr(layer, "output_axis", 0))


class WeightNorm(Module):
    """A layer whose weight is magnitude * direction / |direction| (T. Salimans, D. Kingma,
    arXiv:1602.07868). The direction, of any length, is the layer's own `weight`.

    It computes what the layer did until it is trained. By default there is a magnitude for each
    output; for each input of a transposed convolution, as in PyTorch.

    magnitude: of each slice of the weight along `axis`; size 1 along the other axes
    """

    layer: HasWeight
    magnitude: Variable

    def __init__(self, layer: HasWeight, axis: int | None = None) -> None:
        weight = _checked("WeightNorm", layer).weight.get()
        rank = weight.ndim
        if axis is None:
            axis = _output_axis(layer) if rank == 2 else 0
        if not -rank <= axis < rank:
            raise ValueError(
                f"WeightNorm: axis {axis} of a weight {weight.dtype}{list(weight.shape)}: expected "
                f"an axis from {-rank} to {rank - 1}"
            )
        self.layer, self.axis = layer, axis % rank
        self.magnitude = parameter(_norms(weight, self.axis))

    def __call__(self, x: TensorLike) -> Tensor:
        weight = self.layer.weight.get()
        scale = _wide(self.magnitude.get()) / _wide(_norms(weight, self.axis))
        return self.layer.with_weight((_wide(weight) * scale).to(weight.dtype), x)


class SpectralNorm(Module):
    """A layer whose weight, as a matrix of its outputs, is divided by its largest singular value (T.
    Miyato et al., arXiv:1802.05957). While training each call brings the vectors of that value,
    which are no parameters, `steps` steps of the power method nearer.

    left: [outputs]
    right: [elements of the weight for each of them]
    """

    layer: HasWeight
    left: Variable
    right: Variable

    def __init__(self, layer: HasWeight, steps: int = 1, eps: float = 1e-12) -> None:
        _check(steps, eps)
        self.layer, self.steps, self.eps = _checked("SpectralNorm", layer), steps, eps
        weight = layer.weight.get()
        rows = self._rows(weight)
        with no_gradients():
            self.left = Variable(self._unit(self._drawn(rows, 0)).to(weight.dtype))
            self.right = Variable(self._unit(self._drawn(rows, 1)).to(weight.dtype))
        self._move(rows, 15)

    def __call__(self, x: TensorLike) -> Tensor:
        _check(self.steps, self.eps)
        weight = self.layer.weight.get()
        with _ext.autocast(_ext.float32):  # bfloat16 would round the vectors
            rows = self._rows(weight)
            if self.training:
                self._move(_ext.stop_gradient(rows), self.steps)
            largest = _ext.sum(_wide(self.left.get()) * (rows @ _wide(self.right.get())))
            scaled = (_wide(weight) / largest).to(weight.dtype)
        return self.layer.with_weight(scaled, x)

    def _rows(self, weight: Tensor) -> Tensor:
        rows = _ext.moveaxis(_wide(weight), _output_axis(self.layer), 0)
        return _ext.reshape(rows, (rows.shape[0], -1))

    def _drawn(self, rows: Tensor, axis: int) -> Tensor:
        return random.randn((rows.shape[axis],), dtype=rows.dtype).to(rows.device)

    def _unit(self, vector: Tensor) -> Tensor:
        return vector / _ext.maximum(linalg.vector_norm(vector), self.eps)

    def _move(self, rows: Tensor, steps: int) -> None:
        with no_gradients():
            for _ in range(steps):
                left = self._unit(rows @ _wide(self.right.get()))
                self.left.set(left.to(self.left.dtype))
                right = self._unit(_wide(self.left.get()) @ rows)
                self.right.set(right.to(self.right.dtype))


def _check(steps: int, eps: float) -> None:
    if steps < 1:
        raise ValueError(f"SpectralNorm: the setting `steps`: expected at least 1, got {steps}")
    if not 0 < eps < float("inf"):
        raise ValueError(f"SpectralNorm: the setting `eps`: expected 0 < eps < infinity, got {eps}")
