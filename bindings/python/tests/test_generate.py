"""generate.py, which reads the public headers: what it makes of a new declaration, and that it
leaves none out in silence. Needs the source tree."""

from __future__ import annotations

import ast
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

BINDING = pathlib.Path(__file__).resolve().parent.parent
ROOT = BINDING.parent.parent
pytestmark = pytest.mark.skipif(
    not (BINDING / "generate.py").exists(), reason="not run from the source tree"
)


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of what the generator reads."""
    for folder in ("eager/ops", "nn", "bindings/python/src"):
        (tmp_path / folder).mkdir(parents=True)
        for header in (ROOT / folder).glob("*.h"):
            shutil.copy(header, tmp_path / folder)
    for file in BINDING.glob("*.py"):
        shutil.copy(file, tmp_path / "bindings/python")
    return tmp_path


def generated(tree: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", tree / "bindings/python/generate.py", tree, tree / "out"],
        capture_output=True,
        text=True,
        check=False,
    )


def declare(tree: pathlib.Path, header: str, text: str) -> int:
    """Adds a declaration to the end of a header's namespace; its line."""
    path = tree / header
    before, end, after = path.read_text().rpartition("}  // namespace nitinol")
    path.write_text(before + text + end + after)
    return before.count("\n") + 1


def check_refused(tree: pathlib.Path, header: str, text: str, complaint: str, named: str) -> None:
    """The declaration is refused with these words at a line of the file `named`: of its own, if that
    is the header; and nothing is written."""
    line = declare(tree, header, text)
    result = generated(tree)
    assert result.returncode != 0
    assert complaint in result.stderr
    file, number, _ = result.stderr.split(":", 2)
    assert file == named
    if named == header:
        assert line <= int(number) <= line + text.count("\n")
    assert not (tree / "out").exists()


def test_a_new_function_appears_with_parameters_defaults_and_comment(tree: pathlib.Path) -> None:
    options = "/// What softer does.\nstruct Softer {\n  double by = 0.5;  ///< how much\n};\n"
    function = (
        "/// The elements of x, softer. Throws Error(dtype) for integers.\n"
        "[[nodiscard]] Tensor softer(const Tensor& x, const Axes& axes = {},\n"
        "                            const Softer& options = {});\n"
    )
    declare(tree, "eager/ops/unary.h", options + function)
    assert generated(tree).returncode == 0
    stub = (tree / "out/stubs/functions.pyi").read_text()
    signature = (
        "def softer(x: TensorLike, /, axis: int | Sequence[int] | None = None, *, "
        "by: float = 0.5) -> Tensor:"
    )
    assert signature in stub
    assert "The elements of x, softer. Raises DTypeError for integers." in stub
    assert "by: how much" in stub
    bound = "".join(file.read_text() for file in (tree / "out").glob("functions_*.cpp"))
    assert "nitinol::softer(x_, axis_, options)" in bound
    assert "if (arguments.is_given(2)) options.by = arguments.get<double>(2);" in bound


@pytest.mark.parametrize(
    "text, complaint",
    (
        ("[[nodiscard]] Tensor odd(Tensor (*f)(Tensor x));\n", "cannot read"),
        ("/// x.\n[[nodiscard]] Tensor odd(const Oddity& x);\n", "no Python type is known for"),
        ("/// x.\n[[nodiscard]] Oddity odd(const Tensor& x);\n", "neither bound nor left out"),
        (
            "/// x.\ntemplate <class T>\n[[nodiscard]] Tensor odd(T x);\n",
            "neither bound nor left out",
        ),
        ("\n[[nodiscard]] Tensor odd(const Tensor& x);\n", "has no comment"),
        ("/// They go.\n[[nodiscard]] Tensor odd(const Tensor& x);\n", "`They`: of which?"),
        ("/// x.\n[[nodiscard]] Tensor odd(const Tensor& x, Integer n = most);\n", "has no word"),
        ("/// x.\n[[nodiscard]] Tensor add(const Tensor& x, Integer n);\n", "overloads of which"),
        (
            "struct Odd {\n  int x[3];\n};\n/// x.\n[[nodiscard]] Tensor odd(const Odd& x);\n",
            "cannot read",
        ),
    ),
)
def test_what_cannot_be_bound_is_an_error_with_its_place(
    tree: pathlib.Path, text: str, complaint: str
) -> None:
    # overloads are named at the first of them
    named = "eager/ops/arithmetic.h" if "overloads" in complaint else "eager/ops/unary.h"
    check_refused(tree, "eager/ops/unary.h", text, complaint, named)


def test_a_new_header_is_not_overlooked(tree: pathlib.Path) -> None:
    path = tree / "eager/ops/ops.h"
    path.write_text(path.read_text() + '#include "eager/ops/new.h"\n')
    result = generated(tree)
    assert result.returncode != 0
    assert "eager/ops/new.h" in result.stderr and "HEADERS" in result.stderr


def test_tables_of_names_speak_of_nothing_that_is_gone(tree: pathlib.Path) -> None:
    path = tree / "eager/ops/unary.h"
    path.write_text(path.read_text().replace("Tensor neg(", "Tensor negated("))
    result = generated(tree)
    assert result.returncode != 0
    assert "neg" in result.stderr


