"""From ``Agent.run`` to the first mask, where every user may use other tools.

The model's part ends where a real one would compute scores: the decode loop itself has compiled both grammars, the
declared and the permitted one, and filled the mask when it asks for them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import numpy as np
from contestants import Moment, now, since
from data import Encoded, functions
from numpy.typing import NDArray

from agentgram import Agent, ModelSettings, Policy, Principal, Tool, allow
from agentgram.engine import Engine, Vocabulary
from agentgram.formats import get_format
from agentgram.models import ModelEvent, ModelRequest
from agentgram.models.decoding import Decoder

GROUPS = 10
"""Each tool is in one group; each user has a role for half of them."""


class Stopwatch:
    """A model that notes when it was asked, when the prompt was written, and when its first mask was there."""

    name = "stopwatch"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.format = get_format("hermes")
        self.vocabulary = vocabulary
        self.decoder = Decoder(Engine.shared(vocabulary), self.format)
        self.reply: list[int] = []
        self.asked = self.written = now()
        self.masked: Moment | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked = now()
        prompt = self.format.render(request.permitted)
        self.written = now()
        self.masked = None
        self.reply = [*self.vocabulary.encode(b"Yes."), self.vocabulary.end[0]]
        for event in self.decoder.decode(self, request, prompt):
            yield event

    # what the decode loop needs of a model's weights

    def prefill(self, tokens: Sequence[int]) -> None:
        """Nothing is computed."""

    append = prefill

    def truncate(self, length: int) -> None:
        """Nothing is kept."""

    def logits(self) -> NDArray[np.float32]:
        self.masked = self.masked or now()
        scores = np.zeros(self.vocabulary.size, np.float32)
        scores[self.reply.pop(0)] = 1
        return scores


def measure(encoded: Encoded, tools: int, users: int, seed: int) -> list[dict[str, float]]:
    """Every user runs once, then every user again.

    Returns:
        For each run, microseconds: until the model is ``asked``, for the ``prompt``'s text, for grammars and ``mask``,
        and in ``all``.
    """
    rng = random.Random(seed)
    vocabulary = Vocabulary(encoded.tokens, special=encoded.special, end=[encoded.end])
    declared = [
        Tool.from_schema(f.name, {"type": "object", **f.schema}, description=f.description, tags=f"group{i % GROUPS}")
        for i, f in enumerate(functions(tools, seed))
    ]
    policy = Policy(*(allow("*", tags=f"group{i}", roles=f"role{i}") for i in range(GROUPS)))
    roles = [f"role{i}" for i in range(GROUPS)]
    people = [Principal(f"user{i}", roles=set(rng.sample(roles, GROUPS // 2))) for i in range(users)]
    model = Stopwatch(vocabulary)
    agent = Agent(model, tools=declared, policy=policy)

    async def one(user: Principal) -> dict[str, float]:
        start = now()
        await agent.run("Which of them is open today?", user=user, settings=ModelSettings(max_tokens=64))
        assert model.masked is not None
        parts = {"asked": since(start, model.asked), "prompt": since(model.asked, model.written)}
        return {**parts, "mask": since(model.written, model.masked), "all": since(start, model.masked)}

    async def every() -> list[dict[str, float]]:
        return [await one(user) for user in [*people, *people]]

    return asyncio.run(every())
