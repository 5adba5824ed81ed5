"""Compiled calls are compared with their ops one by one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import nitinol as nt


def test_calls_with_a_shadow_are_what_they_are() -> None:
    weight = nt.Variable(nt.ones((3,)))

    @nt.compile(check="never")
    def step(x: nt.Tensor) -> nt.Tensor:
        weight.set(weight.get() * 0.5)
        return nt.sum(nt.exp(x) * weight.get())

    x = nt.asarray([0.0, 1.0, -2.0])
    with nt.shadow():
        with_shadow = [step(x).item() for _ in range(6)]
    explained = step.explain()
    assert explained["plan_calls"] == 4
    weight.set(nt.ones((3,)))
    assert [step.eager(x).item() for _ in range(6)] == with_shadow


def test_an_option_and_its_refusal() -> None:
    f = nt.compile(lambda t: nt.exp(t) + 1, shadow=True, check="never")
    x = nt.asarray([1.0])
    assert [f(x).item() for _ in range(4)] == [f.eager(x).item()] * 4
    with pytest.raises(TypeError, match="shadow is 1; expected True or False"):
        nt.compile(nt.exp, shadow=1)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="`check_nan` and `shadow`: expected one of them"):
        nt.compile(nt.exp, shadow=True, check_nan=True)


def test_a_graph_is_computed_both_ways() -> None:
    graph = "a: f32[2] = input; b: f32[2] = exp a; c: f32[2] = tanh b; return c"
    assert nt.shadow_difference(graph, [nt.asarray([1.0, 2.0])]) == ""
    with pytest.raises(ValueError, match="the inputs: expected 1, as the graph has, got 0"):
        nt.shadow_difference(graph, [])
    with pytest.raises(ValueError, match="line 1"):
        nt.shadow_difference("a = nothing b", [])


def test_the_whole_process() -> None:
    program = """
import nitinol as nt
f = nt.compile(lambda t: nt.exp(t) * 2, check="never")
for _ in range(5):
    f(nt.ones((3,)))
print(f.explain()["plan_calls"], f.explain()["eager_calls"])
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=dict(os.environ, NITINOL_CHECK="shadow"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["3", "0"]