def test_a_new_layer_appears_with_its_factory_options_and_comments(tree: pathlib.Path) -> None:
    layer = """\
/// x * gain, for channels [n, in].
struct Gain {
  Variable gain;                 ///< [in]
  std::optional<Variable> bias;  ///< [in]
  Linear inner;
  double by = 0.5;
  Training training = {true, "Gain.training"};
  struct Output {
    Tensor result;  ///< [n, in]
    Tensor gain;
  };
  /// x: [n, in].
  [[nodiscard]] Output operator()(const Tensor& x) const;
};
struct GainOptions {
  bool has_bias = true;
  DType dtype = f32;
};
/// Gains of 1. Throws Error(value) unless `in` is positive.
[[nodiscard]] Gain gain(Integer in, const GainOptions& options = {});
"""
    declare(tree, "nn/layers.h", layer)
    result = generated(tree)
    assert result.returncode == 0, result.stderr
    python = (tree / "out/_layers.py").read_text()
    classes = {node.name: node for node in ast.parse(python).body if isinstance(node, ast.ClassDef)}
    init, call = (node for node in classes["Gain"].body if isinstance(node, ast.FunctionDef))
    assert ast.unparse(init.args) == (
        "self, in_features: int, by: float=0.5, bias: bool=True, dtype: DTypeLike=float32"
    )
    assert ast.unparse(call.args) == "self, x: TensorLike"
    assert ast.unparse(call.body[0]) == ("return GainOutput(*_ext._call_Gain(self, x))")
    doc = ast.get_docstring(classes["Gain"]) or ""
    assert "x * gain, for channels [n, in_features]." in doc
    assert "x: [n, in_features]." in doc
    assert "Raises ArgumentError unless `in_features` is positive." in doc
    assert "gain: [in_features]" in doc
    fields = [node for node in classes["GainOutput"].body if isinstance(node, ast.AnnAssign)]
    assert [ast.unparse(node) for node in fields] == ["result: Tensor", "gain: Tensor"]
    assert '"Gain",' in python and '"GainOutput",' in python
    cpp = (tree / "out/layers.cpp").read_text()
    assert 'options.has_bias = convert<bool>({"Gain", "bias", bias_});' in cpp
    assert '{{"gain", "Gain"}, {"`in`", "`in_features`"}, {"`has_bias`", "`bias`"}}' in cpp
    assert '.by = read<double>("Gain", self, "by"_name)' in cpp
    assert '.inner = read_Linear(attribute(self, "inner"_name))' in cpp
    assert "_parts = {'inner': Linear}" in ast.unparse(classes["Gain"])
    assert "to_python(result.result), to_python(result.gain)" in cpp


def test_a_new_option_of_an_optimizer_appears(tree: pathlib.Path) -> None:
    path = tree / "nn/optimizers.h"
    options = "struct RmsPropOptions {\n"
    path.write_text(path.read_text().replace(options, options + "  bool is_centred = false;\n"))
    assert generated(tree).returncode == 0
    cpp = (tree / "out/layers.cpp").read_text()
    assert ".field(options.is_centred)" in cpp
    assert '{"parameters", "is_centred", "rate", "decay"' in cpp
    assert '"is_centred: bool = False, rate: float = 0.01, decay: float = 0.99' in cpp
    decays = re.findall(r"weight_decay: float = ([\d.]+)", cpp)
    assert decays[:4] == ["0.0", "0.0", "0.01", "0.0"]  # of Sgd, Adam, AdamW, Adamax
    assert set(decays[4:]) == {"0.0"}


def test_a_new_schedule_appears(tree: pathlib.Path) -> None:
    declare(
        tree,
        "nn/schedules.h",
        "/// Of both.\n[[nodiscard]] Schedule both(std::vector<Schedule> all, int64_t n = 3);\n",
    )
    assert generated(tree).returncode == 0
    cpp = (tree / "out/layers.cpp").read_text()
    assert 'convert<std::vector<nn::Schedule>>({"both", "all", all_})' in cpp
    assert "def both(all: Sequence[Schedule], n: int = 3) -> Schedule" in cpp
    assert '"Of both."' in cpp


@pytest.mark.parametrize(
    "text, complaint",
    (
        (
            "/// x.\nstruct Odd {\n  Oddity a;\n"
            "  [[nodiscard]] Tensor operator()(const Tensor& x) const;\n};\n",
            "no Python type is known for `Oddity",
        ),
        (
            "/// x.\nstruct Odd {\n  Variable a;\n"
            "  [[nodiscard]] Tensor operator()(const Oddity& x) const;\n};\n",
            "an argument `const Oddity&` of a layer",
        ),
        (
            "\nstruct Odd {\n  Variable a;\n"
            "  [[nodiscard]] Tensor operator()(const Tensor& x) const;\n};\n",
            "Odd has no comment",
        ),
        ("/// x.\n[[nodiscard]] Linear linear_of(Integer n);\n", "a second factory of Linear"),
        ("/// x.\n[[nodiscard]] Oddity odd(Integer n);\n", "odd makes no layer"),
    ),
)
def test_what_is_no_layer_is_an_error_with_its_place(
    tree: pathlib.Path, text: str, complaint: str
) -> None:
    check_refused(tree, "nn/layers.h", text, complaint, "nn/layers.h")


def test_stubs_are_python(tree: pathlib.Path) -> None:
    assert generated(tree).returncode == 0
    stubs = list((tree / "out/stubs").glob("*.pyi"))
    assert len(stubs) == 4
    for stub in stubs:
        ast.parse(stub.read_text())
