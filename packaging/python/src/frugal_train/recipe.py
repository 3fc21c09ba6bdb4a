# SPDX-License-Identifier: Apache-2.0
"""A recipe as text: policies by their C++ names, and their options."""

from __future__ import annotations

import dataclasses
import difflib
import pathlib
import re
import tomllib
from collections.abc import Mapping

from .errors import TrainError

_NAME = re.compile(r"[A-Za-z_]\w*")
_OPTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
# What may be between the names of a policy: numbers, and the strings of Where<"...">.
_POLICY = re.compile(r'[\w\s<>,.:"*+-]+')
_DECLARED = re.compile(r"^(?:template <.*> )?(?:struct|class|using|enum class) (\w+)", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Policy:
    type: str  # as in C++, without the namespace: Optimize<AdamW>
    options: Mapping[str, object]  # member -> number, truth or text


def policies_of(recipe: Mapping[str, Mapping[str, object]]) -> list[Policy]:
    """The policies of a recipe. TrainError for what is no policy's name or no option's value."""
    found = []
    for name, options in recipe.items():
        if not isinstance(options, Mapping):
            raise TrainError(
                f"the options of {name} are {options!r}",
                where="recipe",
                why="a policy has options by name",
                fix=f'Write {{"{name}": {{}}}} for none.',
            )
        if not _POLICY.fullmatch(name) or name.count("<") != name.count(">"):
            raise TrainError(
                f"'{name}' is no policy",
                where="recipe",
                why='a policy is written as in C++, such as "Schedule<Warmup<100>, Cosine>"',
                fix="Take the name from the pages of frugal's policies.",
            )
        found.append(Policy(name, dict(_flat(name, options))))
    return found


def _flat(policy, options, prefix=""):
    """Options of options with dots: {"scaling": {"initial": 1}} is scaling.initial."""
    for name, value in options.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _flat(policy, value, f"{path}.")
        elif not _OPTION.fullmatch(path) or not isinstance(value, (bool, int, float, str)):
            raise TrainError(
                f"the option '{path}' of {policy} is {value!r}",
                where="recipe",
                why="an option is a number, true, false or a text, under the member's name",
                fix="Options of other types are set in a C++ program.",
            )
        else:
            yield path, value


def check_names(policies: list[Policy], include: pathlib.Path) -> None:
    """TrainError for a name that no header of frugal declares, with the nearest one."""
    declared = set()
    for header in (include / "frugal").rglob("*.hpp"):
        declared.update(_DECLARED.findall(header.read_text(encoding="utf-8", errors="replace")))
    for policy in policies:
        text = re.sub(r'"[^"]*"', "", policy.type)
        for name in _NAME.findall(re.sub(r"\b\d[\w.]*", "", text)):
            if name in declared:
                continue
            near = difflib.get_close_matches(name, declared, 1)
            raise TrainError(
                f"there is no '{name}' in frugal",
                where=f'recipe, "{policy.type}"',
                why="no header declares it" + (f"; the nearest name is {near[0]}" if near else ""),
                fix="Take the name from the pages of frugal's policies.",
            )


@dataclasses.dataclass
class Job:
    """A file of frugal-train."""

    package: str
    data: str
    valid: str | None
    batch: int
    weights: str | None
    settings: dict
    policies: dict


def read_job(path: str | pathlib.Path) -> Job:
    """A TOML file. TrainError for a file that is none, and for keys that are not known."""
    path = pathlib.Path(path)

    def refuse(what, why, fix):
        raise TrainError(what, where=str(path), why=why, fix=fix)

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        refuse("the file cannot be read", error.strerror or str(error), "Name a recipe in TOML.")
    try:
        all_of = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        refuse("the file is not TOML", str(error), "Mend that place.")
    known = {field.name for field in dataclasses.fields(Job)}
    for key in all_of:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            refuse(f"there is no key '{key}'", f"the keys are {', '.join(sorted(known))}",
                   f"Did you mean {near[0]}?" if near else "Remove it.")
    for key, kind in (("package", str), ("data", str), ("policies", dict)):
        if not isinstance(all_of.get(key), kind):
            refuse(f"'{key}' is missing, or of another type", f"a job has {key}", f"Write {key}.")
    here = path.parent
    place = lambda name: str(here / all_of[name]) if name in all_of else None  # noqa: E731
    return Job(place("package"), place("data"), place("valid"), all_of.get("batch", 32), place("weights"),
               _settings(all_of.get("settings", {}), here), all_of["policies"])


def _settings(settings: dict, here: pathlib.Path) -> dict:
    if "run_dir" in settings:
        settings = settings | {"run_dir": str(here / settings["run_dir"])}
    return settings
