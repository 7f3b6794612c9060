"""An independent, naive recogniser of grammar specifications: Brzozowski derivatives, byte by byte.

It shares no code with the engine. An expression is its own state: ``feed`` gives the next one, ``alive`` says whether
anything may follow or it may end, ``complete`` whether it may end here. Expressions are interned and remember their
derivatives, which is all the cleverness there is. What it does not know it refuses (:class:`Unknown`). JSON Schema and
patterns are in ``oracle_schema`` and ``oracle_text``.
"""

import json
from typing import ClassVar

from agentgram.engine import spec as s


class Unknown(Exception):
    """The specification uses something that this recogniser does not know."""


class Expr:
    """A language of symbols: bytes (or code points, in patterns), and ("tok", name) for special tokens."""

    _all: ClassVar[dict] = {}

    def __new__(cls, *args):
        key = (cls, *args)
        if key not in Expr._all:
            self = Expr._all[key] = object.__new__(cls)
            self.args, self.memo = args, {}
        return Expr._all[key]

    def feed(self, symbol):
        if symbol not in self.memo:
            self.memo[symbol] = self.d(symbol)
        return self.memo[symbol]

    def feed_bytes(self, data):
        here = self
        for byte in data:
            here = here.feed(byte)
        return here

    alive = property(lambda self: self is not EMPTY)
    complete = property(lambda self: self.null())
    null = lambda self: False  # noqa: E731
    d = lambda self, symbol: EMPTY  # noqa: E731
    lengths = lambda self, cap: frozenset()  # noqa: E731
    marks = lambda self: ()  # noqa: E731


class Empty(Expr):
    pass


class Eps(Expr):
    null = lambda self: True  # noqa: E731
    lengths = lambda self, cap: frozenset([0])  # noqa: E731


EMPTY, EPS = Empty(), Eps()


class Sym(Expr):  # (ranges)
    def d(self, symbol):
        return EPS if isinstance(symbol, int) and any(a <= symbol <= b for a, b in self.args[0]) else EMPTY

    lengths = lambda self, cap: frozenset([1])  # noqa: E731
    marks = lambda self: tuple(x for a, b in self.args[0] for x in (a, b + 1))  # noqa: E731


class Token(Expr):  # (name or id)
    d = lambda self, symbol: EPS if symbol == ("tok", self.args[0]) else EMPTY  # noqa: E731


class Word(Expr):  # (bytes)
    def d(self, symbol):
        word = self.args[0]
        return (Word(word[1:]) if len(word) > 1 else EPS) if symbol == word[0] else EMPTY


class Cat(Expr):  # (first, rest)
    null = lambda self: self.args[0].null() and self.args[1].null()  # noqa: E731

    def d(self, symbol):
        first, rest = self.args
        stepped = cat(first.feed(symbol), rest)
        return alt(stepped, rest.feed(symbol)) if first.null() else stepped

    def lengths(self, cap):
        return frozenset(a + b for a in self.args[0].lengths(cap) for b in self.args[1].lengths(cap) if a + b <= cap)

    marks = lambda self: self.args[0].marks() + self.args[1].marks()  # noqa: E731


class Alt(Expr):  # (frozenset)
    null = lambda self: any(e.null() for e in self.args[0])  # noqa: E731
    d = lambda self, symbol: alt(*(e.feed(symbol) for e in self.args[0]))  # noqa: E731
    lengths = lambda self, cap: frozenset().union(*(e.lengths(cap) for e in self.args[0]))  # noqa: E731
    marks = lambda self: tuple(m for e in self.args[0] for m in e.marks())  # noqa: E731


class Times(Expr):  # (item, min, max, sep, first): sep stands before the item unless it is the first
    def parts(self):
        item, low, high, sep, first = self.args
        rest = times(item, max(low - 1, 0), None if high is None else high - 1, sep, False)
        return (item if first else cat(sep, item)), rest

    def null(self):
        if self.args[1] == 0:
            return True
        body, rest = self.parts()
        return body.null() and rest.null()

    def d(self, symbol):
        body, rest = self.parts()
        skips = body.null() and self.args[4] and self.args[3] is not EPS
        return alt(cat(body.feed(symbol), rest), rest.feed(symbol) if skips else EMPTY)

    def lengths(self, cap):
        item, low, high, sep, _ = self.args
        one, now, out, count = cat(sep, item).lengths(cap), frozenset([0]), set(), 0
        while now and (high is None or count <= high) and count <= cap + low:
            out |= now if count >= low else set()
            now, count = frozenset(a + b for a in now for b in one if a + b <= cap), count + 1
        return frozenset(out)

    marks = lambda self: self.args[0].marks()  # noqa: E731


def cat(*items):
    out = EPS
    for item in reversed(items):
        if item is EMPTY or out is EMPTY:
            return EMPTY
        if isinstance(item, Cat):
            out = cat(item.args[0], cat(item.args[1], out)) if out is not EPS else item
        elif item is not EPS:
            out = item if out is EPS else Cat(item, out)
    return out


def alt(*options):
    flat = frozenset(x for o in options for x in (o.args[0] if isinstance(o, Alt) else [o]) if x is not EMPTY)
    return EMPTY if not flat else next(iter(flat)) if len(flat) == 1 else Alt(flat)


