"""NumPy's functions of Tensors: np.sin(t), np.add(t, t), array + t, array += t, np.dtype(t.dtype)."""

from __future__ import annotations

from typing import Any

from nitinol import _ext

# NumPy's names of universal functions that have another one here.
NAMES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "positive",
    "fabs": "abs",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "mod": "remainder",
    "power": "pow",
    "rint": "round",
    "right_shift": "bitwise_right_shift",
    "true_divide": "divide",
}
# ufunc.reduce: what sums, and so on.
REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_or": "any",
    "logical_and": "all",
}


def array_ufunc(ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
    """What NumPy calls for a universal function of a Tensor."""
    import numpy as np

    out = keywords.pop("out", (None,))
    dtype = keywords.pop("dtype", None)
    if (
        keywords.pop("where", True) is not True
        or keywords.pop("casting", "same_kind") != "same_kind"
    ):
        return NotImplemented
    keywords.pop("subok", None)
    if method == "__call__":
        name = NAMES.get(ufunc.__name__, ufunc.__name__)
        function = getattr(_ext, name, None)
    elif method == "reduce" and ufunc.__name__ in REDUCTIONS:
        function = getattr(_ext, REDUCTIONS[ufunc.__name__])
        keywords.setdefault("axis", 0)
        if keywords.pop("initial", None) is not None:
            return NotImplemented
    else:
        return NotImplemented
    if function is None or len(out) > 1 or (keywords and method == "__call__"):
        return NotImplemented
    result = function(*inputs, **keywords)
    if dtype is not None:
        result = result.to(np.dtype(dtype).name)
    if out[0] is None:
        return result
    if not isinstance(out[0], np.ndarray):
        return NotImplemented  # a Tensor does not change
    np.copyto(out[0], np.asarray(result), casting="same_kind")
    return out[0]


def dtype_of(name: str) -> Any:
    """NumPy's dtype of that name; bfloat16 is of the package ml_dtypes."""
    import numpy as np

    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise TypeError("NumPy has no bfloat16 without the package ml_dtypes") from None
    return np.dtype(ml_dtypes.bfloat16)
