"""Writes the names of NumPy and PyTorch beside ours into docs/coming-from.md, and those of libtorch into
docs/coming-from-libtorch.md, from coming_from.toml.

Usage: coming_from.py [--check]: with it nothing is written, and a page that is stale is an error.
"""

from __future__ import annotations

import pathlib
import sys
import tomllib
from typing import Any

FOLDER = pathlib.Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs/coming-from.md"
LIBTORCH = PAGE.with_stem("coming-from-libtorch")
BEGIN = "<!-- Written by bindings/python/coming_from.py from coming_from.toml: edit that. -->\n"
END = "<!-- End of what is written. -->\n"
HEAD = "| NumPy | PyTorch | Nitinol, Python | Nitinol, C++ | |\n|---|---|---|---|---|\n"


def read() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "coming_from.toml").read_text("utf-8"))


def cell(code: str) -> str:
    if code in ("", "not yet"):
        return code or "–"
    return f"`{code}`".replace("|", r"\|")  # which would end the cell


def tables(data: dict[str, Any]) -> str:
    """All topics, each with its table."""
    text = ""
    for topic in data["topics"]:
        text += f"\n### {topic['title']}\n\n{HEAD}"
        for *code, options in (row if len(row) == 5 else [*row, {}] for row in topic["rows"]):
            note = options.get("note", "").replace("|", r"\|")
            text += f"| {' | '.join(map(cell, code))} | {note} |\n"
    return text + "\n"


def tables_of_libtorch(data: dict[str, Any]) -> str:
    text = ""
    for topic in data["libtorch"]:
        text += f"\n### {topic['title']}\n\n| libtorch | Nitinol | |\n|---|---|---|\n"
        for theirs, ours, note in topic["rows"]:
            text += f"| {cell(theirs)} | {cell(ours)} | {note} |\n"
    return text + "\n"


def page_with(written: str, page: pathlib.Path = PAGE) -> str:
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    return before + BEGIN + written + END + rest.partition(END)[2]


def main(arguments: list[str]) -> None:
    data = read()
    for page, written in ((PAGE, tables(data)), (LIBTORCH, tables_of_libtorch(data))):
        text = page_with(written, page)
        if arguments == ["--check"]:
            if text != page.read_text("utf-8"):
                sys.exit(f"{page} is stale: python {__file__}")
        elif arguments:
            sys.exit(__doc__)
        else:
            page.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
