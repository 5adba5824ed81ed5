"""Processes that compute together: a world of one, and programs of several (dist_ranks.py)."""

import pathlib
import re
import subprocess
import sys
import time
from typing import Any, Callable

import pytest
from conftest import Mpirun, bits

import nitinol as nt
from nitinol import dist

HERE = pathlib.Path(__file__).parent
RANKS = HERE / "dist_ranks.py"
HAS_MPI4PY = (
    subprocess.run([sys.executable, "-c", "import mpi4py"], capture_output=True).returncode == 0
)


# ---- alone


def test_a_world_of_one_gives_what_it_was_given() -> None:
    world = dist.world()
    assert (world.rank, world.size, world.members, world.is_member) == (0, 1, (0,), True)
    assert repr(world) == "Group(rank=0, size=1)" and world == dist.world()
    assert world != 3 and {world: 1}[dist.world()] == 1
    assert (dist.local_rank(), dist.local_size()) == (0, 1)
    assert dist.description() == "one process"
    x = nt.reshape(nt.arange(6.0), (2, 3))
    for function in (
        dist.all_reduce, dist.all_gather, dist.reduce_scatter, dist.broadcast, dist.all_to_all,
        dist.permute,
    ):  # fmt: skip
        assert bits(function(x)) == bits(x)
        assert bits(nt.compile(function)(x)) == bits(x)
        assert bits(nt.grad(lambda x: nt.sum(function(x) * x))(x)) == bits(2 * x)
    dist.barrier()
    dist.init()
    assert dist.all_reduce(nt.asarray([1, 2]), "mean").dtype == nt.mean(nt.asarray([1, 2])).dtype
    assert dist.all_reduce(True).dtype == nt.sum(nt.asarray(True)).dtype
    assert dist.all_gather(3.0).shape == (1,)


def test_who_is_in_no_group_is_told() -> None:
    nobody = dist.world().split(-1)
    assert not nobody.is_member and repr(nobody) == "Group(is_member=False)"
    assert nobody == dist.world().split(-2) and nobody != dist.world()
    for ask in (
        lambda: nobody.rank, lambda: nobody.size, lambda: nobody.members, lambda: nobody.split(0),
        lambda: dist.all_reduce(1.0, group=nobody),
    ):  # fmt: skip
        with pytest.raises(nt.ArgumentError, match="this process is no member of the group"):
            ask()


def test_what_is_refused() -> None:
    x = nt.ones((3, 2))
    with pytest.raises(nt.ArgumentError, match='all_reduce: how: expected "sum", "mean", "max"'):
        dist.all_reduce(x, "add")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="all_reduce: group is an int, 3; expected a dist.Group"):
        dist.all_reduce(x, group=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"all_reduce\(\) has no parameter 'op'; here it is 'how'"):
        dist.all_reduce(x, op="sum")  # type: ignore[call-overload]
    with pytest.raises(
        nt.ArgumentError, match="broadcast: the root: expected 0 <= root < 1, got 1"
    ):
        dist.broadcast(x, 1)
    with pytest.raises(nt.ShapeError, match="all_gather"):
        dist.all_gather(x, axis=2)
    with pytest.raises(AttributeError, match="here it is nitinol.dist.init$"):
        dist.init_process_group  # type: ignore[attr-defined]


def test_of_a_timeout(in_process: Callable[..., Any]) -> None:
    program = (
        "import nitinol as nt\ntry:\n  nt.dist.init(timeout={})\nexcept nt.Error as e: print(e)"
    )
    assert in_process(program.format("float('inf')")).stdout == ""
    for wrong in ("0", "-1", "float('nan')"):
        assert (
            "init: the timeout: expected seconds above 0"
            in in_process(program.format(wrong)).stdout
        )


def test_no_module_for_the_mpi_that_started_it(in_process: Callable[..., Any]) -> None:
    program = """
import os
os.environ |= {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "NITINOL_MPI": "mpich"}
import nitinol as nt
try: nt.dist.init()
except nt.FileError as error: print(error)
"""
    said = in_process(program).stdout
    assert "no module for it" in said or "knows of one" in said, said


