"""Readers: one for each kind of node, each a generator that waits when the bytes run out.

A trigger alone is not a call: what follows has to be an envelope that names a known tool, and until then it is text.
From there on reading is lenient, and what cannot be understood becomes a malformed call with its raw text.
"""

# ruff: noqa: ARG001 -- the functions of one singledispatch share a signature, whether they need all of it or not

from __future__ import annotations

import contextlib
import re
from functools import lru_cache, singledispatch
from typing import Any

from agentgram.formats import nodes as n
from agentgram.formats.assembly import Draft, Run
from agentgram.formats.codecs import JsonCodec, get_codec, loads
from agentgram.formats.scanning import BLANKS, Mismatch, Truncated, Wait, holder

_NAME = re.compile(rb"[A-Za-z0-9_.\-]+")
_GAP = 64
_REREAD = 1024
"""Text after a marker that began no call is read again, for what it holds itself; more is not, so time stays linear."""


@lru_cache(maxsize=256)
def encoded(*texts: str) -> tuple[bytes, ...]:
    """Texts as bytes, without repetitions and empty ones."""
    return tuple(dict.fromkeys(t.encode() for t in texts if t))


def _starts(node: n.Node, run: Run) -> Wait[bool]:
    return bool((yield from run.src.literal(encoded(*n.firsts((node,), ())), move=False)))


# one reader for each kind of node


@singledispatch
def read(node: Any, run: Run, until: tuple[str, ...]) -> Wait[None]:
    """Reads what a node describes; ``until`` are the texts that may follow it."""
    raise TypeError(f"{type(node).__name__} cannot be parsed")


@read.register(n.Lit)
@read.register(n.Tok)
def _(node: n.Marker, run: Run, until: tuple[str, ...]) -> Wait[None]:
    if any(n.texts(node)) and not (yield from run.src.literal(encoded(*n.texts(node)))):
        raise Mismatch(f"{node.text!r} is missing")


@read.register
def _(node: n.Space, run: Run, until: tuple[str, ...]) -> Wait[None]:
    yield from run.src.skip_blanks()


@read.register
def _(node: n.Stop, run: Run, until: tuple[str, ...]) -> Wait[None]:
    if (yield from run.src.literal(encoded(node.token))):
        run.stopped = True


@read.register
def _(node: n.Seq, run: Run, until: tuple[str, ...]) -> Wait[None]:
    for index, item in enumerate(node.items):
        yield from read(item, run, n.firsts(node.items[index + 1 :], until))


@read.register
def _(node: n.Perm, run: Run, until: tuple[str, ...]) -> Wait[None]:
    left = list(node.items)
    while left:
        for item in left:
            if (yield from _starts(item, run)):
                break
        else:
            item = left[0]
        left.remove(item)
        yield from read(item, run, n.firsts(left, until))


@read.register
def _(node: n.Choice, run: Run, until: tuple[str, ...]) -> Wait[None]:
    for option in node.options:
        if (yield from _starts(option, run)):
            break
    else:
        option = next((o for o in node.options if not n.firsts((o,), ())), node.options[-1])
    yield from read(option, run, until)


@read.register
def _(node: n.Opt, run: Run, until: tuple[str, ...]) -> Wait[None]:
    if (yield from _starts(node.item, run)):
        yield from read(node.item, run, until)


@read.register
def _(node: n.Rep, run: Run, until: tuple[str, ...]) -> Wait[None]:
    done = 0
    while node.max is None or done < node.max:
        start = run.src.pos
        if done and node.sep is not None:
            if not (yield from _starts(node.sep, run)):
                break
            yield from read(node.sep, run, ())
        if done >= node.min and not (yield from _starts(node.item, run)):
            run.src.pos = start
            break
        yield from read(node.item, run, until)
        done += 1


@read.register
def _(node: n.Field, run: Run, until: tuple[str, ...]) -> Wait[None]:
    # a call that begins inside unfinished reasoning ends it
    ends = encoded(*until, *(run.fmt.triggers if run.tools else ()), *run.fmt.stops)
    run.begin_text(node.kind)
    yield from run.src.until(_any(ends), holder(ends))
    run.end_text()


@lru_cache(maxsize=256)
def _any(options: tuple[bytes, ...]) -> re.Pattern[bytes]:
    longest_first = sorted(options, key=len, reverse=True)
    return re.compile(b"|".join(re.escape(o) for o in longest_first) if options else rb"(?!)")


@read.register
def _(node: n.Tag, run: Run, until: tuple[str, ...]) -> Wait[None]:
    yield from read(node.begin, run, ())
    ends = n.texts(node.end)
    yield from read(node.body, run, ends or until)
    if ends:
        yield from _end(node, run)


def _end(tag: n.Tag, run: Run) -> Wait[None]:
    """Reads a tag's end. Where it is missing, the blanks before it are left to what follows."""
    start = run.src.pos
    yield from run.src.skip_blanks()
    if not (yield from run.src.literal(encoded(*n.texts(tag.end)))):
        run.src.pos = start


