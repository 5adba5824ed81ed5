#!/usr/bin/env python3
"""Shows on the GPU of this machine what the bundle around this file is made for: bits, tests, times, races.

Stages follow one another by what their results are worth, each within a limit of its own and all within one. Every
result is a line of JSON in FOLDER/results.jsonl as soon as it is there, so that a kill loses only what was not done
yet; what programs say besides is in FOLDER/log.txt. A stage counts its results: one without any has failed.

    python3 run_gpu.py out                             # ten minutes; the most valuable first
    python3 run_gpu.py more --continue out/results.jsonl   # what that has not done
"""

import argparse
import collections
import csv
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_BYTES = 15_000_000  # of a file of results
FAKE = "fake GPU"  # tests/cuda/fake

# What is compared with PyTorch, by what it tells.
COLUMNS = (1024, 256, 4096, 50257, 16384, 1000, 65536)
ROWS = (
    ["large.copy", "W1a.n1.6e7", "W1b.n1.6e7", "W1c.n1.6e7", "W1d.n1.6e7", "large.W1b.bf16"]
    + ["large.softmax.f32.1024", "large.norm.f32.1024", "large.entropy.f32.1024"]
    + ["large.entropy-grad.f32.50257"]
    + ["W3.add4", "W3.chain10", "W4i.train.b32", "W4vii.train", "W4iv.train", "W4ii.train"]
    + ["W4vii.bf16", "W4iv.bf16", "W4v.infer", "W4vi.infer", "W4.vit", "W4.unet", "W4.gru"]
    + ["large.matmul.f32.4096", "large.matmul.bf16.8192", "large.conv.f32.56", "large.conv.bf16.56"]
    + ["large.sum", "large.columns", "large.few-columns", "large.cumsum", "large.transpose"]
    + [
        "large.scatter",
        "large.mean",
        "large.var",
        "large.argmax",
        "W7.shapes",
        "W8.newton.n262144",
        "W8.branch.n16384",
        "W8.item",
        "W6.W1b",
        "scan.long",
    ]
    + [f"large.{f}.f32.{n}" for n in COLUMNS[1:] for f in ("softmax", "norm", "entropy")]
    + [
        "W4iii.train",
        "W4iii.infer",
        "W4i.train.b128",
        "W4i.train.b1000",
        "W4ii.infer",
        "W4iv.infer",
    ]
    + [f"large.{f}-grad.f32.{n}" for n in COLUMNS for f in ("softmax", "norm", "entropy")]
    + [f"large.{f}.bf16.{n}" for n in COLUMNS for f in ("softmax", "norm", "entropy")]
    + ["large.conv-grad.f32.56", "large.conv-grad.bf16.56", "large.matmul.bf16.4096"]
    + [f"large.{f}-grad.bf16.{n}" for n in COLUMNS for f in ("softmax", "norm", "entropy")]
    + ["index.scatter", "index.rows", "order.bincount", "scan.rows", "scan.columns", "W1e"]
    + ["order.sort.n1e6", "order.sort.rows", "order.argsort.n1e6", "order.topk", "order.median"]
    + ["order.unique.many", "order.searchsorted", "order.mask", "index.set", "index.along"]
    + ["einsum.attention", "einsum.outer", "random.normal", "random.permutation"]
    + ["random.categorical"]
    + ["W2.sum", "W2.mean", "W2.softmax", "W2.layernorm", "W2.var", "W2.argmax"]
    + ["W1a.n1e5", "W1b.n1e5", "W1c.n1e5", "W1d.n1e5", "W5.mm1024", "W5.mm2048"]
    + ["W5.mbg1024x1024x1024", "W5.mbg128x768x3072", "W7.shape.new", "W6.W1a", "W6.W1c", "W6.W1d"]
    + ["W6.W3.chain10", "W6.chain10000", "large.adam200"]
)
ROWS = list(dict.fromkeys(ROWS))
QUICK_ROWS = ["W3.add4", "large.copy"]
ROW_SECONDS = 60
SPLIT_TAGS = ("[#ops_test]",)  # whose cases are processes of their own: each is long

PROFILED = {
    "gpu__time_duration.sum": "nanoseconds",
    "dram__bytes_read.sum": "bytes_read",
    "dram__bytes_write.sum": "bytes_written",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory_percent",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "arithmetic_percent",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy_percent",
    "launch__registers_per_thread": "registers",
}