# ---- together


class Done:
    """A program of several processes that has ended."""

    def __init__(self, status: int, out: str, seconds: float) -> None:
        self.status, self.out, self.seconds = status, out, seconds


def alive(process: str) -> bool:
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


class Together:
    """Runs a case of dist_ranks.py in so many processes, and looks that none is left."""

    def __init__(self, mpirun: Mpirun, folder: pathlib.Path) -> None:
        self.mpirun, self.folder = mpirun, folder / "processes"

    def __call__(
        self,
        case: str,
        ranks: int,
        python: tuple[str, ...] = (),
        more: tuple[str, ...] = (),
        **variables: str,
    ) -> Done:
        self.folder.mkdir()
        start = time.monotonic()
        command = [sys.executable, *python, str(RANKS), case, str(self.folder), *more]
        done = self.mpirun(ranks, command, **variables)
        seconds = time.monotonic() - start
        if "ImportError: libmpi.so" in done.stdout:
            pytest.skip("mpi4py does not find this MPI")
        processes = [path.name for path in self.folder.iterdir()]
        assert len(processes) == ranks, done.stdout
        deadline = time.monotonic() + 10
        while left := [process for process in processes if alive(process)]:
            assert time.monotonic() < deadline, (left, done.stdout)
            time.sleep(0.05)
        return Done(done.returncode, done.stdout, seconds)


@pytest.fixture
def together(mpirun: Mpirun, tmp_path: pathlib.Path) -> Together:
    return Together(mpirun, tmp_path)


BITS: dict[int, dict[str, str]] = {}


@pytest.mark.parametrize("ranks", (2, 3))
def test_collectives_against_numpy(together: Together, ranks: int) -> None:
    pytest.importorskip("numpy")
    done = together("collectives", ranks)
    assert done.status == 0, done.out
    found = re.search(r"^bits (\w{64})$", done.out, re.MULTILINE)
    assert found, done.out
    BITS.setdefault(ranks, {})[together.mpirun.mpi] = found[1]
    assert len(set(BITS[ranks].values())) == 1  # each MPI gives the same bits


@pytest.mark.parametrize("ranks", (2, 3))
def test_what_ranks_compute(together: Together, ranks: int) -> None:
    pytest.importorskip("numpy")
    # In one run, as starting takes longer than they do.
    done = together("gradients+groups+lists+clipped+fit+resumed", ranks)
    assert done.status == 0, done.out


@pytest.mark.parametrize("ranks", (2, 3))
def test_training_is_that_of_one_process(together: Together, ranks: int) -> None:
    pytest.importorskip("numpy")
    done = together("training", ranks)
    assert done.status == 7, done.out  # of a module that does not fit, at the end
    assert "Error" not in done.out, done.out


@pytest.mark.parametrize("compiled", (False, True))
def test_an_interrupt_is_seen_where_others_are_waited_for(
    together: Together, compiled: bool
) -> None:
    done = together("interrupted", 2, more=("compiled",) * compiled)
    assert done.status != 0, done.out
    seconds = re.search(r"^interrupted after (\S+) s$", done.out, re.MULTILINE)
    assert seconds and float(seconds[1]) < 1.8, done.out
    assert re.search(r"told: .*rank 0.* was interrupted", done.out), done.out
    assert re.search(r"afterwards: .*rank 0.* was interrupted", done.out), done.out


@pytest.mark.parametrize("case", ("other_threads_go_on", "a_child"))
def test_processes_and_threads(together: Together, case: str) -> None:
    done = together(case, 2)
    assert done.status == 0, done.out


def line_of(case: str, mark: str) -> int:
    lines = RANKS.read_text("utf-8").splitlines()
    first = lines.index(f"def {case}() -> None:")
    return next(i + 1 for i in range(first, len(lines)) if f"# {mark} line" in lines[i])


