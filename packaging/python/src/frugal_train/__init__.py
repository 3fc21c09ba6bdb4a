# SPDX-License-Identifier: Apache-2.0
"""Trains a step package from Python: a recipe as text becomes a C++ program, which runs as a process of its own.

    train("packages/net", {"data": x, "target": y}, {"Optimize<AdamW>": {"lr": 1e-3}}, epochs=3, module=net)
"""

from .errors import TrainError
from .run import Result, train

__all__ = ["Result", "TrainError", "train"]