class Cut(Exception):
    """The time was up."""


class Failed(Exception):
    pass


class Skipped(Exception):
    """What the stage needs is not on this machine."""


Stage = collections.namedtuple("Stage", "name limit least run")


def path_of(program):
    return os.path.join(HERE, program)


running = set()  # processes, each the leader of a group


def kill(process):
    """And all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    running.discard(process)


class Lines:
    """The lines of a process, until it ends or the time is up."""

    def __init__(self, command, deadline, log, environment=None, stdin=subprocess.DEVNULL):
        self.deadline, self.buffer, self.ended = deadline, b"", False
        self.process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=log if stdin == subprocess.PIPE else subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
        running.add(self.process)

    def __iter__(self):
        return self

    def __next__(self):
        while b"\n" not in self.buffer:
            if self.ended:
                rest, self.buffer = self.buffer, b""
                if rest:
                    return rest.decode(errors="replace")
                self.process.wait()
                raise StopIteration
            left = self.deadline - time.monotonic()
            if left <= 0:
                self.close()
                raise Cut
            ready, _, _ = select.select([self.process.stdout], [], [], left)
            if ready:
                chunk = os.read(self.process.stdout.fileno(), 1 << 16)
                self.buffer, self.ended = self.buffer + chunk, not chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode(errors="replace")

    def close(self):
        kill(self.process)
        self.process.stdout.close()


class Server:
    """A program that times the rows it is told to, one after another."""

    def __init__(self, command, run):
        self.command, self.run, self.lines = command, run, None

    def rows(self, name, deadline):
        """The lines of a row. A server that does not answer is started anew for the next one."""
        if self.lines is None:
            self.lines = Lines(
                self.command, deadline, self.run.log, self.run.environment, subprocess.PIPE
            )
        self.lines.deadline = deadline
        try:
            self.lines.process.stdin.write((name + "\n").encode())
            self.lines.process.stdin.flush()
            for line in self.lines:
                result = parsed(line)
                if result is None:
                    self.run.say("bench", line)
                    continue
                if "end" in result:
                    if "failed" in result:
                        yield {"workload": name, "failed": result["failed"]}
                    return
                yield result
        except BrokenPipeError:
            pass
        except Cut:
            self.lines = None
            raise
        status = self.lines.process.wait()
        self.lines = None
        yield {"workload": name, "failed": f"the process ended with status {status}"}

    def close(self):
        if self.lines is not None:
            self.lines.close()


def parsed(line):
    """A result, or None for a line that is something else."""
    if not line.startswith("{"):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None


class Run:
    def __init__(self, options):
        self.options, self.quick = options, options.quick
        self.deadline = time.monotonic() + options.seconds
        self.lock = threading.Lock()
        os.makedirs(options.folder, exist_ok=True)
        self.results = open(os.path.join(options.folder, "results.jsonl"), "a", encoding="utf-8")
        self.log = open(os.path.join(options.folder, "log.txt"), "a", encoding="utf-8")
        self.counted = 0
        self.stage = None
        self.stage_deadline = 0
        self.done = []
        for name in options.done:
            with open(name, encoding="utf-8") as file:
                self.done += [line for line in map(parsed, file) if line]
        self.scratch = os.path.join(tempfile.gettempdir(), f"nitinol-gpu-{os.getuid()}")
        os.makedirs(self.scratch, mode=0o700, exist_ok=True)
        # Kernels that one process has compiled, the others find.
        self.environment = {"NITINOL_CACHE": os.path.join(self.scratch, "store")}
        os.makedirs(self.environment["NITINOL_CACHE"], mode=0o700, exist_ok=True)
        self.machine = next((line for line in self.done if line.get("stage") == "machine"), {})

    def write(self, file, text):
        with self.lock:
            if file.tell() < MOST_BYTES:
                file.write(text + "\n")
                file.flush()

    def say(self, stage, text):
        self.write(self.log, f"{stage}: {text}")

    def emit(self, **line):
        """Notes a result of this stage, which counts as `count`, or one."""
        with self.lock:
            self.counted += line.get("count", 1)
        self.write(self.results, json.dumps({"stage": self.stage, **line}))

    def execute(self, command, environment=None, on_line=None):
        """Runs a program to its end; lines of JSON are results. Its exit status."""
        lines = Lines(
            command, self.stage_deadline, self.log, {**self.environment, **(environment or {})}
        )
        try:
            for line in lines:
                result = parsed(line)
                if result is not None:
                    self.emit(**result)
                else:
                    self.say(self.stage, line)
                if on_line:
                    on_line(line)
        finally:
            lines.close()
        return lines.process.returncode

    def stop(self):
        """Ends what runs, and starts no more."""
        self.deadline = self.stage_deadline = 0
        for process in list(running):
            kill(process)
        sys.exit("killed")

    def is_fake(self):
        return self.machine.get("device") == FAKE

    def run_stage(self, stage):
        begin = time.monotonic()
        self.stage, self.counted = stage.name, 0
        limit = self.options.limits.get(stage.name, stage.limit)
        self.stage_deadline = min(begin + limit, self.deadline)
        print(f"{stage.name} ...", flush=True)
        end, why = "passed", ""
        try:
            if begin >= self.deadline:
                raise Cut
            stage.run(self)
            least = 1 if self.quick else stage.least
            counted = self.counted + self.counted_before(stage.name)
            if counted < least:
                end, why = "failed", f"{counted} results, where there are {least} at least"
        except Cut:
            end, why = "cut", "its time was up"
        except Skipped as skipped:
            end, why = "skipped", str(skipped)
        except Failed as failed:
            end, why = "failed", str(failed)
        except (OSError, ValueError, KeyError) as error:
            end, why = "failed", f"{type(error).__name__}: {error}"
        except BaseException:
            self.finish(begin, "killed", "")
            raise
        self.finish(begin, end, why)
        return end in ("passed", "skipped")

    def counted_before(self, name):
        """Results of the runs that this one continues, in stages that leave out what is done."""
        if name not in ("tests", "bench"):
            return 0
        lines = [line for line in self.done if line["stage"] == name and "end" not in line]
        return sum(line.get("count", 1) for line in lines)

    def finish(self, begin, end, why):
        seconds = round(time.monotonic() - begin, 1)
        text = (
            f"{self.stage}: {end}, {self.counted} results in {seconds} s{'; ' + why if why else ''}"
        )
        self.emit(end=end, counted=self.counted, seconds=seconds, why=why, count=0)
        print(text, flush=True)


# ---- the stages


def clocks():
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    fields = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw,memory.used"
    found = subprocess.run(
        [smi, f"--query-gpu={fields}", "--format=csv,noheader"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=20,
        check=False,
    )
    return found.stdout.strip()


def machine(run):
    """Which GPU, driver, libraries and tools there are, and where."""

    def note(line):
        run.machine = parsed(line) or run.machine

    status = run.execute([path_of("nitinol_gpu_kernels"), "--machine"], on_line=note)
    found = {name: tool(name) for name in ("compute-sanitizer", "ncu", "nvcc", "gcc")}
    run.emit(python=sys.version, cores=os.cpu_count(), tools=found, clocks=clocks())
    if status != 0:
        raise Failed("there is no GPU")


def tool(name):
    for folder in [None, "/usr/local/cuda/bin"]:
        found = shutil.which(name, path=folder)
        if found:
            return found
    return None


def kernels_command(run, *arguments):
    return [path_of("nitinol_gpu_kernels"), *arguments]


def bits(run):
    """All packed kernels, whose results have the CPU's bits; those whose rows are split many times."""
    repetitions = "2" if run.quick else "100"
    pack = path_of("kernels.pack")
    status = run.execute(kernels_command(run, "--run", pack, "--repetitions", repetitions))
    if status != 0:
        raise Failed(f"exit status {status}: kernels differ from the CPU, or did not run")


