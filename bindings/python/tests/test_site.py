"""The site's pages, before Sphinx makes HTML of them: that every public name has an entry with a text,
that each mistake in them is seen, and that the reference's examples print what it shows.

The site itself is checked by docs/site/check.py, ctest's docs.site.
"""

import importlib
import pathlib
import re
import shutil
import sys
from typing import Any

import pytest

import nitinol as nt

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "docs/site"))

build: Any = importlib.import_module("build")
check: Any = importlib.import_module("check")
declarations: Any = importlib.import_module("declarations")
entries: Any = importlib.import_module("entries")
examples: Any = importlib.import_module("examples")
public_names: Any = importlib.import_module("public_names")
python_names: Any = importlib.import_module("python_names")

needs_doxygen = pytest.mark.skipif(not shutil.which("doxygen"), reason="Doxygen is not installed")
INPUTS, EXAMPLES = examples.read()


@pytest.fixture(scope="module")
def declared(tmp_path_factory: Any) -> Any:
    return declarations.read_declarations(ROOT, tmp_path_factory.mktemp("doxygen"))


@pytest.fixture(scope="module")
def names() -> Any:
    return python_names.read_names()


@pytest.fixture(scope="module")
def written(tmp_path_factory: Any) -> Any:
    out = tmp_path_factory.mktemp("site")
    build.write_pages(out)
    return out / "source"


def objects_of(source: pathlib.Path) -> list[str]:
    """What the pages have entries for: nitinol.nn.Linear, nitinol::nn::Linear."""
    found = []
    for path in sorted(source.glob("reference/*.rst")):
        namespace, at = "", 0
        for line in path.read_text("utf-8").splitlines():
            if name := re.match(r" *\.\. cpp:namespace:: (\S+)", line):
                namespace, at = name[1], len(line) - len(line.lstrip())
            elif name := re.match(r" *\.\. py:\w+:: (nitinol[\w.]+)", line):
                found.append(name[1])
            elif len(line) - len(line.lstrip()) == at and (
                name := re.match(
                    r" *\.\. cpp:(?:struct|class|enum-class|type|var|concept):: (.*)", line
                )
            ):
                head = re.split(r" = | : ", name[1])[0]
                found.append(f"{namespace}::{head.split()[-1]}")
            elif name := re.match(r" *(?:\.\. cpp:function::)? +([^(]*?)(\w+)\(", line):
                found.append(f"{namespace}::{name[2]}")
    return found


@needs_doxygen
def test_every_public_name_has_an_entry(written: pathlib.Path) -> None:
    objects = objects_of(written)
    names = public_names.all_names()
    assert len(names) > 1000
    assert [name for name in names if name not in objects] == []
    python = [name for name in objects if "::" not in name]
    assert sorted({name for name in python if python.count(name) > 1}) == []


@needs_doxygen
def test_what_is_on_no_page_is_seen(declared: Any, names: Any) -> None:
    subjects = entries.read_subjects()
    assert entries.pages_of(subjects, declared, names)

    def said(change: Any) -> str:
        other = entries.read_subjects()
        kept = change(other) or (declared, names)
        with pytest.raises(entries.Misplaced) as error:
            entries.pages_of(other, *kept)
        return str(error.value)

    def without_header(data: Any) -> None:
        next(p for p in data["pages"] if p["name"] == "nn-losses")["headers"].remove("nn/losses.h")

    assert "nn/losses.h: is on no page" in said(without_header)
    assert "nitinol.finfo: is on no page" in said(
        lambda data: next(p for p in data["pages"] if p["name"] == "dtypes")["python"].remove(
            "finfo"
        )
    )
    assert "nothing is called no_such_name" in said(
        lambda data: data["internal_names"].append("no_such_name")
    )
    silent = [
        entries.dataclasses.replace(one, comment="") if one.name == "nitinol::softmax" else one
        for one in declared
    ]
    assert "nitinol::softmax is public and has no comment" in said(lambda data: (silent, names))
    mute = [
        entries.dataclasses.replace(one, doc="") if one.full == "nitinol.nn.fit" else one
        for one in names
    ]
    assert "nitinol.nn.fit is public and has no docstring" in said(lambda data: (declared, mute))


def test_a_link_out_of_the_site_names_the_place() -> None:
    pages = build.gathered()
    kept = "[docs/gpu.md](docs/gpu.md), [there](https://example.org/x)"
    assert build.with_links(kept, "README.md", pages) == kept
    assert (
        build.with_links("[fit.h](../nn/fit.h)", "docs/training.md", pages) == "fit.h (`nn/fit.h`)"
    )
    assert build.with_links("`[a](b)`", "README.md", pages) == "`[a](b)`"
    with pytest.raises(entries.Misplaced, match="README.md: links to docs/nothing.md"):
        build.with_links("[x](docs/nothing.md)", "README.md", pages)


def test_dead_links_are_seen(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">b</a></p>')
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html#here">a</a></p>')
    assert check.dead_links(tmp_path) == []
    (tmp_path / "b.html").write_text(
        '<p id="other"><a href="c.html">c</a><p id="other"><a href="https://example.org">far</a>'
        '<script src="https://example.org/x.js"></script>'
    )
    assert check.dead_links(tmp_path) == [
        "a.html: links to b.html#there: there is no such anchor",
        "b.html: loads https://example.org/x.js",
        "b.html: links to c.html, which is not there",
        "b.html: the anchor other is there twice",
    ]


@needs_doxygen
def test_each_example_is_on_its_page(declared: Any, names: Any) -> None:
    pages = {page.name: page for page in entries.pages_of(entries.read_subjects(), declared, names)}
    for one in EXAMPLES:
        titles = [entry.title for entry in pages[one.page].entries]
        assert one.entry in titles, f"{one.page} has no entry {one.entry}"
    functions = [
        f"{page.name}/{entry.title}"
        for page in pages.values()
        for entry in page.entries
        if any(name.kind == "function" for name in entry.python)
    ]
    shown = {f"{one.page}/{one.entry}" for one in EXAMPLES}
    without = [name for name in functions if name not in shown]
    assert not without


@pytest.mark.parametrize(
    "one", [one for one in EXAMPLES if one.python], ids=lambda one: f"{one.page}/{one.entry}"
)
def test_an_example_prints_what_its_page_shows(
    one: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nt.manual_seed(0)
    try:
        _, printed = examples.run(one.python, examples.names_for(nt, INPUTS))
    except nt.Error as error:  # a library without zip files or images
        if "without" not in str(error):
            raise
        pytest.skip(str(error))
    assert printed == one.prints


@pytest.mark.parametrize(
    "page, title, flows",
    [
        ("elementwise", "exp", True),
        ("elementwise", "floor", False),
        ("order", "sort", True),
        ("order", "argsort", False),
        ("indexing", "take", True),
        ("comparisons", "lt", False),
        ("order", "unique_all", None),
        ("comparisons", "bitwise_and", None),
    ],
)
def test_the_reference_says_whether_gradients_flow(page: str, title: str, flows: Any) -> None:
    name = python_names.Name("function", "nitinol", title, "", "")
    entry = entries.Entry(title, "", python=[name])
    said = examples.Examples(page, nt).gradient(entry)
    words = {
        True: "Gradients flow through it.",
        False: "No gradients flow through it.",
        None: "",
    }
    assert said == words[flows]


def test_statements_are_separated_outside_of_brackets() -> None:
    assert examples.statements("a = f([](x) { return x; }); a(1)") == [
        "a = f([](x) { return x; })",
        "a(1)",
    ]
    assert examples.uses("x = 1; x + y", {"x": ["", ""], "y": ["", ""]}) == ["y"]
