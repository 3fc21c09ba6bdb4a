# SPDX-License-Identifier: Apache-2.0
"""Sizes that vary: tensors without numbers to trace with, and for which sizes the trace is right."""

from __future__ import annotations

import contextlib
import inspect
import itertools

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental import _config as symbolic
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from .errors import ExportError
from .refusal import is_ours, is_users

MOST = 1 << 40

# What a pair of sizes is tried with; a condition on one size is followed from the example's size.
_TRIED = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 127, 128, 1000, 4096)


@contextlib.contextmanager
def any_size():
    """Tracing with this takes a size of 1 for a size as any other, and a convolution for the same whatever the size: which
    of its kernels is the fastest for a batch it asks again when it runs."""
    select = torch._C._select_conv_backend

    def select_without_guards(*args, **kwargs):
        environment = (args[0] if args else kwargs["input"]).fake_mode.shape_env
        with contextlib.nullcontext() if environment is None else environment.suppress_guards():
            return select(*args, **kwargs)

    torch._C._select_conv_backend = select_without_guards
    try:
        with symbolic.patch(backed_size_oblivious=True):
            yield
    finally:
        torch._C._select_conv_backend = select


class Sizes:
    """The inputs of one trace, of which named dimensions have unknown sizes."""

    def __init__(self):
        # Without duck shapes: a batch of 10 for 10 classes must not make one size of the two.
        self._environment = ShapeEnv(duck_shape=False, specialize_zero_one=False)
        self._environment._get_user_frame = _users_frame
        # Tensors with numbers are refused: what is neither of the module nor of the batch would be a constant.
        self._mode = FakeTensorMode(shape_env=self._environment, allow_non_fake_inputs=False)
        self._named: dict[str, torch.SymInt] = {}
        self._symbols: dict[str, list] = {}  # of each dimension that has the name
        self._examples: dict[str, int] = {}

    def fixed(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._mode.from_tensor(tensor.detach(), static_shapes=True)

    def field(self, field: str, tensor: torch.Tensor, names: dict[int, str]) -> torch.Tensor:
        """A tensor of the batch. Dimensions of the same name have the same size."""
        kinds = [DimDynamic.DYNAMIC if axis in names else DimDynamic.STATIC for axis in range(tensor.dim())]
        with any_size():
            made = self._mode.from_tensor(
                tensor.detach(), symbolic_context=StatelessSymbolicContext(dynamic_sizes=kinds))
            for axis, name in names.items():
                if name in self._named:
                    torch._check(made.shape[axis] == self._named[name])
                self._named.setdefault(name, made.shape[axis])
                self._symbols.setdefault(name, []).append(made.shape[axis].node._expr)
                self._examples.setdefault(name, tensor.size(axis))
        return made

    def ranges(self) -> dict[str, list[int]]:
        """The smallest and largest size of each named dimension for which the trace is right.

        A trace notes each question about a size with its answer. It is right where the answers are the same.
        """
        symbols = {name: self._resolved(several[0]) for name, several in self._symbols.items()}
        examples = {symbol: self._examples[name] for name, symbol in symbols.items()}
        for name, symbol in symbols.items():
            if not symbol.is_Symbol:
                self._refuse(name, f"it can only be {symbol}", self._where(self._symbols[name]))
        found = {symbol: [1, MOST] for symbol in examples}
        several = []
        for guard in self._environment.guards:
            condition = self._resolved(guard.expr)
            asked = [symbol for symbol in examples if symbol in condition.free_symbols]
            if len(asked) > 1:
                several.append((guard, condition, asked))
            elif asked:
                lower, upper = _range(condition, asked[0], examples[asked[0]])
                if lower == upper:
                    self._refuse_condition(asked, condition, symbols, guard)
                both = found[asked[0]]
                both[:] = [max(both[0], lower), min(both[1], upper)]
        for guard, condition, asked in several:
            # Sizes of 1 are what such conditions are about: is there an element, is it broadcast?
            for raised in itertools.chain([()], itertools.combinations(asked, 1), [tuple(asked)]):
                lowest = {symbol: max(found[symbol][0], 2 if symbol in raised else 1) for symbol in asked}
                if _always(condition, lowest, found):
                    for symbol in asked:
                        found[symbol][0] = lowest[symbol]
                    break
            else:
                self._refuse_condition(asked, condition, symbols, guard)
        return {name: found[symbol] for name, symbol in symbols.items()}

    def _refuse_condition(self, asked, condition, symbols, guard):
        self._refuse(" and ".join(name for name, symbol in symbols.items() if symbol in asked),
                     f"it decides by {_words(condition, symbols)}", _line(guard))

    def _resolved(self, expression):
        for _ in range(8):
            after = expression.xreplace(self._environment.replacements)
            if after == expression:
                break
            expression = after
        return expression

    def _where(self, symbols) -> str:
        """Where a size lost its freedom: the last question about it."""
        lines = [_line(guard) for guard in self._environment.guards if guard.expr.free_symbols & set(symbols)]
        return next((line for line in reversed(lines) if line != _UNKNOWN), _UNKNOWN)

    @staticmethod
    def _refuse(name, why, where):
        raise ExportError(
            f"the module or the loss fixes the size '{name}', which should vary",
            where=where,
            why=why,
            fix="Compute with the size in tensors, or give `dynamic` without that dimension and an example of each "
                "of its sizes in `shapes`.",
        )


_UNKNOWN = "an operator of torch"


def _users_frame():
    """The frame of the module or of the loss that asks about a size, which torch notes with the question."""
    frame = first = inspect.currentframe().f_back
    while frame is not None and not is_ours(frame.f_code.co_filename):
        if is_users(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return first


def _line(guard) -> str:
    """The line that asked a question about a size."""
    frame = guard.sloc.framework_loc
    if frame is None or isinstance(frame, str) or not is_users(frame.filename):
        return _UNKNOWN
    return f"{frame.filename}:{frame.lineno}, in {frame.name}" + (f": {frame.line}" if frame.line else "")


def _words(condition, symbols) -> str:
    text = str(condition)
    for name, symbol in symbols.items():
        text = text.replace(str(symbol), name)
    return text


def _holds(condition, symbol, size: int) -> bool:
    try:
        return bool(condition.xreplace({symbol: size * symbol**0}).doit())
    except TypeError:
        return False


def _range(condition, symbol, example: int) -> tuple[int, int]:
    """The sizes around the example's for which a condition holds without a gap."""
    lower = example
    while lower > 1 and _holds(condition, symbol, lower - 1):
        lower -= 1
    near = example
    while near < example + 64 and _holds(condition, symbol, near + 1):
        near += 1
    if near < example + 64:
        return lower, near
    # Far away, conditions are limits: of memory, or of 32 bits.
    good, step = near, near
    while good < MOST and _holds(condition, symbol, good + step):
        good, step = good + step, 2 * step
    while step > 1:
        step //= 2
        if good + step <= MOST and _holds(condition, symbol, good + step):
            good += step
    return lower, min(good, MOST)


def _always(condition, lowest, found) -> bool:
    """Whether a condition on several sizes holds for all that are tried."""
    tried = [[size for size in _TRIED if low <= size <= found[symbol][1]] for symbol, low in lowest.items()]
    try:
        return all(bool(condition.xreplace({symbol: size * symbol**0 for symbol, size in zip(lowest, sizes)}).doit())
                   for sizes in itertools.product(*tried))
    except TypeError:
        return False
