"""Cases of function_cases.py: what sorts, chooses, counts and multiplies."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_cases import Case, integers, looked_at, normal, one, small, t, torch

TIES = np.array([[3.0, 1, 3, 2], [2, 2, 5, 2]])
WITH_NAN = np.array([[2.0, np.nan, -0.0, 1], [0.0, -np.inf, np.inf, np.nan]])
MASK = np.array([[True, False, True, True], [False, False, True, False], [False] * 4])
LINE = np.sort(normal(30))


def torch_sorted(function: str) -> Any:
    if torch is None:
        return None

    def ordered(x: Any, axis: int = -1, descending: bool = False) -> Any:
        return getattr(torch, function)(x, dim=axis, descending=descending, stable=True)

    return (lambda *a, **k: ordered(*a, **k)[0]) if function == "sort" else ordered


def np_argsort(x: Any, axis: int = -1, descending: bool = False) -> Any:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(turned, axis)


def np_sort(x: Any, axis: int = -1, descending: bool = False) -> Any:
    return np.take_along_axis(x, np_argsort(x, axis, descending), axis)


def np_topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> Any:
    places = np.take(np_argsort(x, axis, largest), range(k), axis)
    return np.take_along_axis(x, places, axis), places


def np_kthvalue(x: Any, k: int, axis: int = -1, keepdims: bool = False) -> Any:
    places = np.take(np_argsort(x, axis), [k - 1], axis)
    values = np.take_along_axis(x, places, axis)
    return (values, places) if keepdims else (values.squeeze(axis), places.squeeze(axis))


def np_scatter(x: Any, indices: Any, values: Any, arrival: str = "set") -> Any:
    made = np.array(x)
    ways = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
    if arrival == "set":
        made[indices] = values
    else:
        ways[arrival].at(made, indices, values)
    return made


def np_put_along_axis(x: Any, indices: Any, values: Any, axis: int, arrival: str = "set") -> Any:
    shape = list(x.shape)
    shape[axis] = indices.shape[axis]
    places = list(np.indices(shape))
    places[axis] = np.broadcast_to(indices, shape)
    return np_scatter(x, tuple(places), values, arrival)


def np_masked_select(x: Any, mask: Any, size: int | None = None) -> Any:
    found = x[mask]
    if size is None:
        return found
    padded = np.zeros((size, *found.shape[1:]), x.dtype)
    padded[: len(found)] = found[:size]
    return padded


def np_masked_scatter(x: Any, mask: Any, values: Any) -> Any:
    made = np.array(x)
    made[mask] = values
    return made


def np_argwhere(x: Any, size: int | None = None) -> Any:
    found = np.argwhere(x)
    if size is None:
        return found
    return np.concatenate([found, np.full((size, x.ndim), -1)])[:size]


def np_unique_all(x: Any) -> Any:
    values, places, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return values, places, inverse.reshape(x.shape), counts


def np_sliding_window(x: Any, axis: int, size: int, step: int = 1) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return windows[(slice(None),) * axis + (slice(None, None, step),)]


def np_scan(function: Any) -> Any:
    def scanned(x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
        made = function(x, axis=axis, dtype=dtype)
        if not include_initial:
            return made
        return np.concatenate([np.ones_like(np.take(made, [0], axis or 0)), made], axis or 0)

    return scanned


MATRICES = normal(2, 3, 4)

ORDERED = [
    Case("sort", [one(normal(7)), one(normal(3, 4), axis=0), one(TIES, descending=True), one(WITH_NAN),
                  one(WITH_NAN, descending=True), one(normal(2, 0)), one(integers(-9, 9, 200)), one(MASK),
                  one(normal(130, 70), axis=0)],
         np_sort, torch_sorted("sort"), has_gradient=True),
    Case("argsort", [one(normal(7)), one(normal(3, 4), axis=0), one(TIES, descending=True), one(TIES),
                     one(WITH_NAN, axis=1), one(integers(-9, 9, 200)), one(normal(70, 130), axis=0)],
         np_argsort, torch_sorted("argsort")),
    Case("topk", [one(normal(7), 3), one(TIES, 2), one(normal(3, 50), 5, axis=1, largest=False), one(normal(4), 0),
                  one(normal(9, 4), 2, axis=0)],
         np_topk, (lambda x, k, axis=-1, largest=True: torch.topk(x, k, axis, largest)) if torch else None,
         has_gradient=True),
    Case("kthvalue", [one(normal(7), 3), one(normal(3, 5), 2, axis=0), one(normal(3, 5), 5, keepdims=True)],
         np_kthvalue, (lambda x, k, axis=-1, keepdims=False: torch.kthvalue(x, k, axis, keepdims)) if torch else None,
         has_gradient=True),
    Case("searchsorted", [one(LINE, normal(4, 5)), one(LINE, LINE, side="right"), one(integers(0, 9, 0), integers(0, 9, 3)),
                          one(np.array([3, 1, 2]), np.array([2, 9]), sorter=np.array([1, 2, 0])), one(LINE, 0.5)],
         np.searchsorted, dtypes=("float64", "float32")),
    Case("bucketize", [one(normal(4, 5), LINE), one(LINE, LINE, right=True)],
         lambda x, b, right=False: np.searchsorted(b, x, "right" if right else "left")),
    Case("median", [one(normal(7)), one(normal(3, 4)), one(normal(3, 4), axis=0), one(normal(2, 6), 1, keepdims=True),
                    one(WITH_NAN, axis=1) ],
         np.median, dtypes=("float64", "float32")),
    Case("quantile", [one(normal(7), 0.3), one(normal(3, 4), 1.0, axis=0), one(normal(3, 4), np.array([0.25, 0.5]), axis=1),
                      one(normal(3, 4), np.array([[0.1], [0.9]]), keepdims=True), one(WITH_NAN[:, :2], 0.5, axis=0)],
         np.quantile, dtypes=("float64", "float32"), scale=4),
    Case("cumprod", [one(normal(3, 4), 1), one(normal(2, 3, 4), -2), one(small(6), 0)], np.cumprod, t("cumprod"),
         has_gradient=True, scale=8),
    Case("cumulative_prod", [one(normal(5)), one(normal(3, 4), axis=1), one(normal(3, 4), axis=0, include_initial=True)],
         np_scan(np.cumprod), scale=8),
    Case("cummax", [one(normal(3, 4), 1), one(TIES, 1), one(integers(0, 9, 30), 0)],
         lambda x, axis: np.maximum.accumulate(x, axis),
         (lambda x, axis: torch.cummax(x, axis)[0]) if torch else None, has_gradient=True),
    Case("logcumsumexp", [one(normal(3, 4), 1), one(normal(2, 30, 4), -2), one(normal(0, 3), 0)],
         lambda x, axis: np.logaddexp.accumulate(x, axis), (lambda x, axis: torch.logcumsumexp(x, axis)) if torch else None,
         has_gradient=True, scale=20),
    Case("cummin", [one(normal(3, 4), 0), one(TIES, 1), one(WITH_NAN, 1)],
         lambda x, axis: np.minimum.accumulate(x, axis),
         (lambda x, axis: torch.cummin(x, axis)[0]) if torch else None, has_gradient=True),
]  # fmt: skip

CHOSEN = [
    Case("masked_select", [looked_at(normal(3, 4), MASK), looked_at(normal(3, 2), MASK[:, 0]), one(normal(3, 4), MASK, size=5),
                           one(normal(3, 4), MASK, size=2)], np_masked_select),
    Case("masked_fill", [one(normal(3, 4), MASK, 2.0), one(normal(2, 3, 4), MASK, 0)],
         lambda x, mask, value: np.where(mask, value, x),
         (lambda x, mask, value: x.masked_fill(mask, value)) if torch else None, has_gradient=True),
    Case("masked_scatter", [one(normal(3, 4), MASK, normal(4)), one(normal(3, 2), MASK[0, :3], normal(2, 2)),
                            one(normal(3, 4), MASK, 1.5), one(normal(3, 4), MASK, normal(1))], np_masked_scatter),
    Case("nonzero", [looked_at(MASK), looked_at(small(9)), looked_at(small(2, 3, 4))],
         lambda x: list(np.nonzero(x))),
    Case("argwhere", [looked_at(MASK), one(MASK, size=6), one(MASK, size=2), looked_at(small(9))], np_argwhere),
    Case("count_nonzero", [one(MASK), one(small(3, 4), axis=0), one(small(3, 4), axis=1, keepdims=True)],
         np.count_nonzero),
    Case("scatter", [one(normal(4), np.array([0, 3, 0]), normal(3)), one(normal(4, 2), np.array([[1], [-1]]), normal(2, 1, 2)),
                     one(normal(5), np.array([1, 1]), 2.0, "add"), one(normal(5), np.array([1, 1]), normal(2), "multiply"),
                     one(normal(5), np.array([1, 1]), normal(2), arrival="maximum"),
                     one(normal(5), np.array([1, 1]), normal(2), arrival="minimum")], np_scatter),
    Case("put_along_axis", [one(normal(4, 6), integers(0, 6, 4, 1), normal(4, 1), 1), one(normal(4, 6), integers(0, 4, 1, 6), 2.0, axis=0),
                            one(normal(4, 6), integers(0, 6, 4, 3), normal(4, 3), -1, arrival="add")], np_put_along_axis, scale=4),
    Case("unique_all", [looked_at(TIES), looked_at(integers(0, 5, 40)), looked_at(WITH_NAN)], np_unique_all),
    Case("unique_counts", [looked_at(TIES), looked_at(integers(0, 5, 40))],
         lambda x: np.unique(x, return_counts=True)),
    Case("unique_inverse", [looked_at(TIES), looked_at(integers(0, 5, 6, 7))],
         lambda x: (np.unique(x), np_unique_all(x)[2])),
    Case("unique_values", [looked_at(TIES), looked_at(integers(0, 5, 40))], np.unique),
    Case("isin", [one(integers(0, 9, 3, 4), integers(0, 9, 5)), one(TIES, 2), one(TIES, np.array([2.0, 9]))], np.isin),
    Case("bincount", [looked_at(integers(0, 7, 30)), looked_at(integers(0, 7, 30), minlength=9), one(integers(0, 7, 30), length=9),
                      one(integers(0, 7, 30), normal(30), length=7)],
         lambda x, weights=None, minlength=0, length=0: np.bincount(x, weights, max(length, minlength)), scale=8),
    Case("histogram", [one(normal(200), 7, -1.5, 2.0), one(np.array([0.0, 1, 2, np.nan]), 2, 0.0, 2.0)],
         lambda x, bins, low, high: np.histogram(x, bins, (low, high)), dtypes=("float64", "float32")),
]  # fmt: skip

MULTIPLIED = [
    Case("einsum", [one("ij,jk->ik", normal(3, 4), normal(4, 5)), one("bhqd,bhkd->bhqk", normal(2, 2, 3, 4), normal(2, 2, 5, 4)),
                    one("ijk,jl,km->ilm", normal(2, 3, 4), normal(3, 5), normal(4, 2)), one("ii->", normal(4, 4)),
                    one("bi,bj->bij", normal(2, 3), normal(2, 4)), one("...ij->...ji", MATRICES), one("ij,ij", TIES, TIES)],
         np.einsum, t("einsum"), has_gradient=True, scale=50),
    Case("tensordot", [one(MATRICES, normal(3, 4, 5)), one(MATRICES, normal(4, 2), axes=1), one(normal(2), normal(3), axes=0),
                       one(MATRICES, normal(4, 5, 2), axes=((0, 2), (2, 0)))], np.tensordot, scale=50),
    Case("vecdot", [one(normal(3, 4), normal(4)), one(normal(3, 4), normal(3, 4), axis=0)],
         lambda a, b, axis=-1: np.sum(a * b, axis=axis), scale=20),
    Case("outer", [one(normal(3), normal(4)), one(normal(2, 2), normal(3))], np.outer),
    Case("inner", [one(normal(3), normal(3)), one(normal(2, 3), normal(4, 3)), one(normal(2, 3), normal())], np.inner, scale=20),
    Case("kron", [one(normal(2, 3), normal(3, 2)), one(normal(3), normal(2, 2))], np.kron, t("kron"), has_gradient=True),
    Case("cross", [one(normal(3), normal(3)), one(normal(4, 3), normal(3)), one(normal(3, 4), normal(3, 4), axis=0)],
         np.cross, scale=20),
    Case("vector_norm", [one(normal(7)), one(normal(3, 4), axis=1), one(normal(3, 4), axis=0, keepdims=True, ord=1.0),
                         one(normal(9), ord=float("inf")), one(normal(3, 4), axis=1, ord=3.0), one(small(9), ord=0.0)],
         np.linalg.vector_norm, scale=4),
    Case("matrix_norm", [one(MATRICES), one(MATRICES, ord=1), one(MATRICES, keepdims=True, ord=float("inf")),
                         one(MATRICES, ord=-1), one(MATRICES, ord=float("-inf"))], np.linalg.matrix_norm, scale=4),
    Case("matrix_power", [one(normal(3, 3), 3), one(normal(2, 3, 3), 0), one(integers(-2, 3, 2, 2), 5)],
         np.linalg.matrix_power, scale=100),
]  # fmt: skip

COMPARED = [
    Case("isclose", [one(normal(3, 4), normal(4)), one(WITH_NAN, WITH_NAN, equal_nan=True), one(WITH_NAN, WITH_NAN),
                     one(np.array([1.0, 2]), np.array([1.1, 2.1]), rtol=0.07)],
         np.isclose, dtypes=("float64", "float32")),
    Case("allclose", [one(normal(3), normal(3)), one(TIES, TIES), one(WITH_NAN, WITH_NAN, equal_nan=True)], np.allclose),
    Case("array_equal", [one(TIES, TIES), one(TIES, TIES[0]), one(WITH_NAN, WITH_NAN), one(WITH_NAN, WITH_NAN, equal_nan=True)],
         np.array_equal),
]  # fmt: skip

PLACED = [
    Case("broadcast_arrays", [one(normal(3, 1), normal(4)), one(normal())], lambda *a: list(np.broadcast_arrays(*a))),
    Case("meshgrid", [one(normal(3), normal(4)), one(normal(3), normal(4), normal(2), indexing="ij"), one(normal(3)),
                      one(normal(2), normal(3), normal(4))], lambda *a, **k: list(np.meshgrid(*a, **k))),
    Case("swapaxes", [one(normal(2, 3, 4), 0, -1)], np.swapaxes, t("swapaxes"), has_gradient=True),
    Case("rot90", [one(normal(2, 3)), one(normal(2, 3), 2), one(normal(2, 3, 4), -1, (1, 2)), one(normal(2, 3), k=4)],
         np.rot90, t("rot90"), has_gradient=True),
    Case("chunk", [one(normal(7), 3), one(normal(2, 5), 2, axis=1), one(normal(2), 5)],
         lambda x, n, axis=0: np.split(x, range(-(-x.shape[axis] // n), x.shape[axis], -(-x.shape[axis] // n)), axis)),
    Case("sliding_window", [one(normal(9), 0, 3), one(normal(2, 7, 3), 1, 3, step=2)], np_sliding_window),
    Case("empty", [one((2, 3)), one((), dtype="int8")],
         lambda shape, dtype=None: np.zeros(shape, dtype or np.float32)),
    Case("empty_like", [one(normal(2, 3)), one(TIES, dtype="int32")], lambda x, dtype=None: np.zeros_like(x, dtype)),
]  # fmt: skip

ORDER_CASES = ORDERED + CHOSEN + MULTIPLIED + COMPARED + PLACED
