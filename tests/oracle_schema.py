"""Part of the naive recogniser: JSON Schema, keyword by keyword. What is not in this file raises ``Unknown``.

Numbers under bounds are not known unless they are integers: how their exponents may be spelled is the engine's choice.
"""

import json
import math
import re

import oracle as o
from oracle_text import TOP, Chars, Others, quoted, regex, spelled


class Gap(o.Expr):  # (newlines left, blanks left)
    null = lambda self: True  # noqa: E731

    def d(self, byte):
        newlines, blanks = self.args
        if byte == 10 and newlines:
            return Gap(newlines - 1, blanks)
        return Gap(newlines, blanks - 1) if byte in (9, 13, 32) and blanks else o.EMPTY


class Whole(o.Expr):  # (least, most, text so far): an integer
    def null(self):
        text = self.args[2]
        return text[-1:].isdigit() and not self.out(int(text))

    def out(self, value):
        low, high, _ = self.args
        return (low is not None and value < low) or (high is not None and value > high)

    def d(self, byte):
        low, high, text = self.args
        text += chr(byte) if isinstance(byte, int) and byte < 0x80 else "x"
        if not re.fullmatch(r"-|-?[1-9][0-9]*|0", text):
            return o.EMPTY
        if low is None and high is None:
            text = text[:2]
        if self.reach(text):
            return Whole(low, high, text)
        return o.EMPTY

    def reach(self, text):
        low, high, _ = self.args
        if text == "-":
            return low is None or low < 0
        more = 0 if text == "0" else len(str(max(abs(low or 0), abs(high or 0)))) + 1
        for digits in range(more + 1):
            ends = sorted((int(text + "0" * digits), int(text + "9" * digits)))
            if (low is None or ends[1] >= low) and (high is None or ends[0] <= high):
                return True
        return False


NUMBER = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
NOTES = {
    "title",
    "description",
    "default",
    "examples",
    "$schema",
    "$defs",
    "definitions",
    "$id",
    "$comment",
    "deprecated",
}
KNOWN = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
}


