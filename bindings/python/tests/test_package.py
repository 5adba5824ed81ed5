"""What the package is made of: the built one in a build folder, or an installed wheel."""

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import nitinol

package = Path(nitinol.__file__).parent
root = Path(__file__).parents[3]


def installed_files():
    """The files of the wheel that `nitinol` is imported from; skips if it is from a build folder."""
    try:
        distribution = metadata.distribution("nitinol")
    except metadata.PackageNotFoundError:
        distribution = None
    if distribution is None or Path(str(distribution.locate_file("nitinol"))) != package:
        pytest.skip("not an installed wheel")
    assert distribution.files is not None
    return [file for file in distribution.files if file.suffix != ".pyc"]


def libraries():
    return sorted(file for file in package.parent.glob("nitinol*/*.so*") if not file.is_symlink())


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def test_version_is_that_of_the_library():
    project = re.search(
        r"project\(nitinol VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text()
    )
    assert project and nitinol.__version__ == project.group(1)


def test_import_brings_no_other_package():
    outside = run(
        "import sys; before = set(sys.modules); import nitinol;"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before}"
        "       - {'nitinol'} - set(sys.stdlib_module_names))"
    )
    assert outside.strip() == ""


def test_import_opens_neither_the_compiler_nor_mpi():
    maps = run("import nitinol; nitinol.dist.world(); print(open('/proc/self/maps').read())")
    assert "libnitinol.so" in maps and "nitinol_llvm" not in maps and "libmpi" not in maps


def test_wheel_holds_what_it_needs():
    files = {str(file) for file in installed_files()}
    assert {
        "nitinol/libnitinol.so.0",
        "nitinol/libnitinol_llvm.so",
        "nitinol/libnitinol_openmpi.so",
        "nitinol/libnitinol_mpich.so",
        "nitinol/_ext/__init__.pyi",
    } <= files
    names = [Path(file).name for file in files if ".dist-info/" not in file]
    kinds = re.compile(r".*(\.py|\.pyi|\.so(\.[0-9.]+)?|\.txt|py\.typed|\.code)")
    assert [name for name in names if not kinds.fullmatch(name)] == []
    assert [name for name in names if "OpenCL" in name] == []
    # Code of common kernels, where the library looks for it.
    code = {str(Path(file).parent) for file in files if file.endswith(".code")}
    assert code == {"nitinol/nitinol/code"}


def test_wheel_names_its_version():
    installed_files()
    assert metadata.version("nitinol") == nitinol.__version__


needs_binutils = pytest.mark.skipif(
    shutil.which("readelf") is None, reason="binutils are not installed"
)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@needs_binutils
def test_wheel_holds_no_debug_information():
    installed_files()
    for library in libraries():
        assert ".debug_info" not in output("readelf", "-SW", library), library.name


@needs_binutils
def test_libraries_export_only_our_names():
    allowed = {
        "_ext": "PyInit__ext$",
        "libnitinol_llvm": "nitinol_llvm_plugin",
        "libnitinol_openmpi": "nitinol_mpi_plugin",
        "libnitinol_mpich": "nitinol_mpi_plugin",
        "libnitinol": ".*nitinol",
    }
    for library in libraries():
        if library.parent == package:
            pattern = re.compile(allowed[library.name.split(".")[0]])
            names = [
                line.split()[-1]
                for line in output("nm", "-D", "--defined-only", library).splitlines()
            ]
            assert names != []
            assert [name for name in names if not pattern.match(name)] == []
