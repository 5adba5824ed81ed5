"""Opens pages of explain() and memory_snapshot() in Chromium, without a network: something is seen in light
and dark, wide and narrow; what should stand there does; no script runs or fails, whatever a function is
called; a click on a step opens it, in a notebook too, and one on a box shows all of a graph; and the page
of 500 steps is there in less than two seconds.

Usage: check.py <out>. Ends with 77, which ctest takes for skipped, where there is no Chromium.
"""

from __future__ import annotations

import html
import pathlib
import re
import sys

import nitinol as nt

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs" / "site"))

from browser import SKIPPED, Browser, program  # noqa: E402

EVIL = (
    "</script><script>document.title = 'ran'</script><img src=x onerror=\"document.title = 'ran'\">"
)
MOST_S = 2.0

# The page in a frame of a page that measures it and clicks on a step.
FRAME = """<!doctype html><title>frame</title><iframe id="frame" style="width: 1200px; height: 900px"></iframe>
<p id="said"></p><script>
const frame = document.getElementById("frame"), begin = performance.now();
frame.onload = () => {
  const height = frame.contentDocument.documentElement.getBoundingClientRect().height;
  said.textContent = `took ${(performance.now() - begin).toFixed(0)} ms, high ${height.toFixed(0)}`;
  const step = frame.contentDocument.querySelector('a[href="#s1p2"]');
  const box = frame.contentDocument.querySelector(".whole"), drawing = box.nextElementSibling.nextElementSibling;
  const whole = () => drawing.scrollHeight <= drawing.clientHeight && drawing.scrollWidth <= drawing.clientWidth;
  if (CLICKS) said.textContent += whole() ? ", whole" : ", a part";
  if (CLICKS) box.click();
  if (CLICKS) said.textContent += whole() ? ", whole" : ", a part";
  if (CLICKS) step.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
  if (CLICKS) setTimeout(() => { said.textContent += frame.contentDocument.getElementById("s1p2")
      .parentElement.open ? ", opened" : ", closed"; }, 500);
};
frame.srcdoc = PAGE;
</script>"""


def training_step(name: str, check: str = "scheduled") -> nt.Compiled[[nt.Tensor], nt.Tensor]:
    """Of x, [any, 64]: with a way back, and an update."""
    weight = nt.parameter(nt.ones((64, 32)) * 0.01)

    @nt.compile(name=name, check=check)
    def step(x: nt.Tensor) -> nt.Tensor:
        loss = nt.mean(nt.square(nt.relu(nt.matmul(x, weight)) - 1.0))
        loss.backward()
        weight.set(weight - weight.grad * 0.1)
        weight.clear_grad()
        return nt.stop_gradient(loss)

    return step


def trained() -> nt.Explanation:
    """A step with a way back and an update, and what no name may do."""
    compiled = training_step(EVIL)
    for size in (16, 8):
        for _ in range(6):
            compiled(nt.ones((size, 64)))
    return compiled.explain()


def long_chain() -> nt.Explanation:
    """500 steps."""
    weight = nt.Variable(nt.ones((8, 8)) * 0.125)

    @nt.compile
    def chain(x: nt.Tensor) -> nt.Tensor:
        for _ in range(250):
            x = nt.relu(nt.matmul(x, weight))
        return x

    for _ in range(4):
        chain(nt.ones((8, 8)))
    explanation = chain.explain()
    assert len(explanation["signatures"][0]["steps"]) == 500
    return explanation


def framed(page: str, clicks: bool) -> str:
    # In a script "</script>" would end it, wherever it stands.
    text = repr(page.replace("<head>", '<head><base href="about:srcdoc">', 1)).replace("</", "<\\/")
    return FRAME.replace("PAGE", text).replace("CLICKS", str(clicks).lower())


def wrong_of_page(browser: Browser, out: pathlib.Path, explanation: nt.Explanation) -> list[str]:
    path = out / "page.html"
    explanation.save_html(path)
    address = path.as_uri()
    wrong = browser.wrong_pictures(address, "page-", out)
    document = browser.text(address)
    shown = html.unescape(re.sub(r"<[^>]*>", "", document.split("<body>")[1]))
    expected = [EVIL, "compiled", "recorded because", "matmul", "check.py:", "new value of Variable 0",
                "in place", "The steps of", "kernel elementwise"]  # fmt: skip
    if "LLVM IR" in explanation.to_html():
        expected += ["define ", "LLVM IR"]
    wrong += [f"the page does not show {text!r}" for text in expected if text not in shown]
    if "<script" in document or "<title>ran" in document or "<img" in document:
        wrong.append("a function's name became HTML")
    opened = browser.text(f"{address}#s1p1")
    if not re.search(r'<details class="step" open="">(?:(?!</summary>).)*</summary>\s*<div id="s1p1"', opened, re.S):  # fmt: skip
        wrong.append("a link to a step does not open it")
    return wrong


def wrong_of_frames(browser: Browser, out: pathlib.Path, explanation: nt.Explanation) -> list[str]:
    wrong = []
    path = out / "frame.html"
    path.write_text(framed(explanation.to_html(), False), "utf-8")
    said = re.search(r"took (\d+) ms, high (\d+)", browser.text(path.as_uri(), is_hurried=False))
    if said is None or int(said[2]) < 1000:
        wrong.append(f"the page of 500 steps does not open in a frame: {said}")
    elif int(said[1]) > MOST_S * 1000:
        wrong.append(f"the page of 500 steps takes {said[1]} ms to open")
    else:
        print(f"500 steps are laid out in {said[1]} ms")
    path.write_text(framed(explanation.to_html(code=False), True), "utf-8")
    said = browser.text(path.as_uri())
    if ", opened" not in said:
        wrong.append("a click on a step does not open it in a frame")
    if ", a part, whole" not in said:
        wrong.append("a click on the box does not show all of the graph")
    # As a notebook has it, of which nothing can be read from outside.
    path.write_text(f"<!doctype html><title>x</title>{explanation._repr_html_()}", "utf-8")
    return wrong + browser.wrong_pictures(path.as_uri(), "notebook-", out)


def wrong_of_memory(browser: Browser, out: pathlib.Path) -> list[str]:
    with nt.memory_notes():
        step = training_step("step")
        kept = []
        for size in range(8, 24):
            step(nt.ones((size, 64)))
            kept.append(nt.exp(nt.ones((size, 256))))
        snapshot = nt.memory_snapshot()
    path = out / "memory.html"
    snapshot.save(path)
    wrong = browser.wrong_pictures(path.as_uri(), "memory-", out)
    document = browser.text(path.as_uri())
    areas = re.findall(r'<path style="fill:hsl[^>]*><title>check.py:\d+', document)
    if len(areas) < 3:
        wrong.append(f"the page of memory shows {len(areas)} lines over time")
    return wrong


def main(out: pathlib.Path) -> None:
    chromium = program()
    if chromium is None:
        print("skipped: there is no Chromium to open pages with")
        sys.exit(SKIPPED)
    out.mkdir(parents=True, exist_ok=True)
    browser = Browser(chromium, out / "chromium")
    wrong = wrong_of_page(browser, out, trained()) + wrong_of_frames(browser, out, long_chain())
    wrong += wrong_of_memory(browser, out)
    if wrong or browser.complaints:
        sys.exit("\n".join(wrong + browser.complaints))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
