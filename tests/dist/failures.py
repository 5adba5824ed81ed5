"""What is printed, and that no process is left, when processes that compute together fail.

python3 failures.py openmpi|mpich MPIRUN PROGRAM [CASE ...]
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TIMEOUT = 6  # of the library's waits, in seconds

# Name: what has to be printed (all of them), whether the run fails (None: either), and the environment.
CASES: dict[str, tuple[list[str], bool | None, dict[str, str]]] = {
    "fine": (["rank 0 is done", "rank 1 is done", "rank 2 is done"], False, {}),
    "late": (["rank 0 is done", "rank 1 is done", "rank 2 is done"], False, {}),
    "left": (["rank 0 is done", "rank 1 is done", "rank 2 is done"], False, {}),
    "kill": ([], True, {}),
    "stop": (
        [
            r"all_reduce: rank [02] \(host \S+\) has waited 6 s, in all_reduce number 4 of float32\[1000\]"
            r" at \S*failures.cpp:\d+ \(4000 bytes for each rank\), for rank 1 \(host \S+\)"
            r" \(last seen in all_reduce number 3 of float32\[1000\] at \S*failures.cpp:\d+\)",
        ],
        True,
        {},
    ),
    "exit0": (
        [r"rank 1 \(host \S+\) has come to its end without all_reduce number 4 .*; last seen in all_reduce number 3"],
        True,
        {},
    ),
    "exit3": (["rank 1 ends with status 3: all ranks are ended"], True, {}),
    "_exit": ([], None, {}),  # MPICH's launcher kills the others then, and often says that all is well
    "_exit, kept": ([r"has waited 6 s, in all_reduce number 4 .*, for rank 1 \(host \S+\)"], True, {}),  # but not with this option
    "exception": (["of its own"], True, {}),
    "shape": (
        [
            r"the ranks of a group have to do the same, in the same order: rank \d \(host \S+\) does all_reduce number 4 of"
            r" float32\[100[01]\] at \S*failures.cpp:\d+, and \d \(host \S+\) does all_reduce number 4 of float32\[100[01]\]",
        ],
        True,
        {},
    ),
    "dtype": ([r"all_reduce number 4 of (float|int)32\[1000\] .* all_reduce number 4 of (float|int)32\[1000\]"], True, {}),
    "large": ([r"float32\[20000[01]\].*float32\[20000[01]\]"], True, {}),
    "small": ([r"all_reduce number 4"], True, {}),
    "mean": ([r"all_reduce number 4 of float32\[200000\] for its mean at"], True, {}),
    "killed in rounds": ([], True, {}),
    "order": ([r"does all_(reduce|gather) number 4 .* does all_(reduce|gather) number 4 "], True, {}),
    "extra": ([r"does all_(reduce|gather) number 4 .* does all_(reduce|gather) number 4 "], True, {}),
    "line": (["rank 0 is done", "rank 1 is done", "rank 2 is done"], False, {}),
    "line, checked": ([r"failures.cpp:(\d+), and .*failures.cpp:(?!\1)\d+"], True, {"NITINOL_CHECK": "ranks"}),
    "fine, checked": (["rank 0 is done", "rank 1 is done", "rank 2 is done"], False, {"NITINOL_CHECK": "ranks"}),
    "compiled": ([r"float32\[(999|1000)\] at \S*failures.cpp:\d+"], True, {}),
    "caught": ([r"caught: all_reduce: the ranks", "ends after a collective has failed: all ranks are ended"], True, {}),
    "root": ([r"broadcast number 4 of float32\[1000\].* broadcast number 4 of float32\[5\]|"
              r"broadcast number 4 of float32\[5\].* broadcast number 4 of float32\[1000\]"], True, {}),
    "roots": (
        [
            r"rank [01] \(host \S+\) does broadcast number 4 of float32\[1000\] from rank [01] at \S*failures.cpp:\d+,"
            r" and [01] \(host \S+\) does broadcast number 4 of float32\[1000\] from rank [01] at \S*failures.cpp:\d+",
        ],
        True,
        {},
    ),
    "roots around": (
        [r"does broadcast number 4 of float32\[1000\] from rank (\d) at .* does broadcast number 4 of float32\[1000\] from rank (?!\1)\d at "],
        True,
        {},
    ),
    "shifts": (
        [
            r"does permute number 4 of float32\[1000\] by a shift of (\d) at \S*failures.cpp:\d+, and \d \(host \S+\) does"
            r" permute number 4 of float32\[1000\] by a shift of (?!\1)\d at \S*failures.cpp:\d+",
        ],
        True,
        {},
    ),
    "no shift": ([r"permute number 4 of float32\[1000\] by a shift of 1 at .* all_reduce number 4|"
                  r"all_reduce number 4 .* permute number 4 of float32\[1000\] by a shift of 1 at"], True, {}),
    "fork": (["in the child: a collective: this process was forked", "rank 2 is done"], False, {}),
}
# The same where each rank has a GPU, of CPU code (tests/cuda/fake).
CUT = "a collective was ended before it was done: "
GPU_CASES: dict[str, tuple[list[str], bool | None, dict[str, str]]] = {
    "fine": (["dist: GPUs exchange by NCCL 2.28.0", "rank 0 is done", "rank 1 is done", "rank 2 is done"], False, {}),
    "none": (["by way of the host's memory: rank 1 has no NCCL", "rank 1 is done"], False, {}),
    "kill": ([], True, {}),
    "exit0": ([r"rank 1 \(host \S+\) has come to its end without all_reduce number"], True, {}),
    "shape": ([r"all_reduce number \d+ of float32\[100[01]\] on a GPU at \S*failures.cpp:\d+, and"], True, {}),
    "device": ([r"(all_reduce number \d+ of float32\[1000\] on a GPU at .* all_reduce number \d+ of float32\[1000\] at"
                r"|all_reduce number \d+ of float32\[1000\] at .* all_reduce number \d+ of float32\[1000\] on a GPU)"],
               True, {}),
    "compiled": ([r"float32\[(999|1000)\] on a GPU at \S*failures.cpp:\d+"], True, {}),
    "stalled": ([CUT + r"all_reduce at \S*failures.cpp:\d+ on cuda:\d has waited 6 s for other ranks' GPUs"], True, {}),
    "interrupted": (["seen: Ctrl-C",
                     CUT + r"all_reduce at \S*failures.cpp:\d+ on cuda:0: rank 0 was interrupted.*"
                     + CUT + r"all_reduce at \S*failures.cpp:\d+ on cuda:0: rank 0 was interrupted"], True, {}),
    "interrupted upload": (["seen: Ctrl-C", CUT + r"all_reduce at \S*failures.cpp:\d+ on cuda:0: rank 0 was interrupted"],
                           True, {}),
    "meeting": ([r"all_reduce at \S*failures.cpp:\d+: by NCCL on cuda:1 of rank 1: meeting by NCCL failed with 2"], True, {}),
    "refused": ([r"all_reduce at \S*failures.cpp:\d+: by NCCL on cuda:1 of rank 1: sending and receiving failed with 3"],
                True, {}),
    # Asked for the ninth time: while ranks meet, if that takes long, else by the thread that looks at the fourth exchange.
    "broken": ([r"(by NCCL on cuda:1 of rank 1: meeting by NCCL failed|NCCL failed in all_reduce at \S*failures.cpp:\d+) with 1"],
               True, {}),
}


def is_alive(program: Path) -> list[str]:
    """The processes that still run the program."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe") == str(program):
                found.append(entry.name)
        except OSError:
            pass
    return found