def times(item, low=0, high=None, sep=EPS, first=True):
    return (
        EPS
        if high == 0
        else EMPTY
        if item is EMPTY and low
        else EPS
        if item is EMPTY
        else Times(item, low, high, sep, first)
    )


def word(text):
    data = text.encode() if isinstance(text, str) else text
    return Word(data) if data else EPS


def utf8(state, byte):
    """State: (bytes still to come, least next, greatest next); None where the byte cannot stand."""
    left, low, high = state
    if left:
        return (left - 1, 0x80, 0xBF) if low <= byte <= high else None
    if byte < 0x80:
        return START
    for first, last, count, low, high in UTF8:
        if first <= byte <= last:
            return (count, low, high)
    return None


START = (0, 0, 0)
UTF8 = (  # first byte from, to; bytes that follow; the second from, to
    (0xC2, 0xDF, 1, 0x80, 0xBF),
    (0xE0, 0xE0, 2, 0xA0, 0xBF),
    (0xE1, 0xEC, 2, 0x80, 0xBF),
    (0xED, 0xED, 2, 0x80, 0x9F),
    (0xEE, 0xEF, 2, 0x80, 0xBF),
    (0xF0, 0xF0, 3, 0x90, 0xBF),
    (0xF1, 0xF3, 3, 0x80, 0xBF),
    (0xF4, 0xF4, 3, 0x80, 0x8F),
)


class Prose(Expr):  # (dispatch or None, excludes, utf8 state, tail, tags done)
    def null(self):
        dispatch, _, state, _, count = self.args
        return not state[0] and (dispatch is None or count >= dispatch.at_least)

    def d(self, symbol):
        dispatch, excludes, state, tail, count = self.args
        if not isinstance(symbol, int):
            return self.control(s.Tok(symbol[1]), lambda mark: mark == s.Tok(symbol[1])) if not state[0] else EMPTY
        state = utf8(state, symbol)
        tail += bytes([symbol])
        if state is None or any(tail.endswith(e.encode()) for e in excludes):
            return EMPTY
        found = self.control(None, lambda mark: isinstance(mark, str) and tail.endswith(mark.encode()))
        if found is not None:
            return found
        marks = [*excludes, *((*dispatch.triggers, *dispatch.stops) if dispatch else ())]
        longest = max((len(m.encode()) for m in marks if isinstance(m, str)), default=1)
        return Prose(dispatch, excludes, state, tail[max(0, len(tail) - longest + 1) :], count)

    def control(self, token, hit):
        dispatch, excludes, _, _, count = self.args
        if dispatch is not None and any(hit(stop) for stop in dispatch.stops):
            return EPS if count >= dispatch.at_least else EMPTY
        trigger = next((t for t in dispatch.triggers if hit(t)), None) if dispatch is not None else None
        if trigger is None:
            return EMPTY if token else None
        if dispatch.at_most is not None and count >= dispatch.at_most:
            return EMPTY
        calls = []
        for tag in dispatch.tags:
            if isinstance(trigger, str) and isinstance(tag.begin, str) and tag.begin.startswith(trigger):
                calls.append(cat(word(tag.begin[len(trigger) :]), build(tag.content), marker(tag.end)))
            elif tag.begin == trigger:
                calls.append(cat(build(tag.content), marker(tag.end)))
        count = min(count + 1, max(dispatch.at_least, dispatch.at_most or 0))
        return cat(alt(*calls), EPS if dispatch.stop_after_first else Prose(dispatch, excludes, START, b"", count))


def marker(value):
    return Token(value.token) if isinstance(value, s.Tok) else word(value)


def build(spec):
    """The expression of a specification."""
    match spec:
        case s.Lit(text):
            return word(text)
        case s.Tok(token):
            return Token(token)
        case s.Text(excludes):
            return Prose(None, excludes, START, b"", 0)
        case s.Seq(items):
            return cat(*map(build, items))
        case s.Choice(options):
            return alt(*map(build, options))
        case s.Opt(item):
            return alt(EPS, build(item))
        case s.Rep(item, low, high, sep):
            return times(build(item), low, high, build(sep) if sep is not None else EPS)
        case s.Tag(begin, content, end):
            return cat(marker(begin), build(content), marker(end))
        case s.Dispatch():
            return Prose(spec, spec.excludes, START, b"", 0)
        case s.JsonSchema():
            from oracle_schema import Doc  # that module imports this one

            return Doc(json.loads(spec.schema), spec).value(())
        case s.Regex(pattern):
            from oracle_text import Chars, regex

            return Chars(regex(pattern, whole=True), 0, None, False, b"", None)
    raise Unknown(type(spec).__name__)


def trie(tokens):
    """Token bytes as nested dicts, with the ids that end at a node under the key None."""
    root = {}
    for index, token in enumerate(tokens):
        node = root
        for byte in token:
            node = node.setdefault(byte, {})
        if token:
            node.setdefault(None, []).append(index)
    return root


def allowed(state, root):
    """The ids of the tokens that may come next."""
    out, stack = set(), [(state, root)]
    while stack:
        here, node = stack.pop()
        out.update(node.get(None, ()))
        for byte, child in node.items():
            if byte is not None:
                after = here.feed(byte)
                if after is not EMPTY:
                    stack.append((after, child))
    return out
