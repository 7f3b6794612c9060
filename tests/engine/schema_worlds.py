"""Small worlds for differential tests: values over a tiny alphabet, and random schemas that can tell them apart."""

from __future__ import annotations

import itertools
import random
from typing import Any

SCALARS: list[Any] = [None, True, False, 0, 1, 2, 3, -1, 0.5, 1.5, "", "a", "b", "ab", "aa", "ba", "abc"]
NAMES = ["a", "b", "c", "ab"]


def values() -> list[Any]:
    """Every scalar, short arrays and small objects of them: some 250 values."""
    out = list(SCALARS)
    for size in range(3):
        out += [list(t) for t in itertools.product([None, 1, 2, "a", "b", [1], {"a": 1}], repeat=size)]
    out += [[1, 2, 3], [1, 1, 1], ["a", 1, "a"], ["a", "b", "a"], [1, 2, 1, 2], [[1], [1]], [1, True], [0, False]]
    inner = [1, 2, "a", "b", None, {"a": 1}, [1]]
    for names in [
        (),
        ("a",),
        ("b",),
        ("c",),
        ("ab",),
        ("a", "b"),
        ("b", "a"),
        ("a", "c"),
        ("a", "b", "c"),
        ("b", "ab"),
    ]:
        few = inner if len(names) < 2 else inner[:4] if len(names) < 3 else inner[1:3]
        out += [dict(zip(names, t, strict=True)) for t in itertools.product(few, repeat=len(names))]
    return out


class Schemas:
    """Random schemas; the same numbers give the same schemas."""

    LEAVES: tuple[Any, ...] = (
        True, False, {}, {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "null"}, {"const": 1},
        {"enum": ["a", "b"]}, {"type": "array"}, {"type": "object"}, {"minimum": 1}, {"maxLength": 1}, {"const": "a"},
    )  # fmt: skip
    SUBSCHEMA = ("additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else")
    LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
    COUNTS = (
        "minProperties", "maxProperties", "minItems", "maxItems", "minContains", "maxContains", "minLength", "maxLength",
    )  # fmt: skip
    BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    OTHERS = (
        "type", "enum", "const", "properties", "required", "patternProperties", "dependentRequired", "dependentSchemas",
        "pattern", "multipleOf", "uniqueItems", "$ref",
    )  # fmt: skip

    def __init__(self, rng: random.Random, without: tuple[str, ...] = ()) -> None:
        self.rng = rng
        words = (*self.SUBSCHEMA, *self.LISTS, *self.COUNTS, *self.BOUNDS, *self.OTHERS)
        self.words = [w for w in words if w not in without]

    def document(self, depth: int = 3) -> Any:
        schema = self.schema(depth)
        if isinstance(schema, dict) and "$ref" in str(schema):
            words, self.words = self.words, [w for w in self.words if w != "$ref"]
            schema["$defs"] = {"x": self.schema(1), "y": self.schema(1)}
            self.words = words
        return schema

    def schema(self, depth: int) -> Any:
        if depth <= 0 or self.rng.random() < 0.12:
            return self.rng.choice(self.LEAVES)
        size = self.rng.choice([1, 1, 2, 2, 3, 3, 4])
        return {word: self.keyword(word, depth - 1) for word in self.rng.sample(self.words, size)}

    def keyword(self, word: str, depth: int) -> Any:
        pick, sample = self.rng.choice, self.rng.sample
        if word in self.SUBSCHEMA:
            return self.schema(depth)
        if word in self.LISTS:
            return [self.schema(depth) for _ in range(self.rng.randint(1, 3))]
        if word in self.COUNTS:
            return self.rng.randint(0, 3)
        if word in self.BOUNDS:
            return pick([0, 1, 2, 0.5, 1.5])
        some = sample(NAMES, self.rng.randint(1, 2))
        match word:
            case "type":
                kinds = ["string", "integer", "number", "boolean", "null", "array", "object"]
                return pick([*kinds, ["object", "array"], ["string", "null"], ["integer", "string"]])
            case "enum":
                return [self.literal() for _ in range(self.rng.randint(1, 4))]
            case "const":
                return self.literal()
            case "properties":
                return {name: self.schema(depth) for name in some}
            case "required":
                return some
            case "patternProperties":
                return {p: self.schema(depth) for p in sample(["^a", "b$", "^ab", "c", "."], self.rng.randint(1, 2))}
            case "dependentRequired":
                return {pick(NAMES): some}
            case "dependentSchemas":
                return {pick(NAMES): self.schema(depth)}
            case "pattern":
                return pick(["^a", "b$", "a", "^ab?$", "^.b", "[^a]"])
            case "multipleOf":
                return pick([1, 2, 0.5, 3])
            case "uniqueItems":
                return True
        return f"#/$defs/{pick('xy')}"

    def literal(self) -> Any:
        return self.rng.choice(values() if self.rng.random() < 0.3 else SCALARS)
