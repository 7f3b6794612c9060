"""The engine's typed face: compile a specification, fill masks, follow a reply."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from agentgram.engine import _core
from agentgram.engine.native import native_spec
from agentgram.engine.spec import Spec
from agentgram.engine.vocabulary import Vocabulary
from agentgram.errors import GrammarError

if TYPE_CHECKING:
    import numpy as np

_core.set_grammar_error(GrammarError)
atexit.register(_core.stop_workers)

_JIT = {"off": 0, "lazy": 1, "warm": 2}


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """What an engine may use, and which of its mechanisms it does without (to measure what each is worth)."""

    cache_bytes: int = 256 << 20
    """Bound on everything that grammars share, in bytes; what is least recently used goes first."""
    threads: int | None = None
    """Threads for batches of masks and for building them ahead; None for one per core. 1: none but the caller's."""
    jit: Literal["off", "lazy", "warm"] = "warm"
    """When masks are built (XGrammar-2, just-in-time compilation).

    ``lazy``: when they are first asked for. ``warm``: those that take longest also on another thread, as soon as a
    grammar is compiled and while a model reads its prompt (with one thread: only by :meth:`Grammar.warm`). ``off``:
    inside ``compile``, all that can be foreseen."""
    cross_grammar_cache: bool = True
    """Whether grammars share their parts; without it each is compiled for itself."""
    repetition_compression: bool = True
    """Whether the values of a counter that no token can tell apart share their masks."""
    adaptive_masks: bool = True
    """Whether masks are put together from what is known of terminals' states; without it each is a walk of the
    vocabulary with the parser."""


@dataclass(frozen=True, kw_only=True)
class EngineStats:
    """Counters of an engine since it was made."""

    cache_bytes: int
    """Bytes that shared parts hold now: compiled schemas, terminals, entries of masks."""
    fragments: int
    """Compiled schemas in the cache."""
    terminals: int
    """Terminals in the cache."""
    entries: int
    """Entries of masks in the cache."""
    perfect_hits: int
    """Schemas that were found compiled, with all that was built for them."""
    partial_hits: int
    """Entries of masks that were found, whatever grammar they were built for."""
    misses: int
    """Schemas that had to be compiled."""
    builds: int
    """Entries of masks that had to be built."""
    evictions: int
    """Schemas and entries that were dropped for want of room."""
    nodes_walked: int
    """Nodes of vocabularies' tries that were visited to build entries."""
    rules: int
    """Rules that grammars are made of now (objects, arrays, alternatives), equal ones counted once."""
    shared_rules: int
    """Rules that were found, whatever schema or grammar they were made for, instead of being made again."""


@dataclass(frozen=True, kw_only=True)
class CoverageRow:
    """What became of one keyword of a schema."""

    pointer: str
    """JSON pointer (RFC 6901) to the keyword's schema."""
    keyword: str
    why: str


@dataclass(frozen=True, kw_only=True)
class CoverageReport:
    """What a grammar enforces of its schemas."""

    enforced: tuple[CoverageRow, ...]
    """Exactly."""
    narrowed: tuple[CoverageRow, ...]
    """More than asked: something valid is not generated."""
    relaxed: tuple[CoverageRow, ...]
    """Not by the grammar (only with ``unsupported="relax"``); to be validated afterwards."""
    warnings: tuple[CoverageRow, ...]
    """Keywords that look like a mistake."""


