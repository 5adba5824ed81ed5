"""Where the time goes, from Python: lines are Python's, and a trace is one that Perfetto reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import nitinol as nt


def _line(offset: int = 0) -> int:
    return sys._getframe(1).f_lineno + offset


def _named(profile: nt.Profile, kind: str, name: str) -> list[nt.ProfileEvent]:
    return [e for e in profile.events() if e.kind == kind and e.name == name]


def test_eager_ops_have_the_lines_of_python() -> None:
    x = nt.ones((30, 40))
    with nt.profile() as profile:
        y = x @ x.mT
        line = _line(-1)
        nt.exp(y)
    nt.log(y)
    (product,) = _named(profile, "op", "matmul")
    assert product.places == (f"{os.path.relpath(__file__)}:{line}",) or product.places == (
        f"{__file__}:{line}",
    )
    assert product.detail == "float32[30, 40] float32[40, 30] -> float32[30, 30]"
    assert product.operations == 2 * 30 * 40 * 30
    assert product.bytes == 4 * (2 * 30 * 40 + 30 * 30)
    assert product.bound > 0
    assert product.tier == "eager"
    assert product.length >= product.self_time > 0
    assert len(_named(profile, "op", "exp")) == 1
    assert not _named(profile, "op", "log")


def test_compiled_calls_and_their_steps() -> None:
    @nt.compile
    def model(x: nt.Tensor, w: nt.Tensor) -> nt.Tensor:
        y = x @ w
        return nt.exp(y) * 2

    line = _line(-3)
    x, w = nt.ones((30, 40)), nt.ones((40, 20))
    with nt.profile() as profile:
        for _ in range(5):
            model(x, w)
    calls = [e for e in profile.events() if e.kind == "call"]
    assert [e.tier for e in calls] == ["recorded"] * 2 + ["compiled"] + ["recorded", "compiled"]
    products = _named(profile, "library", "matmul")
    assert len(products) == 2
    assert [place.endswith(f"test_profile.py:{line}") for place in products[0].places] == [True]
    assert profile.events()[products[0].parent].kind == "call"
    assert any(e.kind == "compile" and e.name == "fusion" for e in profile.events())


def test_ways_back_know_their_ways_forward() -> None:
    w = nt.parameter(nt.ones((10,)))
    with nt.profile() as profile:
        nt.sum(nt.exp(w)).backward()
    (back,) = _named(profile, "backward", "exp")
    forward = profile.events()[back.forward]
    assert (forward.kind, forward.name) == ("op", "exp")


def test_tables_and_text() -> None:
    with nt.profile() as profile:
        nt.exp(nt.ones((100,)))
    assert "op exp" in str(profile)
    assert "test_profile.py" in profile.table(by="line")
    assert "float32[100] -> float32[100]" in profile.table(by="shape", rows=5)
    assert "op exp" in repr(profile) and "<pre>" in profile._repr_html_()
    with pytest.raises(nt.ValueError_ if hasattr(nt, "ValueError_") else ValueError, match="'op'"):
        profile.table(by="lines")
    with pytest.raises(ValueError, match="rows is -1"):
        profile.table(rows=-1)
    with pytest.raises(ValueError, match="has not begun"):
        nt.profile().table()
    with pytest.raises(ValueError, match="most_events is 0"):
        nt.profile(most_events=0)
    assert repr(nt.profile()) == "Profile(not begun)"


def test_the_trace(tmp_path: Path) -> None:
    with nt.profile() as profile:
        nt.exp(nt.ones((100,)))
    profile.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace == json.loads(profile.to_json())
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {e["name"] for e in spans} >= {"exp"}
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in spans)
    with pytest.raises(OSError, match="missing"):
        profile.save(tmp_path / "missing" / "trace.json")


def test_limits_threads_and_exceptions() -> None:
    x = nt.ones((10,))
    with nt.profile(most_events=5, lines=False) as profile:
        for _ in range(20):
            nt.exp(x)
    assert len(profile.events()) == 5 and profile.dropped == 15
    assert profile.events()[0].places == ()

    assert profile._reported() is profile._reported()  # looked up once

    with nt.profile() as profile:
        nt.log(x)
        assert len(_named(profile, "op", "log")) == 1
        nt.log(x)
        assert len(_named(profile, "op", "log")) == 2
    nt.log(x)
    assert len(_named(profile, "op", "log")) == 2

    with nt.profile() as profile:
        thread = threading.Thread(target=lambda: nt.exp(x))
        thread.start()
        thread.join()
        nt.log(x)
    (there,) = _named(profile, "op", "exp")
    assert there.thread == 1 and there.places[0].split(":")[0].endswith("test_profile.py")
    assert _named(profile, "op", "log")[0].thread == 0

    with pytest.raises(RuntimeError, match="stop"):
        with nt.profile() as profile:
            nt.exp(x)
            raise RuntimeError("stop")
    nt.log(x)
    assert len(_named(profile, "op", "exp")) == 1 and not _named(profile, "op", "log")


def test_the_whole_process(tmp_path: Path) -> None:
    program = "import nitinol as nt; nt.exp(nt.ones((3,)))"
    environment = dict(os.environ, NITINOL_PROFILE=str(tmp_path / "trace.json"))
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    trace = json.loads((tmp_path / "trace.json").read_text())
    (event,) = [e for e in trace["traceEvents"] if e.get("name") == "exp"]
    assert event["args"]["lines"] == ["<string>:1"]
