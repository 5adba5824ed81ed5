"""What the tests share."""

import os
import pathlib
import subprocess
import sys

import pytest

os.environ.setdefault("NITINOL_CACHE", "0")  # as on a machine where nothing has run yet

import nitinol as nt  # noqa: E402

if os.environ.get("NITINOL_TEST_DEVICE"):
    nt.set_default_device(os.environ["NITINOL_TEST_DEVICE"])
nt.set_log_level("off")


@pytest.fixture(autouse=True)
def seeded():
    nt.manual_seed(0)


@pytest.fixture
def in_process(tmp_path):
    """Runs a program in a process of its own, which may take so many seconds; what it wrote."""

    def run(program, seconds=60, fails=False):
        path = tmp_path / "program.py"
        path.write_text(
            "import faulthandler\n"
            f"faulthandler.dump_traceback_later({seconds}, exit=True)\n" + program
        )
        package = str(pathlib.Path(nt.__file__).parents[1])
        environment = os.environ | {
            "PYTHONPATH": package,
            "NITINOL_LOG": "off",
            "NITINOL_REPORT_LEAKS": "1",
        }
        done = subprocess.run(
            [sys.executable, str(path)],
            capture_output=True,
            text=True,
            timeout=seconds + 30,
            env=environment,
            cwd=tmp_path,
        )
        if not fails:
            assert done.returncode == 0, done.stdout + done.stderr
            assert "leaked" not in done.stderr, done.stderr
        return done

    return run


def check_compiled(f, plan_calls=1):
    """Every signature of a compiled function has a Plan, and so many calls ran by one."""
    explanation = f.explain()
    assert all(s["tier"] == "compiled" for s in explanation["signatures"]), explanation
    assert explanation["plan_calls"] >= plan_calls, explanation


def gradient_of(p: nt.Variable) -> nt.Tensor:
    """Its gradient, which it must have."""
    assert p.grad is not None
    return p.grad


def bits(x):
    """The elements' bytes: equal only where every bit is."""
    return (x.shape, str(x.dtype), nt.reshape(x, (-1,)).numpy().tobytes())
