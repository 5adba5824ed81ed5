"""Draws docs/speed.svg, and prints the table beside it in README.md, from the rows of benches.

    ./dev bench --threads 1 --json ours.json             # and the peers' harness: peers.json
    python bench/picture.py ours.json peers.json --keep bench/results/readme.json
    python bench/picture.py bench/results/readme.json    # again, from what was kept

Of each library the mode that takes least counts, by the least sample: other work on the machine only
adds time.
"""

import argparse
import json
import math
import pathlib

ROWS = {
    "W3.chain10": "ten operations on 4 numbers",
    "W1b.n1e5": "gelu of 100,000 numbers",
    "W1c.n1e5": "twelve exp, log, sin … of 100,000 numbers",
    "W1d.n1e6": "Black-Scholes, 1,000,000 options",
    "W2.softmax": "softmax over rows of 1,024",
    "W7.shapes": "gelu of 32 lengths in turn",
    "W5.mm1024": "matrix product, 1024 x 1024",
    "W4i.train.b32": "MLP, batch 32: a step of Adam",
    "W4iv.train": "CNN, 28 x 28: a step of Adam",
    "W4vii.train": "transformer block: a step of Adam",
}
OURS = ("nitinol", "eager"), ("nitinol", "compiled")
PEERS = {"torch": ("PyTorch", "#d9480f"), "jax": ("JAX", "#1c6fd1"), "drjit": ("Dr.Jit", "#2b8a3e")}
LEFT, TOP, STEP, WIDTH, RIGHT = 300, 62, 34, 420, 30
TICKS = (0.5, 1, 2, 4, 8, 16, 32, 64)


def best_of(rows):
    """The fastest row of each workload and library; of ours, of each mode."""
    best = {}
    for row in rows:
        key = row["peer"].removesuffix("+keep"), row["workload"]
        if row["peer"] == "nitinol":
            key = (row["peer"], row["mode"]), row["workload"]
        if row["workload"] in ROWS and row["threads"] == 1 and row["min_s"]:
            if key not in best or row["min_s"] < best[key]["min_s"]:
                best[key] = row
    return best


def human(seconds):
    if seconds is None:
        return ""
    unit, name = next(
        u for u in ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")) if seconds >= u[0]
    )
    return f"{seconds / unit:.3g} {name}"


def table(best):
    names = ["eager", "compiled", *(name for name, _ in PEERS.values())]
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for workload, words in ROWS.items():
        times = [best.get((who, workload), {}).get("min_s") for who in (*OURS, *PEERS)]
        lines.append(f"| {words} | " + " | ".join(map(human, times)) + " |")
    return "\n".join(lines)


def mark(peer, x, y, colour):
    if peer == "torch":
        return f'<circle cx="{x:.1f}" cy="{y}" r="6" fill="{colour}"/>'
    if peer == "jax":
        return f'<rect x="{x - 5.5:.1f}" y="{y - 5.5}" width="11" height="11" fill="{colour}"/>'
    return f'<path d="M{x:.1f} {y - 7}l7 12h-14z" fill="{colour}"/>'


def picture(best):
    low, high = math.log(TICKS[0]), math.log(TICKS[-1])

    def across(ratio):
        place = (min(max(math.log(ratio), low), high) - low) / (high - low)
        return LEFT + WIDTH * place

    bottom = TOP + STEP * len(ROWS)
    width, height = LEFT + WIDTH + RIGHT, bottom + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for tick in TICKS:
        x, is_ours = across(tick), tick == 1
        line = 'stroke="#222" stroke-width="2"' if is_ours else 'stroke="#ddd"'
        parts.append(f'<path d="M{x:.1f} {TOP - 8}V{bottom}" {line}/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<text x="{across(1):.1f}" y="{TOP - 14}" text-anchor="middle">Nitinol</text>')
    parts.append(
        f'<text x="{LEFT + WIDTH}" y="{bottom + 36}" text-anchor="end" fill="#555">'
        "times as long as Nitinol, compiled; one thread; logarithmic; no mark: not timed</text>"
    )
    for i, (peer, (name, colour)) in enumerate(PEERS.items()):
        x = LEFT + 130 + 100 * i
        parts += [mark(peer, x, 20, colour), f'<text x="{x + 12}" y="25">{name}</text>']
    for i, (workload, words) in enumerate(ROWS.items()):
        y = TOP + STEP * i + STEP // 2
        parts.append(f'<text x="{LEFT - 14}" y="{y + 4}" text-anchor="end">{words}</text>')
        ours = best[OURS[1], workload]["min_s"]
        for j, (peer, (_, colour)) in enumerate(PEERS.items()):
            if found := best.get((peer, workload)):
                parts.append(mark(peer, across(found["min_s"] / ours), y + 7 * (j - 1), colour))
    return "\n".join([*parts, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="JSON of benches")
    parser.add_argument("--keep", type=pathlib.Path, help="write the rows that count to this file")
    parser.add_argument("--svg", type=pathlib.Path, default="docs/speed.svg", help="the picture")
    options = parser.parse_args()
    files = [json.loads(file.read_text(encoding="utf-8")) for file in options.files]
    builds = [file["build"] for file in files if isinstance(file, dict)]
    rows = [row for file in files for row in (file["rows"] if isinstance(file, dict) else file)]
    best = best_of(rows)
    missing = [w for w in ROWS for who in OURS if (who, w) not in best]
    if missing:
        parser.error(f"no row of ours for {', '.join(missing)}")
    if options.keep:
        wanted = ("peer", "mode", "workload", "threads", "median_s", "min_s", "repeats")
        kept = [{name: row.get(name) for name in wanted} for row in best.values()]
        options.keep.parent.mkdir(exist_ok=True)
        lines = ",\n".join(map(json.dumps, kept))
        text = f'{{"build": {json.dumps(builds[0])},\n"rows": [\n{lines}\n]}}\n'
        options.keep.write_text(text, encoding="utf-8")
    options.svg.write_text(picture(best), encoding="utf-8")
    print(table(best))


if __name__ == "__main__":
    main()
