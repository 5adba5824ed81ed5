"""Builds the site: gathers its pages in <out>/source, writes the reference beside them from the
public headers and the Python package, and runs Sphinx, which makes <out>/html of them.

Usage: build.py <out> [--pages]: with it, the pages alone. `nitinol` must be in reach of Python, and
of --pages Doxygen of the system; Sphinx of this Python.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import entries
import reference

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
LINK = re.compile(r"(?<!\!)\[([^\]\n]+(?:\n[^\]\n]+)?)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(?m)(^```.*?^```$|`[^`\n]+`)", re.DOTALL)


def gathered() -> dict[str, pathlib.Path]:
    """The repository's pages that are the site's, by their path."""
    pages = {"README.md": ROOT / "README.md", "bench/README.md": ROOT / "bench/README.md"}
    for path in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md")]):
        pages[path.relative_to(ROOT).as_posix()] = path
    return pages


def with_links(text: str, page: str, pages: dict[str, pathlib.Path]) -> str:
    """Links to what is in the repository but no page become words and the place."""

    def link(found: re.Match[str]) -> str:
        words, target = found[1], found[2]
        path, _, _ = target.partition("#")
        if not path or re.match(r"\w+:", target):
            return found[0]
        place = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if place == "docs/decisions":
            return f"[{words}]({os.path.relpath('docs/decisions/index.md', os.path.dirname(page))})"
        if place in pages:
            return found[0]
        if not (ROOT / place).exists():
            raise entries.Misplaced(f"{page}: links to {target}, which is not there")
        return words if words.strip("`") in (place, path) else f"{words} (`{place}`)"

    parts = FENCE.split(text)
    parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def put(path: pathlib.Path, text: str) -> None:
    """Writes what changed: Sphinx reads what is newer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def write_reference(source: pathlib.Path, out: pathlib.Path) -> list[entries.Page]:
    package = importlib.import_module("nitinol")
    pages = entries.read_pages(ROOT, out / "doxygen")
    facts = reference.facts_of(package)
    reference.write_pages(ROOT, source / "reference", pages, facts, package)
    lines = ["# Reference", "", "Every public name of C++ and Python. C++ is in the namespace"]
    lines[-1] += (
        " `nitinol`, layers and what trains them in `nitinol::nn`, several processes in"
        " `nitinol::dist`; Python is `import nitinol as nt`"
    )
    lines += ["and `from nitinol import nn`. What examples print is written as Python prints it."]
    lines += ["", "| | |", "|---|---|"]
    for page in pages:
        count = len(page.entries)
        some = ", ".join(f"`{e.title}`" for e in page.entries[:6] if e.title != entries.OPERATORS)
        lines.append(f"| [{page.title}]({page.name}.rst) | {some} … ({count}) |")
    lines += ["", "```{toctree}", ":hidden:", "", *(page.name for page in pages), "```", ""]
    put(source / "reference/index.md", "\n".join(lines))
    return pages


def write_pages(out: pathlib.Path) -> list[entries.Page]:
    source = out / "source"
    pages = gathered()
    for name, path in pages.items():
        put(source / name, with_links(path.read_text("utf-8"), name, pages))
    decisions = [pathlib.Path(name).stem for name in pages if name.startswith("docs/decisions/")]
    text = "# Decisions\n\nWhat was asked, what was decided, and what follows.\n\n```{toctree}\n"
    put(source / "docs/decisions/index.md", text + "\n".join(decisions) + "\n```\n")
    put(source / "index.md", (FOLDER / "index.md").read_text("utf-8"))
    put(source / "conf.py", (FOLDER / "conf.py").read_text("utf-8"))
    put(source / "_static/style.css", (FOLDER / "style.css").read_text("utf-8"))
    for image in (*(ROOT / "docs").glob("*.svg"), *(ROOT / "docs").glob("*.png")):
        shutil.copy(image, source / "docs")
    known = {source / name for name in pages} | {source / "docs/decisions/index.md"}
    for path in source.glob("docs/**/*.md"):
        if path not in known:
            path.unlink()
    return write_reference(source, out)


def main(arguments: list[str]) -> None:
    out = pathlib.Path(arguments[0]).resolve()
    try:
        write_pages(out)
    except entries.Misplaced as error:
        sys.exit(f"{error}\nbuild.py: no site is built")
    if arguments[1:] == ["--pages"]:
        return
    # -a: the list of all pages is on each of them.
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "2", "-a"]
    done = subprocess.run([*sphinx, "-d", out / "doctrees", out / "source", out / "html"])
    sys.exit(done.returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
