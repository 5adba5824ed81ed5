"""What the tests share."""

import os
import pathlib
import shutil
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


# By the MPI that the library has a module for.
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpirun.mpich"]}
# Which the build has found: these must be there. Without it, others are skipped.
FOUND = os.environ.get("NITINOL_TEST_MPI", "").split()


class Mpirun:
    """Runs commands in so many processes; stdout has what all wrote."""

    def __init__(self, mpi: str) -> None:
        self.mpi = mpi
        if mpi not in FOUND and not shutil.which(LAUNCHERS[mpi][0]):
            pytest.skip(f"{LAUNCHERS[mpi][0]} is not installed")

    def __call__(
        self, ranks: int, command: list[str], **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "PYTHONPATH": str(pathlib.Path(nt.__file__).parents[1]),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            **variables,
        }
        done = subprocess.run(
            [*LAUNCHERS[self.mpi], "-n", str(ranks), *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            env=environment,
            cwd=pathlib.Path(__file__).parents[3],
        )
        if self.mpi not in FOUND and "the library has no module for it" in done.stdout:
            pytest.skip(f"the library was built without {self.mpi}")
        return done


@pytest.fixture(params=list(LAUNCHERS))
def mpirun(request):
    """By each MPI that there is."""
    return Mpirun(request.param)


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
