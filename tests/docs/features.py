# SPDX-License-Identifier: Apache-2.0
"""Words that several pages share about features, from one file: docs/features.toml.

A block of a page

    <!-- features: status -->
    ...
    <!-- end of features -->

has what `check.py fill` makes of the file; VIEWS names the ways to show it. The file's own comments
say what its words mean.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = "docs/features.toml"
BLOCK = re.compile(r"(<!-- features: (\w+) -->\n)(.*?)(<!-- end of features -->)", re.S)
PLACES = {"cpu": "CPU", "gpu": "one GPU", "processes": "several processes", "gpus": "several GPUs"}


@dataclass
class Table:
    words: dict[str, str]  # of each status
    features: list[dict[str, str]]
    missing: list[dict[str, str]]
    areas: list[str]


def read(root: Path) -> Table:
    """ValueError names what the file lacks."""
    with (root / FILE).open("rb") as file:
        told = tomllib.load(file)
    for each in told["feature"]:
        for key in ("name", "area", "page", *PLACES):
            if key not in each:
                raise ValueError(f"{FILE}: {each.get('name', 'a feature')} has no {key}")
        for key in PLACES:
            if each[key] not in told["status"]:
                raise ValueError(f"{FILE}: {each['name']}: {key} is {each[key]}, which is no status")
        if each["area"] not in told["areas"]:
            raise ValueError(f"{FILE}: {each['name']}: {each['area']} is no area")
        if not (root / "docs" / each["page"].partition("#")[0]).is_file():
            raise ValueError(f"{FILE}: {each['name']}: there is no page {each['page']}")
        if each["gpu"] == "ran" and not each.get("ran"):
            raise ValueError(f"{FILE}: {each['name']}: ran on a GPU, and has no `ran` with the case or job")
    return Table(told["status"], told["feature"], told["missing"], told["areas"])


def link(page: str, feature: dict[str, str]) -> str:
    """A link from a page to a feature's page, both relative to the root."""
    up = "../" * (page.count("/") - 1) if page.startswith("docs/") else "docs/"
    return f"[{feature['name']}]({up}{feature['page']})"


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def status(table: Table, page: str) -> str:
    """Every feature with its four statuses."""
    text = row(["feature", *PLACES.values()]) + row(["---"] * 5)
    for each in table.features:
        text += row([link(page, each), *(table.words[each[place]] for place in PLACES)])
    return text


def areas(table: Table, page: str) -> str:
    """A row per area: its features with links, and on what all, some or none of them have run."""
    text = row(["", "features", *PLACES.values()]) + row(["---"] * 6)
    for area in table.areas:
        of_area = [each for each in table.features if each["area"] == area]
        cells = []
        for place in PLACES:
            found = {each[place] for each in of_area} - {"none"}
            has_run = bool(found & {"tested", "ran"})
            cells.append("-" if not found else "partly" if has_run and len(found) > 1 else table.words[next(iter(found))]
                         if len(found) == 1 else table.words["not_run"])  # fmt: skip
        text += row([area, ", ".join(link(page, each) for each in of_area), *cells])
    return text


def gpu(table: Table, page: str) -> str:
    """What has run on one GPU, and by which case or job."""
    text = row(["feature", "in CI, without a GPU", "one GPU", "by"]) + row(["---"] * 4)
    for each in table.features:
        if each["gpu"] != "none":
            text += row([link(page, each), each.get("without", "the CPU"), table.words[each["gpu"]], each.get("ran", "")])
    return text


def missing(table: Table, page: str) -> str:
    """What frugal lacks, as items of a list with the nearest alternative."""
    return "".join(f"* {each['name']}: {each['instead']}\n" for each in table.missing)


def missing_names(table: Table, page: str) -> str:
    """The first ones by name."""
    names = [each["name"] for each in table.missing if each.get("first")]
    return ", ".join(names[:-1]) + " or " + names[-1] + ".\n"


VIEWS = {view.__name__: view for view in (status, areas, gpu, missing, missing_names)}


def filled(root: Path, page: str, text: str) -> str:
    """The text of a page with its blocks as the file has them. ValueError for an unknown view."""

    def block(found: re.Match[str]) -> str:
        if found[2] not in VIEWS:
            raise ValueError(f"{page}: there is no view {found[2]} of {FILE}; there are {', '.join(VIEWS)}")
        return found[1] + VIEWS[found[2]](read(root), page) + found[4]

    return BLOCK.sub(block, text)


def faults_of_features(root: Path, pages: list[str]) -> list[str]:
    faults = []
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        if len(BLOCK.findall(text)) != text.count("<!-- features: "):
            faults.append(f"{page}: a block of features without its end")
            continue
        try:
            if filled(root, page, text) != text:
                faults.append(f"{page}: differs from {FILE}; tests/docs/check.py fill . updates it")
        except (ValueError, OSError) as error:
            faults.append(str(error))
    return faults
