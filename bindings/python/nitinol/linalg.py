"""Linear algebra, by the names of the Array API's extension, as far as it exists."""

from nitinol._ext import diagonal, matmul, matrix_transpose, trace

__all__ = ["diagonal", "matmul", "matrix_transpose", "trace"]


def __dir__() -> list[str]:
    return __all__
