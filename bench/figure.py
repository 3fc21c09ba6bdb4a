#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figure of docs/benchmarks.md from the tables of docs/benchmarks.md and docs/levers.md.

    figure.py          writes docs/figure-light.svg and docs/figure-dark.svg (Debian's python3-matplotlib)
    figure.py --check  only says whether both show the numbers that the pages have now

`./dev figure` runs it. Nothing is measured here.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEED = ("docs/benchmarks.md", "## peers", "loop")
MEMORY = ("docs/levers.md", "*transformer of 24 layers", "")
# The rows to draw, by the first cell of the table, and their names in the figure.
LOOPS = {"frugal": "frugal", "tuned": "PyTorch, tuned", "compiled": "torch.compile", "plain": "PyTorch, plain",
         "accelerate": "Accelerate", "lightning": "Lightning"}
LEVERS = {
    "plain": "no lever",
    "`Precision<BF16>`": "Precision<BF16>",
    "`Activations<BF16>`": "Activations<BF16>",
    "`Accumulate<4> with quarter batches`": "Accumulate<4>",
    "`Recompute<>`": "Recompute<>",
    "`Recompute<> and Accumulate<4> with quarter batches`": "Recompute<>, Accumulate<4>",
}
THEMES = {
    "light": {"text": "#1f2328", "muted": "#59636e", "bar": "#b6bfc9", "ours": "#0969da"},
    "dark": {"text": "#f0f6fc", "muted": "#a5aeb8", "bar": "#5b6570", "ours": "#4493f8"},
}
FAMILY = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(text: str) -> float:
    return float(re.match(r"[\d,.]+", text)[0].replace(",", ""))


def table(place: tuple[str, str, str]) -> dict[str, dict[str, str]]:
    """The first table after a line with this prefix whose first column has this head, by first cell."""
    page, begin, head = place
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith(begin)), None)
    if at is None:
        raise SystemExit(f"figure: {page} has no line that begins with '{begin}'")
    for i in range(at, len(lines) - 1):
        if lines[i].startswith("|") and lines[i + 1].startswith("| ---") and cells(lines[i])[0] == head:
            header, rows = cells(lines[i]), {}
            for line in lines[i + 2 :]:
                if not line.startswith("|"):
                    break
                rows[cells(line)[0]] = dict(zip(header, cells(line)))
            return rows
    raise SystemExit(f"figure: {page} has no table headed '{head}' behind '{begin}'")


def values() -> tuple[list[tuple[str, float, float, float]], list[tuple[str, float]]]:
    """(loop, median, least, greatest) and (lever, MiB), in drawing order."""
    speed, memory = table(SPEED), table(MEMORY)
    try:
        loops = [(name, *(number(speed[key][column]) for column in ("median", "least", "greatest")))
                 for key, name in LOOPS.items()]
        levers = [(name, number(memory[key]["MiB"])) for key, name in LEVERS.items()]
    except KeyError as error:
        raise SystemExit(f"figure: a table has no {error}; LOOPS and LEVERS of bench/figure.py name what is drawn") from None
    return loops, levers


def shown(value: float) -> str:
    return f"{value:,.0f}"


def file_of(theme: str) -> Path:
    return ROOT / f"docs/figure-{theme}.svg"


def draw(theme: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    color = THEMES[theme]
    plt.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "frugal", "font.size": 11, "text.color": color["text"],
        "axes.labelcolor": color["muted"], "axes.edgecolor": color["muted"], "xtick.color": color["muted"],
        "ytick.color": color["text"], "axes.spines.top": False, "axes.spines.right": False,
        "axes.spines.left": False,
    })  # fmt: skip
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 3.4), layout="constrained")
    loops, levers = values()

    def bars(axes, names, numbers, ours, title, unit, room):
        places = range(len(names))
        axes.barh(places, numbers, height=0.62, color=[color["ours" if mine else "bar"] for mine in ours])
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, room * max(numbers))
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter(lambda value, _: shown(value))
        axes.set_xlabel(unit)
        axes.set_title(title, loc="left", fontsize=12, fontweight="bold")

    medians = [median for _, median, _, _ in loops]
    bars(left, [name for name, *_ in loops], medians, [name == "frugal" for name, *_ in loops],
         "A small network on one core", "samples per second: median, least, greatest", 1.62)
    for place, (_, median, least, greatest) in enumerate(loops):
        left.errorbar(median, place, xerr=[[median - least], [greatest - median]], color=color["muted"],
                      capsize=3, linewidth=1.2)
        left.annotate(shown(median), (greatest, place), (8, 0), textcoords="offset points", va="center")

    mib = [value for _, value in levers]
    bars(right, [name for name, _ in levers], mib, [place > 0 for place in range(len(levers))],
         "A transformer of 24 layers", "MiB: peak of a step, without weights and data", 1.22)
    for place, value in enumerate(mib):
        right.annotate(f"{value:,.1f}", (value, place), (6, 0), textcoords="offset points", va="center")

    file = file_of(theme)
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    # Text stays text, in the reader's system font.
    text = re.sub(r"font: ([^;\"]*?)(\d+(?:\.\d+)?px) [^;\"]*", rf"font: \1\2 {FAMILY}", file.read_text(encoding="utf-8"))
    label = "Samples per second of six training loops, and memory of a step under five levers"
    text = text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    file.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def faults() -> list[str]:
    """Numbers of the pages that the committed figures lack."""
    loops, levers = values()
    wanted = [word for name, median, *_ in loops for word in (name, shown(median))]
    wanted += [word for name, value in levers for word in (name, f"{value:,.1f}")]
    found = []
    for theme in THEMES:
        if not file_of(theme).exists():
            found.append(f"docs/figure-{theme}.svg is not there")
            continue
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", file_of(theme).read_text(encoding="utf-8"))
        texts = [each.replace("&lt;", "<").replace("&gt;", ">") for each in texts]
        found += [f"docs/figure-{theme}.svg does not show {word}" for word in wanted if word not in texts]
    return found


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        found = faults()
        print("\n".join(found) + "\nDraw it again: ./dev figure" if found else "the figure has the pages' numbers")
        return 1 if found else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    for theme in THEMES:
        draw(theme)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
