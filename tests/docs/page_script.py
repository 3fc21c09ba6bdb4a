# SPDX-License-Identifier: Apache-2.0
"""Keeps the hash by which the policy of frugal's HTML pages names their script.

A browser runs no script of a page whose policy names another one, so a changed character of the script needs a new
hash: check.py reports a stale one, and `check.py fill .` writes it. tests/interop/report.py asks a browser.
"""

import base64
import hashlib
import re
from pathlib import Path

ASSET = "include/frugal/base/html_asset.hpp"


def filled(text: str) -> str:
    script = re.findall(r"<script>(.*?)</script>", text, re.S)[-1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return re.sub(r"(?<=script-src 'sha256-)[^']*", lambda _: digest, text)


def fill(root: Path) -> None:
    path = root / ASSET
    if path.exists():
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


def faults(root: Path) -> list[str]:
    path = root / ASSET
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not text or filled(text) == text:
        return []
    return [f"{ASSET}: its policy names another script than the page has; write its hash: python3 tests/docs/check.py fill ."]
