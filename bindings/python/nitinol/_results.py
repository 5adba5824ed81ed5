"""Results of functions that have several: named tuples, by the names of C++'s structs."""

from __future__ import annotations

from typing import NamedTuple

from nitinol._ext import Tensor


class Ordered(NamedTuple):
    """Elements along an axis, and where they are."""

    values: Tensor
    indices: Tensor


class Minimum(NamedTuple):
    """What a minimization came to: the least loss, steps made, calls of the loss, and whether it
    ended by a tolerance."""

    loss: float
    iterations: int
    evaluations: int
    converged: bool


class MaxPooled(NamedTuple):
    """Largest numbers, and where they are."""

    values: Tensor
    indices: Tensor


class Unique(NamedTuple):
    """Elements that differ, where each is first, which of them each element is, and how often."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Elements that differ, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Elements that differ, and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


class Histogram(NamedTuple):
    """Numbers counted in ranges."""

    counts: Tensor
    edges: Tensor


class BatchNormed(NamedTuple):
    """What a batch was normalised by."""

    values: Tensor
    mean: Tensor
    variance: Tensor
