"""load_csv(): tables of numbers."""

from __future__ import annotations

import os
from typing import NamedTuple

from nitinol import _ext
from nitinol._ext import Tensor
from nitinol._typing import DTypeLike


class CsvFile(NamedTuple):
    """What a CSV file holds."""

    values: Tensor  # [lines, columns]
    names: list[str]  # of the columns, if it has a header


def load_csv(
    path: str | os.PathLike[str],
    *,
    separator: str = ",",
    header: bool = False,
    dtype: DTypeLike = "float32",
) -> CsvFile:
    """Reads a table of numbers, float32, float64 or int64, which may stand in quotes and between blanks;
    what is missing is NaN. header: the first line holds names. The file is not trusted: an Error names
    the line and the field of what is no number."""
    return CsvFile(*_ext._load_csv(path, separator, header, dtype))