def kernels(run):
    """The packed rows, by the driver alone, each beside a copy of as many bytes."""
    quick = ["--quick", "--rows", "columns.32x128"] if run.quick else []
    status = run.execute(kernels_command(run, "--time", path_of("kernels.pack"), *quick))
    if status != 0:
        raise Failed(f"exit status {status}: rows differ from the CPU, or did not run")


def needs_compiler(run):
    if "nvrtc" not in run.machine:
        raise Skipped("there is no NVRTC, which tensors on the GPU need")


def cases_of(tag):
    listed = subprocess.run(
        [path_of("nitinol_tests"), "-#", "--list-test-names-only", tag],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    # Commas, brackets and backslashes mean something to Catch.
    escaped = (re.sub(r"([\\,\[\]])", r"\\\1", line) for line in listed.stdout.splitlines())
    return [name for name in escaped if name.strip()]


def tests(run):
    """Tests with all tensors on the GPU: a process a tag, on all cores, with one store of compiled kernels."""
    needs_compiler(run)
    cores = os.cpu_count() or 1
    if not run.quick:
        every = "float32,bfloat16,float16,float64"
        command = [path_of("nitinol_warm"), "--device", "cuda:0", "--dtypes", every]
        status = run.execute(command + ["--threads", str(cores)])
        if status != 0:  # which costs time, and is told; the tests show what is wrong
            run.emit(count=0, failed=f"nitinol_warm ended with status {status}")
    with open(path_of("tests.filter"), encoding="utf-8") as file:
        tags = file.read().strip().split(",")
    jobs = []
    for tag in tags:
        split = tag.startswith(SPLIT_TAGS) and not run.quick
        jobs += [(name, ["-#", name]) for name in (cases_of(tag) if split else [tag])]
    passed = {line.get("tag") for line in run.done if line.get("outcome") == "passed"}
    jobs = [("nitinol_tests", *job) for job in jobs if job[0] not in passed]
    if not run.quick and "fuzz" not in passed:
        arguments = ["--device", "cuda:0", "--seed", "3", "--count", "200"]
        jobs.insert(0, ("fuzz_programs", "fuzz", arguments))
    environment = {
        "NITINOL_TEST_DEVICE": "cuda:0",
        "NITINOL_WARM": path_of("nitinol_warm"),
        "NITINOL_NUM_THREADS": "2",
    }
    with ThreadPoolExecutor(cores) as pool:
        outcomes = list(pool.map(lambda job: test(run, environment, *job), jobs))
    wrong = [job[1] for job, outcome in zip(jobs, outcomes) if outcome not in ("passed", "cut")]
    if wrong:
        raise Failed(f"{len(wrong)} of {len(jobs)}: {', '.join(wrong)[:500]}")
    if "cut" in outcomes:
        raise Cut


def test(run, environment, program, name, arguments):
    begin = time.monotonic()
    text, outcome, ulps = [], "passed", []
    environment = dict(environment)
    if program != "nitinol_tests":  # which chooses its devices itself
        del environment["NITINOL_TEST_DEVICE"]
    try:
        lines = Lines(
            [path_of(program), *arguments],
            run.stage_deadline,
            run.log,
            {**run.environment, **environment},
        )
        try:
            for line in lines:
                result = parsed(line)
                if result is not None:
                    ulps.append(result)
                else:
                    text.append(line)
        finally:
            lines.close()
        status = lines.process.returncode
        if status != 0:
            outcome = "failed" if status > 0 else f"died of signal {-status}"
    except Cut:
        outcome = "cut"
    whole = "\n".join(text)
    counted = re.search(r"(\d+) assertions? in (\d+) test cases?", whole)
    summary = re.search(r"test cases: +(\d+)", whole)
    cases = int(counted.group(2)) if counted else int(summary.group(1)) if summary else 0
    cases -= whole.count("NOT RUN")
    if program != "nitinol_tests":
        cases = 1 if outcome == "passed" else 0
    if cases <= 0 and outcome == "passed":
        outcome = "nothing ran"
    seconds = round(time.monotonic() - begin, 1)
    for line in ulps:  # of a library's results, which may differ between layouts
        run.emit(tag=name, count=0, **line)
    count = 0 if outcome == "cut" else cases
    run.emit(tag=name, outcome=outcome, cases=cases, seconds=seconds, count=count)
    if outcome != "passed":
        run.say("tests", f"{name}: {outcome}\n{whole[-20000:]}")
    return outcome


def has_torch():
    ask = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    found = subprocess.run(
        [sys.executable, "-c", ask], stderr=subprocess.DEVNULL, timeout=120, check=False
    )
    return found.returncode == 0


def bench(run):
    """Rows by Nitinol and by PyTorch in turn: two processes, of which one waits while the other times."""
    needs_compiler(run)
    quick = ["--quick"] if run.quick else []
    ours = [path_of("nitinol_bench"), "--serve", "--device", "cuda:0", *quick]
    ours += ["--threads", str(os.cpu_count() or 1)]
    theirs = [sys.executable, path_of("torch_rows.py"), *quick]
    if run.options.modes:
        theirs += ["--modes", run.options.modes]
    if run.is_fake():
        theirs.append("--stand-in")
    servers = {"nitinol": Server(ours, run)}
    if run.is_fake() or has_torch():  # else our times are all there is
        servers["torch"] = Server(theirs, run)
    else:
        run.emit(count=0, missing="PyTorch, or a GPU that it sees: no times to compare with")
    done = {line["row"] for line in run.done if "row" in line and line.get("stage") == "bench"}
    wanted = run.options.rows or (QUICK_ROWS if run.quick else ROWS)
    empty = []
    try:
        for number, row in enumerate(row for row in wanted if row not in done):
            found = collections.Counter()
            for name, server in servers.items():
                deadline = min(run.stage_deadline, time.monotonic() + ROW_SECONDS)
                try:
                    for result in server.rows(row, deadline):
                        # Beside times of the row there are limits, versions and failures.
                        is_time = "failed" not in result and result["workload"].startswith(row)
                        found[name] += is_time
                        result.setdefault("peer", name)
                        run.emit(**{**result, "count": int(is_time)})
                except Cut:
                    if time.monotonic() >= run.stage_deadline:
                        raise
                    run.emit(count=0, peer=name, workload=row, failed=f"over {ROW_SECONDS} s")
            if found["nitinol"] == 0:
                empty.append(row)
            state = {"clocks": clocks()} if number % 10 == 0 else {}  # which takes a while to ask
            run.emit(count=0, row=row, lines=dict(found), **state)
    finally:
        for server in servers.values():
            server.close()
    if empty:
        raise Failed(f"no time of {', '.join(empty)[:500]}")


def training(run):
    """Two examples on the GPU and on the CPU, whose losses belong together."""
    needs_compiler(run)
    little = (
        "--steps 1 --compared 2 --length 1 --batch 2 --width 16 --heads 2 --blocks 1 --context 8"
    )
    much = "--steps 60 --compared 20 --length 40"
    examples = {
        "digits": ["--epochs", "1" if run.quick else "4", "--data", path_of("digits.csv")],
        "chargpt": [*(little if run.quick else much).split(), path_of("text.txt")],
    }
    apart = []
    for name, arguments in examples.items():
        losses = {}
        for device in ("cuda:0", "cpu:0"):
            file = os.path.join(run.scratch, f"{name}.json")
            if os.path.exists(file):
                os.remove(file)
            command = [path_of(name), "--device", device, "--json", file, *arguments]
            status = run.execute(command)
            if not os.path.exists(file):
                raise Failed(f"{name} on {device} ended with status {status}")
            with open(file, encoding="utf-8") as report:
                figures = json.load(report)
            kept = ("eager", "compiled", "training", "bit_identical", "accuracy")
            figures = {key: figures[key] for key in kept if key in figures}
            losses[device] = figures["compiled"]["loss"]
            run.emit(example=name, device=device, **figures)
            if not figures["bit_identical"]:
                apart.append(f"{name} on {device}: eager and compiled differ")
        difference = abs(losses["cuda:0"] - losses["cpu:0"]) / max(abs(losses["cpu:0"]), 1e-3)
        run.emit(count=0, example=name, relative_difference_of_losses=difference)
        if not difference <= 0.05:
            apart.append(f"{name}: losses {losses}")
    if apart:
        raise Failed("; ".join(apart))


def copies(run):
    """Batches from the host beside the steps that read them."""
    needs_compiler(run)
    quick = ["--quick"] if run.quick else []
    ours = [path_of("nitinol_bench"), "--serve", "--device", "cuda:0", "--threads", "1", *quick]
    server = Server(ours, run)
    try:
        for result in server.rows("copies", run.stage_deadline):
            if result.get("workload") == "copies":
                run.emit(**{**result, "count": int("failed" not in result)})
    finally:
        server.close()


def sanitized(run, kind):
    """The cases, and no timed rows, under compute-sanitizer."""
    sanitizer = tool("compute-sanitizer")
    if sanitizer is None:
        raise Skipped("there is no compute-sanitizer")
    summary = []

    def note(line):
        if "ERROR SUMMARY" in line or "RACECHECK SUMMARY" in line:
            summary.append(line.strip("= "))

    command = [sanitizer, "--tool", kind, "--error-exitcode", "9"]
    limit = "20" if run.quick else "400"
    arguments = ["--run", path_of("kernels.pack"), "--repetitions", "2", "--limit", limit]
    status = run.execute(command + kernels_command(run, *arguments), on_line=note)
    run.emit(count=0, summary=summary)
    if status != 0 or not summary:
        raise Failed(f"exit status {status}; {'; '.join(summary) or 'it says no summary'}")


def profile(run):
    """What each kernel of the packed rows takes of the GPU, by ncu."""
    profiler = tool("ncu")
    if profiler is None:
        raise Skipped("there is no ncu")
    rows, table, launches = [], [], 0

    def row_of(launch):
        for name, kernels in rows:
            if launch < kernels:
                return name
            launch -= kernels
        return None

    command = [profiler, "--csv", "--page", "raw", "--clock-control", "none"]
    command += ["--metrics", ",".join(PROFILED)]
    quick = ["--rows", "columns.32x128"] if run.quick else []
    command += kernels_command(run, "--time", path_of("kernels.pack"), "--once", *quick)
    lines = Lines(command, run.stage_deadline, run.log)
    try:
        for line in lines:
            result = parsed(line)
            if result is not None:
                rows.append((result["row"], result["kernels"]))
            elif line.startswith('"'):
                table.append(line)
                if len(table) < 3:  # names, and units
                    continue
                names, values = next(csv.reader([table[0]])), next(csv.reader([line]))
                found = dict(zip(names, values))
                figures = {name: found[key] for key, name in PROFILED.items() if key in found}
                run.emit(row=row_of(launches), kernel=found.get("Kernel Name"), **figures)
                launches += 1
            else:
                run.say("profile", line)
    finally:
        lines.close()
    if lines.process.returncode != 0:
        raise Failed(f"ncu ended with status {lines.process.returncode}")


STAGES = [  # name, seconds at most, results at least
    Stage("machine", 60, 2, machine),
    Stage("bits", 100, 500, bits),
    Stage("kernels", 60, 15, kernels),
    Stage("tests", 170, 400, tests),
    Stage("bench", 270, 100, bench),
    Stage("training", 90, 4, training),
    Stage("copies", 30, 3, copies),
    Stage("memcheck", 120, 300, lambda run: sanitized(run, "memcheck")),
    Stage("racecheck", 150, 300, lambda run: sanitized(run, "racecheck")),
    Stage("profile", 120, 15, profile),
]


def main():
    names = [stage.name for stage in STAGES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", help="for the results")
    parser.add_argument("--stages", type=lambda text: text.split(","), default=names)
    parser.add_argument("--rows", type=lambda text: text.split(","), default=[])
    parser.add_argument("--modes", help="of PyTorch: eager alone takes a tenth of the time")
    parser.add_argument("--seconds", type=float, default=570, help="for all stages together")
    parser.add_argument(
        "--limit",
        dest="limits",
        action="append",
        type=lambda text: text.split("="),
        default=[],
        metavar="STAGE=SECONDS",
    )
    parser.add_argument("--quick", action="store_true", help="little of each: whether it runs")
    parser.add_argument(
        "--continue",
        dest="done",
        action="append",
        default=[],
        metavar="RESULTS",
        help="leave out what these results have",
    )
    options = parser.parse_args()
    options.limits = {name: float(seconds) for name, seconds in options.limits}
    unknown = (set(options.stages) | set(options.limits)) - set(names)
    if unknown:
        parser.error(f"no stage {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    os.environ.pop("NITINOL_LOG", None)  # tests read the log
    run = Run(options)
    signal.signal(signal.SIGTERM, lambda *_: run.stop())
    finished = {line["stage"] for line in run.done if line.get("end") in ("passed", "skipped")}
    fine = True
    for stage in STAGES:
        if stage.name in options.stages and stage.name not in finished - {"machine"}:
            fine = run.run_stage(stage) and fine
            if not fine and stage.name == "machine":
                break
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