def run(mpi: str, launcher: str, program: Path, case: str, gpus: Path | None = None) -> str:
    """Why the case fails; nothing if it does not. By the driver in `gpus`."""
    expected, fails, more = (GPU_CASES if gpus else CASES)[case]
    if gpus:
        more = more | {"NITINOL_FAKE_DEVICES": "3", "NITINOL_CUDA_PATH": str(gpus), "NITINOL_LOG": "info"}
    environment = os.environ | more | {"NITINOL_DIST_TIMEOUT": str(TIMEOUT), "NITINOL_CACHE": "0",
                                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    options = ["--oversubscribe", "--bind-to", "none"] if mpi == "openmpi" else []
    if case.endswith(", kept"):
        options.append("-disable-auto-cleanup")
    command = [launcher, *options, "-n", "3", str(program), case.split(",")[0]]
    began = time.monotonic()
    done = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            start_new_session=True)
    try:
        text, _ = done.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(done.pid, 9)
        text, _ = done.communicate()
        for process in is_alive(program):
            os.kill(int(process), 9)
        return f"did not end:\n{text}"
    took = time.monotonic() - began
    for _ in range(50):
        left = is_alive(program)
        if not left:
            break
        time.sleep(0.1)
    line = " ".join(text.split())
    problems = [f"{pattern!r} is not in its output" for pattern in expected if not re.search(pattern, line)]
    if fails is not None and (done.returncode != 0) != fails:
        problems.append(f"status {done.returncode}")
    if left:
        problems.append(f"processes {left} are left")
        for process in left:
            os.kill(int(process), 9)
    print(f"{case}{' on GPUs' if gpus else ''}: {'; '.join(problems) or 'as expected'} ({took:.1f} s)", flush=True)
    return "" if not problems else text


def main() -> None:
    """Runs the cases."""
    mpi, launcher, program, *chosen = sys.argv[1:]
    failed = False
    for case in chosen or CASES:
        if case.endswith(", kept") and mpi != "mpich":
            continue
        text = run(mpi, launcher, Path(program).resolve(), case)
        if text:
            failed = True
            print(text, flush=True)
    gpus = Path(program).parent / "fake"
    for case in GPU_CASES if not chosen and (gpus / "libnccl.so.2").exists() else ():
        text = run(mpi, launcher, Path(program).resolve(), case, gpus)
        if text:
            failed = True
            print(text, flush=True)
    for left in Path("/dev/shm").glob("nitinol-fake-nccl-*"):  # ranks that did not meet
        left.unlink()
    # Started together with others, by whom the library knows nothing; or by another MPI than it is told.
    other = "mpich" if mpi == "openmpi" else "openmpi"
    if not chosen and (Path(program).parent.parent / f"libnitinol_{other}.so").exists():
        done = subprocess.run([launcher, *(["--oversubscribe"] if mpi == "openmpi" else []), "-n", "2", program, "bare"],
                              env=os.environ | {"NITINOL_MPI": other, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
                              capture_output=True, text=True, timeout=60, check=False)
        is_right = done.returncode != 0 and "knows of one" in done.stderr
        print(f"another MPI: {'as expected' if is_right else done.stdout + done.stderr}")
        failed |= not is_right
    if not chosen:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(Path(program).parent.parent / "libnitinol.so.0", folder)
            done = subprocess.run([program, "bare"],
                                  env=os.environ | {"PMI_RANK": "0", "PMI_SIZE": "2", "LD_LIBRARY_PATH": folder},
                                  capture_output=True, text=True, timeout=60, check=False)
            is_right = done.returncode != 0 and "the library has no module for it" in done.stderr
            print(f"no module: {'as expected' if is_right else done.stdout + done.stderr}")
            failed |= not is_right
    sys.exit(1 if failed else 0)


main()
