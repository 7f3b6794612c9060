"""Random walks through a language, and ways out of it."""

from __future__ import annotations

from hypothesis import reject
from hypothesis import strategies as st

import oracle

INTERESTING = b'{}[]:, \n"\\u0dDa9bcepxyz1-.+tfnrulse<>_/' + "é😀".encode()
_FIRST = b'"}]:, \n0123456789abcdefnulprstxyz{[D' + b"\x80\xbf\xa9\\-"
CLOSING = bytes(dict.fromkeys((*_FIRST, *range(0x20, 0x7F))))
_DEEP = 400
_WIDE = 2000


def an_end(state: oracle.Expr) -> bytes:
    """Bytes that complete the state, found by always trying what closes first.

    A search that visits too many states without an end is given up, and the example with it: it would need gigabytes.
    """
    seen, stack = {state}, [(state, b"")]
    visited = 0
    while stack:
        here, text = stack.pop()
        if here.complete:
            return text
        visited += 1
        if visited > _WIDE:
            reject()
        following = [(here.feed(b), text + bytes([b])) for b in CLOSING if here.feed(b) not in seen]
        following = [(after, longer) for after, longer in following if after.alive and len(longer) < _DEEP]
        seen.update(after for after, _ in following)
        stack += following[::-1]
        stack += [f for f in following if f[0].complete]
    raise AssertionError("alive, and cannot be completed")


@st.composite
def walks(draw: st.DrawFn, start: oracle.Expr, steps: int = 40) -> bytes:
    """Beginnings of texts of a language: random walks through it."""
    here, text = start, b""
    for _ in range(draw(st.integers(0, steps))):
        following = [b for b in INTERESTING if here.feed(b).alive] or [b for b in range(256) if here.feed(b).alive]
        if not following:
            break
        byte = draw(st.sampled_from(following))
        here, text = here.feed(byte), text + bytes([byte])
    return text
