"""Short examples of the reference's entries, from examples.toml, each in Python and in C++ with what
both print. Tests run them: Python's in bindings/python/tests/test_site.py, C++'s in
tests/examples_test.cpp.

Usage: examples.py: with `nitinol` in reach; runs Python's and writes what they print into the file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import pathlib
import re
import sys
import tempfile
import tomllib
from typing import Any

FILE = pathlib.Path(__file__).resolve().parent / "examples.toml"
ROW = re.compile(r"(?m)^(\S+) = \['([^']*)', '([^']*)'(?:, '([^']*)')?\]$")
# Of which the examples are about something else than one function's result.
OTHER_PAGES = {
    "autograd",
    "compile",
    "devices",
    "dist",
    "dtypes",
    "files",
    "nn-distributed",
    "nn-optimizers",
    "random",
    "tensors",
}


@dataclasses.dataclass
class Example:
    page: str
    entry: str
    python: str
    cpp: str
    prints: str  # lines are separated by " | "


def statements(code: str) -> list[str]:
    """At each `; ` outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(code):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 and code.startswith("; ", i):
            parts.append(code[start:i])
            start = i + 2
    return [*parts, code[start:]]


def read() -> tuple[dict[str, list[str]], list[Example]]:
    """What x, y and so on are in Python and C++, and all examples."""
    data = tomllib.loads(FILE.read_text("utf-8"))
    inputs = data.pop("inputs")
    examples = [
        Example(page, entry, row[0], row[1], row[2] if len(row) > 2 else "")
        for page, rows in data.items()
        for entry, row in rows.items()
    ]
    return inputs, examples


def names_in(code: str) -> set[str]:
    return set(re.findall(r"(?<![\w.\"])[a-z]\w*(?![\w(\"])", code))


def uses(code: str, inputs: dict[str, list[str]]) -> list[str]:
    """Which inputs the code has, in their order; not those that it assigns itself."""
    own = {statement.partition(" = ")[0] for statement in statements(code) if " = " in statement}
    return [name for name in inputs if name in names_in(code) - own]


def run(code: str, names: dict[str, Any]) -> tuple[Any, str]:
    """The value of the last statement, and what was printed, it included."""
    *before, last = statements(code)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for statement in before:
            exec(statement, names)
        value = eval(last, names)
        if value is not None:
            print(value)
    return value, " | ".join(shown.getvalue().rstrip("\n").split("\n"))


def names_for(nt: Any, inputs: dict[str, list[str]]) -> dict[str, Any]:
    names: dict[str, Any] = {"nt": nt, "nn": nt.nn, "dist": nt.dist}
    for name, (code, *_) in inputs.items():
        names[name] = eval(code, names)
    return names


class Examples:
    """Those of one page."""

    def __init__(self, page: str, package: Any) -> None:
        self.nt, self.page = package, page
        self.inputs, every = read()
        self.of = {one.entry: one for one in every if one.page == page}

    def lines(self, entry: Any) -> list[str]:
        one = self.of.get(entry.title)
        if one is None:
            return []
        sides: list[str] = []
        for language, code, column in (("python", one.python, 0), ("cpp", one.cpp, 1)):
            if not code:
                continue
            end = ";" if language == "cpp" else ""
            given = [self.input(language, name, column) for name in uses(code, self.inputs)]
            rows = given + [part + end for part in statements(code)]
            rows[-1] = rows[-1].removesuffix(";")
            block = [f".. code-block:: {language}", "", *(f"   {row}" for row in rows), ""]
            sides += [".. container:: side", "", *(f"   {line}".rstrip() for line in block), ""]
        kind = "pair" if one.python and one.cpp else "alone"
        body = [f".. container:: {kind}", "", *(f"   {line}".rstrip() for line in sides), ""]
        if one.prints:
            body += [".. code-block:: text", "   :class: prints", ""]
            body += [*(f"   {row}" for row in one.prints.split(" | ")), ""]
        return [".. container:: example", "", *(f"   {line}".rstrip() for line in body), ""]

    def input(self, language: str, name: str, column: int) -> str:
        code = self.inputs[name][column]
        return f"{name} = {code}" if language == "python" else f"const Tensor {name} = {code};"

    def gradient(self, entry: Any) -> str:
        """Whether gradients flow through what the example computes."""
        one = self.of.get(entry.title)
        is_function = any(name.kind == "function" for name in entry.python)
        if one is None or not is_function or self.page in OTHER_PAGES:
            return ""
        code = one.python.removesuffix(".shape")
        if re.search(r"\.(?!values)[a-z_]+$", code):
            return ""  # of indices or counts beside it
        names = names_for(self.nt, self.inputs)
        given = [n for n in uses(one.python, self.inputs) if names[n].dtype != self.nt.bool]
        if not given:
            return ""
        for name in given:
            is_index = name == "classes"
            value = names[name] if is_index else self.nt.astype(names[name], self.nt.float32)
            names[name] = value if is_index else self.nt.parameter(value)
        try:
            value, _ = run(code, names)
        except (self.nt.Error, TypeError, ValueError, AttributeError):
            return ""  # it takes no floating numbers
        if not isinstance(value, self.nt.Tensor):
            return ""
        is_tracked = value.tracks_gradient
        return "Gradients flow through it." if is_tracked else "No gradients flow through it."


def write() -> None:
    import nitinol

    inputs, _ = read()

    def row_with(found: re.Match[str]) -> str:
        name, python, cpp, old = found.groups()
        if not python or name in inputs:
            return found[0]
        nitinol.manual_seed(0)
        try:
            _, printed = run(python, names_for(nitinol, inputs))
        except Exception as error:  # of any kind: it is named, with the row
            sys.exit(f"{name}: {python}: {error!r}")
        if "'" in printed:
            sys.exit(f"{name}: prints an apostrophe, which a row cannot hold: {printed}")
        return f"{name} = ['{python}', '{cpp}', '{printed}']"

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some write files
        text = ROW.sub(row_with, FILE.read_text("utf-8"))
    FILE.write_text(text, "utf-8")


if __name__ == "__main__":
    write()
