# SPDX-License-Identifier: Apache-2.0
"""Exports the training step of a PyTorch module into a folder that frugal::StepPackage runs from C++.

    export_step(module, lambda module, batch: F.cross_entropy(module(batch[0]), batch[1]), (x, y), "package")
"""

from .errors import ExportError
from .export import export_step
from .loss import Loss

__all__ = ["ExportError", "Loss", "export_step"]