# calls


@read.register
def _(node: n.Name, run: Run, until: tuple[str, ...]) -> Wait[None]:
    yield from run.src.literal(encoded(node.prefix))
    start = run.src.pos
    while match := _NAME.match(run.src.data, run.src.at):
        run.src.at = match.end()
        if run.src.at < len(run.src.data) or not (yield from run.src.more()):
            break
    run.named(run.src.take(start, run.src.pos).decode())


@read.register
def _(node: n.CallId, run: Run, until: tuple[str, ...]) -> Wait[None]:
    start = run.src.pos
    ends = encoded(*until)
    yield from run.src.until(_any(ends), holder(ends))
    if run.draft is not None:
        run.draft.id = run.src.take(start, run.src.pos).decode("utf-8", "replace").strip()


@read.register
def _(node: n.Args, run: Run, until: tuple[str, ...]) -> Wait[None]:
    run.begin_arguments()
    if isinstance(get_codec(node.codec), JsonCodec):
        raw = yield from run.src.json_value()
    else:
        start, ends = run.src.pos, encoded(*until)
        yield from run.src.until(_any(ends), holder(ends))
        raw = run.src.take(start, run.src.pos)
    run.end_arguments(raw)


@read.register
def _(node: n.JsonArr, run: Run, until: tuple[str, ...]) -> Wait[None]:
    yield from read(node.item, run, until)


@read.register
def _(node: n.JsonObj, run: Run, until: tuple[str, ...]) -> Wait[None]:
    """One envelope, or several: after one another, with commas or semicolons between, or in an array."""
    src, codec = run.src, _codec(node, run)
    yield from src.skip_blanks()
    listed = (yield from src.peek()) == 0x5B
    if listed:
        src.at += 1
        yield from src.skip_blanks()
        if (yield from src.literal((b"]",))):
            run.draft = None  # an empty list calls nothing
            return
    while True:
        if run.draft is None:
            run.draft = Draft(start=src.pos)
        yield from _object(node, run, until)
        run.end_call(codec)
        after = src.pos
        yield from src.skip_blanks()
        if (yield from src.literal((b",", b";"))):
            yield from src.skip_blanks()
        if listed and (yield from src.literal((b"]",))):
            return
        if (yield from src.peek()) != 0x7B:
            if not listed:
                src.pos = after
            return


def _codec(node: n.Node, run: Run) -> str:
    """The codec of the arguments inside a node."""
    codec = run.fmt.memo.get(id(node))
    if codec is None:
        codec = run.fmt.memo[id(node)] = next((h.codec for h in n.walk(node) if isinstance(h, n.Args)), "json")
    assert isinstance(codec, str)
    return codec


def _object(node: n.JsonObj, run: Run, until: tuple[str, ...]) -> Wait[None]:
    src, draft = run.src, run.draft
    assert draft is not None
    holes, aliases = dict(node.keys), dict(node.aliases)
    if not (yield from src.literal((b"{",))):
        raise Mismatch("'{' is missing")
    while True:
        yield from src.skip_blanks()
        byte = yield from src.peek()
        if byte == 0x7D:
            src.at += 1
            return
        if byte == 0x2C:
            src.at += 1
        elif byte in (0x22, 0x27):
            key = _string((yield from src.json_string()))
            yield from src.skip_blanks()
            if not (yield from src.literal((b":",))):
                raise Truncated("the output ended inside the call") if src.closed else Mismatch("':' is missing")
            yield from src.skip_blanks()
            yield from _member(holes.get(aliases.get(key, key)), run, until)
        elif draft.known and draft.raw is not None and (byte < 0 or (yield from _at(until, run))):
            return  # only the last brace is missing
        else:
            raise Truncated("the output ended inside the call") if byte < 0 else Mismatch("the envelope is not JSON")


def _at(options: tuple[str, ...], run: Run) -> Wait[bool]:
    return bool((yield from run.src.literal(encoded(*options), move=False)))


def _member(hole: n.Node | None, run: Run, until: tuple[str, ...]) -> Wait[None]:
    draft = run.draft
    assert draft is not None
    draft.keys += hole is not None
    if isinstance(hole, n.JsonObj) and (yield from run.src.peek()) == 0x7B:
        yield from _object(hole, run, until)
    elif isinstance(hole, n.Args):
        yield from read(hole, run, until)
    else:
        raw = yield from run.src.json_value()
        if isinstance(hole, n.Name):
            name = _string(raw)
            run.named(name.removeprefix(hole.prefix))
        elif isinstance(hole, n.CallId):
            draft.id = _string(raw)


def _string(raw: bytes) -> str:
    """The text that a quoted string spells; what is no string names nothing."""
    try:
        value = loads(raw.decode())
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise Mismatch("a string is missing")
    return value


# text with calls in it


