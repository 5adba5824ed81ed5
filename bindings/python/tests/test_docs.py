"""The code of README.md and docs/python.md runs as it is written."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]
PAGES = ["README.md", "docs/python.md"]


def blocks_of(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        # So many lines before it that errors name the page's own.
        yield "\n" * line + match.group(1)


@pytest.mark.parametrize("page", PAGES)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__page__"}
    blocks = list(blocks_of(page))
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
