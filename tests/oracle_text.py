"""Part of the naive recogniser: patterns over code points, and the characters of strings, plain or quoted as JSON."""

import re
from functools import cache

import oracle as o

sre = re._parser
TOP = 0x10FFFF
SCALARS = ((0, 0xD7FF), (0xE000, TOP))
ESCAPES = dict(zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True))
HEX = b"0123456789abcdefABCDEF"


def regex(pattern, *, whole=False):
    items = list(sre.parse(pattern, re.ASCII))
    start = bool(items) and items[0] == (sre.AT, sre.AT_BEGINNING)
    end = len(items) > start and items[-1] == (sre.AT, sre.AT_END)
    anything = o.EPS if whole else o.times(o.Sym(((0, TOP),)))
    middle = pieces(items[start : len(items) - end])
    return o.cat(o.EPS if start else anything, middle, o.EPS if end else anything)


CATEGORY = {
    sre.CATEGORY_DIGIT: "[0-9]",
    sre.CATEGORY_WORD: "[a-zA-Z0-9_]",
    sre.CATEGORY_SPACE: "[\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]",
}


def pieces(items):
    out = []
    for op, arg in items:
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            out.append(o.Sym(tuple(spans([(op, arg)]))))
        elif op is sre.BRANCH:
            out.append(o.alt(*map(pieces, arg[1])))
        elif op is sre.SUBPATTERN:
            out.append(pieces(arg[3]))
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            out.append(o.times(pieces(arg[2]), arg[0], None if arg[1] is sre.MAXREPEAT else arg[1]))
        else:
            raise o.Unknown(f"pattern with {op}")
    return o.cat(*out)


def spans(items):
    negate = items[0][0] is sre.NEGATE
    out = []
    for op, arg in items[negate:]:
        if op is sre.ANY:
            out += invert([(10, 10), (13, 13), (0x2028, 0x2029)])
        elif op is sre.LITERAL:
            out.append((arg, arg))
        elif op is sre.NOT_LITERAL:
            out += invert([(arg, arg)])
        elif op is sre.RANGE:
            out.append(tuple(arg))
        elif op is sre.IN:
            out += spans(arg)
        elif op is sre.CATEGORY and arg in CATEGORY:
            out += spans(list(sre.parse(CATEGORY[arg])))
        else:
            raise o.Unknown(f"class with {op} {arg}")
    return invert(sorted(out)) if negate else sorted(out)


def invert(parts):
    out, at = [], 0
    for low, high in [*parts, (TOP + 1, TOP + 1)]:
        if low > at:
            out.append((at, low - 1))
        at = max(at, high + 1)
    return out


def spelled(text):
    return o.cat(*(o.Sym(((ord(c), ord(c)),)) for c in text))


class Others(o.Expr):  # (names): every string but these
    null = lambda self: "" not in self.args[0]  # noqa: E731
    d = lambda self, cp: Others(frozenset(n[1:] for n in self.args[0] if n and ord(n[0]) == cp))  # noqa: E731
    lengths = lambda self, cap: frozenset(range(cap + 1))  # noqa: E731
    marks = lambda self: tuple(ord(n[0]) for n in self.args[0] if n)  # noqa: E731


# characters, as UTF-8 or as a JSON string's body


def point(part, quoted):
    """What a character's first bytes may become: a code point when complete, spans of them before, None if nothing."""
    if not quoted or part[0] != 0x5C:
        state = o.START
        for byte in part:
            state = o.utf8(state, byte)
            if state is None:
                return None
        if not state[0]:
            return ord(part.decode()) if not quoted or (part[0] >= 0x20 and part != b'"') else None
        fills = ((state[1], 0x80), (state[2], 0xBF))
        return [tuple(ord((part + bytes([a] + [b] * (state[0] - 1))).decode()) for a, b in fills)]
    if len(part) == 1:
        return SCALARS
    if part[1] != ord("u"):
        return ESCAPES.get(part[1]) if len(part) == 2 else None
    first = unit(part[2:6])
    if first is None or len(part) < 6:
        low, high = first or (1, 0)
        leads = (max(low, 0xD800), min(high, 0xDBFF))
        plain = [(max(low, a), min(high, b)) for a, b in ((0, 0xD7FF), (0xE000, 0xFFFF))]
        return [x for x in (*plain, (pair(leads[0], 0xDC00), pair(leads[1], 0xDFFF))) if x[0] <= x[1]] or None
    lead = first[0]
    if not 0xD800 <= lead <= 0xDFFF:
        return lead
    if lead >= 0xDC00 or not b"\\u".startswith(part[6:8]):
        return None
    second = unit(part[8:12])
    low, high = (max(second[0], 0xDC00), min(second[1], 0xDFFF)) if second else (1, 0)
    if low > high:
        return None
    return pair(lead, low) if len(part) == 12 else [(pair(lead, low), pair(lead, high))]


def unit(digits):
    if any(d not in HEX for d in digits):
        return None
    return int(digits.ljust(4, b"0"), 16), int(digits.ljust(4, b"f"), 16)


def pair(lead, trail):
    return 0x10000 + ((lead - 0xD800) << 10) + (trail - 0xDC00)


@cache
def lengths(rx, cap):
    return rx.lengths(cap)


def lives(rx, low, high):
    if rx is o.EMPTY or (high is None and low <= 0) or (high is not None and high < 0):
        return rx is not o.EMPTY and high is None
    return any(n >= low for n in lengths(rx, max(low, 0) + 140 if high is None else high))


class Chars(o.Expr):  # (pattern, least and most characters left, quoted, bytes of this character, text so far or None)
    def null(self):
        rx, low, _, quoted, part, _ = self.args
        return not quoted and not part and low <= 0 and rx.null()

    def d(self, byte):
        rx, low, high, quoted, part, text = self.args
        if not isinstance(byte, int):
            return o.EMPTY
        if quoted and not part and byte == 0x22:
            return o.EPS if low <= 0 and rx.null() else o.EMPTY
        part += bytes([byte])
        found = point(part, quoted)
        less = (max(low - 1, 0), None if high is None else high - 1)
        if found is None:
            return o.EMPTY
        if isinstance(found, int):
            after = rx.feed(found)
            text = None if text is None else (*text, found)
            return Chars(after, *less, quoted, b"", text) if lives(after, *less) else o.EMPTY
        points = {p for a, b in found for p in (a, *(m for m in rx.marks() if a <= m <= b))}
        return Chars(rx, low, high, quoted, part, text) if any(lives(rx.feed(p), *less) for p in points) else o.EMPTY


def quoted(rx, low=0, high=None, text=None):
    return o.cat(o.word('"'), Chars(rx, low, high, True, b"", text)) if lives(rx, low, high) else o.EMPTY
