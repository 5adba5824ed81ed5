"""ctest's cuda.gpu: run_gpu.py on a small bundle, by the fake driver: that all stages do something, that a kill loses only
the rest, that a stage over its limit is cut, and that nothing passes which ran nothing."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

SOURCE = os.path.dirname(os.path.abspath(__file__))
STAGES = "machine bits kernels tests bench training copies memcheck racecheck profile".split()

SANITIZER = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift 2; done
"$@" || exit 9
echo "========= ERROR SUMMARY: 0 errors"
"""
WRONG_SANITIZER = """#!/bin/sh
echo "========= ERROR SUMMARY: $2"
[ "$2" = memcheck ] && exit 0  # having run nothing
shift 4
"$@"
exit 9  # having found something
"""
PROFILER = """#!/bin/sh
while [ "${1#*nitinol_gpu_kernels}" = "$1" ]; do shift; done
"$@" || exit 1
echo '"ID","Kernel Name","gpu__time_duration.sum","launch__registers_per_thread"'
echo '"","","nsecond","register/thread"'
echo '"0","entry0","1200","32"'
"""
# Examples of whose results something is wrong: $0 --device cuda:0 --json FILE ...
OTHER_LOSS = """#!/bin/sh
echo '{"compiled": {"loss": '${#2}.5'}, "bit_identical": true}' >"$4"
"""
OTHER_BITS = """#!/bin/sh
echo '{"compiled": {"loss": 1.5}, "bit_identical": false}' >"$4"
"""
SLEEPER = """#!/bin/sh
echo "starts"
exec sleep 30
"""


