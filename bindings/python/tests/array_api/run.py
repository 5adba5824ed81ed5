"""Runs the Array API's public test suite, a copy of github.com/data-apis/array-api-tests with its submodule, on nitinol:
eagerly, or with every function compiled and called three times. What fails there and is known is in xfails.txt, what is not
there at all (complex numbers, FFT, decompositions) in left_out.py."""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "2024.12"
# In the suite a library without complex numbers cannot be imported.
PATCHES = {
    "array_api_tests/dtype_helpers.py": (
        "[(dt, dtype_nbits[dt]) for dt in complex_dtypes], key=lambda x: x[1]\n)",
        "[(dt, dtype_nbits[dt]) for dt in complex_dtypes], key=lambda x: x[1], default=(None, 0)\n)",
    ),
    "array_api_tests/test_signatures.py": (
        "dh.dtype_to_name[dh.widest_complex_dtype]",
        "dh.dtype_to_name.get(dh.widest_complex_dtype, 'complex128')",
    ),
}


def patched(suite: pathlib.Path, to: pathlib.Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(suite, to, ignore=shutil.ignore_patterns(".git", ".hypothesis"))
    for name, (old, new) in PATCHES.items():
        text = (to / name).read_text()
        if old not in text and new not in text:
            sys.exit(
                f"{name} is not as it was when {pathlib.Path(__file__).name} was written: no '{old}'"
            )
        (to / name).write_text(text.replace(old, new))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=pathlib.Path, help="where array-api-tests lies")
    parser.add_argument("--copy", type=pathlib.Path, required=True, help="a folder to be made")
    parser.add_argument(
        "--compiled", action="store_true", help="every function compiled, three times"
    )
    parser.add_argument("--examples", default="20", help="of each property")
    options, others = parser.parse_known_args()
    if not (options.suite / "array-api" / "spec").is_dir():
        sys.exit(f"{options.suite} is no copy of array-api-tests with its submodule array-api")
    patched(options.suite, options.copy)
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": "compiled" if options.compiled else "nitinol",
        "ARRAY_API_TESTS_VERSION": VERSION,
        "NITINOL_LOG": "off",  # what runs eagerly says so
        "ARRAY_API_TESTS_SKIP_DTYPES": "complex64,complex128",
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "-p", "no:cacheprovider"]
    command += [
        "--rootdir=.",  # ids of tests begin there, as those of xfails.txt
        "-p",
        "left_out",
        "--disable-extension",
        "fft",
        "--xfails-file",
        str(HERE / "xfails.txt"),
    ]
    command += [
        "--hypothesis-max-examples",
        options.examples,
        "--hypothesis-disable-deadline",
        *others,
    ]
    sys.exit(subprocess.run(command, cwd=options.copy, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
