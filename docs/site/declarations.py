"""Reads what the public headers declare: its form from Doxygen's XML, its comments from the headers
themselves, since Doxygen takes `*` and `<` in them for markup.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ET

NAMESPACES = ("nitinol", "nitinol::dist", "nitinol::nn")  # others are internal
SETTINGS = """\
INPUT = {inputs}
STRIP_FROM_PATH = {root}
OUTPUT_DIRECTORY = {out}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
QUIET = YES
WARNINGS = NO
WARN_IF_UNDOCUMENTED = NO
MARKDOWN_SUPPORT = NO
"""


@dataclasses.dataclass
class Declaration:
    kind: str  # function, struct, class, enum, typedef, variable, concept; of members field, value
    name: str  # nitinol::nn::linear
    code: str  # as Sphinx reads it, without the namespace
    comment: str
    path: str
    line: int
    type: str = ""
    default: str = ""
    members: list[Declaration] = dataclasses.field(default_factory=list)

    @property
    def last(self) -> str:
        return self.name.rpartition("::")[2]

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def result(self) -> str:
        """The name of the type that a function gives, if it is one of ours."""
        return re.sub(r"[\w:]*::|[ &*]|const ", "", self.type)


def public_headers(root: pathlib.Path) -> list[str]:
    """nitinol.h and all that it includes."""
    found = ["nitinol.h"]
    for path in found:
        text = (root / path).read_text("utf-8")
        for included in re.findall(r'^#include "([\w/]+\.h)"', text, re.MULTILINE):
            if included not in found:
                found.append(included)
    return found


def run_doxygen(root: pathlib.Path, out: pathlib.Path, headers: list[str]) -> pathlib.Path:
    out.mkdir(parents=True, exist_ok=True)
    inputs = " ".join(f'"{root / header}"' for header in headers)
    settings = SETTINGS.format(inputs=inputs, root=f'"{root}"', out=f'"{out}"')
    # What it warns of are our comments, which are not read from here.
    done = subprocess.run(["doxygen", "-"], input=settings, text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"doxygen failed:\n{done.stderr}")
    return out / "xml"


# ---- comments


class Comments:
    """Those of the declarations of one header."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = ["", *lines]  # counted from 1

    def above(self, line: int, shares: bool) -> list[str]:
        """The comment that ends above this line; or, if it shares, where only declarations lie
        between, without a blank line, that which stands above them all."""
        i = line - 1
        while i > 0 and not self.lines[i].strip().startswith("///"):
            stripped = self.lines[i].strip()
            if stripped.startswith("// NOLINT"):
                i -= 1
                continue
            if not shares and not stripped.startswith(("template <", "requires ", "[[nodiscard]]")):
                return []
            if not stripped or stripped.endswith(("{", ":")) or stripped.startswith(("//", "#")):
                return []
            if stripped.endswith(";") and ")" not in stripped:  # a field
                return []
            i -= 1
        end = i
        while i > 0 and self.lines[i].strip().startswith("///"):
            i -= 1
        return [re.sub(r"^\s*///<? ?", "", text) for text in self.lines[i + 1 : end + 1]]

    def behind(self, line: int) -> list[str]:
        """`int x;  ///< what it is`, and the lines below that hold nothing but more of it."""
        found: list[str] = []
        for text in self.lines[line : line + 12]:
            code, mark, comment = text.partition("///<")
            goes_on = re.fullmatch(r"\s+//(?!/) ?(.*)", text)
            if found and not goes_on and not (mark and not code.strip()):
                break
            if mark or (found and goes_on):
                found.append((comment if mark else goes_on[1] if goes_on else "").strip())
            elif re.search(r"[;}]\s*$", code):
                break
        return found

    def own_above(self, line: int) -> list[str]:
        """Of a field: only what stands right above it."""
        above = self.lines[line - 1].strip()
        return self.above(line, False) if above.startswith("///") and "///<" not in above else []


@functools.cache
def comments_of(path: pathlib.Path) -> Comments:
    return Comments(path.read_text("utf-8").splitlines())


# ---- declarations


def text_of(element: ET.Element | None) -> str:
    text = "" if element is None else "".join(element.itertext())
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"\s*\[\[\w+\]\]\s*", "", text)


def template_of(element: ET.Element) -> str:
    parameters = []
    for parameter in element.findall("templateparamlist/param"):
        words = [text_of(parameter.find("type")), text_of(parameter.find("declname"))]
        default = text_of(parameter.find("defval"))
        text = " ".join(word for word in words if word).replace(" ...", "...")
        parameters.append(f"{text} = {default}" if default else text)
    if element.find("templateparamlist") is None:
        return ""
    text = f"template <{', '.join(parameters)}> "
    requires = text_of(element.find("requiresclause"))
    return f"{text}requires {requires} " if requires else text


def parameters_of(element: ET.Element) -> str:
    parts = []
    for parameter in element.findall("param"):
        kind = text_of(parameter.find("type"))
        if kind == "std::source_location":  # where the call is: nobody gives it
            continue
        name = text_of(parameter.find("declname")) + text_of(parameter.find("array"))
        default = text_of(parameter.find("defval"))
        text = f"{kind} {name}".strip()
        parts.append(f"{text} = {default}" if default else text)
    return f"({', '.join(parts)})"