def write(path, text):
    if os.path.lexists(path):
        os.remove(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


class Bundle:
    """As ./dev gpu makes it, of links into the build folder."""

    def __init__(self, build, work):
        self.folder, self.tools = os.path.join(work, "bundle"), os.path.join(work, "tools")
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(self.folder)
        os.makedirs(self.tools)
        programs = ["tests/nitinol_gpu_kernels", "tests/nitinol_tests", "tests/fuzz_programs"]
        programs += ["nitinol_bench", "nitinol_warm", "examples/digits", "examples/chargpt"]
        for program in programs:
            os.symlink(os.path.join(build, program), self.path(os.path.basename(program)))
        for script in (
            "run_gpu.py",
            "torch_rows.py",
        ):  # copied: they look for the others beside them
            shutil.copy(os.path.join(SOURCE, script), self.folder)
        for name, file in (("digits.csv", "examples/digits/digits.csv"), ("text.txt", "README.md")):
            os.symlink(os.path.join(SOURCE, "../..", file), self.path(name))
        write(self.path("tests.filter"), "[#create_test]~[host],[#check_interval_test]~[host]\n")
        write(os.path.join(self.tools, "compute-sanitizer"), SANITIZER)
        write(os.path.join(self.tools, "ncu"), PROFILER)
        objects = os.path.join(work, "objects")
        with open(objects, "w", encoding="utf-8") as out:
            for name in glob.glob(os.path.join(build, "cuda/*/objects")):
                with open(name, encoding="utf-8") as file:
                    out.write(file.read())
        self.environment = {
            **os.environ,
            "NITINOL_CUDA_PATH": os.path.join(build, "tests/fake"),
            "NITINOL_FAKE_OBJECTS": objects,
            "PATH": self.tools + ":" + os.environ["PATH"],
            "TMPDIR": work,
            "NITINOL_CACHE": "0",
        }
        self.cases = os.path.join(build, "cuda/edges")
        self.pack(20)

    def path(self, name):
        return os.path.join(self.folder, name)

    def pack(self, limit):
        pack = self.path("kernels.pack")
        command = [self.path("nitinol_gpu_kernels"), "--pack", pack, "--cases", self.cases]
        command += ["--limit", str(limit), "--rows", "columns.32x128"]
        subprocess.run(command, env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def start(self, out, *arguments):
        command = [sys.executable, self.path("run_gpu.py"), self.out(out), "--quick", *arguments]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL)

    def run(self, out, *arguments):
        return self.start(out, *arguments).wait(), self.lines(out)

    def out(self, name):
        return os.path.join(os.path.dirname(self.folder), name)

    def lines(self, out):
        with open(os.path.join(self.out(out), "results.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def ends(lines):
    return {line["stage"]: line["end"] for line in lines if "end" in line}


def expect(condition, *what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def check_all(bundle):
    status, lines = bundle.run("all")
    expect(status == 0 and ends(lines) == dict.fromkeys(STAGES, "passed"), status, ends(lines))
    for stage in STAGES:
        counted = [line["counted"] for line in lines if line["stage"] == stage and "end" in line]
        results = [line for line in lines if line["stage"] == stage and line.get("count", 1) > 0]
        expect(counted[0] > 0 and results, stage, counted, results)
    bits = [line for line in lines if line["stage"] == "bits" and "repeated" in line]
    expect(bits[-1]["cases"] == 20 and bits[-1]["repeated"] > 0 and bits[-1]["differ"] == 0, bits)
    trained = {(line["example"], line["device"]) for line in lines if "compiled" in line}
    expect(len(trained) == 4, trained)
    peers = {line["peer"] for line in lines if line["stage"] == "bench" and "device_s" in line}
    expect(peers == {"nitinol", "torch"}, peers)
    profiled = [line for line in lines if line["stage"] == "profile" and "nanoseconds" in line]
    expect(profiled[0]["row"] == "columns.32x128" and profiled[0]["registers"] == "32", profiled)
    shown = table(os.path.join(bundle.out("all"), "results.jsonl"))
    for part in ("fake GPU", "0 differ", "W3.add4", "digits on cuda:0", "copies beside kernels"):
        expect(part in shown, part, shown)


def table(*arguments):
    command = [sys.executable, os.path.join(SOURCE, "table.py"), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def check_table(bundle):
    """What is below a goal, behind PyTorch, or something else than what PyTorch computes, says so."""

    def row(name, peer, mode, host, device, check):
        times = {"host_s": host * 1e-6, "device_s": device * 1e-6, "bound_s": 90e-6}
        return {
            "stage": "bench",
            "workload": name,
            "peer": peer,
            "mode": mode,
            "check": check,
            **times,
        }

    made = [
        {"stage": "machine", "device": "NVIDIA H100 80GB HBM3", "driver": 13000},
        {"stage": "tests", "tag": "conv", "ulp": 3.5, "limit": 64, "of": "float32[2]"},
        row("large.mean", "nitinol", "compiled", 2, 100, 0.5),
        row("large.mean", "torch", "compile", 5, 110, 0.5),
        row("large.softmax.f32.1024", "nitinol", "compiled", 2, 120, 0.5),
        row("large.softmax.f32.1024", "torch", "eager", 130, 100, 1.0),
        row("large.norm.f32.1024", "nitinol", "compiled", 130, 100, 0.5),
        row("large.norm.f32.1024", "torch", "eager", 5, 110, 0.5),
    ]
    file = bundle.out("made.jsonl")
    write(file, "\n".join(map(json.dumps, made)) + '\n{"stage": "be')  # cut off
    shown = table(file, "--keep", bundle.out("."))
    lines = {line.split()[0]: line for line in shown.splitlines() if line.startswith("large")}
    expect("3.5 ulp of 64" in shown, shown)
    expect(lines["large.mean"].split()[-1] == "1.10", lines)
    expect("1.08  below copy's share, OTHER VALUES" in lines["large.softmax.f32.1024"], lines)
    expect("0.85  slower than PyTorch" in lines["large.norm.f32.1024"], lines)  # as the host is
    with open(bundle.out("nvidia-h100-80gb-hbm3.jsonl"), encoding="utf-8") as kept:
        expect([json.loads(line) for line in kept] == made, "what was kept is something else")


def check_rows(bundle):
    """nitinol_bench has the rows that a GPU is asked for; of those named large, which no other test names."""
    sys.path.insert(0, bundle.folder)
    import run_gpu

    command = [
        bundle.path("nitinol_bench"),
        "--worker",
        "--quick",
        "--threads",
        "1",
        "--rows",
        "large",
    ]
    timed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    there = {json.loads(line)["workload"] for line in timed.splitlines()}
    asked = {row for row in run_gpu.ROWS if row.startswith("large.")}
    expect(len(asked) > 90 and asked <= there, asked - there)


def check_continue(bundle):
    """What passed is left out, but for the machine, which the others ask about."""
    earlier = os.path.join(bundle.out("all"), "results.jsonl")
    status, lines = bundle.run("rest", "--continue", earlier)
    expect(status == 0 and list(ends(lines)) == ["machine"], status, lines)
    # Of what was killed, what is left.
    stages = ("--stages", "machine,bits,tests,bench")
    _, lines = bundle.run("half", *stages, "--rows", "W3.add4")
    half = bundle.out("half.jsonl")
    left = [line for line in lines if "end" not in line or line["stage"] == "machine"]
    left = [line for line in left if "check_interval" not in line.get("tag", "")]
    write(half, "".join(json.dumps(line) + "\n" for line in left) + '{"stage": "be')
    status, lines = bundle.run("other", *stages, "--rows", "W3.add4,large.copy", "--continue", half)
    expect(status == 0 and ends(lines)["bits"] == "passed", status, ends(lines))
    expect({line["row"] for line in lines if "row" in line} == {"large.copy"}, lines)
    tags = [line["tag"] for line in lines if "tag" in line]
    expect(tags == ["[#check_interval_test]~[host]"], tags)
    stages = ("--stages", "machine,bench")
    status, lines = bundle.run("none", *stages, "--rows", "W3.add4", "--continue", half)
    expect(status == 0 and ends(lines)["bench"] == "passed", status, ends(lines))


def check_slow(bundle):
    """Cut at its limit, and the next stages run; killed in the middle, what was there is there."""
    tests = os.readlink(bundle.path("nitinol_tests"))
    write(bundle.path("nitinol_tests"), SLEEPER)
    begin = time.monotonic()
    stages = ("--stages", "machine,bits,tests,copies")
    status, lines = bundle.run("cut", *stages, "--limit", "tests=0.5")
    expected = {"machine": "passed", "bits": "passed", "tests": "cut", "copies": "passed"}
    expect(status != 0 and ends(lines) == expected, status, ends(lines))
    expect(time.monotonic() - begin < 60, "a stage went on after its limit")
    for kind in (signal.SIGKILL, signal.SIGTERM):
        out = kind.name
        process = bundle.start(out, *stages)
        log = os.path.join(bundle.out(out), "results.jsonl")
        deadline = time.monotonic() + 60
        while not os.path.exists(log) or '"stage": "bits", "end"' not in open(log).read():
            expect(
                time.monotonic() < deadline and process.poll() is None, "no bits within a minute"
            )
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(kind)
        expect(process.wait(timeout=20) != 0, "a killed run succeeded")
        lines, found = bundle.lines(out), ends(bundle.lines(out))
        expect(found["machine"] == found["bits"] == "passed", found)
        expect(any(line.get("cases") == 20 for line in lines), lines)
        expect("copies" not in found and found.get("tests") in (None, "killed"), found)
    expect(found.get("tests") == "killed", found)
    os.remove(bundle.path("nitinol_tests"))
    os.symlink(tests, bundle.path("nitinol_tests"))


def check_different(bundle):
    """Results with another sign are seen, in the cubins of two kernels, which are texts by the fake NVRTC."""
    with open(bundle.path("kernels.pack"), "rb") as file:
        parts = file.read().split(
            b"struct Arguments"
        )  # of the key and the cubin of a kernel in turn
    changed = 0
    for k in range(2, len(parts), 2):
        if changed < 2:
            parts[k], count = re.subn(rb"\] = (v\d+);", rb"] =-\1;", parts[k])
            changed += count > 0
    expect(changed == 2, "no kernels to change", len(parts))
    with open(bundle.path("kernels.pack"), "wb") as file:
        file.write(b"struct Arguments".join(parts))
    status, lines = bundle.run("different", "--stages", "machine,bits")
    different = [line for line in lines if "differs" in line]
    expect(status != 0 and ends(lines)["bits"] == "failed" and len(different) == 2, lines)
    expect(lines[-2]["cases"] == 20 and lines[-2]["differ"] == 2, lines)  # the others ran on


def check_nothing(bundle):
    """Nothing passes that did nothing, or whose program is not there."""
    write(os.path.join(bundle.tools, "compute-sanitizer"), WRONG_SANITIZER)
    status, lines = bundle.run("sanitizer", "--stages", "machine,memcheck,racecheck")
    expected = {"machine": "passed", "memcheck": "failed", "racecheck": "failed"}
    expect(status != 0 and ends(lines) == expected, status, lines)
    expect(lines[-1]["counted"] == 20, lines)
    write(bundle.path("digits"), OTHER_LOSS)
    write(bundle.path("chargpt"), OTHER_BITS)
    status, lines = bundle.run("training", "--stages", "machine,training")
    why = lines[-1]["why"]
    expect(status != 0 and ends(lines)["training"] == "failed" and "digits: losses" in why, lines)
    expect("chargpt on cuda:0: eager and compiled differ" in why, why)
    write(bundle.path("tests.filter"), "[#check_interval_test]~[host],[#no_such_test]\n")
    bundle.pack(0)
    os.remove(bundle.path("digits"))
    stages = "machine,bits,tests,bench,training,memcheck"
    status, lines = bundle.run("nothing", "--rows", "no.such.row", "--stages", stages)
    expected = {**dict.fromkeys(stages.split(","), "failed"), "machine": "passed"}
    expect(status != 0 and ends(lines) == expected, status, ends(lines))


def main():
    build, work = (os.path.abspath(path) for path in sys.argv[1:3])
    bundle = Bundle(build, work)
    checks = (check_all, check_table, check_rows, check_continue)
    checks += (check_slow, check_different, check_nothing)
    for check in checks:
        begin = time.monotonic()
        check(bundle)
        print(f"{check.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
