"""Checks the site as it was built: every link that stays in it leads somewhere, nothing is loaded from
elsewhere, each public name can be found, and a browser without a network opens it, searches it, and
shows something in light and dark, wide and narrow.

Usage: check.py <out> [<Python that has Sphinx>]: with one, the site is built into <out> first. Ends with
77, which ctest takes for skipped, where there is none or no Chromium.
"""

from __future__ import annotations

import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse
import zlib

from browser import SKIPPED, Browser, program

FOLDER = pathlib.Path(__file__).resolve().parent
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
SEARCHED = {  # and what must be found by it
    "softmax": ["nitinol.softmax", "nitinol::softmax", "nitinol.nn.Softmax"],
    "clamp": ["nitinol.clamp", "nitinol::clamp"],
    "Adafactor": ["nitinol.nn.Adafactor", "nitinol::nn::Adafactor"],
    "label_smoothing": ["Losses"],
}


class Page(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if "id" in given:
            self.anchors.append(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and given.get(LOADED[tag]):
            self.loaded.append(given[LOADED[tag]])


def is_elsewhere(link: str) -> bool:
    return bool(urllib.parse.urlsplit(link).scheme) or link.startswith("//")


def dead_links(site: pathlib.Path) -> list[str]:
    """Of all pages; those to other hosts are not followed."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    anchors = {path: set(page.anchors) for path, page in pages.items()}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for link in page.loaded:
            if is_elsewhere(link) and not link.startswith("data:"):
                wrong.append(f"{name}: loads {link}")
        for link in page.links + page.loaded:
            if is_elsewhere(link):
                continue
            parts = urllib.parse.urlsplit(link)
            target = path
            if parts.path:
                target = pathlib.Path(
                    os.path.normpath(path.parent / urllib.parse.unquote(parts.path))
                )
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                wrong.append(f"{name}: links to {link}, which is not there")
            elif anchor and target in anchors and anchor not in anchors[target]:
                wrong.append(f"{name}: links to {link}: there is no such anchor")
        twice = {anchor for anchor in page.anchors if page.anchors.count(anchor) > 1}
        wrong += [f"{name}: the anchor {anchor} is there twice" for anchor in sorted(twice)]
    return wrong


def objects_of(site: pathlib.Path) -> set[str]:
    """Names that Sphinx has an entry for, from the inventory that it writes for other sites."""
    data = (site / "objects.inv").read_bytes()
    body = data.split(b"\n", 4)[4]
    lines = zlib.decompress(body).decode().splitlines()
    return {line.split(" ", 1)[0] for line in lines if line.split()[1].startswith(("py:", "cpp:"))}


def wrong_searches(browser: Browser, site: pathlib.Path) -> list[str]:
    wrong = []
    for word, names in SEARCHED.items():
        text = re.sub(
            r"</?span[^>]*>", "", browser.text(f"{(site / 'search.html').as_uri()}?q={word}")
        )
        wrong += [f"a search for {word} does not find {n}" for n in names if n not in text]
    return wrong


def main(arguments: list[str]) -> None:
    out = pathlib.Path(arguments[0]).resolve()
    browser = program()
    if len(arguments) > 1:
        if not pathlib.Path(arguments[1]).exists() or not shutil.which("doxygen"):
            print("skipped: ./dev docs makes the environment that builds the site")
            sys.exit(SKIPPED)
        subprocess.run([arguments[1], FOLDER / "build.py", out], check=True)
    site = out / "html"
    wrong = dead_links(site)
    present = objects_of(site)
    import public_names

    wrong += [f"{name} is on no page" for name in public_names.all_names() if name not in present]
    if browser is not None:
        chromium = Browser(browser, out / "chromium")
        page = site / "reference/reductions.html"
        wrong += wrong_searches(chromium, site) + chromium.wrong_pictures(page.as_uri(), "", out)
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(present)} names, {len(list(site.rglob('*.html')))} pages, no dead link")
    if browser is None:
        print("skipped: there is no Chromium to open it with")
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main(sys.argv[1:])
