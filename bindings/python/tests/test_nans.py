"""NaN is found where it arises, with Python's line."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback

import pytest

import nitinol as nt


def test_eager_ops() -> None:
    x = nt.asarray([1.0, -2.0, 3.0])
    nt.log(x)
    with nt.debug_nans():
        with pytest.raises(ValueError, match=r"log: element \[1\] of the result") as caught:
            nt.log(x)
        nt.exp(nt.asarray([1e5]))
    assert "from -2 to 3, there -2" in str(caught.value)
    nt.log(x)
    with nt.debug_nans(infinity=True), pytest.raises(ValueError, match="is inf"):
        nt.exp(nt.asarray([1e5]))


def test_compiled_functions_name_the_line() -> None:
    w = nt.Variable(nt.ones((3,)))

    @nt.compile(check="never", check_nan=True)
    def step(x: nt.Tensor) -> nt.Tensor:
        w.value = w.value - nt.sqrt(x)
        return nt.sum(w.value)

    good, bad = nt.asarray([1.0, 4.0, 9.0]), nt.asarray([1.0, -4.0, 9.0])
    for _ in range(4):
        step(good)
    assert step.explain()["plan_calls"] > 0
    before = w.value.tolist()
    with pytest.raises(ValueError, match=r"sqrt: element \[1\]") as caught:
        step(bad)
    assert "In the compiled call: step 1, kernel sqrt, sub" in str(caught.value)
    lines = [entry.line for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert "w.value = w.value - nt.sqrt(x)" in lines
    assert w.value.tolist() == before


def test_the_option_is_checked() -> None:
    with pytest.raises(TypeError, match="check_nan is 1; expected True or False"):
        nt.compile(nt.exp, check_nan=1)  # type: ignore[call-overload]


def test_the_whole_process() -> None:
    program = "import nitinol as nt; nt.log(nt.asarray([-1.0]))"
    for value, failed in (("nan", True), ("", False)):
        run = subprocess.run(
            [sys.executable, "-c", program],
            env=dict(os.environ, NITINOL_CHECK=value),
            capture_output=True,
            text=True,
        )
        assert (run.returncode != 0) is failed
        assert ("log: element [0]" in run.stderr) is failed
