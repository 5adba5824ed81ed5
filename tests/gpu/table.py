"""Prints what tests/gpu/run_gpu.py wrote beside the goals, and keeps it in bench/results/."""

import argparse
import collections
import json
import os
import re
import sys

# Of a copy on the device that moves as many bytes, on an H100; the longest chains compute more than they move.
COPY_GOALS = (
    (r"W1c", 0.60),
    (r"W1d", 0.85),
    (r"(large\.)?W1", 0.90),
    (r"large\.(copy|sum|mean|columns)$", 0.90),
    (r"large\.(softmax|norm|entropy)(-grad)?\.", 0.85),
    (r"large\.(var|argmax|transpose|adam200)$", 0.80),
    (r"W2", 0.85),
)


def copy_goal(row):
    return next((goal for name, goal in COPY_GOALS if re.match(name, row)), None)


def read(paths):
    """The lines of all files; of a stage that ran in several, later lines stand beside earlier ones."""
    lines = []
    for path in paths:
        try:
            file = open(path, encoding="utf-8")
        except OSError as error:
            sys.exit(f"{path} cannot be read: {error.strerror}")
        with file:
            for text in file:
                try:
                    lines.append(json.loads(text))
                except ValueError:  # the last one, cut off
                    print(f"{path}: a line that is cut off is left out", file=sys.stderr)
    return lines


def microseconds(seconds):
    return "" if seconds is None else f"{seconds * 1e6:.1f}"


def ratio(value):
    return "" if value is None else f"{value:.2f}"


def print_stages(lines):
    print(f"{'stage':<10} {'end':<8} {'results':>7} {'s':>6}")
    ends = [line for line in lines if "end" in line]
    for line in ends:
        seconds = f"{line['seconds']:.0f}"
        print(
            f"{line['stage']:<10} {line['end']:<8} {line['counted']:>7} {seconds:>6}  {line['why']}"
        )
    started = {line["stage"] for line in lines} - {line["stage"] for line in ends}
    for stage in sorted(started):
        print(f"{stage:<10} killed")


def print_bits(lines):
    totals = {
        line["cases"]: line for line in lines if line["stage"] == "bits" and "repeated" in line
    }
    if totals:
        last = totals[max(totals)]
        print(
            f"\nbits: {last['cases']} kernels, {last['repeated']} of them many times: {last['differ']} differ"
        )
    for line in lines:
        if "differs" in line:
            print(f"  {line.get('row') or line.get('case')}: {line['differs']}")
    tests = [line for line in lines if line["stage"] == "tests" and "outcome" in line]
    if tests:
        last = {line["tag"]: line["outcome"] for line in tests}  # in the last of several runs
        failed = [tag for tag, outcome in last.items() if outcome != "passed"]
        cases = sum(line["cases"] for line in tests)
        print(
            f"tests: {cases} cases by {len(tests)} processes; not passed: {', '.join(failed) or 'none'}"
        )
    apart = [line for line in lines if "ulp" in line]
    if apart:
        worst = max(line["ulp"] for line in apart)
        print(
            f"a library's results in other layouts: {len(apart)} comparisons, at most {worst:.1f} ulp apart"
        )
        for line in sorted(apart, key=lambda line: -line["ulp"])[:10]:
            print(f"  {line['ulp']:6.1f} ulp of {line['limit']:.0f}  {line['tag']}  {line['of']}")


def print_kernels(lines):
    rows = [line for line in lines if line["stage"] == "kernels" and "microseconds" in line]
    if rows:
        print(f"\n{'kernels alone':<24} {'us':>9} {'copy us':>9} {'of copy':>8} {'goal':>5}")
    for row in rows:
        goal = copy_goal(row["row"]) if "16" not in row["row"] else None
        mark = "" if goal is None or row["of_copy"] >= goal else "  below"
        print(
            f"{row['row']:<24} {row['microseconds']:9.1f} {row['copy_microseconds']:9.1f}"
            f" {row['of_copy']:8.2f} {ratio(goal):>5}{mark}"
        )


def seconds_of(line):
    """Of a call in a loop: the host's time for asking, or the device's, whichever is more."""
    if line is None or "failed" in line:
        return None
    times = [line[key] for key in ("host_s", "device_s") if key in line] or [line.get("median_s")]
    return max(times)


def marks_of(name, ours, theirs, share, against):
    marks = []
    goal = copy_goal(name)
    if goal and share is not None and share < goal:
        marks.append("below copy's share")
    if against is not None and against < 1:
        marks.append("slower than PyTorch")
    # Random inputs are alike only by and large, and not at all where a few numbers are left of them.
    checks = [line["check"] for line in theirs if line and line.get("check")]
    is_few = re.match(r"(W3|W2\.sum|large\.sum|scan\.long)", name)
    if checks and ours.get("check") and not is_few and not 0.8 < checks[0] / ours["check"] < 1.25:
        marks.append("OTHER VALUES")
    return marks


