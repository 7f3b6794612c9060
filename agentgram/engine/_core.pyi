"""
The structured-generation engine. Use agentgram.engine, which is typed and documented.
"""

from collections.abc import Sequence
from typing import Any, Self

def set_grammar_error(arg: object, /) -> None: ...
def json_text(arg: object, /) -> str | None: ...

class Spec:
    @staticmethod
    def lit(text: str) -> Spec: ...
    @staticmethod
    def tok(token: tuple[bool, str, int]) -> Spec: ...
    @staticmethod
    def text(excludes: Sequence[str]) -> Spec: ...
    @staticmethod
    def seq(items: Sequence[Spec]) -> Spec: ...
    @staticmethod
    def choice(options: Sequence[Spec]) -> Spec: ...
    @staticmethod
    def opt(item: Spec) -> Spec: ...
    @staticmethod
    def rep(item: Spec, min: int, max: int | None, sep: Spec | None) -> Spec: ...
    @staticmethod
    def tag(begin: tuple[bool, str, int], content: Spec, end: tuple[bool, str, int]) -> Spec: ...
    @staticmethod
    def dispatch(
        tags: Sequence[Spec],
        triggers: Sequence[tuple[bool, str, int]],
        stops: Sequence[tuple[bool, str, int]],
        excludes: Sequence[str],
        at_least: int,
        at_most: int | None,
        stop_after_first: bool,
    ) -> Spec: ...
    @staticmethod
    def regex(pattern: str) -> Spec: ...
    @staticmethod
    def ebnf(text: str) -> Spec: ...
    @staticmethod
    def json_schema(text: str, whitespace: int, any_order: bool, relax: bool) -> Spec: ...

class Vocabulary:
    def __init__(self, tokens: Sequence, special: Sequence[tuple[str, int]], end: Sequence[int]) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def memory(self) -> int: ...
    def token_bytes(self, token: int) -> bytes: ...
    def longest_match(self, text: bytes) -> list[int]: ...

class Grammar:
    def coverage(self) -> tuple: ...

class EngineCore:
    @staticmethod
    def make(
        vocab: Vocabulary,
        cache_bytes: int,
        threads: int,
        jit: int,
        cross_grammar_cache: bool,
        repetition_compression: bool,
        adaptive_masks: bool,
    ) -> EngineCore: ...
    def warm(self, grammar: Grammar, top: int, seconds: float) -> int: ...
    def compile(self, spec: Spec) -> Grammar: ...
    def clear(self) -> None: ...
    def stats(self) -> dict: ...
    def truncate_hashes(self, bits: int) -> None:
        """
        For tests, before anything is compiled: rules are looked for by this many bits of their hashes.
        """

class Matcher:
    def fill_mask(self, mask: object, row: int = 0) -> bool:
        """
        Writes which tokens may come next into a row of what allocate_mask made; False: all of them may.

        Raises:
            ValueError: The mask has another type or width.
            IndexError: It has no such row.
            GrammarError: A pattern turned out to need more states than the engine makes.
        """

    def accept(self, token: int) -> bool:
        """
        Goes on with a token; False, and nothing changed, when it may not come.
        """

    def fork(self) -> Self:
        """An independent matcher in the same state; O(1)."""

    @property
    def vocab(self) -> Any:
        """The vocabulary that its tokens are of."""

    def fill_by_walk(self, mask: object, row: int = 0) -> None:
        """
        The same mask as fill_mask, by a walk of the whole vocabulary: slow, to check the other.
        """

    def accept_bytes(self, text: bytes) -> bool:
        """
        Goes on with bytes, as one step; False, and nothing changed, when they may not come.
        """

    def rollback(self, n: int = 1) -> None:
        """
        Takes back the last n steps.

        Raises:
            ValueError: There are fewer.
        """

    def reset(self) -> None:
        """Takes back all steps."""

    @property
    def can_end(self) -> bool:
        """Whether an end token is allowed now."""

    @property
    def ended(self) -> bool:
        """Whether an end token was accepted."""

    @property
    def depth(self) -> int:
        """How many steps were taken."""

    def forced_bytes(self) -> bytes:
        """What every legal continuation begins with, at most 4,096 bytes."""

    def forced_tokens_by(self, tokenize: object | None) -> list[int]: ...
    def shortest_end_units(self) -> list: ...
    def validate(self, tokens: Sequence[int]) -> int:
        """
        How many of these tokens would be accepted one after another; the state stays as it is.
        """

    def fill_draft(self, mask: object, tokens: Sequence[int], parents: Sequence[int]) -> None:
        """
        Masks of a draft tree: row i is what may follow node i.

        Parent -1 is the current state; parents come before their children. Rows at and under a refused node are zero.

        Raises:
            ValueError: The tree or the mask's shape is wrong.
        """

def matcher(of: type[Matcher], grammar: Grammar, vocab: object) -> Any:
    """A matcher of that type at the grammar's start."""

def fill_masks(matchers: tuple, mask: object, rows: Sequence[int] | None, threads: int) -> None: ...
def stop_workers() -> None: ...
