"""Linear algebra, by the names of the Array API's extension, as far as it exists."""

from nitinol._ext import matmul, matrix_transpose

__all__ = ["matmul", "matrix_transpose"]


def __dir__() -> list[str]:
    return __all__
