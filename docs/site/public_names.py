"""The public names, told otherwise than by what writes their pages, so that the one checks the other:
Python's by what `dir` shows, C++'s by lines of the headers.
"""

from __future__ import annotations

import importlib
import pathlib
import re
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = ("nitinol", "nitinol.dist", "nitinol.nn", "nitinol.random", "nitinol.linalg")
NAMESPACES = ("nitinol", "nitinol::dist", "nitinol::nn")
# Classes have one entry, under the name that they call themselves.
CLASSES_ELSEWHERE = {"nitinol.random.Generator"}
DECLARED = re.compile(
    r"^(?:\[\[nodiscard\]\] )?(?:inline )?(?:const )?(?:void|bool|int|int64_t|double|uint64_t|auto|std::\w+(?:<[^;=()]*>)?|[A-Z]\w+)[ &]+(\w+)\("
    r"|^(?:class|struct|enum class) (\w+)(?: final)?(?: :.*)? ?\{"
)


def python_names() -> list[str]:
    names = []
    for module in MODULES:
        holder = importlib.import_module(module)
        for name in dir(holder):
            is_module = isinstance(getattr(holder, name), types.ModuleType)
            if not name.startswith("_") and not is_module:
                names.append(f"{module}.{name}")
    return [name for name in names if name not in CLASSES_ELSEWHERE]


def cpp_names() -> list[str]:
    """Of the headers on pages, at the level of namespaces."""
    from entries import Internal, read_subjects

    subjects = read_subjects()
    internal = Internal(subjects)
    names = []
    for page in subjects["pages"]:
        for header in page["headers"]:
            namespace = ""
            for line in (ROOT / header).read_text("utf-8").splitlines():
                if found := re.fullmatch(r"namespace ([\w:]+) \{", line):
                    namespace = found[1]
                elif namespace in NAMESPACES and (found := DECLARED.match(line)):
                    name = found[1] or found[2]
                    if not internal.is_name(name) and not any(
                        t.search(line) for t in internal.types
                    ):
                        names.append(f"{namespace}::{name}")
    return list(dict.fromkeys(names))


def all_names() -> list[str]:
    return python_names() + cpp_names()
