"""Text with calls in it (:class:`agentgram.formats.Dispatch`), as it is read.

A trigger alone is not a call: what follows has to be an envelope that names a known tool, and until then it is text.
From there on reading is lenient, and what cannot be understood becomes a malformed call with its raw text.
"""

from __future__ import annotations

import contextlib
import re

from agentgram.formats import nodes as n
from agentgram.formats.assembly import Draft, Run
from agentgram.formats.reading import any_of, encoded, read, read_end
from agentgram.formats.scanning import BLANKS, Mismatch, Truncated, Wait, holder

_GAP = 64
_REREAD = 1024
"""Text after a marker that began no call is read again, for what it holds itself; more is not, so time stays linear."""


@read.register
def _(node: n.Dispatch, run: Run, until: tuple[str, ...]) -> Wait[None]:  # noqa: ARG001
    scanner = _scanner(node, run)
    after_call = False
    if scanner.starts:
        after_call = yield from _at_start(scanner, run)
    if not after_call and run.request.output_schema is not None:
        yield from _answer(run, scanner)
    gap, text_from = after_call or run.src.pos == 0, None
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
        for tag in scanner.tags[marker]:
            gap = after_call = yield from _tag(scanner, tag, run, start, body - len(marker), body)
            if after_call:
                break
        # what was no call after all is text, and so are the blanks before it
        text_from = None if after_call else origin if start == shown else start


def _at_start(scanner: _Scanner, run: Run) -> Wait[bool]:
    """A call that may stand nowhere but at the text's beginning. False, and nothing is passed, where there is none."""
    src = run.src
    start = src.pos
    seen = b""
    while not src.closed:
        seen = bytes(src.data[src.at : src.at + _GAP + 1])
        if seen.strip(BLANKS) or len(seen) > _GAP:
            break
        yield from src.wait()
    seen = bytes(src.data[src.at : src.at + _GAP + 1])
    src.at += len(seen) - len(seen.lstrip(BLANKS))
    begin = src.pos
    for marker, tag in scanner.starts:
        src.pos = begin
        if (yield from src.literal((marker,))) and (yield from _tag(scanner, tag, run, start, begin, src.pos)):
            return True
    src.pos = start
    return False


class _Scanner:
    """What to look for in a Dispatch's text."""

    def __init__(self, node: n.Dispatch, stops: tuple[str, ...], calls: bool) -> None:
        every = [(t, tag) for tag in (*node.tags, *node.also) for t in encoded(*n.texts(tag.begin))] if calls else []
        self.tags: dict[bytes, list[n.Tag]] = {}
        for text, tag in every:
            if tag.where == "anywhere":
                self.tags.setdefault(text, []).append(tag)
        self.starts = sorted((p for p in every if p[1].where == "start"), key=lambda p: -len(p[0]))
        self.sep = node.sep.encode()
        openers, stop = tuple(self.tags), encoded(*stops)
        self.markers = (*openers, *stop)
        seps = encoded(node.before, node.sep)
        sep = b"(?:" + any_of(seps).pattern + b"(?=" + any_of(openers).pattern + b"))?" if seps and openers else b""
        self.pattern = re.compile(sep + b"(?P<marker>" + any_of(self.markers).pattern + b")")
        self.hold = holder((*self.markers, *(s + t for t in openers for s in seps)))


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


def _answer(run: Run, scanner: _Scanner) -> Wait[None]:
    """A typed answer is text to its end, whatever its strings hold."""
    src = run.src
    start = src.pos
    yield from src.skip_blanks()
    if (yield from src.literal(tuple(scanner.tags), move=False)):  # a call, which may begin with a bracket too
        src.pos = start
        return
    first = yield from src.peek()
    is_json = first >= 0 and first in b'{["-0123456789'
    if not is_json and not (yield from src.literal((b"true", b"false", b"null"), move=False)):
        src.pos = start
        return
    run.begin_text("content", start)
    with contextlib.suppress(Mismatch):  # prose that begins like JSON: from here on it is read like any other
        yield from src.json_value()
    run.pause_text()


def _tag(scanner: _Scanner, tag: n.Tag, run: Run, start: int, begin: int, behind: int) -> Wait[bool]:
    """Reads a call's tag. False where it was none: its text is to be read again.

    Args:
        scanner: What the text is read with.
        tag: The tag whose begin has been found.
        run: What the readers share.
        start: Where what leads up to the tag begins, blanks included.
        begin: Where the tag itself begins.
        behind: Behind its begin.
    """
    first = Draft(start=begin, weak=tag.peek or tag.where == "start")
    run.opened, run.draft = start, first
    run.src.pos = begin if tag.peek else behind
    try:
        yield from read(tag.body, run, n.texts(tag.end))
        certain = tag.on_missing_end == "malformed"
        if certain:
            yield from read_end(tag, run)
        if run.draft is not None and not n.holds_many(tag):
            run.end_call()
        if not certain:
            yield from read_end(tag, run)
        return True
    except Mismatch as problem:
        if run.draft is first and not first.known and not (isinstance(problem, Truncated) and _named_some(first)):
            if run.src.pos - behind <= _REREAD:
                run.src.pos = behind
            return False
        if run.draft is None:
            return True
        yield from _recover(scanner, tag, behind, run, str(problem))
        return True
    finally:
        run.opened = run.draft = None


def _named_some(draft: Draft) -> bool:
    """Whether there is enough of a call to call it unfinished, rather than text."""
    return draft.keys > 0 and not draft.weak


def _recover(scanner: _Scanner, tag: n.Tag, body: int, run: Run, reason: str) -> Wait[None]:
    """A call has gone wrong: all is its raw text up to its end, the next call, or the end of the turn."""
    src, draft = run.src, run.draft
    assert draft is not None
    run.cut_arguments()
    src.pos = max(body, draft.start, draft.body)
    ends = encoded(*(t for t in n.texts(tag.end) if len(t) > 1))
    options = (*ends, *scanner.markers)
    found = yield from src.until(any_of(options), holder(options))
    if found is not None and found.group() in ends:
        src.pos += len(found.group())
    run.malformed(draft.start, src.pos, reason)
