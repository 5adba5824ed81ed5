"""Some of the random calls of fuzz_numpy.py, and whether it would notice."""

from __future__ import annotations

from typing import Any

import fuzz_numpy
import nitinol as nt
import numpy as np
import pytest


def test_random_calls_agree_with_numpy() -> None:
    assert not fuzz_numpy.run(5, range(20 * len(fuzz_numpy.CASES)), list(fuzz_numpy.CASES))


def test_calls_are_of_all_kinds_of_arrays() -> None:
    tensors = []
    for number in range(600):
        draw = fuzz_numpy.Draw(7, number)
        tensors.append(draw.tensor(draw.array()))
    packed = [nt.copy(x).strides for x in tensors]
    assert {str(x.dtype) for x in tensors} == {str(getattr(nt, name)) for name in fuzz_numpy.DTYPES}
    assert any(x.size == 0 for x in tensors)
    assert any(x.ndim == 0 for x in tensors)
    assert any(min(x.strides, default=0) < 0 for x in tensors)
    assert sum(x.strides != strides for x, strides in zip(tensors, packed, strict=True)) > 150
    assert any(max(x.shape, default=0) > 1000 for x in tensors)


@pytest.mark.parametrize("name", ["reduce", "ordered", "sliced"])
def test_a_wrong_result_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fuzz_numpy.CASES[name]

    def wrong(draw: fuzz_numpy.Draw) -> fuzz_numpy.Call:
        call = real(draw)
        return call._replace(ours=lambda *inputs: nt.flip(call.ours(*inputs)))

    monkeypatch.setitem(fuzz_numpy.CASES, name, wrong)
    failures = fuzz_numpy.run(5, range(1000), [name])
    assert 2 < len(failures) < 1000 / len(fuzz_numpy.CASES)
    assert f"{name} of " in failures[0] and "again: --seed 5 --first" in failures[0]


def test_other_bits_of_a_plan_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(draw: fuzz_numpy.Draw) -> fuzz_numpy.Call:
        def ours(x: Any) -> Any:
            return x * 3 if nt.is_recording() else x * 2

        return fuzz_numpy.Call([np.array([1, 2], np.float32)], ours, lambda x: x * 2)

    monkeypatch.setitem(fuzz_numpy.CASES, "reduce", wrong)
    assert "compiled, and [2. 4.] eagerly" in fuzz_numpy.check("reduce", 0, 0).what


def test_what_runs_eagerly_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(draw: fuzz_numpy.Draw) -> fuzz_numpy.Call:
        def ours(x: Any) -> Any:
            return x * float(x[0])

        return fuzz_numpy.Call([np.array([1, 2], np.float32)], ours, lambda x: x * x[0])

    monkeypatch.setitem(fuzz_numpy.CASES, "reduce", wrong)
    assert "was not compiled" in fuzz_numpy.check("reduce", 0, 0).what
