"""The examples end with the same parameters as the C++ programs beside them, bit for bit."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
# Where the C++ programs are: set by the build.
PROGRAMS = os.environ.get("NITINOL_EXAMPLES")

# Their arguments, what they save, and how many times they say that a step ran by plans.
CASES = {
    "digits": (["--epochs", "3"], [""], 1),
    "digits cnn": (["--epochs", "1", "--model", "cnn"], [""], 1),
    "keras_vs_torch": (["--epochs", "6"], [".small", ".normalised", ".recurrent"], 3),
    "chargpt": (["--steps", "12", "--compared", "6", "--length", "5"], [""], 1),
    "models": (
        ["--small", "--calls", "5", "--length", "6"],
        [".resnet18", ".resnet50", ".vit", ".gpt2", ".unet", ".tagger", ".vae"],
        15,
    ),
}


# Runs a script where NumPy is not: the package needs nothing but Python.
WITHOUT_NUMPY = """
import os, runpy, sys
sys.modules["numpy"] = None
del sys.argv[0]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def found(pattern, text):
    match = re.search(pattern, text)
    assert match, text
    return match


def curves_in(folder):
    """The losses of each run that --log has written."""
    return {
        path.parent.name: [json.loads(line)["loss"] for line in path.read_text().splitlines()]
        for path in pathlib.Path(folder).rglob("metrics.jsonl")
    }


@pytest.mark.parametrize("case", CASES)
def test_same_parameters_as_in_cpp(case, tmp_path):
    name = case.split()[0]
    arguments, suffixes, runs = CASES[case]
    arguments = [*arguments, "--threads", "1"]
    if name == "chargpt":
        arguments.append(str(ROOT / "docs" / "threads.md"))
    ours, theirs = tmp_path / "python", tmp_path / "cpp"
    script = ROOT / "examples" / name / f"{name}.py"

    def saving(to):
        log = [] if name == "keras_vs_torch" else ["--log", f"{to}.log"]
        return [*arguments, "--save", str(to), *log]

    output = run([sys.executable, "-c", WITHOUT_NUMPY, str(script), *saving(ours)])
    assert "bit-identical: yes" in output or name == "keras_vs_torch"
    # Both ways have the same bits, so these do not tell whether anything was compiled.
    plans = re.findall(r"(\d+)(?: of \d+)? by plans|(\d+) of \d+ ", output)
    assert len(plans) == runs and all(int(a or b) > 0 for a, b in plans), output
    if not PROGRAMS:
        pytest.skip("the C++ programs are not built (NITINOL_EXAMPLES)")
    run([os.path.join(PROGRAMS, name), *saving(theirs)])
    assert curves_in(f"{ours}.log") == curves_in(f"{theirs}.log")
    assert name == "keras_vs_torch" or len(curves_in(f"{ours}.log")) >= 2 * len(suffixes)
    for suffix in suffixes:
        a = pathlib.Path(f"{ours}{suffix}").read_bytes()
        b = pathlib.Path(f"{theirs}{suffix}").read_bytes()
        assert len(a) > 1000 and a == b


@pytest.mark.parametrize("name", ("digits", "chargpt"))
def test_processes_that_share_each_batch_end_where_one_does(name, mpirun, tmp_path):
    arguments = [*CASES[name][0], "--threads", "1", "--data-parallel"]
    if name == "chargpt":
        arguments.append(str(ROOT / "docs" / "threads.md"))
    commands = {"python": [sys.executable, str(ROOT / "examples" / name / f"{name}.py")]}
    if PROGRAMS:
        commands["cpp"] = [os.path.join(PROGRAMS, name)]
    losses = {}
    for language, command in commands.items():
        for ranks in (1, 2):
            saved = str(tmp_path / f"{language}.{ranks}")
            done = mpirun(ranks, [*command, *arguments, "--save", saved])
            assert done.returncode == 0 and "bit-identical: yes" in done.stdout, done.stdout
            # Once: rank 0 alone prints.
            ((count, loss),) = re.findall(r"^ranks: (\d+), the last loss: (.*)$", done.stdout, re.M)
            assert int(count) == ranks
            losses[language, ranks] = float(loss)
    for language in commands:
        assert abs(losses[language, 1] - losses[language, 2]) < 1e-5, losses
        # In other sums the bits differ: else no rank had a share.
        one, two = ((tmp_path / f"{language}.{n}").read_bytes() for n in (1, 2))
        assert len(one) == len(two) > 1000 and one != two
        assert two == (tmp_path / "python.2").read_bytes()


def test_the_solver_runs_in_segments_with_the_same_result_as_in_cpp():
    arguments = ["--size", "24", "--until", "12", "--threads", "1"]
    script = ROOT / "examples" / "ode" / "ode.py"
    output = run([sys.executable, "-c", WITHOUT_NUMPY, str(script), *arguments])
    assert "bit-identical: yes" in output
    assert re.search(r"by item\(\) at .*ode.py|item\(\) at ode.py:\d+", output), output
    (matched, ops) = found(r"segments: (\d+) of (\d+) ops left to plans", output).groups()
    assert int(matched) > int(ops) / 3
    if not PROGRAMS:
        pytest.skip("the C++ programs are not built (NITINOL_EXAMPLES)")
    theirs = run([os.path.join(PROGRAMS, "ode"), *arguments])
    mean = r"mean of v ([\d.]+)"
    assert found(mean, output).group(1) == found(mean, theirs).group(1)
