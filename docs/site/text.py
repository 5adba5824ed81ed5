"""Comments and docstrings as reStructuredText."""

from __future__ import annotations

import re
import textwrap

SPECIAL = re.compile(r"([\\*`|_<>])")
# What stands for a name where a text says `name` or name().
Links = dict[str, str]
WORD = re.compile(r"`([^`\n]+)`|(?<![\w.:`])((?:nitinol::|nn::|nn\.)*[A-Za-z_]\w*)\(\)(?!\w)")


def escaped(text: str) -> str:
    # With a colon, `file:line` would be an address.
    return re.sub(r"(?<=\w):(?=\w)", r"\:", SPECIAL.sub(r"\\\1", text))


def literal(code: str) -> str:
    """An inline literal; one that reStructuredText has no form for is plain."""
    if "`" in code or code != code.strip() or "\\" in code:
        return escaped(code)
    return f"``{code}``"


# Where a definition is: of no use to who reads the declaration here.
SOURCE = re.compile(r"\s*\((?:\w+/)+\w+\.(?:cpp|h)[^()]*\)")


def inline(text: str, links: Links) -> str:
    out, at = "", 0
    text = SOURCE.sub("", text)
    for found in WORD.finditer(text):
        before = text[at : found.start()]
        code = found[1] or f"{found[2]}()"
        name = code.removesuffix("()").removeprefix("nitinol::")
        link = links.get(name)
        out += escaped(before)
        if out and not re.search(r"[\s(\[\"']$", out):
            out += "\\ "
        out += link or literal(code)
        if re.match(r"[\w]", text[found.end() :]):
            out += "\\ "
        at = found.end()
    return out + escaped(text[at:])


ITEM = re.compile(r"`?[a-z]\w*`?(, `?\w+`?)*: \S")


def is_list(lines: list[str]) -> bool:
    """`name: what it is`, one below the other."""
    return bool(ITEM.match(lines[0])) and all(ITEM.match(x) or x.startswith(" ") for x in lines)


def paragraphs(text: str, links: Links) -> list[str]:
    """Each as lines of reStructuredText, with a blank one at its end."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", textwrap.dedent(text).strip("\n")):
        rows = block.splitlines()
        if not rows:
            continue
        if all(row.startswith("    ") for row in rows):  # code
            lines += ["::", "", *(f"   {row[4:]}" for row in rows), ""]
        elif rows[0].lstrip().startswith("- "):
            for item in re.split(r"\n\s*- ", "\n" + block)[1:]:
                lines.append(f"- {inline(' '.join(item.split()), links)}")
            lines.append("")
        elif is_list(rows):
            items: list[str] = []
            for row in rows:
                if row.startswith(" ") and items:
                    items[-1] += " " + row.strip()
                else:
                    items.append(row.strip())
            for item in items:
                name, _, words = item.partition(": ")
                name = name.replace("`", "")
                lines.append(f"- **{escaped(name)}**: {inline(words, links)}")
            lines.append("")
        else:
            joined = inline(" ".join(block.split()), links)
            if joined.startswith(("- ", "+ ", ">>>", "..")) or re.match(r":(?!\w+:\w+:`)", joined):
                joined = "\\" + joined
            lines += [joined + ("\\ " if joined.endswith("::") else ""), ""]
    return lines


def indented(lines: list[str], by: int = 3) -> list[str]:
    return [" " * by + line if line else "" for line in lines]
