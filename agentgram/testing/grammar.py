"""Models made of noise: they write through the real decode loop, the real masks and the real format, without weights.

:class:`GrammarModel` writes whatever the grammar lets through; :class:`AdversarialModel` wants one text and takes every
path to it that the masks leave open.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agentgram.engine import Engine, Vocabulary
from agentgram.errors import DefinitionError
from agentgram.formats import Format, get_format
from agentgram.models.base import ModelEvent, ModelRequest
from agentgram.models.decoding import Decoder, speller

if TYPE_CHECKING:
    from pathlib import Path

CLOSERS = b'"}]>,\n'
"""Bytes that noise is pushed towards now and then, so that strings and lists end."""


class Speller:
    """The tokens of a vocabulary that a text may be spelled with, special ones by their name."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.spell = speller(vocabulary)
        self.special = frozenset(vocabulary.special.values())
        self._ids: dict[bytes, list[int]] = {}
        for token in range(vocabulary.size):
            if spelling := self.spell(token):
                self._ids.setdefault(spelling, []).append(token)
        self._longest = max(map(len, self._ids), default=0)

    def next(self, text: bytes, position: int) -> list[int]:
        """Every token that spells a part of ``text`` from ``position`` on, however it is split."""
        ids: list[int] = []
        for end in range(position + 1, min(len(text), position + self._longest) + 1):
            ids += self._ids.get(text[position:end], ())
        return ids


class NoiseBackend:
    """Scores that are noise, save for what a subclass wants; the context is the reply, the prompt is not read."""

    def __init__(self, vocabulary: Vocabulary, speller: Speller, random: np.random.Generator) -> None:
        self.vocabulary = vocabulary
        self.speller = speller
        self.random = random
        self.tokens: list[int] = []
        self.prompt = 0
        self._closers = np.array(
            [t for t in range(vocabulary.size) if (b := vocabulary.token_bytes(t)) and not b.strip(CLOSERS)], np.int64
        )
        self._ends = np.array(vocabulary.end, np.int64)

    def prefill(self, tokens: Sequence[int]) -> None:
        """Starts a reply."""
        self.tokens, self.prompt = list(tokens), len(tokens)

    def append(self, tokens: Sequence[int]) -> None:
        """Adds tokens to the reply."""
        self.tokens.extend(tokens)

    def truncate(self, length: int) -> None:
        """Shortens prompt and reply to ``length`` tokens."""
        del self.tokens[length:]

    @property
    def reply(self) -> bytes:
        """The bytes written so far."""
        return b"".join(map(self.speller.spell, self.tokens[self.prompt :]))

    def logits(self) -> NDArray[np.float32]:
        """Scores of shape [vocabulary]: noise in [0, 1), wishes above."""
        scores = self.random.random(self.vocabulary.size, dtype=np.float32)
        if self.random.random() < 0.2:
            scores[self._closers] += 1
        if self.random.random() < 0.2:
            scores[self._ends] += 1
        self.wish(scores)
        return scores

    def wish(self, scores: NDArray[np.float32]) -> None:
        """Raises the scores of wanted tokens."""


