"""What type checkers know of the package: a program of a user, the examples, the code of the pages, these tests."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from test_docs import PAGES, ROOT, blocks_of

import nitinol as nt

PACKAGE = pathlib.Path(nt.__file__).parent
# Where a checker does not look by itself: not installed, but in a build folder.
PLACE = {} if PACKAGE.parent.name == "site-packages" else {"MYPYPATH": str(PACKAGE.parent)}
# pyright with all that it needs, beside this Python; or whichever there is.
PYRIGHT = shutil.which("basedpyright", path=pathlib.Path(sys.executable).parent) or (
    shutil.which("pyright") or shutil.which("basedpyright")
)
HAS_MYPY = importlib.util.find_spec("mypy") is not None


# What Python's functions of these names call, which alone have types.
VARIADIC = {n for n in vars(nt._variadic) if getattr(nt._variadic, n) is getattr(nt, n, 0)}


def test_stubs_name_what_there_is():
    stub = (PACKAGE / "_ext" / "__init__.pyi").read_text()
    for name, value in vars(nt._ext).items():
        if name in ("dist", "nn", "random", *VARIADIC) or name.startswith("_"):
            continue
        kinds = (f"def {name}(", f"class {name}", f"{name}: ", f"{name} = ")
        assert any(kind in stub for kind in kinds), name
    assert "def explain(self) -> Explanation" in stub
    assert "    def sum(self, axis" in stub


def test_the_typed_program_runs(in_process):
    path = str(ROOT / "bindings/python/tests/typed_program.py")
    done = in_process(f"import runpy; runpy.run_path({path!r}, run_name='__main__')")
    assert 0 < float(done.stdout) < 3  # its last loss


@pytest.fixture
def programs(tmp_path):
    """Copies, in a folder of their own, of what is checked: {name: whether it says all its types}."""
    typed = [ROOT / "bindings/python/tests/typed_program.py", *ROOT.glob("examples/*/*.py")]
    for path in typed:
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for page in PAGES:  # at the page's own lines
        lines = [""] * 1000
        for block in blocks_of(page):
            for number, line in enumerate(block.splitlines()):
                if line:
                    lines[number] = line
        name = "page_" + pathlib.Path(page).stem.lower()
        (tmp_path / f"{name}.py").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 12 + len(PAGES)
    return tmp_path


def run(command, folder):
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, timeout=300, env=os.environ | PLACE
    )
    assert done.returncode == 0, done.stdout + done.stderr


# Functions of pages and tests are written without types, and the package's own of C++ give Any.
MYPY = """
[mypy]
strict = True
[mypy-{untyped}]
allow_untyped_defs = True
allow_untyped_calls = True
allow_untyped_decorators = True
[mypy-nitinol.*]
warn_return_any = False
"""


@pytest.mark.skipif(not HAS_MYPY, reason="mypy is not installed")
def test_mypy_has_no_objection(programs):
    pages = ",".join(path.stem for path in programs.glob("page_*"))
    (programs / "mypy.ini").write_text(MYPY.format(untyped=pages))
    run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "."], programs)
    run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "-p", "nitinol"], programs)


@pytest.mark.skipif(not HAS_MYPY, reason="mypy is not installed")
def test_the_tests_have_types(tmp_path):
    folder, settings = pathlib.Path(__file__).parent, tmp_path / "mypy.ini"
    tests = sorted(folder.glob("*.py"))
    settings.write_text(MYPY.format(untyped=",".join(path.stem for path in tests)))
    command = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull]
    run([*command, "--config-file", str(settings), *(path.name for path in tests)], folder)


@pytest.mark.skipif(PYRIGHT is None, reason="neither pyright nor basedpyright is installed")
def test_pyright_has_no_objection(programs):
    pages = [path.name for path in programs.glob("page_*")]
    settings = {"include": ["."], "exclude": pages, "extraPaths": [str(PACKAGE.parent)]}
    for changed in ({"typeCheckingMode": "strict"}, {"typeCheckingMode": "basic", "exclude": []}):
        (programs / "pyrightconfig.json").write_text(json.dumps(settings | changed))
        run([PYRIGHT, "--pythonpath", sys.executable], programs)


@pytest.mark.skipif(PYRIGHT is None, reason="neither pyright nor basedpyright is installed")
def test_all_types_are_known():
    assert PYRIGHT
    done = subprocess.run(
        [
            PYRIGHT,
            "--pythonpath",
            sys.executable,
            "--verifytypes",
            "nitinol",
            "--ignoreexternal",
            "--outputjson",
        ],
        capture_output=True,
        text=True,
        cwd=PACKAGE.parent,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
    )
    report = json.loads(done.stdout)["typeCompleteness"]
    assert report["completenessScore"] >= 0.95, report["exportedSymbolCounts"]