def print_rows(lines):
    """Of each row what a call in a loop takes, and the host's and the device's part of ours, compiled. PyTorch's best by
    our best: above 1, ours is faster."""
    rows = collections.defaultdict(dict)
    for line in lines:
        if line["stage"] == "bench" and "mode" in line and line.get("workload") != "torch":
            rows[line["workload"]][line["peer"], line["mode"]] = line
    modes = ["eager", "compile", "reduce-overhead"]
    header = ["eager", "compiled", "host", "device", "of copy", "goal"]
    header += [*(f"t.{mode[:6]}" for mode in modes), "torch/we"]
    print(f"\n{'row (us)':<26}" + "".join(f"{name:>10}" for name in header))
    for name, found in rows.items():
        eager, compiled = (found.get(("nitinol", mode)) for mode in ("eager", "compiled"))
        best = compiled or eager
        if best is None:
            continue
        theirs = [found.get(("torch", mode)) for mode in modes]
        is_stand_in = any(line and line.get("notes") == "stand-in" for line in theirs)
        times = [None if is_stand_in else seconds_of(line) for line in theirs]
        ours = [time for time in map(seconds_of, (eager, compiled)) if time]
        known = [time for time in times if time]
        against = min(known) / min(ours) if known and ours else None
        device = best.get("device_s")
        share = best["bound_s"] / device if device and best.get("bound_s") else None
        marks = marks_of(name, best, theirs, share, against)
        if is_stand_in:
            marks = ["a stand-in for PyTorch"]
        cells = [*map(microseconds, (seconds_of(eager), seconds_of(compiled)))]
        cells += [microseconds(best.get("host_s")), microseconds(device)]
        cells += [ratio(share), ratio(copy_goal(name)), *map(microseconds, times), ratio(against)]
        print(f"{name:<26}" + "".join(f"{cell:>10}" for cell in cells) + "  " + ", ".join(marks))
    for line in lines:
        if line["stage"] == "bench" and "failed" in line:
            who = " ".join(str(line.get(key, "")) for key in ("peer", "workload", "mode"))
            print(f"  {who}: {line['failed'][:160]}")


def print_rest(lines):
    for line in lines:
        if line["stage"] == "training" and "example" in line and "compiled" in line:
            run = line["compiled"]
            print(
                f"{line['example']} on {line['device']}: loss {run['loss']:.5f}, a step {1e6 * run['step_s']:.0f} us,"
                f" eager {1e6 * line['eager']['step_s']:.0f} us, same bits: {line['bit_identical']}"
            )
        if line["stage"] == "training" and "relative_difference_of_losses" in line:
            print(f"  apart by {line['relative_difference_of_losses']:.2e} of the loss")
    beside = {
        line["mode"]: line["median_s"]
        for line in lines
        if line["stage"] == "copies" and "mode" in line
    }
    if len(beside) == 3:
        alone = beside["steps"] + beside["copies"]
        print(
            f"copies beside kernels: steps {1e3 * beside['steps']:.2f} ms, copies {1e3 * beside['copies']:.2f},"
            f" both {1e3 * beside['both']:.2f}; one after another {1e3 * alone:.2f}"
        )
    for line in lines:
        if line.get("summary"):
            print(f"{line['stage']}: {'; '.join(line['summary'])}")
    for line in lines:
        if line["stage"] == "profile" and "nanoseconds" in line:
            figures = ", ".join(
                f"{key} {value}"
                for key, value in line.items()
                if key not in ("stage", "row", "kernel")
            )
            print(f"{line['row']}: {figures}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", help="results.jsonl of one machine")
    parser.add_argument("--keep", metavar="FOLDER", help="copy them to FOLDER/<device>.jsonl")
    options = parser.parse_args()
    lines = read(options.results)
    device = next((line["device"] for line in lines if "driver" in line and "device" in line), None)
    if device is None:
        sys.exit("no line says which GPU these results are of")
    print(f"{device}\n")
    print_stages(lines)
    print_bits(lines)
    print_kernels(lines)
    print_rows(lines)
    print_rest(lines)
    if options.keep and device != "fake GPU":
        name = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
        path = os.path.join(options.keep, name + ".jsonl")
        with open(path, "w", encoding="utf-8") as out:
            for line in lines:
                out.write(json.dumps(line) + "\n")
        print(f"\n{path}")


if __name__ == "__main__":
    main()
