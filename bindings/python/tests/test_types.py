"""What type checkers know of the package."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import nitinol as nt

PACKAGE = pathlib.Path(nt.__file__).parent


def test_stubs_name_what_there_is():
    stub = (PACKAGE / "_ext" / "__init__.pyi").read_text()
    for name, value in vars(nt._ext).items():
        if name.startswith("__") or name in ("nn", "random") or name.startswith("_"):
            continue
        kinds = (f"def {name}(", f"class {name}", f"{name}: ", f"{name} = ")
        assert any(kind in stub for kind in kinds), name
    assert "def explain(self) -> Explanation" in stub
    assert "    def sum(self, axis" in stub


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_all_types_are_known():
    done = subprocess.run(
        [
            "pyright",
            "--pythonpath",
            sys.executable,
            "--verifytypes",
            "nitinol",
            "--ignoreexternal",
            "--outputjson",
        ],
        capture_output=True,
        text=True,
        cwd=PACKAGE.parent,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
    )
    report = json.loads(done.stdout)["typeCompleteness"]
    assert report["completenessScore"] >= 0.95, report["exportedSymbolCounts"]
