"""Writes the names of NumPy and PyTorch beside ours into docs/coming-from.md, from coming_from.toml.

Usage: coming_from.py [--check]: with it nothing is written, and a page that is stale is an error.
"""

from __future__ import annotations

import pathlib
import sys
import tomllib
from typing import Any

FOLDER = pathlib.Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs/coming-from.md"
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


def page_with(written: str) -> str:
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return before + BEGIN + written + END + rest.partition(END)[2]


def main(arguments: list[str]) -> None:
    page = page_with(tables(read()))
    if arguments == ["--check"]:
        if page != PAGE.read_text("utf-8"):
            sys.exit(f"{PAGE} is stale: python {__file__}")
    elif arguments:
        sys.exit(__doc__)
    else:
        PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