def test_ranks_that_differ_are_told_both_lines(together: Together) -> None:
    done = together("differ", 2, NITINOL_DIST_TIMEOUT="30")
    assert done.status != 0 and done.seconds < 20
    name = RANKS.relative_to(HERE.parents[2])
    first, second = (f"{name}:{line_of('differ', mark)}" for mark in ("first", "second"))
    by_rank = [
        rf"nitinol.FileError: all_reduce: the ranks of a group have to do the same, in the same "
        rf"order: rank 0 \(host .*\) does all_reduce number \d of float32\[3\] at {first}, and 1 "
        rf"\(host .*\) does all_gather number \d of float32\[4\] at {second}\.",
        rf"nitinol.FileError: all_gather: .* rank 1 \(host .*\) does all_gather number \d of "
        rf"float32\[4\] at {second}, and 0 \(host .*\) does all_reduce number \d of float32\[3\] at "
        rf"{first}\.",
    ]
    # Who is ended by the other may not come to say it.
    assert any(re.search(text, done.out) for text in by_rank), done.out


def test_compiled_ranks_that_differ_are_told_the_line(together: Together) -> None:
    done = together("differ_when_compiled", 2, NITINOL_DIST_TIMEOUT="30")
    assert done.status != 0 and done.seconds < 20
    place = rf"{RANKS.name}:{line_of('differ_when_compiled', 'first')}"
    assert re.search(
        rf"all_reduce number \d of float32\[3\] at \S*{place}.* of float32\[4\] at \S*{place}|"
        rf"all_reduce number \d of float32\[4\] at \S*{place}.* of float32\[3\] at \S*{place}",
        done.out,
    ), done.out


@pytest.mark.parametrize("ranks", (2, 3))
@pytest.mark.parametrize(
    "case, status, said",
    (
        ("an_exception", 1, "ValueError: bad data"),
        ("an_exit", 3, ""),
        ("one_is_killed", None, ""),
    ),
)
def test_the_end_of_one_is_the_end_of_all(
    together: Together, case: str, status: int | None, said: str, ranks: int
) -> None:
    done = together(case, ranks)
    assert done.status != 0 and done.seconds < 20, done.out
    assert status is None or done.status == status or together.mpirun.mpi == "mpich", done.status
    assert said in done.out


def test_who_does_not_come_is_named(together: Together) -> None:
    done = together("nobody_comes", 2)
    assert done.status != 0 and done.seconds < 20, done.out
    place = rf"{RANKS.name}:{line_of('nobody_comes', 'first')}"
    assert re.search(
        rf"barrier: rank 0 \(host .*\) has waited 1 s, in barrier number \d of .* at \S*{place} .*"
        r"for rank 1 \(host .*\) \(last seen in all_reduce number \d",
        done.out,
    ), done.out


def test_the_environment_has_the_last_word_on_the_timeout(together: Together) -> None:
    done = together("nobody_comes", 2, NITINOL_DIST_TIMEOUT="2.5")
    assert re.search(r"has waited [23] s", done.out), done.out


@pytest.mark.skipif(not HAS_MPI4PY, reason="mpi4py is not installed")
@pytest.mark.parametrize("case", ("beside_mpi4py", "before_mpi4py"))
def test_who_has_initialised_mpi_closes_it(together: Together, case: str) -> None:
    done = together(case, 2, MPI4PY_MPIABI=together.mpirun.mpi)
    assert done.status == 0, done.out
    assert "together 0" in done.out and "together 1" in done.out


@pytest.mark.skipif(not HAS_MPI4PY, reason="mpi4py is not installed")
def test_an_exception_beside_mpi4py(together: Together) -> None:
    ends_all = ("-m", "mpi4py")  # else it waits for the others before it ends
    done = together("an_exception_beside_mpi4py", 2, ends_all, MPI4PY_MPIABI=together.mpirun.mpi)
    assert done.status != 0 and done.seconds < 20, done.out
    assert "ValueError: bad data" in done.out
