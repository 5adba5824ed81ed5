"""What fit() does with an optimizer: with one of which each rank has all, and with a Sharded."""

from __future__ import annotations

import nitinol as nt
from nitinol import nn
from nitinol._ext import Group
from nitinol._fit_ranks import Ranks
from nitinol._sharded import Sharded


def group_of(optimizer: nn.Optimizer | Sharded, told: Group | None) -> Group | None:
    """The ranks that train together, of what fit() was told."""
    if isinstance(optimizer, nn.Optimizer):
        return told
    if not isinstance(optimizer, Sharded):
        raise TypeError(
            f"fit: optimizer: expected an Optimizer or a Sharded, got {type(optimizer).__name__}"
        )
    if told is not None and told != optimizer.group:
        raise nt.ArgumentError(
            "fit: group: expected the group of the Sharded optimizer, got another. Leave it out: fit() "
            "trains by the optimizer's."
        )
    return optimizer.group


def update(
    optimizer: nn.Optimizer | Sharded,
    model: nn.Module,
    ranks: Ranks,
    loss_scale: nn.LossScale | None,
    largest_norm: float | None,
) -> None:
    """Moves the parameters by the gradients of all ranks."""
    finite = None
    if isinstance(optimizer, Sharded):
        if loss_scale is not None:
            finite = optimizer.unscale(loss_scale)
        if largest_norm is not None:
            optimizer.clip_gradient_norm(largest_norm)
    else:
        ranks.average_gradients(model)
        if loss_scale is not None:
            finite = loss_scale.unscale(model)
        if largest_norm is not None:
            nn.clip_gradient_norm(model, largest_norm)
    optimizer.step(finite)


def whole_of(optimizer: nn.Optimizer | Sharded) -> nn.Optimizer:
    """What a file holds: the optimizer of one process, which all ranks ask for together."""
    return optimizer.gathered() if isinstance(optimizer, Sharded) else optimizer


def take(optimizer: nn.Optimizer | Sharded, whole: nn.Optimizer) -> None:
    """Takes what was read into it."""
    if isinstance(optimizer, Sharded):
        optimizer.scatter(whole)


def share(optimizer: nn.Optimizer | Sharded, ranks: Ranks) -> None:
    """Gives all ranks what rank 0 has; of a Sharded, whose ranks have different parts, the rate."""
    ranks.broadcast(optimizer.rate() if isinstance(optimizer, Sharded) else optimizer)


def take_parameters(optimizer: nn.Optimizer | Sharded) -> None:
    """After parameters were set."""
    if isinstance(optimizer, Sharded):
        optimizer.take_parameters()
