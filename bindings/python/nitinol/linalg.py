"""Linear algebra, by the names of the Array API's extension, as far as it exists."""

from typing import TYPE_CHECKING

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
from nitinol._hints import names_of_module
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

if not TYPE_CHECKING:  # which would take it for a promise that every name is there
    __dir__, __getattr__ = names_of_module(__name__, __all__)
