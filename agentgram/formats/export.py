"""A request's grammar for other engines: Lark for llguidance, a structural tag for xgrammar.

What they cannot hold to is said, in words: an export is never a silent change of language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentgram.engine import spec as e
from agentgram.errors import DefinitionError


@dataclass(frozen=True, kw_only=True)
class Export:
    """A grammar in another engine's words."""

    text: str
    """Lark text, or the structural tag's JSON."""
    differences: tuple[str, ...] = ()
    """Where the two languages are not the same; empty where they are."""


# xgrammar


def structural_tag(spec: e.Spec) -> Export:
    """A grammar as the JSON of an xgrammar structural tag (0.2.9).

    Raises:
        DefinitionError: Something in it cannot be said as a structural tag at all.
    """
    notes: dict[str, None] = {}
    value = {"type": "structural_tag", "format": _tag_format(spec, notes)}
    return Export(text=json.dumps(value, ensure_ascii=False), differences=tuple(notes))


def _tag_format(spec: e.Spec, notes: dict[str, None]) -> dict[str, Any]:
    if isinstance(spec, e.Lit):
        return {"type": "const_string", "value": spec.text}
    if isinstance(spec, e.Tok):
        return {"type": "token", "token": spec.token}
    if isinstance(spec, e.Text):
        return {"type": "any_text", "excludes": list(spec.excludes)}
    if isinstance(spec, e.Regex):
        return {"type": "regex", "pattern": spec.pattern}
    if isinstance(spec, e.Ebnf):
        return {"type": "grammar", "grammar": spec.text}
    if isinstance(spec, e.JsonSchema):
        if spec.whitespace == "canonical":
            notes["whitespace inside JSON is free there, and canonical here"] = None
        return {
            "type": "json_schema",
            "json_schema": json.loads(spec.schema),
            "any_order": spec.property_order == "any",
        }
    if isinstance(spec, e.Seq):
        return _tag_sequence([_tag_format(i, notes) for i in spec.items])
    if isinstance(spec, e.Choice):
        options = [_tag_format(o, notes) for o in spec.options]
        return options[0] if len(options) == 1 else {"type": "or", "elements": options}
    if isinstance(spec, e.Opt):
        return {"type": "optional", "content": _tag_format(spec.item, notes)}
    if isinstance(spec, e.Rep):
        return _tag_repetition(spec, notes)
    if isinstance(spec, e.Tag):
        return _tag(spec, notes)
    return _tag_dispatch(spec, notes)


def _tag_sequence(items: list[dict[str, Any]]) -> dict[str, Any]:
    said = [i for i in items if i != {"type": "const_string", "value": ""}]
    if not said:
        return {"type": "const_string", "value": ""}
    return said[0] if len(said) == 1 else {"type": "sequence", "elements": said}


def _tag_repetition(spec: e.Rep, notes: dict[str, None]) -> dict[str, Any]:
    item = _tag_format(spec.item, notes)
    most = -1 if spec.max is None else spec.max
    if spec.sep is None:
        return {"type": "repeat", "min": spec.min, "max": most, "content": item}
    more = {
        "type": "repeat",
        "min": max(spec.min - 1, 0),
        "max": most if most < 0 else most - 1,
        "content": _tag_sequence([_tag_format(spec.sep, notes), item]),
    }
    several = _tag_sequence([item, more]) if most != 1 else item
    return several if spec.min else {"type": "optional", "content": several}


def _tag(spec: e.Tag, notes: dict[str, None]) -> dict[str, Any]:
    def marker(value: str | e.Tok) -> Any:
        return {"type": "token", "token": value.token} if isinstance(value, e.Tok) else value

    content = _tag_format(spec.content, notes)
    return {"type": "tag", "begin": marker(spec.begin), "content": content, "end": marker(spec.end)}


def _tag_dispatch(spec: e.Dispatch, notes: dict[str, None]) -> dict[str, Any]:
    tokens = [t for t in spec.triggers if isinstance(t, e.Tok)]
    if tokens and len(tokens) < len(spec.triggers):
        raise DefinitionError("a structural tag has triggers of one kind, tokens or texts: this format has both.")
    if spec.stops:
        raise DefinitionError("a structural tag has no stops in its text, and this grammar has some.")
    if spec.at_most is not None and not spec.stop_after_first:
        notes[f"there are at most {spec.at_most} calls here, and any number there"] = None
    shared = {
        "tags": [_tag(t, notes) for t in spec.tags],
        "at_least_one": spec.at_least > 0,
        "stop_after_first": spec.stop_after_first,
    }
    if tokens:
        if spec.excludes:
            notes["text that spells a marker is refused here, and let through there"] = None
        return {"type": "token_triggered_tags", "trigger_tokens": [t.token for t in tokens], **shared}
    return {"type": "triggered_tags", "triggers": list(spec.triggers), **shared, "excludes": list(spec.excludes)}