class Reader:
    def __init__(self, root: pathlib.Path, xml: pathlib.Path) -> None:
        self.root, self.xml = root, xml
        self.found: list[Declaration] = []

    def read(self) -> list[Declaration]:
        index = ET.parse(self.xml / "index.xml").getroot()
        for entry in index.findall("compound"):
            kind, name = entry.get("kind"), entry.findtext("name") or ""
            if "<" in name or name.startswith(("std::", "fmt::")):
                continue  # a specialisation of a template
            if kind == "namespace" and name in NAMESPACES:
                self.namespace(self.compound(entry))
            elif kind in ("struct", "class", "concept"):
                if name.rpartition("::")[0] in NAMESPACES:
                    self.found.append(self.type(str(kind), self.compound(entry)))
        return sorted(self.found, key=lambda one: (one.path, one.line))

    def compound(self, entry: ET.Element) -> ET.Element:
        tree = ET.parse(self.xml / f"{entry.get('refid')}.xml").getroot()
        definition = tree.find("compounddef")
        assert definition is not None
        return definition

    def place_of(self, element: ET.Element) -> tuple[str, int]:
        location = element.find("location")
        assert location is not None
        path, line = location.get("declfile"), location.get("declline")
        if path is None or not path.endswith(".h"):
            path, line = location.get("file"), location.get("line")
        assert path and line
        return path, int(line)

    def comment_of(self, element: ET.Element, is_field: bool = False) -> str:
        path, line = self.place_of(element)
        comments = comments_of(self.root / path)
        if is_field:
            return "\n".join(comments.behind(line) or comments.own_above(line))
        is_function = element.get("kind") in ("function", "variable")
        above = comments.above(line, is_function)
        return "\n".join(above or (comments.behind(line) if is_function else []))

    def namespace(self, definition: ET.Element) -> None:
        for member in definition.iter("memberdef"):
            self.found.append(self.member(member, definition.findtext("compoundname") or ""))

    def member(self, element: ET.Element, scope: str, in_type: bool = False) -> Declaration:
        kind = str(element.get("kind"))
        name = element.findtext("name") or ""
        path, line = self.place_of(element)
        kind_of_type = text_of(element.find("type"))
        is_field = kind == "variable" and in_type
        default = text_of(element.find("initializer")).removeprefix("=").strip()
        comment = self.comment_of(element, is_field)
        made = Declaration(
            "field" if is_field else kind, f"{scope}::{name}", "", comment, path, line,
            kind_of_type, default,
        )  # fmt: skip
        if kind == "function":
            made.code = self.function(element, name, kind_of_type)
        elif kind == "enum":
            made.code = name
            for value in element.findall("enumvalue"):
                made.members.append(self.value(value, made))
        elif kind == "typedef":
            made.code = f"{name} = {kind_of_type}"
        else:
            words = [kind_of_type, name]
            made.code = " ".join(word for word in words if word)
        return made

    def value(self, element: ET.Element, enum: Declaration) -> Declaration:
        """Doxygen does not know their lines."""
        name = element.findtext("name") or ""
        comments = comments_of(self.root / enum.path)
        for line in range(enum.line, min(enum.line + 80, len(comments.lines))):
            if re.search(rf"\b{name}\b", comments.lines[line].partition("//")[0]):
                words = comments.behind(line) if "///<" in comments.lines[line] else []
                words = words or (comments.own_above(line) if line > enum.line else [])
                comment = "\n".join(words)
                return Declaration("value", f"{enum.name}::{name}", name, comment, enum.path, line)
        return Declaration("value", f"{enum.name}::{name}", name, "", enum.path, enum.line)

    def function(self, element: ET.Element, name: str, result: str) -> str:
        words = [template_of(element)]
        if element.get("explicit") == "yes" and not name.startswith("operator"):
            words.append("explicit ")
        if element.get("static") == "yes":
            words.append("static ")
        result = result.replace("friend ", "").replace("constexpr ", "")
        words.append(f"{result} " if result else "")
        arguments = text_of(element.find("argsstring"))
        end = arguments[arguments.rfind(")") + 1 :]
        const = " const" if re.match(r"\s*const\b", end) else ""
        words.append(f"{name}{parameters_of(element)}{const}")
        return "".join(words)

    def type(self, kind: str, definition: ET.Element) -> Declaration:
        name = definition.findtext("compoundname") or ""
        path, line = self.place_of(definition)
        last = name.rpartition("::")[2]
        bases = [b for b in definition.findall("basecompoundref") if "nitinol" in text_of(b)]
        shown = [b for b in bases if text_of(b).partition("<")[0].rpartition("::")[0] in NAMESPACES]
        base = "".join(f" : public {text_of(b)}" for b in shown)
        code = f"{template_of(definition)}{last}{base}"
        if kind == "concept":
            code = template_of(definition) + last
        made = Declaration(kind, name, code, self.comment_of(definition), path, line)
        for member in definition.iter("memberdef"):
            is_deleted = "=delete" in text_of(member.find("argsstring")).replace(" ", "")
            if member.get("prot") == "public" and member.get("kind") != "friend" and not is_deleted:
                one = self.member(member, name, in_type=True)
                if not one.last.startswith(("~", "@")):
                    made.members.append(one)
        for inner in definition.findall("innerclass"):
            if inner.get("prot") == "public" and "<" not in (inner.text or ""):
                tree = ET.parse(self.xml / f"{inner.get('refid')}.xml").getroot()
                part = tree.find("compounddef")
                assert part is not None
                made.members.append(self.type(str(part.get("kind")), part))
        made.members.sort(key=lambda one: one.line)
        for one in bases:  # what an internal class does for it
            if one not in shown and one.get("refid"):
                tree = ET.parse(self.xml / f"{one.get('refid')}.xml").getroot()
                part = tree.find("compounddef")
                assert part is not None
                base_type = self.type(str(part.get("kind")), part)
                known = {member.last for member in made.members} | {base_type.last}
                made.members += [m for m in base_type.members if m.last not in known]
        return made


def read_declarations(root: pathlib.Path, out: pathlib.Path) -> list[Declaration]:
    """All of the public headers that are in the namespaces for users, in their order there."""
    return Reader(root, run_doxygen(root, out, public_headers(root))).read()