def allocate_mask(batch: int, vocab_size: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """A mask, all zero: int32 of shape [batch, ceil(vocab_size / 32)].

    Bit ``id % 32`` of word ``id // 32`` set means that the token is allowed.
    """
    import numpy as np

    return np.zeros((batch, (vocab_size + 31) // 32), dtype=np.int32)


def apply_mask(logits: Any, mask: Any) -> None:
    """Sets the logits of tokens that are not allowed to minus infinity, in place.

    Args:
        logits: numpy array or torch tensor of shape [vocab] or [batch, vocab]; columns beyond the mask are banned too.
        mask: What :func:`allocate_mask` made, one row for each row of logits.

    Raises:
        ValueError: The shapes do not fit.
    """
    import numpy as np

    rows = mask if mask.ndim == 2 else mask[None]
    allowed = np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), axis=1, bitorder="little")
    width = logits.shape[-1]
    batch = 1 if logits.ndim == 1 else logits.shape[0]
    if batch != rows.shape[0]:
        raise ValueError(f"{batch} rows of logits, but {rows.shape[0]} rows of mask.")
    banned = np.ones((batch, width), dtype=bool)
    common = min(width, allowed.shape[1])
    banned[:, :common] = allowed[:, :common] == 0
    if logits.ndim == 1:
        banned = banned[0]
    if isinstance(logits, np.ndarray):
        logits[banned] = -np.inf
    else:
        import torch

        logits.masked_fill_(torch.from_numpy(banned).to(logits.device), float("-inf"))


class Matcher(_core.Matcher):
    """Follows one reply through a grammar. One thread at a time; forks are independent.

    History counts successful calls of :meth:`accept` and :meth:`accept_bytes`: each is one step of :meth:`rollback`.
    Made by :meth:`Grammar.matcher` and :meth:`fork`.
    """

    # What is called for each token is the native type's own: a call costs nothing beyond it.
    __slots__ = ()

    def forced_tokens(self) -> list[int]:
        """Tokens, as the tokenizer itself would write them, whose bytes are a prefix of :meth:`forced_bytes`.

        They end where no token could run on beyond what is forced.
        """
        return self.forced_tokens_by(self.vocab._tokenize)

    def shortest_end(self) -> bytes:
        """A shortest legal completion, as bytes; tokens that only an id can spell are left out (see
        :meth:`shortest_end_tokens`).
        """
        return bytes(value for token, value in self.shortest_end_units() if not token)

    def shortest_end_tokens(self) -> list[int]:
        """A shortest legal completion, as tokens; the end token itself is not part of it."""
        out: list[int] = []
        run = bytearray()
        for token, value in [*self.shortest_end_units(), (True, -1)]:
            if not token:
                run.append(value)
                continue
            if run:
                out += self.vocab.encode(bytes(run))
                run.clear()
            if value >= 0:
                out.append(value)
        return out


class Grammar:
    """A compiled specification: immutable, shareable between threads."""

    __slots__ = ("_engine", "_native", "_vocab")

    def __init__(self, native: _core.Grammar, engine: Engine) -> None:
        self._native = native
        self._engine = engine
        self._vocab = engine.vocab

    def matcher(self) -> Matcher:
        """A matcher at the grammar's start."""
        matcher: Matcher = _core.matcher(Matcher, self._native, self._vocab)
        return matcher

    def warm(self, top: int = 64, timeout: float | None = None) -> Future[None]:
        """Builds masks before they are asked for: those of the ``top`` states that take longest.

        They are built on another thread, or, where the engine has one thread, before this returns.

        Args:
            top: How many states.
            timeout: Seconds after which no further one is begun; None for no bound.

        Returns:
            Done when they are built. Cancelling it before it has begun keeps it from beginning.
        """
        return self._engine._warm(self, top, timeout)

    @property
    def report(self) -> CoverageReport:
        """What is enforced of the schemas in it."""
        kinds = [
            tuple(CoverageRow(pointer=p, keyword=k, why=w) for p, k, w in rows) for rows in self._native.coverage()
        ]
        return CoverageReport(enforced=kinds[0], narrowed=kinds[1], relaxed=kinds[2], warnings=kinds[3])


class Engine:
    """Compiles specifications for one vocabulary, and shares what they have in common.

    Safe to use from several threads.

    Args:
        vocab: The model's vocabulary.
        options: Memory and threads.
    """

    _shared: ClassVar[weakref.WeakValueDictionary[str, Engine]] = weakref.WeakValueDictionary()
    _shared_lock = threading.Lock()

    def __init__(self, vocab: Vocabulary, options: EngineOptions | None = None) -> None:
        self.vocab = vocab
        self.options = options or EngineOptions()
        if self.options.jit not in _JIT:
            raise ValueError(f"jit is {self.options.jit!r}: use 'off', 'lazy' or 'warm'.")
        if self.options.threads is not None and self.options.threads < 1:
            raise ValueError(f"threads is {self.options.threads}: use at least 1, or None for one per core.")
        self._threads = self.options.threads or os.cpu_count() or 1
        self._native = _core.EngineCore.make(
            vocab._native,
            self.options.cache_bytes,
            self._threads,
            _JIT[self.options.jit],
            self.options.cross_grammar_cache,
            self.options.repetition_compression,
            self.options.adaptive_masks,
        )
        self._pool: ThreadPoolExecutor | None = None

    @classmethod
    def shared(cls, vocab: Vocabulary) -> Engine:
        """The process's engine for this vocabulary; it lives as long as somebody holds it."""
        with cls._shared_lock:
            engine = cls._shared.get(vocab.fingerprint)
            if engine is None:
                engine = cls._shared[vocab.fingerprint] = cls(vocab)
            return engine

    def compile(self, spec: Spec, timeout: float | None = None) -> Grammar:
        """Compiles a specification.

        Args:
            spec: What to generate.
            timeout: Seconds to wait; None waits to the end.

        Raises:
            GrammarError: It cannot be enforced exactly, can never end, or took longer than ``timeout``.
        """
        handle = native_spec(spec)
        if timeout is None:
            return Grammar(self._native.compile(handle), self)
        future: Future[_core.Grammar] = self._background().submit(self._native.compile, handle)
        try:
            return Grammar(future.result(timeout), self)
        except FutureTimeout:
            raise GrammarError(
                f"compiling took longer than {timeout} s", hint="Give it more time, or make the grammar smaller."
            ) from None

    def _background(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="agentgram-compile")
        return self._pool

    def _warm(self, grammar: Grammar, top: int, timeout: float | None) -> Future[None]:
        seconds = float("inf") if timeout is None else timeout
        if self._threads > 1:
            return self._background().submit(lambda: (self._native.warm(grammar._native, top, seconds), None)[1])
        done: Future[None] = Future()
        self._native.warm(grammar._native, top, seconds)
        done.set_result(None)
        return done

    def fill_masks(self, matchers: Sequence[Matcher], mask: Any, rows: Sequence[int] | None = None) -> None:
        """Fills one row for each matcher, on several threads where that is faster; the GIL is released meanwhile.

        Args:
            matchers: Matchers of this engine's vocabulary.
            mask: What :func:`allocate_mask` made.
            rows: Which row each gets; None for 0, 1, 2, ...

        Raises:
            ValueError: The mask's shape or the number of rows is wrong.
        """
        _core.fill_masks(tuple(matchers), mask, None if rows is None else list(rows), self._threads)

    def stats(self) -> EngineStats:
        """Counters and sizes."""
        values = self._native.stats()
        return EngineStats(**{name: values[name] for name in EngineStats.__dataclass_fields__})

    def clear(self) -> None:
        """Forgets everything that no grammar uses."""
        self._native.clear()
