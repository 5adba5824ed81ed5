"""What fit() keeps, and checks."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any, Sequence

import nitinol as nt
from nitinol import nn
from nitinol._metrics import Metric


@dataclass(frozen=True)
class EarlyStopping:
    """Ends training when `monitor` has been no better, by more than `threshold`, for `patience` epochs.
    The parameters are those of the best epoch then, if it restores_best."""

    monitor: str = "validation loss"
    patience: int = 3
    threshold: float = 0.0
    maximize: bool = False
    restores_best: bool = True


def _number(value: float) -> nt.Variable:
    return nt.Variable(nt.asarray(value))


@dataclass
class State:
    """What is kept beside the model's and the optimizer's."""

    epoch: nt.Variable = field(default_factory=lambda: _number(0))
    step: nt.Variable = field(default_factory=lambda: _number(0))
    best: nt.Variable = field(
        default_factory=lambda: nt.Variable(nt.asarray(math.nan, dtype=nt.float64))
    )
    worse: nt.Variable = field(default_factory=lambda: _number(0))  # -1: training has ended
    loss: nt.Variable = field(
        default_factory=lambda: nt.Variable(nt.asarray(0.0, dtype=nt.float64))
    )
    samples: nt.Variable = field(default_factory=lambda: _number(0))
    history: nt.Variable = field(
        default_factory=lambda: nt.Variable(nt.zeros((0, 0), dtype=nt.float64))
    )
    best_parameters: dict[str, nt.Variable] = field(default_factory=dict)

    def make_room(self, checkpoint: str | os.PathLike[str], columns: int) -> None:
        """For what a file holds: its history of so many columns, and the best parameters."""
        for name, tensor in nt.load_safetensors(checkpoint).items():  # how much there is
            if name == "fit.history":
                if tensor.size and tensor.shape[1:] != (columns,):
                    raise nt.ArgumentError(
                        f"fit: the checkpoint {checkpoint}: expected {columns} values of each epoch, got "
                        f"{tensor.shape[1:]}. Training goes on with the metrics and validation it began with."
                    )
                self.history = nt.Variable(nt.zeros(tensor.shape, dtype=tensor.dtype))
            elif name.startswith("fit.best_parameters."):
                self.best_parameters[name.split(".", 2)[2]] = nt.Variable(nt.zeros_like(tensor))

    def clear_sums(self) -> None:
        self.loss.value = nt.zeros((), dtype=nt.float64)
        self.samples.value = nt.zeros((), dtype=nt.int64)

    def judge(self, value: float, stopping: EarlyStopping, model: nn.Module) -> None:
        """Notes the best epoch, or that training ends."""
        best = self.best.value.item()
        gain = value - best if stopping.maximize else best - value
        if gain > stopping.threshold or (math.isnan(best) and not math.isnan(value)):
            self.best.value = nt.asarray(value, dtype=nt.float64)
            self.worse.value = nt.asarray(0)
            if stopping.restores_best:
                for name, variable in model.named_parameters().items():
                    self.best_parameters.setdefault(
                        name, nt.Variable(variable.value)
                    ).value = variable.value
            return
        count = self.worse.value.item() + 1
        self.worse.value = nt.asarray(-1 if count >= stopping.patience else count)


def check_metrics(metrics: Sequence[Metric]) -> None:
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise TypeError(
                f"fit: metrics has {metric!r}; expected an nn.Metric: nn.accuracy(), ..."
            )


def check_loss(value: Any) -> None:
    if not isinstance(value, nt.Tensor):
        raise TypeError(
            f"fit: loss(output, target) gave {value!r}; expected a Tensor of one element"
        )


def check(
    epochs: int, checkpoint_steps: int, early_stopping: EarlyStopping | None, columns: list[str]
) -> None:
    stopping = early_stopping or EarlyStopping("loss")
    for name, value, is_fine, expected in (
        ("epochs", epochs, epochs >= 0, "0 or more"),
        ("checkpoint_steps", checkpoint_steps, checkpoint_steps >= 0, "0 or more"),
        ("early_stopping.patience", stopping.patience, stopping.patience >= 1, "1 or more"),
        ("early_stopping.threshold", stopping.threshold, stopping.threshold >= 0, "0 or more"),
        (
            "early_stopping.monitor",
            stopping.monitor,
            stopping.monitor in columns,
            f"one of {columns}",
        ),
    ):
        if not is_fine:
            raise nt.ArgumentError(f"fit: {name}: expected {expected}, got {value!r}.")
