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

FOLDER = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
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


class Browser:
    def __init__(self, program: str, profile: pathlib.Path) -> None:
        self.program, self.profile = program, profile

    def run(self, *options: str) -> str:
        command = [self.program, "--headless=new", "--disable-gpu", "--hide-scrollbars",
                   f"--user-data-dir={self.profile}", "--no-first-run", "--virtual-time-budget=8000",
                   "--proxy-server=127.0.0.1:9", "--allow-file-access-from-files"]  # fmt: skip
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            sys.exit(f"{self.program} failed:\n{done.stderr}")
        return done.stdout

    def search(self, site: pathlib.Path, word: str) -> str:
        return self.run("--dump-dom", f"{(site / 'search.html').as_uri()}?q={word}")

    def picture(self, page: pathlib.Path, to: pathlib.Path, width: int, is_dark: bool) -> None:
        options = [f"--window-size={width},1200", f"--screenshot={to}"]
        if is_dark:
            options.append("--force-dark-mode")
        self.run(*options, page.as_uri())


def wrong_searches(browser: Browser, site: pathlib.Path) -> list[str]:
    wrong = []
    for word, names in SEARCHED.items():
        text = re.sub(r"</?span[^>]*>", "", browser.search(site, word))
        wrong += [f"a search for {word} does not find {n}" for n in names if n not in text]
    return wrong


def wrong_pictures(browser: Browser, site: pathlib.Path, out: pathlib.Path) -> list[str]:
    """None is empty, and dark is darker."""
    import nitinol as nt

    wrong = []
    page = site / "reference/reductions.html"
    brightness = {}
    for width in (1440, 480):
        for is_dark in (False, True):
            to = out / f"{'dark' if is_dark else 'light'}-{width}.png"
            browser.picture(page, to, width, is_dark)
            pixels = nt.astype(nt.load_image(to, channels=1), nt.float32)
            brightness[is_dark] = nt.mean(pixels).item()
            if nt.std(pixels).item() < 5:
                wrong.append(f"{to} is empty")
        if brightness[True] > brightness[False] - 100:
            wrong.append(f"at a width of {width} dark is not darker")
    return wrong


def main(arguments: list[str]) -> None:
    out = pathlib.Path(arguments[0]).resolve()
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if len(arguments) > 1:
        if not pathlib.Path(arguments[1]).exists() or not shutil.which("doxygen"):
            print("skipped: ./dev docs makes the environment that builds the site")
            sys.exit(SKIPPED)
        subprocess.run([arguments[1], FOLDER / "build.py", out], check=True)
    site = out / "html"
    wrong = dead_links(site)
    present = objects_of(site)
    sys.path.insert(0, str(FOLDER))
    import public_names

    wrong += [f"{name} is on no page" for name in public_names.all_names() if name not in present]
    if browser is not None:
        chromium = Browser(browser, out / "chromium")
        wrong += wrong_searches(chromium, site) + wrong_pictures(chromium, site, out)
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(present)} names, {len(list(site.rglob('*.html')))} pages, no dead link")
    if browser is None:
        print("skipped: there is no Chromium to open it with")
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main(sys.argv[1:])
