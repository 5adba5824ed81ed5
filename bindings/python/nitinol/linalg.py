"""Linear algebra, by the names of the Array API's extension, as far as it exists."""

from nitinol._ext import (
    cross,
    diagonal,
    matmul,
    matrix_power,
    matrix_transpose,
    outer,
    trace,
    vecdot,
    vector_norm,
)
from nitinol._variadic import matrix_norm, tensordot

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return __all__
