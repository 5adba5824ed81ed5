"""Chromium without a window, for the tests of the site and of the pages that explain() makes."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77  # which ctest takes for a test that was skipped


def program() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """Without a network."""

    def __init__(self, program: str, profile: pathlib.Path) -> None:
        self.program, self.profile = program, profile
        self.complaints: list[str] = []  # what pages have said on the console, scripts' errors too

    def run(self, *options: str, is_hurried: bool = True) -> str:
        """is_hurried: what waits need not wait; times that a page takes are none then."""
        command = [self.program, "--headless=new", "--disable-gpu", "--hide-scrollbars",
                   f"--user-data-dir={self.profile}", "--no-first-run", "--enable-logging=stderr",
                   "--proxy-server=127.0.0.1:9", "--allow-file-access-from-files"]  # fmt: skip
        if is_hurried:
            command.append("--virtual-time-budget=8000")
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            sys.exit(f"{self.program} failed:\n{done.stderr}")
        self.complaints += [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
        return done.stdout

    def text(self, address: str, is_hurried: bool = True) -> str:
        """The document when it is loaded, as HTML."""
        return self.run("--dump-dom", address, is_hurried=is_hurried)

    def picture(self, address: str, to: pathlib.Path, width: int, is_dark: bool) -> None:
        options = [f"--window-size={width},1200", f"--screenshot={to}"]
        if is_dark:
            options.append("--force-dark-mode")
        self.run(*options, address)

    def wrong_pictures(self, address: str, name: str, out: pathlib.Path) -> list[str]:
        """None is empty, and dark is darker."""
        import nitinol as nt

        wrong = []
        brightness = {}
        for width in (1440, 480):
            for is_dark in (False, True):
                to = out / f"{name}{'dark' if is_dark else 'light'}-{width}.png"
                self.picture(address, to, width, is_dark)
                pixels = nt.astype(nt.load_image(to, channels=1), nt.float32)
                brightness[is_dark] = nt.mean(pixels).item()
                if nt.std(pixels).item() < 5:
                    wrong.append(f"{to} is empty")
            if brightness[True] > brightness[False] - 100:
                wrong.append(f"{name}: at a width of {width} dark is not darker")
        return wrong
