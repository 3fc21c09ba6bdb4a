# SPDX-License-Identifier: Apache-2.0
"""The error that train() raises."""

from __future__ import annotations


class TrainError(Exception):
    """What went wrong, where, why, and what to do."""

    def __init__(self, what: str, *, where: str, why: str, fix: str):
        self.what, self.where, self.why, self.fix = what, where, why, fix
        super().__init__(f"frugal_train: {what} ({where}): {why}. {fix}")
