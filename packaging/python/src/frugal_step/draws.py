# SPDX-License-Identifier: Apache-2.0
"""Random numbers that are those of eager PyTorch for the same seed, whatever inductor does to the graph."""

from __future__ import annotations

import torch

_aten = torch.ops.aten


class Draws:
    """Decompositions for make_fx of operators that draw random numbers.

    Inductor may call operators in another order if none needs what the other one made, and chooses strides of
    its own, while a generator fills memory in its order. So each draw gets an element of the one before it, and
    is made in the order of eager PyTorch's memory.
    """

    def __init__(self):
        self._last, self._inside = None, False
        self.table = {
            _aten.native_dropout.default: self._dropout,
            _aten.bernoulli.p: self._bernoulli,
            _aten.uniform.default: self._uniform,
            _aten.normal_functional.default: self._normal,
            _aten.rand.default: self._rand,
            _aten.randn.default: self._randn,
            _aten.rand_like.default: self._rand_like,
            _aten.randn_like.default: self._randn_like,
        }

    def _drawn(self, like, dtype, draw):
        """Random numbers of the shape of a tensor. The operator that draws them is not decomposed again."""
        order = sorted(range(like.dim()), key=lambda axis: _hint(like.stride(axis)), reverse=True)
        size = [like.size(axis) for axis in order]
        if self._last is None:
            base = torch.zeros(size, dtype=dtype, device=like.device)
        else:
            base = self._last.to(dtype).expand(size).clone(memory_format=torch.contiguous_format)
        self._inside = True
        try:
            made = draw(base)
        finally:
            self._inside = False
        self._last = made.reshape(-1)[0]
        return made.permute([order.index(axis) for axis in range(like.dim())])

    def _bernoulli(self, tensor, p=0.5, *, generator=None):
        if self._inside or generator is not None:
            return NotImplemented
        return self._drawn(tensor, tensor.dtype, lambda base: _aten.bernoulli.p(base, p))

    def _uniform(self, tensor, low=0.0, high=1.0, *, generator=None):
        if self._inside or generator is not None:
            return NotImplemented
        return self._drawn(tensor, tensor.dtype, lambda base: _aten.uniform.default(base, low, high))

    def _normal(self, tensor, mean=0.0, std=1.0, *, generator=None):
        if self._inside or generator is not None:
            return NotImplemented
        return self._drawn(tensor, tensor.dtype, lambda base: _aten.normal_functional.default(base, mean, std))

    def _dropout(self, tensor, p, train):
        if not train or p == 0:
            return tensor.clone(), torch.ones_like(tensor, dtype=torch.bool)
        mask = self._drawn(tensor, torch.bool, lambda base: _aten.bernoulli.p(base, 1 - p))
        return tensor * mask * (1 / (1 - p) if p < 1 else 0.0), mask

    def _rand(self, size, *, dtype=None, layout=None, device=None, pin_memory=None):
        return self._uniform(torch.empty(size, dtype=dtype, device=device))

    def _randn(self, size, *, dtype=None, layout=None, device=None, pin_memory=None):
        return self._normal(torch.empty(size, dtype=dtype, device=device))

    def _rand_like(self, tensor, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        return self._uniform(torch.empty_like(tensor, dtype=dtype, device=device, memory_format=memory_format))

    def _randn_like(self, tensor, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        return self._normal(torch.empty_like(tensor, dtype=dtype, device=device, memory_format=memory_format))


def _hint(stride) -> int:
    return int(stride if isinstance(stride, int) else stride.node.hint)
