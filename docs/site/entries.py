"""Which names stand together: one entry of the reference has a function's overloads, or a class with
its factory and options, in C++ and Python.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import tomllib
from typing import Any

from declarations import Declaration, read_declarations
from python_names import Name, read_names

FOLDER = pathlib.Path(__file__).parent
OPERATORS = "Operators"


class Misplaced(Exception):
    """A name that is on no page, or without a comment."""


@dataclasses.dataclass
class Entry:
    title: str
    header: str
    cpp: list[Declaration] = dataclasses.field(default_factory=list)
    python: list[Name] = dataclasses.field(default_factory=list)

    @property
    def anchor(self) -> str:
        words = self.title
        if self.title == OPERATORS:  # one for each header
            words += "-" + pathlib.Path(self.header).stem
        return "entry-" + re.sub(r"[\W_]+", "-", words).strip("-").lower()


@dataclasses.dataclass
class Page:
    name: str
    title: str
    intro: str
    headers: list[str]
    python: list[str]
    entries: list[Entry] = dataclasses.field(default_factory=list)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def read_subjects() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "subjects.toml").read_text("utf-8"))


class Internal:
    def __init__(self, subjects: dict[str, Any]) -> None:
        self.headers = set(subjects["internal_headers"])
        self.patterns = [re.compile(name) for name in subjects["internal_names"]]
        self.types = [re.compile(rf"\b{name}\b") for name in subjects["internal_types"]]
        self.used: set[str] = set()

    def is_name(self, *names: str) -> bool:
        for pattern in self.patterns:
            if any(pattern.fullmatch(name) for name in names):
                self.used.add(pattern.pattern)
                return True
        return False

    def has_type(self, one: Declaration) -> bool:
        """Whether it is about a type that is internal, or writes to a stream as anything does."""
        return one.kind == "function" and any(type.search(one.code) for type in self.types)

    def without_members(self, one: Declaration) -> Declaration:
        """A type without its internal members."""
        members = [
            self.without_members(member)
            for member in one.members
            if not self.is_name(f"{one.last}::{member.last}") and not self.has_type(member)
        ]
        return dataclasses.replace(one, members=members)


def pages_of(
    subjects: dict[str, Any], declared: list[Declaration], names: list[Name]
) -> list[Page]:
    internal = Internal(subjects)
    pages = [
        Page(one["name"], one["title"], one["intro"], one["headers"], one.get("python", []))
        for one in subjects["pages"]
    ]
    page_of = {header: page for page in pages for header in page.headers}
    wrong = sorted({
        f"{one.path}: is on no page of docs/site/subjects.toml, nor internal"
        for one in declared if one.path not in page_of and one.path not in internal.headers
    })  # fmt: skip
    present = {one.path for one in declared}
    wrong += [f"{header}: declares nothing any more" for header in page_of if header not in present]
    kept = [
        internal.without_members(one)
        for one in declared
        if one.path in page_of and not internal.is_name(one.last) and not internal.has_type(one)
    ]
    for page in pages:
        page.entries = entries_of([one for one in kept if one.path in page.headers], page)
    wrong += without_comments(pages)
    wrong += place_python(subjects, pages, names)
    for page in pages:  # what a header is about before its parts
        order = [*page.headers, ""]
        page.entries.sort(key=lambda entry: (order.index(entry.header), not entry.python))
    unused = [p.pattern for p in internal.patterns if p.pattern not in internal.used]
    wrong += [f"subjects.toml: nothing is called {name} any more" for name in unused]
    if wrong:
        raise Misplaced("\n".join(wrong))
    return pages


def entries_of(declared: list[Declaration], page: Page) -> list[Entry]:
    declared = sorted(declared, key=lambda one: (page.headers.index(one.path), one.line))
    entries: dict[str, Entry] = {}
    types = {one.name for one in declared if one.kind in ("struct", "class")}
    options = [one for one in declared if is_options(one)]
    for one in declared:
        if one in options:
            continue
        title = one.last
        if title.startswith("operator"):
            title = OPERATORS
        scope = one.name.rpartition("::")[0]
        made = f"{scope}::{one.result}"
        if one.kind == "function" and made in types and snake(one.result) == one.last:
            title = one.result
        # Sphinx does not tell anchors apart by case; `ellipsis` is of the type Ellipsis.
        key = f"{scope}::{title.lower()} {one.path if title == OPERATORS else ''}"
        if key not in entries:
            entries[key] = Entry(title, one.path)
        entries[key].cpp.append(one)
    for one in options:  # beside what takes them first
        takers = [
            entry
            for entry in entries.values()
            if any(re.search(rf"\b{one.last}\b", code_of(part)) for part in entry.cpp)
        ]
        if not takers:
            raise Misplaced(f"{one.place}: nothing on the page takes {one.last}")
        takers[0].cpp.append(one)
    return list(entries.values())


def code_of(one: Declaration) -> str:
    return " ".join([one.code, one.type, *(code_of(member) for member in one.members)])


def is_options(one: Declaration) -> bool:
    return one.kind == "struct" and one.last.endswith(("Options", "Inputs"))


def without_comments(pages: list[Page]) -> list[str]:
    wrong = []
    for page in pages:
        for entry in page.entries:
            if entry.title == OPERATORS or any(one.comment for one in entry.cpp):
                continue  # a factory, or options, need none beside the class
            wrong += [f"{one.place}: {one.name} is public and has no comment" for one in entry.cpp]
    return wrong


def place_python(subjects: dict[str, Any], pages: list[Page], names: list[Name]) -> list[str]:
    """Puts each name of Python beside C++'s."""
    by_cpp: dict[str, Entry] = {}
    for page in pages:
        for entry in page.entries:
            for one in entry.cpp:
                by_cpp.setdefault(one.name, entry)
    pages_by_python = {name: page for page in pages for name in page.python}
    wrong = []
    for name in names:
        others = [name.name, *(other.rpartition(".")[2] for other in name.other_names)]
        is_apart = name.module in ("nitinol.dist", "nitinol.nn")
        space = name.module.replace(".", "::") + "::" if is_apart else "nitinol::"
        last = name.cpp.rpartition("::")[2]
        tried = [name.cpp, space + last, *(space + other for other in others)]
        if name.short in subjects["beside"]:
            tried = ["nitinol::" + subjects["beside"][name.short]]
        entry = next((by_cpp[cpp] for cpp in tried if cpp in by_cpp), None)
        if name.short in pages_by_python:
            page = pages_by_python.pop(name.short)
            same = next((e for e in page.entries if not e.cpp and e.title == name.name), None)
            entry = same or Entry(name.name, "")
            if same is None:
                page.entries.append(entry)
        if entry is None:
            wrong.append(f"{name.full}: is on no page of docs/site/subjects.toml")
            continue
        entry.python.append(name)
        if not name.doc and name.kind in ("function", "class", "exception"):
            wrong.append(f"{name.full} is public and has no docstring")
        for member in name.members:
            if not member.text and not member.name.endswith(
                "__call__"
            ):  # the class says what it does
                wrong.append(f"{member.full} is public and has no docstring")
    wrong += [f"subjects.toml: {name} is no name of Python's" for name in pages_by_python]
    for page in pages:
        for (
            entry
        ) in page.entries:  # a function with the struct that it gives, not a class with its factory
            functions = [one.last for one in entry.cpp if one.kind == "function"]
            if entry.python and entry.python[0].kind == "function" and entry.title not in functions:
                entry.title = next((f for f in functions if f == snake(entry.title)), entry.title)
    return wrong


def read_pages(root: pathlib.Path, out: pathlib.Path) -> list[Page]:
    return pages_of(read_subjects(), read_declarations(root, out), read_names())
