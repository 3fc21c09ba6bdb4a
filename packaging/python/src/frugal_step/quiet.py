# SPDX-License-Identifier: Apache-2.0
"""Warnings of torch that say nothing to whom exports a package."""

from __future__ import annotations

import contextlib
import logging
import warnings

# (category, beginning of the message)
_WARNINGS = (
    (FutureWarning, r"`isinstance\(treespec, LeafSpec\)` is deprecated"),
)
_LINES = {"torch.utils.cpp_extension": ("No CUDA runtime is found",)}


class _Without(logging.Filter):
    def __init__(self, beginnings):
        super().__init__()
        self._beginnings = beginnings

    def filter(self, record) -> bool:
        return not record.getMessage().startswith(self._beginnings)


@contextlib.contextmanager
def quiet():
    """Leaves out these warnings, and no others, as long as `with` lasts."""
    filters = [(logging.getLogger(name), _Without(beginnings)) for name, beginnings in _LINES.items()]
    for logger, without in filters:
        logger.addFilter(without)
    try:
        with warnings.catch_warnings():
            for category, message in _WARNINGS:
                warnings.filterwarnings("ignore", message=message, category=category)
            yield
    finally:
        for logger, without in filters:
            logger.removeFilter(without)
