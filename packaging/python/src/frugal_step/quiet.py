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
_LINES = {
    "torch.utils.cpp_extension": "No CUDA runtime is found",
    "torch._inductor.ir": "is missing a c-shim implementation",
}


class _Without(logging.Filter):
    def __init__(self, words):
        super().__init__()
        self._words = words

    def filter(self, record) -> bool:
        return self._words not in record.getMessage()


@contextlib.contextmanager
def quiet():
    """Leaves out these warnings, and no others, as long as `with` lasts."""
    filters = [(logging.getLogger(name), _Without(words)) for name, words in _LINES.items()]
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