# llguidance


def lark(spec: e.Spec, special: Mapping[str, int] | None = None) -> Export:
    """A grammar as Lark text for llguidance (1.9).

    Args:
        spec: The grammar.
        special: The vocabulary's special tokens: needed for those whose names are not in angle brackets.

    Raises:
        DefinitionError: Something in it cannot be said in Lark.
    """
    writer = _Lark(special=special or {})
    start = writer.expression(spec)
    text = "\n".join([f"start: {start}", *(f"{name}: {body}" for body, name in writer.rules.items())])
    return Export(text=text + "\n", differences=tuple(writer.notes))


@dataclass
class _Lark:
    special: Mapping[str, int]
    rules: dict[str, str] = field(default_factory=dict)
    """Bodies of rules and terminals, and their names."""
    notes: dict[str, None] = field(default_factory=dict)

    def rule(self, body: str, prefix: str = "r") -> str:
        """The name of a rule, or of a terminal, with this body."""
        return self.rules.setdefault(body, f"{prefix}{len(self.rules)}")

    def expression(self, spec: e.Spec) -> str:
        """A node as an expression, in brackets where it needs them."""
        if isinstance(spec, e.Lit):
            return json.dumps(spec.text, ensure_ascii=False)
        if isinstance(spec, e.Tok):
            return self.token(spec)
        if isinstance(spec, e.Text):
            return self.text(spec.excludes)
        if isinstance(spec, e.Regex):
            return self.rule(_pattern(spec.pattern), "T")
        if isinstance(spec, e.JsonSchema):
            return self.rule(self.json(spec))
        if isinstance(spec, e.Seq):
            return self.items(list(flat(spec)), "")
        if isinstance(spec, e.Choice):
            return self.rule(" | ".join(dict.fromkeys(self.expression(o) for o in spec.options)))
        if isinstance(spec, e.Opt):
            return f"({self.expression(spec.item)})?"
        if isinstance(spec, e.Rep):
            return self.repetition(spec)
        if isinstance(spec, e.Tag):
            begin, end = (m if isinstance(m, e.Tok) else e.Lit(m) for m in (spec.begin, spec.end))
            return self.expression(e.Seq([begin, spec.content, end]))
        if isinstance(spec, e.Dispatch):
            return self.dispatch(spec)
        raise DefinitionError("a grammar in EBNF is not translated: write it as Lark by hand.")

    def sequence(self, items: Iterable[str]) -> str:
        """The items one after another."""
        said = [i for i in items if i != '""']
        return f"({' '.join(said)})" if len(said) > 1 else said[0] if said else '""'

    def items(self, items: list[e.Spec], follow: str) -> str:
        """Items one after another, and a literal behind them. A text and the literal behind it are one lexeme: the
        longest text would take the beginning of what ends it along.
        """
        out: list[str] = []
        for item in reversed(items):
            if isinstance(item, e.Lit):
                follow = item.text + follow
                continue
            out.append(self.then(item, follow))
            follow = ""
        if follow:
            out.append(self.expression(e.Lit(follow)))
        return self.sequence(reversed(out))

    def then(self, spec: e.Spec, follow: str) -> str:
        """A node with a literal behind it."""
        if not follow:
            return self.expression(spec)
        if isinstance(spec, e.Text):
            return self.until(follow, spec.excludes)
        if isinstance(spec, e.Seq):
            return self.items(list(flat(spec)), follow)
        if isinstance(spec, e.Choice) and any(isinstance(o, e.Text | e.Seq) for o in spec.options):
            return self.rule(" | ".join(dict.fromkeys(self.then(o, follow) for o in spec.options)))
        return self.sequence([self.expression(spec), self.expression(e.Lit(follow))])

    def until(self, follow: str, excludes: Iterable[str]) -> str:
        """Text without some strings, and the literal behind it, which may have one of them at its end."""
        ends = (follow[:i] for i in range(1, len(follow) + 1))
        first = next((end for end in ends if any(end.endswith(x) for x in excludes)), None)
        if first is None:
            return self.up_to(follow, excludes)
        barred = "|".join(_escaped(x) for x in excludes)
        found = _escaped(first)
        body = rf"/(?s:.*){found}/ & ~/(?s:.*)({barred})(?s:.+)/"
        lexeme = self.rule_named(self.rule(body, "T"), "lazy")
        return self.sequence([lexeme, self.expression(e.Lit(follow[len(first) :]))])

    def token(self, token: e.Tok) -> str:
        """A special token."""
        if isinstance(token.token, int):
            return f"<[{token.token}]>"
        if re.fullmatch(r"<[^<>\s]+>", token.token):
            return token.token
        if token.token in self.special:
            return f"<[{self.special[token.token]}]>"
        raise DefinitionError(f"the token {token.token!r} has to be named by its id: pass the vocabulary's special=.")

    def text(self, excludes: Iterable[str]) -> str:
        """Text without some strings."""
        found = "|".join(_escaped(x) for x in excludes)
        return self.rule(r"/(?s:.*)/" + (rf" & ~/(?s:.*)({found})(?s:.*)/" if found else ""), "T")

    def json(self, spec: e.JsonSchema) -> str:
        """JSON that satisfies a schema."""
        schema = json.loads(spec.schema)
        if spec.whitespace == "canonical":
            spaced = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
            schema = {**schema, "x-guidance": spaced} if isinstance(schema, dict) else schema
        elif spec.whitespace == "flexible":
            self.notes["whitespace inside JSON has other bounds there"] = None
        if spec.property_order == "any":
            self.notes["properties come in declared order there, and in any here"] = None
        return f"%json {json.dumps(schema, ensure_ascii=False)}"

    def repetition(self, spec: e.Rep) -> str:
        """Several of an item."""
        item = self.expression(spec.item)
        if spec.sep is None:
            most = "" if spec.max is None else str(spec.max)
            return f"({item}){{{spec.min},{most}}}"
        least, most = max(spec.min - 1, 0), "" if spec.max is None else str(spec.max - 1)
        several = self.sequence([item, f"({self.sequence([self.expression(spec.sep), item])}){{{least},{most}}}"])
        return several if spec.min else f"({several})?"

    def dispatch(self, spec: e.Dispatch) -> str:
        """Text with tags: each piece of text runs up to the end of a trigger, the last to the end."""
        if spec.stops:
            raise DefinitionError("Lark has no stops inside of text, and this grammar has some.")
        texts = [t for t in spec.triggers if isinstance(t, str)]
        end = self.text((*spec.excludes, *texts))
        calls = []
        for trigger in spec.triggers:
            if isinstance(trigger, e.Tok):
                tags = [t for t in spec.tags if t.begin == trigger]
                lead = self.sequence([end, self.token(trigger)])
                rest = [e.Tag("", t.content, t.end) for t in tags]
            else:
                tags = [t for t in spec.tags if isinstance(t.begin, str) and t.begin.startswith(trigger)]
                lead = self.up_to(trigger, spec.excludes)
                rest = [e.Tag(str(t.begin)[len(trigger) :], t.content, t.end) for t in tags]
            calls.append(self.sequence([lead, self.rule(" | ".join(self.expression(t) for t in rest))]))
        call = self.rule(" | ".join(calls))
        if spec.stop_after_first or spec.at_most == 1:
            return self.rule(call if spec.at_least else f"{call} | {end}")
        most = "" if spec.at_most is None else str(spec.at_most)
        return self.sequence([f"({call}){{{spec.at_least},{most}}}", end])

    def up_to(self, trigger: str, excludes: Iterable[str]) -> str:
        """Text up to the end of the first trigger."""
        found = _escaped(trigger)
        barred = "|".join(_escaped(x) for x in excludes)
        body = rf"/(?s:.*){found}/" + (rf" & ~/(?s:.*)({barred})(?s:.*)/" if barred else "")
        name = self.rule(body, "T")
        return self.rule_named(f"{name}", "lazy")

    def rule_named(self, body: str, attribute: str) -> str:
        """The name of a rule with an attribute."""
        known = next((n for b, n in self.rules.items() if b == body and n.endswith(f"[{attribute}]")), None)
        if known is None:
            known = f"r{len(self.rules)}[{attribute}]"
            self.rules[body] = known
        return known.partition("[")[0]


def flat(spec: e.Seq) -> Iterable[e.Spec]:
    """The items of a sequence, those of sequences in it among them."""
    for item in spec.items:
        if isinstance(item, e.Seq):
            yield from flat(item)
        else:
            yield item


def _escaped(text: str) -> str:
    """A text as part of a regular expression between slashes."""
    lines = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "/": r"\/"}
    return "".join(lines.get(c) or re.escape(c) for c in text)


def _pattern(pattern: str) -> str:
    """A regular expression between slashes, over all characters."""
    return "/" + re.sub(r"(?<!\\)((?:\\\\)*)/", r"\1\\/", pattern) + "/"
