"""Metrics: how good predictions are, in numbers that people read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable

import nitinol as nt
from nitinol import _ext


@dataclass(frozen=True)
class Metric:
    """A number of a whole pass over data that come batch by batch. part(out, target): of one batch, a
    row for each sample; it runs inside a compiled step. whole(rows): of the rows of all batches, else
    their mean."""

    name: str
    part: Callable[[nt.Tensor, nt.Tensor], nt.Tensor]
    whole: Callable[[nt.Tensor], nt.Tensor] | None = None

    def of_rows(self, rows: nt.Tensor) -> nt.Tensor:
        """The number of all rows that part() has given."""
        if self.whole is not None:
            return nt.asarray(self.whole(rows))
        return nt.mean(rows.astype(nt.float64)) if rows.size else nt.asarray(math.nan)

    def __call__(self, out: nt.Tensor, target: nt.Tensor) -> nt.Tensor:
        return self.of_rows(self.part(out, target))


def _metric(made: Any) -> Metric:
    return Metric(made.name, made.part, made.of_rows)


def accuracy() -> Metric:
    """The share of samples whose largest score, out[..., classes], is at the class target[...]."""
    return _metric(_ext._accuracy())


def top_k(k: int) -> Metric:
    """The share of samples whose class is among the k largest scores."""
    return _metric(_ext._top_k(k))


def mean_absolute_error() -> Metric:
    """The mean of |out - target|."""
    return _metric(_ext._mean_absolute_error())


def area_under_curve() -> Metric:
    """The area under the receiver operating characteristic: how probable it is that a sample with
    target 1 has a greater score than one with target 0; ties count half."""
    return _metric(_ext._area_under_curve())


__all__ = ["Metric", "accuracy", "area_under_curve", "mean_absolute_error", "top_k"]
