"""memory_snapshot(): what lives, by operation and line."""

import json
from typing import Any

import pytest

import nitinol as nt
from nitinol import nn

SIZE = 40_000


def line(snapshot: Any, made_by: str) -> Any:
    return next(one for one in snapshot.lines if one.made_by == made_by)


def test_a_snapshot_has_lines_of_the_program():
    x = nt.ones((SIZE // 4,))
    with nt.memory_notes():
        a = nt.exp(x)
        weight = nt.parameter(nt.log(a))
        snapshot = nt.memory_snapshot()
        exp = line(snapshot, "exp")
        assert (exp.bytes, exp.blocks, exp.held, exp.at_peak, exp.made) == (SIZE, 1, 0, SIZE, 1)
        assert len(exp.places) == 1 and "test_memory.py:" in exp.places[0]
        assert line(snapshot, "log").held == SIZE
        assert snapshot.bytes == snapshot.peak == 2 * SIZE and snapshot.others >= SIZE
        assert [block.bytes for block in snapshot.blocks] == [SIZE, SIZE]
        assert snapshot.blocks[0].age > 0 and str(snapshot.blocks[0].device) == "cpu:0"
        assert snapshot.points[-1].bytes == 2 * SIZE
        shares = snapshot.points[-1].shares
        assert {snapshot.lines[line].made_by: bytes for line, bytes in shares.items()} == {
            line.made_by: line.bytes for line in snapshot.lines if line.bytes
        }
        del a, weight
        left = nt.memory_snapshot()
        assert left.bytes == 0 and left.blocks == [] and left.peak == 2 * SIZE
    with pytest.raises(nt.ArgumentError, match="with nt.memory_notes"):
        nt.memory_snapshot()


def test_compiled_steps_have_lines_of_the_program():
    net = nn.Linear(64, 64)
    optimizer = nn.Adam(net)
    x = nt.ones((64, 64))

    @nt.compile
    def step(x: nt.Tensor) -> nt.Tensor:
        optimizer.zero_grad()
        loss = nt.sum(nt.square(net(x)))
        loss.backward()
        optimizer.step()
        return nt.stop_gradient(loss)

    with nt.memory_notes():
        for _ in range(8):
            step(x)
        assert step.explain()["plan_calls"] > 0
        snapshot = nt.memory_snapshot()
    assert any("test_memory.py:" in place for one in snapshot.lines for place in one.places)
    held = sum(one.held for one in snapshot.lines)
    assert held >= 2 * 64 * 64 * 4  # the weight, or its gradient, and the optimizer's averages


def test_text_json_and_page(tmp_path):
    x = nt.ones((10,))
    with nt.memory_notes():
        y = nt.exp(x)
        snapshot = nt.memory_snapshot()
    assert y.shape == (10,)
    assert "test_memory.py:" in str(snapshot) and str(snapshot) == repr(snapshot)
    assert snapshot.table(rows=0).endswith("and 1 more lines\n")
    with pytest.raises(ValueError, match="rows is -1"):
        snapshot.table(rows=-1)
    assert json.loads(snapshot.to_json())["blocks"][0]["made_by"] == "exp"
    snapshot.save(tmp_path / "memory.html")
    snapshot.save(tmp_path / "memory.json")
    assert (tmp_path / "memory.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "memory.json").read_text())["lines"][0]["made"] == 1


def test_the_environment_variable_notes_from_the_beginning(in_process, monkeypatch):
    program = (
        "import nitinol as nt\n"
        "x = nt.exp(nt.ones((10,)))\n"
        "assert [one.made for one in nt.memory_snapshot().lines if one.made_by == 'exp'] == [1]\n"
    )
    monkeypatch.setenv("NITINOL_MEMORY", "1")
    in_process(program)
    monkeypatch.setenv("NITINOL_MEMORY", "0")
    assert in_process(program, fails=True).returncode != 0
