"""Writes the pages of the reference: C++ and Python beside each other, as reStructuredText."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from typing import Any

from declarations import Declaration
from entries import OPERATORS, Entry, Page
from examples import Examples
from python_names import Name
from text import Links, escaped, indented, inline, is_list, literal, paragraphs

OF_KIND = {"struct": "struct", "class": "class", "enum": "enum-class", "typedef": "type",
           "variable": "var", "concept": "concept", "function": "function"}  # fmt: skip
# Pointers to functions and designated initialisers, which Sphinx's domain does not read.
UNPARSED = re.compile(r"\(\*\)|::\*\)|\{\.")


@dataclasses.dataclass
class Facts:
    """What a build of the library knows beside its declarations."""

    kinds: dict[str, str]  # of ops, by C++'s name
    results: dict[str, tuple[str, ...]]  # fields of what Python's functions give


def facts_of(package: Any) -> Facts:
    results = {
        name: tuple(value._fields)
        for name, value in vars(package._results).items()
        if hasattr(value, "_fields")
    }
    return Facts({name: kind for name, kind, _ in package._ext._all_ops()}, results)


def links_of(pages: list[Page]) -> tuple[Links, Links]:
    """What C++'s and Python's texts may name."""
    cpp: Links = {}
    python: Links = {}
    for page in pages:
        for entry in page.entries:
            for one in entry.cpp:
                short = one.name.removeprefix("nitinol::")
                is_function = one.kind == "function"
                if one.kind in ("variable", "concept") or one.last.startswith("operator"):
                    continue
                kind = "func" if is_function else "type"
                for word in {short, one.last}:
                    shown = f"{word}()" if is_function else word
                    cpp.setdefault(word, f":cpp:{kind}:`{shown} <{one.name}>`")
            for name in entry.python:
                role = {"function": "func", "class": "class", "exception": "exc"}.get(name.kind)
                for word in {name.short, name.name} if role else ():
                    shown = f"{word}()" if role == "func" else word
                    python.setdefault(word, f":py:{role}:`{shown} <{name.full}>`")
    return cpp, python


class Writer:
    def __init__(
        self, page: Page, facts: Facts, cpp: Links, python: Links, examples: Examples
    ) -> None:
        self.page, self.facts, self.cpp, self.python = page, facts, cpp, python
        self.examples = examples
        self.shared: set[str] = set()

    def text(self) -> str:
        lines = [":hide-toc:", "", f".. _reference-{self.page.name}:", "", self.page.title]
        lines += ["=" * len(self.page.title), "", *self.intro(), ""]
        lines += self.index()
        for header in [*self.page.headers, ""]:
            here = [entry for entry in self.page.entries if entry.header == header]
            if not here:
                continue
            title = self.title_of(header) if header else "In Python only"
            if title != self.page.title:
                lines += [title, "-" * len(title), ""]
            if header:
                lines += [".. rst-class:: header-path", "", f"``{header}``", ""]
            lines += self.said_of_all(here)
            for entry in here:
                lines += self.entry(entry)
        return "\n".join(lines) + "\n"

    def intro(self) -> list[str]:
        return [re.sub(r"\[([^\]]+)\]\(([\w/-]+)\)", r":doc:`\1 <\2>`", self.page.intro)]

    titles: dict[str, str] = {}

    def title_of(self, header: str) -> str:
        return self.titles[header]

    def index(self) -> list[str]:
        words = [f"`{entry.title} <#{entry.anchor}>`__" for entry in self.page.entries]
        return [".. rst-class:: names", "", " ".join(words), ""]

    def said_of_all(self, entries: list[Entry]) -> list[str]:
        """Paragraphs that many docstrings of a section have, once; name() leaves them out."""
        count: dict[str, int] = {}
        for entry in entries:
            for name in entry.python:
                for part in set(name.doc.split("\n\n")):
                    count[part] = count.get(part, 0) + 1
        self.shared = {
            part for part, n in count.items() if n >= 3 and not is_list(part.splitlines() or [""])
        }
        lines = []
        for part in count:
            if part in self.shared:
                lines += paragraphs(part, self.python)
        return lines

    # ---- an entry

    def entry(self, entry: Entry) -> list[str]:
        sides = []
        if entry.python:
            lines = [".. rst-class:: language", "", "Python", ""]
            for name in entry.python:
                lines += self.name(name)
            sides.append(lines)
        if entry.cpp:
            lines = [".. rst-class:: language", "", "C++", ""]
            lines += self.declarations(entry)
            sides.append(lines)
        body = [f".. rubric:: {escaped(entry.title)}", ""]
        pair = []
        for lines in sides:
            pair += [".. container:: side", "", *indented(lines)]
        body += [f".. container:: {'pair' if len(sides) == 2 else 'alone'}", "", *indented(pair)]
        body += self.facts_of(entry)
        body += self.examples.lines(entry)
        return [f".. container:: entry\n   :name: {entry.anchor}", "", *indented(body), ""]

    def facts_of(self, entry: Entry) -> list[str]:
        words = []
        kinds = {self.facts.kinds[o.last] for o in entry.cpp if o.last in self.facts.kinds
                 and o.name.count("::") == 1 and o.kind == "function"}  # fmt: skip
        if kinds:
            words.append(f"In graphs an op: {', '.join(sorted(kinds))}.")
        if gradient := self.examples.gradient(entry):
            words.append(gradient)
        return [".. rst-class:: facts", "", " ".join(words), ""] if words else []

    # ---- Python

    def name(self, name: Name) -> list[str]:
        if name.kind == "data":
            value = [f"   :value: {name.signature}"] if name.signature else []
            return [f".. py:data:: {name.full}", *value, ""]
        lines = [f".. py:{name.kind}:: {name.full}{name.signature}", ""]
        body: list[str] = []
        parts = [part for part in name.doc.split("\n\n") if part not in self.shared]
        doc = paragraphs("\n\n".join(parts), self.python)
        for part in sorted(set(re.findall(r"\w+", name.signature.rpartition("->")[2]))):
            if part in self.facts.results:
                doc.append(f"Gives {part}({', '.join(self.facts.results[part])}), a named tuple.\n")
        if name.bases:
            bases = ", ".join(self.python.get(base, f"``{base}``") for base in name.bases)
            doc += [f"Derived from {bases}.", ""]
        if name.other_names:
            others = ", ".join(f"``{other}``" for other in name.other_names)
            doc += [f"Also {others}.", ""]
        body += doc + self.members(name)
        lines += indented(body)
        # Of a class that would be two targets for each signature that has it.
        for other in name.other_names if name.kind == "function" else []:
            lines += [f".. py:{name.kind}:: {other}", "   :no-typesetting:", ""]
        return lines

    def members(self, name: Name) -> list[str]:
        lines, same = [], []
        for member in name.members:
            last = member.name.rpartition(".")[2]
            if name.name == "Tensor" and member.kind == "method" and last in self.python:
                first = (member.doc or "").partition("\n")[0]
                if first and member.signature.count("self") == 0 and self.is_function(last, first):
                    same.append(last)
                    continue
            doc = "" if member.doc == "Call self as a function." else member.text
            kind = member.kind
            if kind == "property":
                kind = [f"   :type: {member.signature}"] if member.signature else []
                lines += [f".. py:property:: {last}", *kind, ""]
            else:
                lines += [f".. py:method:: {last}{member.signature}", ""]
            lines += indented(paragraphs(doc, self.python))
        if same:
            lines += ["Methods that are the functions of these names, of this tensor:", ""]
            lines += [", ".join(self.python[last] for last in sorted(same)) + ".", ""]
            for last in same:
                lines += [f".. py:method:: {last}", "   :no-typesetting:", ""]
        return lines

    def is_function(self, name: str, first: str) -> bool:
        return self.first_lines.get(name, "") == first

    first_lines: dict[str, str] = {}

    # ---- C++

    def declarations(self, entry: Entry) -> list[str]:
        if entry.title == OPERATORS:
            code = [f"   {one.code}" for one in entry.cpp]
            return [".. code-block:: cpp", "", *code, ""]
        lines: list[str] = []
        last: tuple[str, str] | None = None
        for one in entry.cpp:
            namespace = one.name.rpartition("::")[0]
            if last and one.kind == "function" and last == (one.comment, one.name):
                at = max(i for i, line in enumerate(lines) if line.startswith(".. cpp:function::"))
                while lines[at + 1].startswith(" " * 8):
                    at += 1
                lines.insert(at + 1, " " * 18 + one.code)
                continue
            last = (one.comment, one.name)
            lines += [f".. cpp:namespace:: {namespace}", "", *self.declaration(one)]
        return lines

    def declaration(self, one: Declaration) -> list[str]:
        if UNPARSED.search(one.code):
            lines = [".. code-block:: cpp", "", f"   {one.code}", ""]
            return lines + paragraphs(one.comment, self.cpp)
        lines = [f".. cpp:{OF_KIND[one.kind]}:: {one.code}", ""]
        body = paragraphs(one.comment, self.cpp)
        fields = [member for member in one.members if member.kind in ("field", "value")]
        if fields:
            body += self.fields(fields)
        previous = None
        for member in one.members:
            if member.kind in ("field", "value"):
                continue
            if member.kind not in OF_KIND:
                continue
            if member.comment == previous and member.kind == "function":
                at = max(i for i, line in enumerate(body) if line.startswith(".. cpp:function::"))
                while body[at + 1].startswith(" " * 8):
                    at += 1
                body.insert(at + 1, " " * 18 + member.code)
                continue
            previous = member.comment if member.kind == "function" else None
            body += self.declaration(member)
        return lines + indented(body)

    def fields(self, fields: list[Declaration]) -> list[str]:
        is_enum = fields[0].kind == "value"
        if is_enum and not any(field.comment for field in fields):
            return [f"One of {', '.join(literal(f.last) for f in fields)}.", ""]
        if not is_enum and not any(field.comment for field in fields):
            codes = [f"   {self.code_of(field)};" for field in fields]
            return [".. code-block:: cpp", "", *codes, ""]
        lines = [".. list-table::", "   :class: fields", "   :widths: auto", ""]
        for field in fields:
            code = field.last if is_enum else self.code_of(field)
            words = inline(" ".join(field.comment.split()), self.cpp)
            lines += [f"   * - {literal(code)}", f"     - {words}".rstrip()]
        return [*lines, ""]

    def code_of(self, field: Declaration) -> str:
        code = f"{field.type} {field.last}".removeprefix("constexpr ")
        code = re.sub(r"< ", "<", re.sub(r" >", ">", code))
        return code + (f" = {field.default}" if field.default not in ("", "{}") else "")


def title_of(root: pathlib.Path, header: str) -> str:
    """The first sentence of its comment, without what stands in brackets."""
    lines = (root / header).read_text("utf-8").splitlines()
    comment = []
    for line in lines:
        if not line.startswith("// "):
            break
        comment.append(line.removeprefix("// "))
    words = re.sub(r"\s*\([^)]*\)(?=[\s.:;,]|$)", "", " ".join(comment))
    name, colon, rest = words.partition(": ")
    if colon and re.fullmatch(
        r"[\w<>.()]+(, [\w<>]+)*", name
    ):  # "Scalar: the run-time number; ..."
        return name
    return re.split(r"[.:;](?=\s|$)", words)[0]


def write_pages(root: pathlib.Path, out: pathlib.Path, pages: list[Page], facts: Facts,
                package: Any) -> None:  # fmt: skip
    cpp, python = links_of(pages)
    for page in pages:
        for entry in page.entries:
            for name in entry.python:
                for word in (name.name, *(o.rpartition(".")[2] for o in name.other_names)):
                    Writer.first_lines.setdefault(word, name.doc.partition("\n")[0])
        for header in page.headers:
            Writer.titles[header] = title_of(root, header)
    out.mkdir(parents=True, exist_ok=True)
    names = [page.name for page in pages]
    for page in pages:
        text = Writer(page, facts, cpp, python, Examples(page.name, package)).text()
        path = out / f"{page.name}.rst"
        if not path.exists() or path.read_text("utf-8") != text:  # Sphinx reads what is newer
            path.write_text(text, "utf-8")
    for path in out.glob("*.rst"):
        if path.stem not in (*names, "index"):
            path.unlink()
