"""Two network namespaces as two machines, joined by a link of a given rate: the tests of several ranks
over it, what is said when the link goes down, and how much of the messages' time is hidden.

python3 two_machines.py BUILD [RATE]

Needs ip, tc, Open MPI, and the right to make network namespaces: without it, the status is 77. With a rate
it also runs the bench.

Machines whose only way to each other is that link: no memory is shared, and a message takes the time
that the rate says (tbf).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NETWORK = "10.77.0"
# What mpirun takes for ssh: runs a command "on" the machine of that address.
AGENT = f"""#!/bin/bash
host=$1; shift
case $host in {NETWORK}.2) machine=b;; *) machine=a;; esac
exec ip netns exec nitinol-$machine unshare --uts sh -c "hostname machine-$machine; exec sh -c '$*'"
"""
PASSED_ON = ("NITINOL_CACHE", "NITINOL_DIST_TIMEOUT", "NITINOL_DISABLE_PASSES")


def ip(*arguments: str, check: bool = True) -> None:
    """Runs `ip`."""
    subprocess.run(["ip", *arguments], check=check, capture_output=not check)


def set_up(rate: str) -> None:
    """Makes the machines."""
    take_down()
    for machine in "ab":
        ip("netns", "add", f"nitinol-{machine}")
    ip("link", "add", "nit-a", "netns", "nitinol-a", "type", "veth", "peer", "name", "nit-b", "netns", "nitinol-b")
    for number, machine in enumerate("ab", 1):
        ip("-n", f"nitinol-{machine}", "addr", "add", f"{NETWORK}.{number}/24", "dev", f"nit-{machine}")
        ip("-n", f"nitinol-{machine}", "link", "set", f"nit-{machine}", "up")
        ip("-n", f"nitinol-{machine}", "link", "set", "lo", "up")
        subprocess.run(["ip", "netns", "exec", f"nitinol-{machine}", "tc", "qdisc", "add", "dev", f"nit-{machine}", "root",
                        "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"], check=True)


def take_down() -> None:
    """Removes them."""
    for machine in "ab":
        ip("netns", "del", f"nitinol-{machine}", check=False)


class Machines:
    """Starts ranks, as many on each machine."""

    def __init__(self, folder: Path) -> None:
        self.agent = folder / "agent"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)

    def start(self, ranks: int, *program: str, **environment: str) -> subprocess.Popen[str]:
        """The launcher."""
        given = os.environ | {"NITINOL_CACHE": "0", "NITINOL_DIST_TIMEOUT": "20", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                              "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} | environment
        passed_on = " ".join(f"-x {name}" for name in PASSED_ON if name in given)
        options = (f"--mca plm_rsh_agent {self.agent} --mca btl tcp,self,vader --mca btl_tcp_if_include {NETWORK}.0/24 "
                   f"--mca oob_tcp_if_include {NETWORK}.0/24 --host {NETWORK}.1:8,{NETWORK}.2:8 --map-by node --bind-to none "
                   f"{passed_on} -n {ranks}")
        command = f"hostname machine-a; exec mpirun.openmpi {options} {' '.join(program)}"
        return subprocess.Popen(["ip", "netns", "exec", "nitinol-a", "unshare", "--uts", "sh", "-c", command], env=given,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, ranks: int, *program: str, seconds: float = 240, **environment: str) -> tuple[int, str]:
        """Status and output."""
        process = self.start(ranks, *program, **environment)
        text, _ = process.communicate(timeout=seconds)
        return process.returncode, text


def is_running(program: Path) -> bool:
    """Whether a process runs it."""
    def runs(entry: Path) -> bool:
        try:
            return entry.name.isdigit() and os.readlink(entry / "exe") == str(program)
        except OSError:
            return False

    return any(runs(entry) for entry in Path("/proc").iterdir())


def is_told_of_cut(machines: Machines, program: Path) -> bool:
    """The link goes down in the middle of a program that would go on for a minute: the ranks end on both
    machines. What started them waits for the other machine; it ends when the link is there again."""
    process = machines.start(2, str(program), "long", NITINOL_DIST_TIMEOUT="5")
    time.sleep(3)
    ip("-n", "nitinol-a", "link", "set", "nit-a", "down")
    began = time.monotonic()
    while is_running(program) and time.monotonic() - began < 30:
        time.sleep(0.1)
    took = time.monotonic() - began
    ip("-n", "nitinol-a", "link", "set", "nit-a", "up")
    try:
        text, _ = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
    is_right = took < 30 and "(host machine-b) (last seen in all_reduce number" in text
    print(f"the link goes down: {'all ranks have ended and said why' if is_right else text} ({took:.0f} s)", flush=True)
    return is_right


def main() -> None:
    """All of it."""
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"  # where ip and tc are
    build, rate = Path(sys.argv[1]).resolve(), (sys.argv[2:] or ["1gbit"])[0]
    failed = False
    try:
        set_up(rate)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no network namespaces can be made here: {error}")
        sys.exit(77)
    try:
        with tempfile.TemporaryDirectory() as folder:
            machines = Machines(Path(folder))
            for ranks in (2, 4):
                status, text = machines.run(ranks, str(build / "tests/nitinol_dist_tests"), "~[.]")
                print(f"{ranks} ranks on two machines: {'all tests passed' if status == 0 else text}", flush=True)
                failed |= status != 0
            failed |= not is_told_of_cut(machines, build / "tests/nitinol_dist_failures")
            set_up(rate)
            bench = build / "nitinol_dist_bench_openmpi"
            for overlaps in (True, False) if sys.argv[2:] else ():
                off = {} if overlaps else {"NITINOL_DISABLE_PASSES": "overlap"}
                _, text = machines.run(2, str(bench), "--rows", "overlap", "--batch", "3072", **off)
                line = [line for line in text.splitlines() if line.startswith("dist.overlap")]
                print(f"{rate}, {'beside' if overlaps else 'after'} what is computed: {' '.join(line) or text}", flush=True)
    finally:
        take_down()
    sys.exit(1 if failed else 0)


main()
