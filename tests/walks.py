"""Random walks through a grammar: every mask is that of a walk of the vocabulary by the parser."""

from __future__ import annotations

import random

from agentgram.engine import Engine, Matcher, Spec, Vocabulary, allocate_mask


def check_mask(matcher: Matcher, vocab: Vocabulary) -> list[int]:
    """The tokens that may come, longest first: the same by entries, from what is kept of them, and by a walk."""
    mask, walked = allocate_mask(1, vocab.size), allocate_mask(1, vocab.size)
    matcher.fill_by_walk(walked)
    for _ in range(20):  # made, kept, found, and found so often that it is kept in another form
        matcher.fork().fill_mask(mask)
        assert (mask == walked).all()
    allowed = [t for t in range(vocab.size) if mask[0, t // 32] >> t % 32 & 1]
    return sorted(allowed, key=lambda t: -len(vocab.token_bytes(t)))


def walk(spec: Spec, seed: int, steps: int, engine: Engine, start: bytes = b"") -> None:
    """With a liking for long tokens; each is taken as a token and, beside that, as bytes."""
    rng = random.Random(seed)
    matcher = engine.compile(spec).matcher()
    assert matcher.accept_bytes(start)
    by_bytes = matcher.fork()
    for _ in range(steps):
        allowed = [t for t in check_mask(matcher, engine.vocab) if engine.vocab.token_bytes(t)]
        assert same_state(matcher, by_bytes)
        if not allowed:
            return
        token = rng.choice(allowed[: rng.choice([1, 4, 40, len(allowed)])])
        assert matcher.accept(token) and by_bytes.accept_bytes(engine.vocab.token_bytes(token))


def same_state(a: Matcher, b: Matcher) -> bool:
    """As far as the next token and the end tell."""
    masks = allocate_mask(2, a.vocab.size)
    a.fill_mask(masks, 0)
    b.fill_mask(masks, 1)
    return a.can_end == b.can_end and bool((masks[0] == masks[1]).all())
