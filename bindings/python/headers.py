"""Reads the functions and options structs that the library's public headers declare.

Not a parser of C++: it reads the way these headers are written, declaration after declaration at
the level of namespaces. What it cannot read is an error that names the file and the line, so that
nothing is left out in silence.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re


class Unreadable(Exception):
    """A declaration that is not understood."""


@dataclasses.dataclass
class Parameter:
    """Of a function, or a field of a struct."""

    type: str
    name: str
    default: str | None  # as C++ writes it; None if there is none
    doc: str = ""


@dataclasses.dataclass
class Function:
    name: str
    namespace: str
    result: str
    parameters: list[Parameter]
    doc: str
    place: str  # file:line
    is_template: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.namespace}::{self.name}"


@dataclasses.dataclass
class Struct:
    name: str
    body: list[tuple[int, str]]  # numbered lines
    path: str
    doc: str = ""

    @property
    def fields(self) -> list[Parameter]:
        return fields_of(without_structs(self.body)[0], self.path)

    @property
    def nested(self) -> dict[str, Struct]:
        found = without_structs(self.body)[1]
        return {name: Struct(name, body, self.path) for name, body in found.items()}

    def has(self, text: str) -> bool:
        """Whether there is a line of this code."""
        return any(text in line for _, line in self.body)

    @property
    def call(self) -> Function | None:
        """Its call operator."""
        return call_of(without_structs(self.body)[0], self.path)


@dataclasses.dataclass
class Class:
    """A class that is more than a struct, of which this much is read."""

    name: str
    base: str
    doc: str
    constructors: list[list[Parameter]]


@dataclasses.dataclass
class Enum:
    namespace: str
    values: list[str]


@dataclasses.dataclass
class Header:
    path: str
    notes: str  # what the comment at its top says of each function: after the first paragraph
    functions: list[Function]
    structs: dict[str, Struct]
    classes: dict[str, Class]
    aliases: dict[str, str]  # their comments
    enums: dict[str, Enum]


def text_of_comments(lines: list[str]) -> str:
    return "\n".join(re.sub(r"^\s*//+<? ?", "", line) for line in lines)


def split_at_commas(text: str) -> list[str]:
    """At those outside of brackets of any kind."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "<([{":
            depth += 1
        elif c in ">)]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def parameter_of(text: str, place: str) -> Parameter:
    found = re.fullmatch(r"([\w:<>, &*()]+?)\s*\b(\w+)\s*(?:=\s*(.+)|(\{\}))?", text)
    if found is None:
        raise Unreadable(f"{place}: cannot read the parameter `{text}`")
    type_name = re.sub(r"\s+", " ", found[1]).strip()
    return Parameter(type_name, found[2], found[3] or found[4])


def fields_of(body: list[tuple[int, str]], path: str) -> list[Parameter]:
    """Of a struct: `Tensor mean, variance;  ///< of each feature`. Comments of the next lines go on
    where they begin at `///<` too."""
    fields: list[Parameter] = []
    pending = ""
    for number, line in body:
        code, _, comment = line.partition("///<")
        code = re.sub(r"//.*", "", code).strip()
        if not code:
            if comment and fields:
                fields[-1].doc += " " + comment.strip()
            continue
        pending = f"{pending} {code}".strip()
        if not pending.endswith(";"):
            continue
        statement, pending = pending[:-1], ""
        place = f"{path}:{number}"
        statement = statement.removeprefix("[[no_unique_address]] ")
        if statement.startswith(("static constexpr", "friend", "using", "[[nodiscard]]")):
            continue
        first, *more = split_at_commas(statement)
        field = parameter_of(first, place)
        field.doc = comment.strip()
        fields.append(field)
        for other in more:
            also = parameter_of(f"{field.type} {other}", place)
            fields.append(dataclasses.replace(also, doc=field.doc))
    return fields


def without_structs(
    body: list[tuple[int, str]],
) -> tuple[list[tuple[int, str]], dict[str, list[tuple[int, str]]]]:
    """The lines that are no struct's within the struct, and those that are, by its name."""
    outside: list[tuple[int, str]] = []
    nested: dict[str, list[tuple[int, str]]] = {}
    name = ""
    for number, line in body:
        if found := re.fullmatch(r"\s*struct (\w+) \{", line):
            name = found[1]
            nested[name] = []
        elif name and line.strip() == "};":
            name = ""
        elif name:
            nested[name].append((number, line))
        else:
            outside.append((number, line))
    return outside, nested


function = re.compile(
    r"(?:\[\[[^\]]*\]\] )*(?:inline )?(?P<result>[\w:<>, *&]+?) (?P<name>operator\W+|\w+)"
    r"\((?P<parameters>.*)\)$",
    re.DOTALL,
)


def statements_of(body: list[tuple[int, str]]) -> list[tuple[int, str, str]]:
    """Number of the line, text and comment above it of each."""
    found: list[tuple[int, str, str]] = []
    comments: list[str] = []
    pending = ""
    for number, line in body:
        if not pending and line.strip().startswith("///"):
            comments.append(line)
            continue
        pending = f"{pending} {re.sub('//.*', '', line).strip()}".strip()
        if pending.endswith((";", "}")):
            found.append((number, pending, text_of_comments(comments)))
        if pending.endswith((";", "}", ":")) or not pending:
            pending, comments = "", []
    return found


def call_of(body: list[tuple[int, str]], path: str) -> Function | None:
    for number, text, doc in statements_of(body):
        call = re.fullmatch(r"\[\[nodiscard\]\] (.*) operator\(\)\((.*)\) const;", text)
        if call:
            place = f"{path}:{number}"
            parameters = [parameter_of(one, place) for one in split_at_commas(call[2])]
            return Function("operator()", "", call[1], parameters, doc, place)
    return None


class Reader:
    def __init__(self, root: pathlib.Path, path: str) -> None:
        self.path = path
        self.lines = (root / path).read_text(encoding="utf-8").splitlines()
        self.header = Header(path, self.notes(), [], {}, {}, {}, {})
        self.namespaces: list[str] = []

    @property
    def namespace(self) -> str:
        return "::".join(self.namespaces)

    def notes(self) -> str:
        top = []
        for line in self.lines:
            if not line.startswith("//"):
                break
            top.append(line)
        _, _, notes = text_of_comments(top).partition("\n\n")
        return notes.strip()

    def read(self) -> Header:
        doc: list[str] = []
        is_shared = False  # the declaration before had this comment, and no blank line came between
        chunk: list[tuple[int, str]] = []
        depth = 0
        for number, line in enumerate(self.lines, 1):
            stripped = line.strip()
            if not chunk:
                if stripped.startswith("///"):
                    if is_shared:
                        doc, is_shared = [], False
                    doc.append(stripped)
                    continue
                if not stripped or stripped.startswith(("//", "#")):
                    doc, is_shared = [], False
                    continue
                if found := re.fullmatch(r"namespace ([\w:]+) \{", stripped):
                    self.namespaces.append(found[1])
                    continue
                if re.match(r"\}  // namespace", stripped):
                    self.namespaces.pop()
                    continue
            chunk.append((number, line))
            code = re.sub(r"//.*", "", line)
            depth += code.count("{") - code.count("}") + code.count("(") - code.count(")")
            if depth == 0 and re.search(r"[;}]\s*$", code):
                self.declaration(chunk, text_of_comments(doc))
                chunk, is_shared = [], True
        if chunk:
            raise Unreadable(f"{self.path}:{chunk[0][0]}: the declaration does not end")
        return self.header

    def declaration(self, chunk: list[tuple[int, str]], doc: str) -> None:
        number = chunk[0][0]
        place = f"{self.path}:{number}"
        first = chunk[0][1].strip()
        if found := re.fullmatch(r"struct (\w+) \{", first):
            self.header.structs[found[1]] = Struct(found[1], chunk[1:-1], self.path, doc)
            return
        if found := re.fullmatch(r"class (\w+)(?: final)?(?: : public (\w+))? \{", first):
            name = found[1]
            pattern = rf"(?:explicit )?{name}\((.*)\)(?: : .*)?[;}}]"
            constructors = [
                [parameter_of(one, place) for one in split_at_commas(made[1])]
                for _, text, _ in statements_of(chunk[1:-1])
                if (made := re.fullmatch(pattern, text)) and text.startswith("explicit")
            ]
            self.header.classes[name] = Class(name, found[2] or "", doc, constructors)
            return
        if found := re.match(r"using (\w+) =", first):
            self.header.aliases[found[1]] = doc
            return
        if found := re.match(r"enum class (\w+)", first):
            code = " ".join(re.sub(r"//.*", "", line).strip() for _, line in chunk)
            values = re.findall(r"\w+", code[code.index("{") :]) if "{" in code else []
            self.header.enums[found[1]] = Enum(self.namespace, values)
            return
        if re.match(r"(class|struct|enum|using|concept|inline constexpr|extern template)\b", first):
            return
        code = " ".join(re.sub(r"//.*", "", line).strip() for _, line in chunk)
        is_template = code.startswith("template")
        if re.match(r"template <.*?> (struct std::|inline constexpr)", code):
            return  # traits
        if is_template:
            if re.match(r"template <class[^>]*> (concept|class)\b", code):
                return
            code = re.sub(r"^template <.*?> (?=\[\[|requires)", "", code)
            code = re.sub(r"^requires \w+(<.*?>)? (?=\[\[)", "", code)
        code = re.sub(r"\) \{.*\}$", ")", code) if code.endswith("}") else code.rstrip("; ")
        found = function.fullmatch(code)
        if found is None:
            raise Unreadable(f"{place}: cannot read `{code}`")
        if found["name"].startswith("operator"):
            return  # what Python's own operators do
        parameters = (
            []
            if is_template
            else [parameter_of(text, place) for text in split_at_commas(found["parameters"])]
        )
        self.header.functions.append(
            Function(
                found["name"],
                self.namespace,
                found["result"].strip(),
                parameters,
                doc,
                place,
                is_template,
            )
        )


def read_header(root: pathlib.Path, path: str) -> Header:
    return Reader(root, path).read()