class WishfulBackend(NoiseBackend):
    """Noise that sets out to write an opener now and then: by chance alone, nobody spells a tool's name."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        speller: Speller,
        random: np.random.Generator,
        openers: Sequence[bytes],
        rate: float,
    ) -> None:
        super().__init__(vocabulary, speller, random)
        self.openers = openers
        self.rate = rate
        self._opener: bytes | None = None
        self._from = 0

    def wish(self, scores: NDArray[np.float32]) -> None:
        """Goes on with the opener that was begun, or begins one."""
        written = self.reply
        if self._opener is not None:
            done = written[self._from :]
            if not self._opener.startswith(done) or len(done) == len(self._opener):
                self._opener = None
        if self._opener is None and self.openers and self.random.random() < (0.05 if written else self.rate):
            self._opener = self.openers[int(self.random.integers(len(self.openers)))]
            self._from = len(written)
        if self._opener is not None:
            for token in self.speller.next(self._opener, len(written) - self._from):
                scores[token] += 20 if token in self.speller.special else 10


class GrammarModel:
    """Writes random valid turns: text, calls of permitted tools, typed answers.

    Two models of one seed write the same turns for the same requests in the same order.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        format: str | Path | Format = "hermes",
        vocabulary: Vocabulary | None = None,
        call_rate: float = 0.7,
    ) -> None:
        """Args:
        seed: Seeds the noise; a request's own ``settings.seed`` is mixed in.
        format: The response format to write.
        vocabulary: What to write with; None for single bytes.
        call_rate: How often a turn sets out to call a tool, in [0, 1].

        Raises:
            DefinitionError: The format is unknown.
        """
        self.seed = seed
        self.format = format if isinstance(format, Format) else get_format(format)
        self.vocabulary = vocabulary or Vocabulary.byte_level()
        self.call_rate = call_rate
        self.outputs: list[bytes] = []
        """The bytes of each turn, as they were appended."""
        self.turns = 0
        """How many turns have been begun."""
        self._decoder = Decoder(Engine.shared(self.vocabulary), self.format)
        self._speller = Speller(self.vocabulary)
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """What to call the model in messages and logs."""
        return f"grammar-{self.seed}"

    def count_tokens(self, what: str | ModelRequest) -> int:
        """Tokens of a text, or of the prompt of a turn, in this model's vocabulary."""
        text = what if isinstance(what, str) else self.format.render(what.shown).text
        return len(self.vocabulary.encode(text.encode()))

    def turn(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """Writes one turn, without an event loop."""
        seed = request.settings.seed
        prompt = self.format.render(request.shown)
        with self._lock:  # runs of several threads may share the model; what they share of it is used here only
            random = np.random.default_rng([abs(self.seed), self.turns, 0 if seed is None else abs(seed) + 1])
            self.turns += 1
            backend = self._backend(request, random)
            events = self._decoder.decode(backend, request, prompt)
        try:
            yield from events
        finally:
            self.outputs.append(backend.reply)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Writes one turn; see :meth:`agentgram.models.Model.stream`."""
        for event in self.turn(request):
            yield event
            await asyncio.sleep(0)  # as a real model does, it lets others have their turn between its tokens

    def _backend(self, request: ModelRequest, random: np.random.Generator) -> NoiseBackend:
        openers = [text.encode() for text in self.format.openers(request.permitted).values()]
        return WishfulBackend(self.vocabulary, self._speller, random, openers, self.call_rate)


class TargetBackend(NoiseBackend):
    """Scores that favour every token by which the reply goes on towards a target."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        speller: Speller,
        random: np.random.Generator,
        targets: Sequence[bytes],
        masked: set[bytes] | None = None,
    ) -> None:
        """Args:
        targets: The wishes, the first of them first.
        masked: Wishes that the masks are known to cut off; what is learned is added. None: nothing is known.
        """
        super().__init__(vocabulary, speller, random)
        self.targets = targets
        self._from = 0
        self._leader: bytes | None = None
        self._masked = set() if masked is None else masked
        self._cut = self._masked - {targets[0]}

    def wish(self, scores: NDArray[np.float32]) -> None:
        """The first target that can be met before the others; the end where one is complete; else all over again."""
        written = self.reply
        done = written[self._from :]
        if self._from == 0 and self._leader is not None and not self._leader.startswith(done):
            self._masked.add(self._leader)  # its tokens had the highest scores, and another was taken
            self._cut.add(self._leader)
        alive = self._alive(done)
        if not alive:
            self._from, done = len(written), b""
            alive = self._alive(done)
            self.random.shuffle(alive)  # this may be the middle of a string: whichever fails here is worth another try
        elif self._from and self._leader is not None and self._leader in alive:
            alive.remove(self._leader)
            alive.insert(0, self._leader)
        self._leader = alive[0] if alive else None
        for rank, target in enumerate(alive):
            if target == done:
                scores[self._ends] += 2000
            for token in self.speller.next(target, len(done)):
                # A marker that is one token is read as a marker only then: its bytes would be text.
                # Several targets may go on with one token: the first of them speaks for it.
                wish = max(1000 - 10 * rank, 100) + (5 if token in self.speller.special else 0)
                scores[token] = max(scores[token], wish + self.random.random())

    def _alive(self, done: bytes) -> list[bytes]:
        """The targets that begin with ``done``, those last that the masks have cut off before."""
        alive = [t for t in self.targets if t.startswith(done)]
        return [t for t in alive if t not in self._cut] or alive


class AdversarialModel(GrammarModel):
    """Wants one of its targets in every turn, and tries any way of spelling it that the masks leave open.

    Turn by turn it takes the next target, in the order given, and gives its highest scores to the tokens that go on
    with it, split at random; where these are masked, to those of the other targets, last to those that were masked in
    earlier turns; and begins anew where no target can be met any more. Each turn is one attempt.
    """

    def __init__(
        self,
        targets: Sequence[bytes | str],
        *,
        seed: int = 0,
        format: str | Path | Format = "hermes",
        vocabulary: Vocabulary | None = None,
    ) -> None:
        """Args:
        targets: Whole replies that it wants to write, such as a complete call of a denied tool.
        seed: Seeds the splits and the noise.
        format: The response format to write.
        vocabulary: What to write with; None for single bytes.

        Raises:
            DefinitionError: There is no target, or the format is unknown.
        """
        if not targets:
            raise DefinitionError("an AdversarialModel needs at least one target: give the text that it should want.")
        super().__init__(seed, format=format, vocabulary=vocabulary)
        self.targets = tuple(t.encode() if isinstance(t, str) else t for t in targets)
        self._masked: set[bytes] = set()

    @property
    def name(self) -> str:
        """What to call the model in messages and logs."""
        return f"adversarial-{self.seed}"

    @property
    def attempts(self) -> int:
        """Turns written so far, each of which reached for a target."""
        return len(self.outputs)

    def _backend(self, request: ModelRequest, random: np.random.Generator) -> NoiseBackend:  # noqa: ARG002
        first = (self.turns - 1) % len(self.targets)
        targets = [*self.targets[first:], *self.targets[:first]]
        return TargetBackend(self.vocabulary, self._speller, random, targets, self._masked)
