"""The page of explain(), its graph for Graphviz, and what notebooks show of it and of tensors. A browser
opens pages in tests/pages/check.py."""

import html
import json
import os
import re
import shutil
import stat
import subprocess
import webbrowser
from typing import Any

import pytest

import nitinol as nt


@pytest.fixture(scope="module")
def explanation() -> nt.Explanation:
    weight = nt.parameter(nt.ones((4, 3)))

    @nt.compile
    def model(x: nt.Tensor) -> nt.Tensor:
        return nt.mean(nt.exp(nt.matmul(x, weight)) * 2)

    for _ in range(4):
        model(nt.ones((5, 4))).backward()
    return model.explain()


def test_the_page_is_one_file_without_scripts(explanation: Any, tmp_path: Any) -> None:
    page = explanation.to_html()
    assert page.startswith("<!doctype html>") and page.endswith("</html>\n")
    assert "<script" not in page and "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")  # fmt: skip
    assert "test_page.py:" in page and "Backward: " in page and ">x</text>" in page
    explanation.save_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page
    assert len(explanation.to_html(code=False)) <= len(page)
    with pytest.raises(OSError):
        explanation.save_html(tmp_path / "no" / "page.html")


def test_show_opens_a_file_that_is_the_users_alone(
    explanation: Any, monkeypatch: Any, capsys: Any, tmp_path: Any
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    path = explanation.show(code=False)
    assert capsys.readouterr().out == path + "\n"
    assert opened == ["file://" + path] and os.path.dirname(path) == str(tmp_path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, encoding="utf-8") as file:
        assert file.read() == explanation.to_html(code=False)


def test_a_notebook_gets_a_frame_without_code_in_which_nothing_runs(explanation: Any) -> None:
    frame = explanation._repr_html_()
    page = re.fullmatch(r'<iframe sandbox="" srcdoc="([^"]*)" title="[^"]*" style="[^"]*"></iframe>', frame)  # fmt: skip
    assert page
    shown = html.unescape(page[1])
    assert shown.replace('<base href="about:srcdoc">', "") == explanation.to_html(code=False)
    assert "LLVM IR" not in shown


def test_the_graph_for_graphviz(explanation: Any) -> None:
    dot = explanation.to_dot()
    assert dot.startswith("digraph {\n") and dot.endswith("}\n")
    assert 'label="1. library matmul";' in dot
    assert explanation.to_dot(0) == dot != explanation.to_dot(backward=True)
    nodes = set(re.findall(r"(?m)^\s*(\w+) \[label=", dot))
    for line in re.findall(r"(\w+) -> (\w+);", dot):
        assert nodes.issuperset(line)
    if program := shutil.which("dot"):
        drawn = subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, text=True)
        assert drawn.returncode == 0, drawn.stderr
        assert drawn.stdout.count('class="node"') == len(nodes)


def test_to_dot_says_what_has_no_graph(explanation: Any) -> None:
    with pytest.raises(nt.ArgumentError, match="signature 3: expected one that is compiled"):
        explanation.to_dot(3)

    @nt.compile
    def once(x: nt.Tensor) -> nt.Tensor:
        return x + 1

    once(nt.ones((3,)))
    with pytest.raises(nt.ArgumentError, match="the signatures: expected one that is compiled"):
        once.explain().to_dot()
    with pytest.raises(nt.ArgumentError, match="got recorded, not compiled yet"):
        once.explain().to_dot(0)
    once(nt.ones((3,)))
    with pytest.raises(nt.ArgumentError, match="backward"):
        once.explain().to_dot(backward=True)


def test_json_has_values_kernels_and_bounds_if_asked(explanation: Any) -> None:
    signature = explanation["signatures"][0]
    values, steps = signature["values"], signature["steps"]
    first = [values[read["value"]] for read in steps[0]["reads"]]
    assert [value["name"] for value in first] == ["x", "Variable 0"]
    assert [value["type"] for value in first] == ["float32[5, 4]", "float32[4, 3]"]
    assert steps[1]["reads"][0]["from"] == 0 and steps[1]["kernel"].startswith("kernel ")
    assert "bound_s" not in steps[0]
    measured = json.loads(explanation.to_json(bounds=True))["signatures"][0]["steps"]
    assert all(step["bound_s"] > 0 for step in measured)


def cells(shown: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", shown)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]


def test_notebooks_show_tensors_as_tables() -> None:
    shown = nt.asarray([[1.0, 2.5], [-3.0, 4.0]])._repr_html_()
    assert shown.startswith("<div><b>tensor</b> float32[2, 2] on cpu:0, 16 B</div><table>")
    assert cells(shown) == [["1.", "2.5"], ["-3.", "4."]]
    assert cells(nt.arange(2000)._repr_html_()) == [["0", "1", "2", "...", "1997", "1998", "1999"]]
    large = cells(nt.zeros((100, 100))._repr_html_())
    assert [len(row) for row in large] == [7, 7, 7, 1, 7, 7, 7] and large[3] == ["..."]
    assert cells(nt.asarray([True, False])._repr_html_()) == [["True", "False"]]


def test_notebooks_show_other_tensors_as_text() -> None:
    assert nt.asarray(3.5)._repr_html_().endswith("<pre>3.5</pre>")
    assert nt.zeros((2, 0))._repr_html_().endswith("0 B</div><pre>[]</pre>")
    cube = nt.ones((2, 1, 2))._repr_html_()
    assert cube.endswith("<pre>[[[1., 1.]],\n\n [[1., 1.]]]</pre>")


def test_notebooks_show_variables_and_what_is_recorded() -> None:
    assert nt.Variable(nt.ones((2,)))._repr_html_().startswith("<div><b>Variable</b> float32[2]")
    assert nt.parameter(nt.ones((2,)))._repr_html_().startswith("<div><b>parameter</b> float32[2]")
    seen: list[str] = []

    @nt.compile
    def f(x: nt.Tensor) -> nt.Tensor:
        seen.append(x._repr_html_())
        return x + 1

    f(nt.ones((2,)))
    assert seen == ["<pre>Tensor(float32[2], being recorded)</pre>"]
    f(nt.ones((2,)))
    assert f.explain()["signatures"][0]["tier"] == "compiled"