class Doc:
    """One schema document and the layout of its JSON."""

    def __init__(self, root, spec):
        flexible = spec.whitespace == "flexible"
        blank = {"flexible": Gap(2, 64), "canonical": o.word(" "), "compact": o.EPS}[spec.whitespace]
        self.root, self.memo, self.canonical = root, {}, spec.whitespace == "canonical"
        self.gap = Gap(2, 64) if flexible else o.EPS
        self.comma, self.colon = (o.cat(self.gap, o.word(c), blank) for c in ",:")
        if spec.property_order != "declared":
            raise o.Unknown("properties in any order")

    def at(self, path):
        """The keywords at a path; none for a boolean schema, and for the path None, which stands for any value."""
        here = {} if path is None else self.raw(path)
        return here if isinstance(here, dict) else {}

    def raw(self, path):
        here = self.root
        for step in path:
            here = here[step]
        return here

    def value(self, path):
        if path not in self.memo:
            self.memo[path] = Ref(self, path)
            self.memo[path] = self.make(self.raw(path), path)
        return self.memo[path]

    def make(self, schema, path):
        if isinstance(schema, bool) or not set(schema) - NOTES:
            return o.EMPTY if schema is False else o.alt(*(self.typed(t, {}, path) for t in TYPES))
        keys = set(schema) - NOTES
        if "$ref" in keys:
            return self.only(keys, "$ref", self.value(tuple(self.step(p) for p in schema["$ref"].split("/")[1:])))
        if "anyOf" in keys:
            options = [self.value((*path, "anyOf", i)) for i in range(len(schema["anyOf"]))]
            return self.only(keys - {"type"}, "anyOf", o.alt(*options))
        if keys & {"enum", "const"}:
            values = schema["enum"] if "enum" in keys else [schema["const"]]
            return self.only(keys - {"type"}, "enum" if "enum" in keys else "const", o.alt(*map(self.exactly, values)))
        types = schema.get("type", list(TYPES))
        types = [types] if isinstance(types, str) else types
        known = {k for t in types for k in KNOWN.get(t, ())}
        self.only(keys - known - {"type"}, "", None)
        return o.alt(*(self.typed(t, schema, path) for t in types))

    @staticmethod
    def only(keys, key, result):
        if keys - {key}:
            raise o.Unknown(f"keywords {sorted(keys - {key})}")
        return result

    @staticmethod
    def step(text):
        return int(text) if text.isdigit() else text.replace("~1", "/").replace("~0", "~")

    def key(self, name):  # canonical: as json.dumps spells it
        return o.word(json.dumps(name, ensure_ascii=False)) if self.canonical else quoted(spelled(name))

    def exactly(self, value):
        if isinstance(value, str):
            return quoted(spelled(value))
        if isinstance(value, list | dict):
            pairs = value.items() if isinstance(value, dict) else ((None, v) for v in value)
            parts = [
                o.cat(quoted(spelled(k)), self.colon, self.exactly(v)) if k is not None else self.exactly(v)
                for k, v in pairs
            ]
            inside = o.EPS
            for i, part in enumerate(parts):
                inside = o.cat(inside, self.comma if i else self.gap, part)
            return o.cat(o.word("[{"[isinstance(value, dict)]), inside, self.gap, o.word("]}"[isinstance(value, dict)]))
        return o.word(json.dumps(value))

    def typed(self, kind, schema, path):
        if kind == "string":
            rx = regex(schema["pattern"]) if "pattern" in schema else o.times(o.Sym(((0, TOP),)))
            return quoted(rx, schema.get("minLength", 0), schema.get("maxLength"))
        if kind == "integer":
            lows = [math.ceil(schema["minimum"])] if "minimum" in schema else []
            lows += [math.floor(schema["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in schema else []
            highs = [math.floor(schema["maximum"])] if "maximum" in schema else []
            highs += [math.ceil(schema["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in schema else []
            low, high = max(lows, default=None), min(highs, default=None)
            return o.EMPTY if lows and highs and low > high else Whole(low, high, "")
        if kind == "number":
            if set(schema) & KNOWN["integer"]:
                raise o.Unknown("bounds of numbers")
            return Chars(regex(NUMBER, whole=True), 0, None, False, b"", None)
        if kind == "array":
            return o.cat(o.word("["), Items(self, path, 0)) if self.fits(schema, path) else o.EMPTY
        if kind == "object":
            return o.cat(o.word("{"), Members(self, path, 0, True, frozenset()))
        return {"boolean": o.alt(o.word("true"), o.word("false")), "null": o.word("null")}[kind]

    def fits(self, schema, path):
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        return least <= most and all(self.item(path, i) is not o.EMPTY for i in range(least))

    def item(self, path, index):
        schema = self.at(path)
        if index < len(schema.get("prefixItems", ())):
            return self.value((*path, "prefixItems", index))
        return self.value((*path, "items")) if "items" in schema else Ref(self, None)


TYPES = ("object", "array", "string", "number", "boolean", "null")


class Ref(o.Expr):  # (document, path or None for any value): looked up when it is needed
    d = lambda self, byte: (  # noqa: E731
        self.args[0].make(True, None) if self.args[1] is None else self.args[0].value(self.args[1])
    ).feed(byte)


class Items(o.Expr):  # (document, path, index)
    def d(self, byte):
        doc, path, index = self.args
        schema = doc.at(path)
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        ends = o.cat(doc.gap, o.word("]")) if index >= least else o.EMPTY
        enough = max(1, least, len(schema.get("prefixItems", ()))) if most == math.inf else most
        after = Items(doc, path, min(index + 1, enough))
        more = o.cat(doc.comma if index else doc.gap, doc.item(path, index), after) if index < most else o.EMPTY
        return o.alt(ends, more).feed(byte)


class Members(o.Expr):  # (document, path, index of the next declared key, first, other keys seen)
    def d(self, byte):
        doc, path, index, first, seen = self.args
        schema = doc.at(path)
        declared, required = list(schema.get("properties", {})), schema.get("required", [])
        names = declared + [r for r in dict.fromkeys(required) if r not in declared]
        free = doc.value((*path, "additionalProperties")) if "additionalProperties" in schema else Ref(doc, None)
        lead = doc.gap if first else doc.comma
        options = []
        for at in range(index, len(names) + 1):
            if at == len(names):
                options.append(o.cat(doc.gap, o.word("}")))
                key = Key(doc, path, quoted(Others(frozenset(names) | seen), text=()), free, seen)
                options.append(o.cat(lead, key) if free is not o.EMPTY else o.EMPTY)
                break
            value = doc.value((*path, "properties", names[at])) if names[at] in declared else free
            after = Members(doc, path, at + 1, False, frozenset())
            options.append(o.cat(lead, doc.key(names[at]), doc.colon, value, after))
            if names[at] in required:
                break
        return o.alt(*options).feed(byte)


class Key(o.Expr):  # (document, path, the key's string, the value, other keys seen): a key that is not declared
    def d(self, byte):
        doc, path, key, value, seen = self.args
        after = key.feed(byte)
        if after is not o.EPS:
            return Key(doc, path, after, value, seen) if after is not o.EMPTY else o.EMPTY
        name = "".join(map(chr, key.args[5]))
        names = doc.at(path)
        last = len(set(names.get("properties", {})) | set(names.get("required", [])))
        return o.cat(doc.colon, value, Members(doc, path, last, False, seen | {name}))
