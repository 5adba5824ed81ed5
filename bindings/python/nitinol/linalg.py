"""Linear algebra, by the names of the Array API's extension, as far as it exists."""

from nitinol import _ext


def _found(*names: str) -> list[str]:
    present = [name for name in names if hasattr(_ext, name)]
    globals().update({name: getattr(_ext, name) for name in present})
    return present


__all__ = _found("matmul", "matrix_transpose", "tensordot", "vecdot")
