"""Layers whose weight is computed at each call of what is learned in its place: nn/parametrizations.h."""

from __future__ import annotations

from typing import Any, Protocol

from nitinol import _ext
from nitinol._ext import Tensor, Variable, parameter
from nitinol._module import Module
from nitinol._typing import TensorLike

__all__ = ["SpectralNorm", "WeightNorm"]


class HasWeight(Protocol):
    """A Linear, a convolution, or a layer of yours: with_weight(weight, x) is what its call is with
    another weight. `output_axis`, 0 if it is missing, is the weight's axis of outputs."""

    weight: Variable

    def with_weight(self, other: Tensor, x: TensorLike, /) -> Tensor: ...


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
        if axis is None:
            axis = _output_axis(layer) if weight.ndim == 2 else 0
        self.layer, self.axis = layer, axis
        self.magnitude = parameter(_ext._norms(weight, axis))

    def __call__(self, x: TensorLike) -> Tensor:
        weight = _ext._with_norms(self.layer.weight.get(), self.magnitude.get(), self.axis)
        return self.layer.with_weight(weight, x)


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
        _ext._check_spectral_norm(steps, eps)
        self.layer, self.steps, self.eps = _checked("SpectralNorm", layer), steps, eps
        self.left, self.right = _ext._spectrum(layer.weight.get(), _output_axis(layer), eps)

    def __call__(self, x: TensorLike) -> Tensor:
        _ext._check_spectral_norm(self.steps, self.eps)
        weight = _ext._with_unit_spectrum(
            self.layer.weight.get(),
            self.left,
            self.right,
            _output_axis(self.layer),
            self.steps if self.training else 0,
            self.eps,
        )
        return self.layer.with_weight(weight, x)
