"""The code of README.md and of the pages for Python runs as it is written."""

import importlib.util
import math
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

import nitinol as nt
from nitinol import nn

ROOT = pathlib.Path(__file__).parents[3]
PAGES = [
    "README.md",
    "docs/python.md",
    "docs/debugging.md",
    "docs/data-loop.md",
    "docs/variable-lengths.md",
    "docs/mixed-precision.md",
    "docs/resuming.md",
    "docs/distributed.md",
    "docs/coming-from-jax.md",
    "docs/coming-from-keras.md",
]
_spec = importlib.util.spec_from_file_location(
    "coming_from", ROOT / "bindings/python/coming_from.py"
)
assert _spec and _spec.loader
coming_from = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(coming_from)
NAMES = coming_from.read()
ROWS = [row if len(row) == 5 else [*row, {}] for topic in NAMES["topics"] for row in topic["rows"]]


def blocks_of(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        # So many lines before it that errors name the page's own.
        yield "\n" * line + match.group(1)


@pytest.mark.parametrize("page", PAGES)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__page__"}
    blocks = list(blocks_of(page))
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_names_beside_those_of_others_exist():
    """In the tables of docs/coming-from.md that are written by hand: what it is in Python."""
    text = (ROOT / "docs/coming-from.md").read_text(encoding="utf-8")
    text = text.partition(coming_from.BEGIN)[0] + text.partition(coming_from.END)[2]
    columns = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    ours = [cells[4] for cells in columns if len(cells) == 7]
    ours += [cells[2] for cells in columns if len(cells) == 4]
    names = re.findall(r"(?<![\w.])(nt|nn)\.([a-zA-Z_][\w.]*\w)", " ".join(ours))
    assert len(names) > 30 and len(ours) > 40
    for module, path in names:
        value = {"nt": nt, "nn": nn}[module]
        for part in path.split("."):
            value = getattr(value, part)


def test_names_of_numpy_and_pytorch_are_written_from_their_file():
    assert coming_from.page_with(coming_from.tables(NAMES)) == coming_from.PAGE.read_text("utf-8")
    libtorch = coming_from.page_with(coming_from.tables_of_libtorch(NAMES), coming_from.LIBTORCH)
    assert libtorch == coming_from.LIBTORCH.read_text("utf-8")
    firsts = [numpy or pytorch for numpy, pytorch, *_ in ROWS]
    assert len(set(firsts)) == len(ROWS) >= 150
    for numpy, _, python, cpp, options in ROWS:
        assert python and cpp and options.keys() <= {"note", "value", "same"}, python
        assert cpp != "not yet" or "not there yet" in options["note"], python
        assert "value" in options or numpy, python


def value_of(code, np, inputs):
    names = {"np": np, "nt": nt, "nn": nn, "math": math, **inputs}
    try:
        compiled = compile(code, code, "eval")
    except SyntaxError:
        exec(compile(code, code, "exec"), names)
        return names["x"]
    value = eval(compiled, names)
    return names["x"] if value is None else value


def assert_same(ours, theirs, np, shape_only=False):
    if isinstance(theirs, (tuple, list)) and isinstance(theirs[0], np.ndarray):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            assert_same(one, other, np)
    elif isinstance(theirs, np.dtype):
        assert np.dtype(ours) == theirs
    elif isinstance(theirs, np.random.Generator):
        assert isinstance(ours, nt.Generator)
    else:
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.shape == theirs.shape and ours.dtype.kind == theirs.dtype.kind
        if not shape_only:
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0] or row[1])
def test_what_stands_beside_a_name_gives_its_value(row, tmp_path, monkeypatch):
    np = pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones(3, np.float32))
    np.savez("x.npz", a=np.ones(3, np.float32))
    pixels = nt.ones((2, 2, 3), dtype=nt.uint8)
    try:
        nt.save_image("x.png", pixels)
    except nt.Error as error:  # a library without images
        if "image" in row[2]:
            pytest.skip(str(error))
    arrays = {name: np.asarray(value) for name, value in NAMES["inputs"].items()}
    arrays = {name: a.astype("f4") if a.dtype == "f8" else a for name, a in arrays.items()}
    tensors = {name: nt.asarray(array) for name, array in arrays.items()}
    numpy, _, python, _, options = row
    ours = value_of(python, np, tensors)
    theirs = value_of(options.get("value", numpy), np, arrays)
    assert_same(ours, theirs, np, options.get("same") == "shape")


def test_the_first_screen_says_for_whom_it_is_and_where_it_runs():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    screen = readme[: readme.index("## How fast")]
    assert screen.count("\n") < 60
    assert "**For whom.**" in screen
    where = " ".join(screen[screen.index("**Where.**") :].split())
    oldest = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert oldest
    python = f"Python {oldest[1]}"
    for platform in ("Linux on x86-64", "g++ 12", "clang 16", python, "glibc 2.35"):
        assert platform in where, platform
    dev = (ROOT / "dev").read_text(encoding="utf-8")
    for command in ("demo", "test"):
        assert f"\n    ./dev {command} " in screen
        assert f"\n  {command})" in dev
    programs = re.findall(r"^```python\n(.*?)^```$", screen, re.DOTALL | re.MULTILINE)
    assert all(program.count("\n") <= 15 for program in programs)
    fit, branch = programs
    names: dict[str, Any] = {}
    exec(fit, names)
    exec(branch, names)
    nt, square_roots = names["nt"], names["square_roots"]
    for limit in (2.0, 9.0, 4e4):
        x = nt.linspace(1.0, limit, 7)
        assert nt.max(nt.abs(square_roots(x) - nt.sqrt(x))).item() < 1e-3
    assert square_roots.explain()["signatures"][0]["tier"] == "compiled in segments"
    assert "NINJA_STATUS='[%p of %t" in dev  # how far a build is


def test_long_tables_are_not_in_readme():
    rows = re.compile(r"\bW\d")  # names of the bench
    assert not rows.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert rows.search((ROOT / "bench/README.md").read_text(encoding="utf-8"))


def test_readme_and_dev_say_the_same_of_the_first_build():
    words = "about four minutes on two cores"
    assert words in (ROOT / "README.md").read_text(encoding="utf-8")
    dev = (ROOT / "dev").read_text(encoding="utf-8")
    assert dev.count(words) == 2  # in its help, and when it starts


def test_code_for_the_processor_is_kept_on_disk(tmp_path, in_process, monkeypatch):
    """As README.md and docs/environment.md say."""
    kept = tmp_path / "kept"
    monkeypatch.setenv("NITINOL_CACHE", str(kept))
    for origin in ("generated", "from disk"):
        in_process(
            "import nitinol as nt\n"
            "f = nt.compile(lambda x: nt.tanh(x * 2) + 1)\n"
            "for _ in range(20): f(nt.ones((64,)))\n"
            "step = f.explain().data['signatures'][0]['steps'][0]\n"
            f"assert step['code'] in ('', '{origin}'), step\n"
        )
        assert list(kept.iterdir())
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "Code is kept on disk for other processes" in readme


def test_the_picture_and_table_of_speed_are_drawn_from_their_record(tmp_path):
    record, svg = ROOT / "bench/results/readme.json", tmp_path / "speed.svg"
    script = [sys.executable, str(ROOT / "bench/picture.py"), str(record), "--svg", str(svg)]
    table = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert svg.read_bytes() == (ROOT / "docs/speed.svg").read_bytes()
    assert table.count("\n") == 12
    assert table in (ROOT / "README.md").read_text(encoding="utf-8")
