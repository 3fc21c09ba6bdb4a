# SPDX-License-Identifier: Apache-2.0
"""Writes include/frugal/apply/page_options.hpp from the tables of options on the pages.

apply() gives a program's policies their members by name, and prints what a member does. Both come from the tables that
members.py compares with the headers: the first cell of a row has the members' names, the last one says what they do.
"""

import re
from pathlib import Path

import members

PAGES = ("docs/apply.md", "docs/objectives.md", "docs/policy/", "docs/report/", "docs/model/", "docs/cluster/")
TARGET = "include/frugal/apply/page_options.hpp"
LONGEST = 300

HEAD = """// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Written by tests/docs/options.py from the tables of options on the pages: python3 tests/docs/check.py fill .
// clang-format off
namespace frugal::detail {

/// Calls `visit(name, member)` for each member of an object that a page lists.
template <class Object, class Visit>
void each_page_option(Object& object, Visit&& visit) {
"""
MIDDLE = """}

/// What a page says of a member: "EarlyStop.patience".
struct PageOption {
  std::string_view name;
  std::string_view effect;
};
inline constexpr PageOption page_options[] = {
"""
TAIL = """};

}  // namespace frugal::detail
// clang-format on
"""


def plain(cell: str) -> str:
    """The text of a cell without links and code marks."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).replace("`", "").replace("\\|", "|")
    if len(text) > LONGEST:
        text = text[: text.rfind(" ", 0, LONGEST)] + " ..."
    return text


def options(root: Path, pages: list[str]) -> dict[str, str]:
    """What the pages say of each member, by Struct.member."""
    headers, found = members.Headers(root), {}
    for page in pages:
        if not page.startswith(PAGES):
            continue
        for table in members.tables_of((root / page).read_text(encoding="utf-8")):
            if not table.mark.startswith("members: "):
                continue
            parts = [each.strip() for each in table.mark.removeprefix("members: ").split(";")]
            structs = {}
            for each in parts:
                if " = " not in each and not each.startswith("not:"):
                    path, _, name = each.partition(" ")
                    structs[name] = headers.struct(path, name) or {}
            for row in table.rows:
                for written in members.named(row[0]):
                    owner, _, path = written.rpartition("::")
                    for name, has in structs.items():
                        if (not owner or owner == name) and path.partition(".")[0] in has:
                            found.setdefault(f"{name.partition('<')[0]}.{path}", plain(row[-1]))
    return found


def generated(root: Path, pages: list[str]) -> str:
    found = options(root, pages)
    names = sorted({part for key in found for part in key.split(".")[1:]})
    visits = "".join(f'  if constexpr (requires {{ object.{name}; }}) visit("{name}", object.{name});\n' for name in names)
    rows = "".join(
        '    {"%s", "%s"},\n' % (key, effect.replace("\\", "\\\\").replace('"', '\\"'))
        for key, effect in sorted(found.items()))  # fmt: skip
    return HEAD + visits + MIDDLE + rows + TAIL


def fault(root: Path, pages: list[str]) -> list[str]:
    file = root / TARGET
    if not file.parent.is_dir():
        return []  # the sample pages of self_test.py
    if file.is_file() and file.read_text(encoding="utf-8") == generated(root, pages):
        return []
    return [f"{TARGET} is not what the pages say: run `python3 tests/docs/check.py fill .`"]


def fill(root: Path, pages: list[str]) -> None:
    (root / TARGET).parent.mkdir(exist_ok=True)
    (root / TARGET).write_text(generated(root, pages), encoding="utf-8")
