#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes arguments.json, next to this file: the arguments of other trainers, for docs/migrate.md.

    pip download --no-deps lightning==2.6.6 transformers==5.23.0 mosaicml==0.32.1 -d WHEELS
    python3 tests/docs/arguments.py WHEELS

It reads the sources in the wheels and imports nothing.
"""

import ast
import json
import sys
import zipfile
from pathlib import Path

# Library, file in its wheel, class.
CLASSES = (
    ("lightning", "lightning/pytorch/trainer/trainer.py", "Trainer"),
    ("transformers", "transformers/trainer.py", "Trainer"),
    ("transformers", "transformers/training_args.py", "TrainingArguments"),
    ("mosaicml", "composer/trainer/trainer.py", "Trainer"),
)


def arguments(source: str, name: str) -> list[str]:
    """Of the class' __init__, or, of a dataclass, its fields."""
    found = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef) and node.name == name)
    for member in found.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            names = member.args.args + member.args.kwonlyargs
            return [each.arg for each in names if each.arg != "self"]
    return [member.target.id for member in found.body if isinstance(member, ast.AnnAssign)]


def main(wheels: Path) -> int:
    known = {}
    for library, path, name in CLASSES:
        wheel = next(wheels.glob(f"{library}-*.whl"))
        with zipfile.ZipFile(wheel) as files:
            source = files.read(path).decode("utf-8")
        version = wheel.name.split("-")[1]
        known[f"{library} {version} {name}"] = arguments(source, name)
    (Path(__file__).parent / "arguments.json").write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
