"""Readers: one for each kind of node, each a generator that waits when the bytes run out; text with calls in it apart.

A trigger alone is not a call: what follows has to be an envelope that names a known tool, and until then it is text.
From there on reading is lenient, and what cannot be understood becomes a malformed call with its raw text.
"""

# ruff: noqa: ARG001 -- the functions of one singledispatch share a signature, whether they need all of it or not

from __future__ import annotations

import re
from functools import lru_cache, singledispatch
from typing import Any

from agentgram.formats import nodes as n
from agentgram.formats.assembly import Draft, Run
from agentgram.formats.codecs import Reading, get_codec
from agentgram.formats.json_text import loads
from agentgram.formats.scanning import Mismatch, Truncated, Wait, holder

_NAME = re.compile(rb"[A-Za-z0-9_.\-]+")
_DIGITS = tuple(b"0123456789")


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
    found = yield from run.src.literal(encoded(*n.texts(node)))
    if not found and "" not in n.texts(node):
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
    if run.draft is not None and n.names_a_tool(node.item):
        yield from _calls(node, run, until)
        return
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


def _calls(node: n.Rep, run: Run, until: tuple[str, ...]) -> Wait[None]:
    """Calls one after another, with whatever separators, up to what may follow them all."""
    src = run.src
    seps = tuple(t.strip() for t in (n.texts(node.sep) if isinstance(node.sep, n.Lit | n.Tok) else ()) if t.strip())
    first = True
    while True:
        before = src.pos
        yield from src.skip_blanks()
        if not first and (yield from src.literal(encoded(*seps))):
            yield from src.skip_blanks()
        if (yield from _at(until, run)) or (yield from src.peek()) < 0:
            break
        if isinstance(node.item, n.Tag) and not (yield from _starts(node.item, run)):
            src.pos = before
            break
        if not first:
            assert run.draft is None
            run.draft = Draft(start=src.pos)
        yield from _one_of_several(node.item, run, until)
        first = False
    if first:
        if isinstance(run.draft, Draft) and (yield from _at(until, run)):
            run.draft = None  # an empty list calls nothing
        else:
            raise Mismatch("no call is where one should be")


def _one_of_several(item: n.Node, run: Run, until: tuple[str, ...]) -> Wait[None]:
    """One call of a list or a section. One that has gone wrong between markers of its own ends there."""
    draft = run.draft
    assert draft is not None
    body = run.src.pos
    try:
        yield from read(item, run, until)
        if run.draft is not None:
            run.end_call()
    except Mismatch as problem:
        if not isinstance(item, n.Tag) or not draft.known:
            raise
        run.cut_arguments()
        run.src.pos = max(body + len(item.begin.text.encode()), draft.body)
        ends = encoded(*n.texts(item.end), *n.texts(item.begin), *until)
        found = yield from run.src.until(any_of(ends), holder(ends))
        if found is not None and found.group() in encoded(*n.texts(item.end)):
            run.src.pos += len(found.group())
        run.malformed(draft.start, run.src.pos, str(problem))
        run.draft = None


@read.register
def _(node: n.Field, run: Run, until: tuple[str, ...]) -> Wait[None]:
    # a call that begins inside unfinished reasoning ends it
    ends = encoded(*until, *(run.fmt.triggers if run.tools else ()), *run.fmt.stops)
    run.begin_text(node.kind)
    yield from run.src.until(any_of(ends), holder(ends))
    run.end_text()


