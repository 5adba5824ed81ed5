"""Optimizers of which each process has a part."""

from __future__ import annotations

from typing import Any, Callable

from nitinol import _ext
from nitinol._ext import Group, LossScale, Optimizer, Tensor, Variable
from nitinol._ext.nn import clip_gradient_norm, clip_gradient_value
from nitinol._typing import Parameters


class Sharded:
    """An optimizer whose state is cut over the ranks (S. Rajbhandari et al., ZeRO, arXiv:1910.02054,
    stage 1): each holds and updates its part of all parameters, of which it needs the gradients
    alone. A step is a reduce_scatter of gradients, which need not be averaged before, and an
    all_gather of parameters, and gives the bits that average_gradients() and the optimizer give.

    optimizer: one whose formulas are of one element: Sgd, Adam, AdamW, Adamax, NAdam, RAdam, RmsProp,
    Adagrad, Adadelta, Lion. parameters: the same on all ranks, with the same values. options: the
    optimizer's.

        optimizer = nn.Sharded(nn.Adam, model, rate=1e-3)

    A parameter without a gradient counts as one whose gradient is zero. Functions of all gradients have
    their place here, between backward() and step(), and are those of the mean over ranks:
    nn.clip_gradient_norm(model, ...) would see this rank's own.
    """

    def __init__(
        self,
        optimizer: Callable[..., Optimizer],
        parameters: Parameters,
        *,
        group: Group | None = None,
        **options: Any,
    ) -> None:
        self._lines = _ext._Lines(parameters, group)
        self._part = optimizer(self._lines.parts(), **options)
        self._whole: Callable[[], Optimizer] = lambda: optimizer(
            self._lines.parameters(), **options
        )

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for parameter in self._lines.parameters():
            parameter.clear_grad()
        self._lines.clear_gradients()

    def step(self, when: Tensor | None = None) -> None:
        """Updates every parameter; or if `when`, one boolean that is equal on all ranks, holds: what
        unscale() gives. All ranks call it."""
        self._lines.reduce_gradients()
        self._part.step(when)
        self._lines.clear_gradients()
        self._lines.gather()

    def clip_gradient_norm(self, largest: float) -> Tensor:
        """nn.clip_gradient_norm() of the mean of all ranks' gradients. All ranks call it."""
        self._lines.reduce_gradients()
        return clip_gradient_norm(self._lines.parts(), largest, group=self._lines.group())

    def clip_gradient_value(self, largest: float) -> None:
        """nn.clip_gradient_value() of the same. All ranks call it."""
        self._lines.reduce_gradients()
        clip_gradient_value(self._lines.parts(), largest)

    def unscale(self, scale: LossScale) -> Tensor:
        """LossScale.unscale() of the same, for step(). All ranks call it."""
        self._lines.reduce_gradients()
        return scale.unscale(self._lines.parts(), self._lines.group())

    def rate(self) -> Variable:
        """The learning rate, a float64 number."""
        return self._part.rate()

    def set_rate(self, rate: float) -> None:
        """Sets the learning rate."""
        self._part.set_rate(rate)

    def gathered(self) -> Optimizer:
        """The optimizer of one process with all state, as it is now: for save(). All ranks call it."""
        whole = self._whole()
        self._lines.gather_state(self._part, whole)
        return whole

    def scatter(self, whole: Optimizer) -> None:
        """Takes this rank's part of such state, and of the parameters' values: after load(). The
        number of ranks may be another than where it was saved."""
        self._lines.scatter_state(self._part, whole)

    def take_parameters(self) -> None:
        """Takes this rank's part of the parameters' values alone: after something else has set them,
        such as broadcast(). The next step() would undo that."""
        self._lines.take_parameters()

    @property
    def group(self) -> Group:
        """The ranks that it is cut over."""
        return self._lines.group()
