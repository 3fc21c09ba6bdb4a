# SPDX-License-Identifier: Apache-2.0
"""The error that the exporter raises."""

from __future__ import annotations


class ExportError(Exception):
    """What cannot be exported, where, why, and what to do."""

    def __init__(self, what: str, *, where: str, why: str, fix: str):
        self.what, self.where, self.why, self.fix = what, where, why, fix
        super().__init__(f"frugal_step: {what} ({where}): {why}. {fix}")