@read.register
def _(node: n.Dispatch, run: Run, until: tuple[str, ...]) -> Wait[None]:
    scanner = _scanner(node, run)
    if run.request.output_schema is not None:
        yield from _answer(run)
    gap, after_call, text_from = run.src.pos == 0, False, None
    while True:
        origin = (yield from _gap(run, scanner, after_call)) if gap and run.tools else run.src.pos
        shown = run.src.pos
        run.begin_text(node.text.kind, text_from)
        found = yield from run.src.until(scanner.pattern, scanner.hold)
        run.end_text()
        if found is None:
            return
        marker, start = found.group("marker"), run.src.pos
        body = start + len(found.group())
        if marker not in scanner.tags:
            run.src.pos = body
            run.stopped = True
            return
        gap = after_call = yield from _tag(scanner, marker, run, start, body)
        # what was no call after all is text, and so are the blanks before it
        text_from = None if after_call else origin if start == shown else start


class _Scanner:
    """What to look for in a Dispatch's text."""

    def __init__(self, node: n.Dispatch, stops: tuple[str, ...], calls: bool) -> None:
        self.tags = {t: tag for tag in node.tags for t in encoded(*n.texts(tag.begin))} if calls else {}
        self.sep = node.sep.encode()
        openers, stop = tuple(self.tags), encoded(*stops)
        self.markers = (*openers, *stop)
        sep = b"(?:" + re.escape(self.sep) + b"(?=" + _any(openers).pattern + b"))?"
        self.pattern = re.compile(sep + b"(?P<marker>" + _any(self.markers).pattern + b")")
        self.hold = holder([*self.markers, *(self.sep + t for t in openers)])


def _scanner(node: n.Dispatch, run: Run) -> _Scanner:
    calls = bool(run.tools)
    made = run.fmt.memo.get((id(node), calls))
    if made is None:
        made = run.fmt.memo[id(node), calls] = _Scanner(node, run.fmt.stops, calls)
    assert isinstance(made, _Scanner)
    return made


def _gap(run: Run, scanner: _Scanner, after_call: bool) -> Wait[int]:
    """Moves past blanks that are layout: those before the first call, between two, and after the last.

    Returns where the text would begin if what follows should be no call.
    """
    src = run.src
    start = origin = src.pos
    while True:
        seen = bytes(src.data[src.at : src.at + _GAP + 1])
        blank = len(seen) - len(seen.lstrip(BLANKS))
        if blank < len(seen) or blank > _GAP or src.closed:
            break
        yield from src.wait()
    if after_call and scanner.sep and seen.startswith(scanner.sep):
        origin += len(scanner.sep)
    if blank <= _GAP:
        src.pos = start + blank
        markers = scanner.markers if after_call else tuple(scanner.tags)
        if (yield from src.literal(markers, move=False)) or (after_call and src.closed and src.pos == src.end):
            return origin
    src.pos = origin
    return origin


def _answer(run: Run) -> Wait[None]:
    """A typed answer is text to its end, whatever its strings hold."""
    src = run.src
    start = src.pos
    yield from src.skip_blanks()
    first = yield from src.peek()
    is_json = first >= 0 and first in b'{["-0123456789'
    if not is_json and not (yield from src.literal((b"true", b"false", b"null"), move=False)):
        src.pos = start
        return
    run.begin_text("content", start)
    with contextlib.suppress(Mismatch):  # prose that begins like JSON: from here on it is read like any other
        yield from src.json_value()
    run.pause_text()


def _tag(scanner: _Scanner, marker: bytes, run: Run, start: int, body: int) -> Wait[bool]:
    """Reads a call's tag from behind its begin. False where it was none: its text is to be read again."""
    tag = scanner.tags[marker]
    first = Draft(start=body - len(marker))
    run.opened, run.draft = start, first
    run.src.pos = body
    try:
        yield from read(tag.body, run, n.texts(tag.end))
        if run.draft is not None:
            run.end_call(_codec(tag.body, run))
        yield from _end(tag, run)
        return True
    except Mismatch as problem:
        if run.draft is first and not first.known and not (isinstance(problem, Truncated) and first.keys):
            if run.src.pos - body <= _REREAD:
                run.src.pos = body
            return False
        yield from _recover(scanner, tag, body, run, str(problem))
        return True
    finally:
        run.opened = run.draft = None


def _recover(scanner: _Scanner, tag: n.Tag, body: int, run: Run, reason: str) -> Wait[None]:
    """A call has gone wrong: all is its raw text up to its end, the next call, or the end of the turn."""
    src, draft = run.src, run.draft
    assert draft is not None
    run.cut_arguments()
    src.pos = max(body, draft.start)
    ends = encoded(*n.texts(tag.end))
    options = (*ends, *scanner.markers)
    found = yield from src.until(_any(options), holder(options))
    if found is not None and found.group() in ends:
        src.pos += len(found.group())
    run.malformed(draft.start, src.pos, reason)