@lru_cache(maxsize=256)
def any_of(options: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """A pattern for any of these texts, the longest where several stand in one place; of none, it matches nothing."""
    longest_first = sorted(options, key=len, reverse=True)
    return re.compile(b"|".join(re.escape(o) for o in longest_first) if options else rb"(?!)")


@read.register
def _(node: n.Tag, run: Run, until: tuple[str, ...]) -> Wait[None]:
    yield from read(node.begin, run, ())
    ends = n.texts(node.end)
    yield from read(node.body, run, ends or until)
    if ends:
        yield from read_end(node, run)


def read_end(tag: n.Tag, run: Run) -> Wait[None]:
    """Reads a tag's end. Where it may be missing and is, the blanks before it are left to what follows."""
    start = run.src.pos
    yield from run.src.skip_blanks()
    if not (yield from run.src.literal(encoded(*n.texts(tag.end)))):
        run.src.pos = start
        if tag.end is not None and tag.on_missing_end == "malformed":
            raise Mismatch(f"{tag.end.text!r} is missing")


# calls


@read.register
def _(node: n.Name, run: Run, until: tuple[str, ...]) -> Wait[None]:
    yield from run.src.literal(encoded(node.prefix))
    yield from run.src.peek()
    start = run.src.pos
    while match := _NAME.match(run.src.data, run.src.at):
        run.src.at = match.end()
        if run.src.at < len(run.src.data) or not (yield from run.src.more()):
            break
    if run.src.pos == start:
        raise Mismatch("a name is missing")
    run.named(run.src.take(start, run.src.pos).decode(), commit=False)


@read.register
def _(node: n.Count, run: Run, until: tuple[str, ...]) -> Wait[None]:
    while (yield from run.src.peek()) in _DIGITS:
        run.src.at += 1


@read.register
def _(node: n.CallId, run: Run, until: tuple[str, ...]) -> Wait[None]:
    start = run.src.pos
    if node.of is not None:
        yield from read(node.of, run, until)
    else:
        ends = encoded(*until)
        yield from run.src.until(any_of(ends), holder(ends))
    if run.draft is not None:
        run.draft.id = run.src.take(start, run.src.pos).decode("utf-8", "replace").strip()


@read.register
def _(node: n.Args, run: Run, until: tuple[str, ...]) -> Wait[None]:
    run.begin_arguments(node)
    codec = get_codec(node.codec, node.options)
    if isinstance(codec, Reading):
        raw = yield from codec.read(run.src, encoded(*until), run.slot())
    else:
        start, ends = run.src.pos, encoded(*until)
        yield from run.src.until(any_of(ends), holder(ends))
        raw = run.src.take(start, run.src.pos)
    run.end_arguments(raw)


@read.register
def _(node: n.JsonArr, run: Run, until: tuple[str, ...]) -> Wait[None]:
    yield from read(node.item, run, until)


@read.register
def _(node: n.JsonObj, run: Run, until: tuple[str, ...]) -> Wait[None]:
    """One envelope, or several: after one another, with commas or semicolons between, or in an array."""
    src = run.src
    weak = run.draft is not None and run.draft.weak
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
            run.draft = Draft(start=src.pos, weak=weak)
        yield from _object(node, run, until)
        run.end_call()
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
            yield from _member(key, _hole(node, holes, aliases.get(key, key), draft), run, until)
        elif draft.known and draft.raw is not None and (byte < 0 or (yield from _at(until, run))):
            return  # only the last brace is missing
        else:
            raise Truncated("the output ended inside the call") if byte < 0 else Mismatch("the envelope is not JSON")


def _hole(node: n.JsonObj, holes: dict[str, n.Node], key: str, draft: Draft) -> n.Node | None:
    """What a key holds. Some models name the tool in ``function``, or have a whole envelope there."""
    if key == "function" and key not in holes and draft.name is None:
        return node
    return holes.get(key)


def _at(options: tuple[str, ...], run: Run) -> Wait[bool]:
    return bool((yield from run.src.literal(encoded(*options), move=False)))


def _member(key: str, hole: n.Node | None, run: Run, until: tuple[str, ...]) -> Wait[None]:
    draft = run.draft
    assert draft is not None
    draft.keys += hole is not None
    if isinstance(hole, n.JsonObj) and (yield from run.src.peek()) == 0x7B:
        yield from _object(hole, run, until)
    elif isinstance(hole, n.JsonObj):
        run.named(_string((yield from run.src.json_value())))
    elif isinstance(hole, n.Args):
        yield from read(hole, run, until)
    else:
        raw = yield from run.src.json_value()
        if isinstance(hole, n.Name):
            name = _string(raw)
            run.named(name.removeprefix(hole.prefix))
        elif isinstance(hole, n.CallId):
            draft.id = _string(raw)
        elif hole is None:
            draft.strays[key] = raw


def _string(raw: bytes) -> str:
    """The text that a quoted string spells; what is no string names nothing."""
    try:
        value = loads(raw.decode())
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise Mismatch("a string is missing")
    return value
