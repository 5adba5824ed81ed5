"""Readers of data as others publish them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nitinol as nt


def test_idx_and_csv(tmp_path: Path) -> None:
    digits = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    header = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4])
    (tmp_path / "digits").write_bytes(header + digits.tobytes())
    read = nt.load_idx(tmp_path / "digits")
    assert read.dtype == nt.uint8 and (np.asarray(read) == digits).all()
    table = np.random.default_rng(0).normal(size=(50, 7))
    np.savetxt(tmp_path / "table.csv", table, delimiter=",", header="a,b,c,d,e,f,g", comments="")
    found = nt.load_csv(tmp_path / "table.csv", header=True, dtype=nt.float64)
    assert found.names == list("abcdefg")
    assert (
        np.asarray(found.values) == np.loadtxt(tmp_path / "table.csv", delimiter=",", skiprows=1)
    ).all()
    (tmp_path / "bad.csv").write_text("1;2\n3;x\n")
    with pytest.raises(nt.Error, match='line 2, field 2 of .*got "x"'):
        nt.load_csv(tmp_path / "bad.csv", separator=";")
    wrong: tuple[dict[str, Any], ...] = (
        {"separator": ", "},
        {"separator": 3},
        {"header": 1},
        {"dtype": "text"},
        {"dtype": nt.uint8},
    )
    for options in wrong:
        with pytest.raises((TypeError, nt.Error), match="load_csv"):
            nt.load_csv(tmp_path / "table.csv", **options)
