"""The ``response_template`` of transformers (5.13 and later): a tokenizer's own description of what its model writes.

It describes the reading side only, by markers and regular expressions. A format says more, so it can be told in this
way with losses, which are named; and a template can be read where its expressions are no more than markers, blanks and
a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agentgram.errors import DefinitionError
from agentgram.formats import nodes as n
from agentgram.formats.codecs import get_codec
from agentgram.formats.surface import SurfaceCodec
from agentgram.formats.tagged import TaggedCodec

if TYPE_CHECKING:
    from agentgram.formats.template import Format

_CALL = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
_EACH = {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}}


@dataclass(frozen=True, kw_only=True)
class ResponseTemplate:
    """A format as a ``response_template``."""

    value: dict[str, Any]
    """To be set as ``tokenizer.response_template``."""
    differences: tuple[str, ...]
    """What that reader makes of outputs otherwise."""


# to a response_template


def to_response_template(fmt: Format) -> ResponseTemplate:
    """See :meth:`agentgram.formats.Format.to_response_template`."""
    ends = "|".join(re.escape(s) for s in fmt.stops) or "$"
    fields: dict[str, Any] = {}
    notes = ["what is malformed raises there"]
    if fmt.channels:
        fields, more = _channel_fields(fmt.channels[0])
        notes += more
    else:
        for tag in (t for t in n.walk(fmt.output) if isinstance(t, n.Tag)):
            if any(isinstance(f, n.Field) and f.kind == "reasoning" for f in n.walk(tag.body)):
                close = rf"\s*{re.escape(tag.end.text)}\s*" if tag.end is not None else ends
                fields["reasoning_content"] = {"open": tag.begin.text, "close_pattern": close, "content": "text"}
                break
        fields["tool_calls"], more = _call_field(fmt, fmt.call_tags[0], ends)
        notes += more
        fields["content"] = {"close_pattern": rf"(?:{ends})\s*", "content": "text"}
    anchor = fmt.turn.opening("assistant")
    value = {"defaults": {"role": "assistant"}, "start_anchor": anchor or fmt.start or "\n", "fields": fields}
    return ResponseTemplate(value=value, differences=tuple(notes))


def _call_field(fmt: Format, tag: n.Tag, ends: str) -> tuple[dict[str, Any], list[str]]:
    args = next(a for a in n.walk(tag.body) if isinstance(a, n.Args))
    codec = get_codec(args.codec, args.options)
    envelope = next((o for o in n.walk(tag.body) if isinstance(o, n.JsonObj)), None)
    if n.holds_many(tag):
        if not isinstance(codec, SurfaceCodec) or isinstance(tag.body, n.JsonArr):
            raise DefinitionError(
                f"format {fmt.name!r} has several calls in one section, which no response_template says."
            )
        opening = r"(?=\[[A-Za-z_][\w.\-]*\()"
        field: dict[str, Any] = {"open_pattern": opening, "close_pattern": rf"(?:{ends})\s*|$"}
        field.update(content="python-call-list", transform=_EACH, transform_each=True)
        return field, ["calls are looked for anywhere in the text there"]
    close = rf"(?:{ends})\s*|(?={re.escape(tag.begin.text)})|$"
    if tag.end is not None:
        close = rf"\s*{re.escape(tag.end.text)}\s*"
    elif tag.peek:
        close = rf"(?:{ends})\s*|$"
    notes = [f"{tag.end.text!r} inside a string ends a call there"] if tag.end is not None else []
    if envelope is not None:
        names = {type(v): k for k, v in envelope.keys}
        name, arguments = names[n.Name], names[n.Args]
        same = (name, arguments) == ("name", "arguments")
        function: Any = (
            "{content}" if same else {"name": f"{{content.{name}}}", "arguments": f"{{content.{arguments}}}"}
        )
        opened: dict[str, Any] = {"open": tag.begin.text}
        if tag.peek:
            opened, notes = {"open_pattern": r'(?=\{\s*")'}, ["any JSON object is a call there"]
        common = {"close_pattern": close, "repeats": True, "content": "json"}
        return {**opened, **common, "transform": {"type": "function", "function": function}}, notes
    before, after = _around_args(tag.body)
    called: dict[str, Any] = {
        "open_pattern": re.escape(tag.begin.text) + before,
        "close_pattern": after + close,
        "repeats": True,
        **_content(fmt, codec, notes),
        "transform": _CALL,
    }
    return called, notes


def _content(fmt: Format, codec: object, notes: list[str]) -> dict[str, Any]:
    if isinstance(codec, TaggedCodec):
        notes.append("values are text there, or are cast by the tools' schemas where the reader is given them")
        before, _, after = codec.open.partition("{key}")
        pattern = rf"{_loosely(before)}(?P<key>[^<>\n]+?){_loosely(after)}(?P<value>.*?){_loosely(codec.close)}"
        return {"content": "xml-inline", "content_args": {"tag_pattern": pattern, "value_parser": {"name": "text"}}}
    if isinstance(codec, SurfaceCodec):
        if not codec.quote:
            raise DefinitionError(f"format {fmt.name!r} has arguments that no response_template reads.")
        delimiters = [[codec.quote, codec.quote]]
        return {"content": "json", "content_args": {"unquoted_keys": True, "string_delims": delimiters}}
    return {"content": "json"}


def _loosely(text: str) -> str:
    return re.sub(r"(?:\\\n)+|\n+", r"\\s*", re.escape(text).replace("\\\n", "\n"))


def _around_args(body: n.Node) -> tuple[str, str]:
    """Patterns for what stands before and after the arguments of a call."""
    before, after, seen = "", "", False
    for node in body.items if isinstance(body, n.Seq) else (body,):
        if isinstance(node, n.Args):
            seen = True
            continue
        piece = _node_pattern(node)
        before, after = (before, after + piece) if seen else (before + piece, after)
    return before, after


def _node_pattern(node: n.Node) -> str:
    if isinstance(node, n.Lit | n.Tok):
        return re.escape(node.text)
    if isinstance(node, n.Space):
        return r"\s*"
    if isinstance(node, n.Name):
        return re.escape(node.prefix) + r"(?P<name>[A-Za-z0-9_.\-]+)"
    if isinstance(node, n.CallId):
        return rf"(?:{node.pattern})"
    raise DefinitionError(f"{type(node).__name__} stands beside a call's arguments, which no response_template says.")


def _channel_fields(node: n.Channels) -> tuple[dict[str, Any], list[str]]:
    start, channel, body = (re.escape(x) for x in ("".join(node.start), node.channel, node.body))
    stops = sorted({m.end for m in node.messages if m.end} | {node.end})
    close = rf"(?:{re.escape(node.end)}(?:{start})?|<\|return\|>|$)\s*"
    fields: dict[str, Any] = {}
    for message in node.messages:
        if isinstance(message.content, n.Field) and (message.last or message.content.kind == "reasoning"):
            key = "reasoning_content" if message.content.kind == "reasoning" else "content"
            opening = re.escape(node.channel + message.name + node.body)
            fields[key] = {"open_pattern": opening, "close_pattern": close, "content": "text"}
    prefix = next(m.to.prefix for m in node.messages if m.to is not None and not m.to.only)
    named = rf"\s*{re.escape(node.to.strip() + prefix)}(?P<name>[^\s<]+)"
    fields["tool_calls"] = {
        "open_pattern": rf"(?:{named}\s*{channel}\w+[^{{]*?{body}|{channel}\w+{named}[^{{]*?{body})",
        "close_pattern": rf"(?:{'|'.join(map(re.escape, stops))})(?:{start})?|$",
        "repeats": True,
        "content": "json",
        "transform": _CALL,
    }
    return fields, [
        "text before a call and builtin tools are not read there",
        "a marker inside a string ends a call there",
    ]


# from a response_template


def from_response_template(value: Mapping[str, Any], base: Format) -> Format:
    """See :meth:`agentgram.formats.Format.from_response_template`."""
    fields = value.get("fields", {})
    content = fields.get("content", {})
    if "open" in content or "open_pattern" in content:
        raise DefinitionError(
            "this response_template reads an answer from a message with a header, which is not imported: the format "
            "for such models is 'harmony'."
        )
    if "tool_calls" not in fields:
        raise DefinitionError("this response_template has no field 'tool_calls', so it is no format for tools.")
    stops = tuple(_alternatives(content)) or base.turn.stop
    tag = _imported_calls(fields["tool_calls"], stops)
    output: n.Node = n.Dispatch(n.Field(), [tag], sep="\n" if tag.end is not None else "")
    reasoning = next((fields[k] for k in ("reasoning_content", "thinking") if k in fields), None)
    if reasoning is not None:
        begin, end = _literal(reasoning, "open"), _literal(reasoning, "close")
        inner = n.Seq(n.Space("\n"), n.Field("reasoning"), n.Space("\n"))
        output = n.Seq(n.Opt(n.Seq(n.Tag(n.Tok(begin), inner, n.Tok(end)), n.Space("\n\n"))), output)
    around = {**base.turn.around, "assistant": (_literal(value, "start_anchor"), base.turn.closing("assistant"))}
    turn = replace(base.turn, stop=stops, around=around)
    return replace(base, output=output, turn=turn)


def _literal(field: Mapping[str, Any], key: str) -> str:
    """A marker that is given as text, or as an expression that is no more than a text with blanks around."""
    given = field.get(key)
    if isinstance(given, str):
        return given
    if isinstance(given, list) and given:
        return str(given[0])
    pieces = [p for p in _pieces(str(field.get(f"{key}_pattern", ""))) if not isinstance(p, n.Space)]
    if len(pieces) != 1 or not isinstance(pieces[0], n.Lit):
        raise DefinitionError(
            f"the pattern {field.get(f'{key}_pattern')!r} is more than one marker, which is not imported."
        )
    return pieces[0].text


def _alternatives(field: Mapping[str, Any]) -> Iterator[str]:
    """The texts that end the answer."""
    given = field.get("close")
    if isinstance(given, str):
        yield given
    elif isinstance(given, list):
        yield from map(str, given)
    elif "close_pattern" in field:
        pattern = re.sub(r"\\s[*+]?$", "", str(field["close_pattern"]))
        pattern = re.sub(r"^\(\?:(.*)\)$", r"\1", pattern)
        for option in re.split(r"(?<!\\)\|", pattern):
            texts = [p.text for p in _pieces(option) if isinstance(p, n.Lit)]
            yield from texts[:1]


def _imported_calls(field: Mapping[str, Any], stops: Sequence[str]) -> n.Tag:
    kind = field.get("content", "text")
    if kind == "python-call-list":
        item = n.Seq(n.Name(), n.Lit("("), n.Args("py-kwargs"), n.Lit(")"))
        return n.Tag("[", n.Rep(item, min=1, sep=n.Lit(", ", ",")), "]", where="start")
    if kind == "json" and field.get("content_args"):
        raise DefinitionError("JSON with quotes or keys of its own is not imported.")
    *inner, end = _ends(field, stops)
    opening = [n.Lit(_literal(field, "open"))] if "open" in field else _pieces(str(field.get("open_pattern", "")))
    if not opening or not isinstance(opening[0], n.Lit):
        raise DefinitionError(f"{field.get('open_pattern')!r} begins with no marker: it is not imported.")
    if not any(isinstance(p, n.Name) for p in opening):
        name, arguments = _keys(kind, field.get("transform"))
        body = n.JsonObj([(name, n.Name()), (arguments, n.Args())])
        return n.Tag(n.Tok(opening[0].text), n.Seq(n.Space("\n"), body, n.Space("\n")), _marker(end))
    named = re.search(r"<(\w+)=\Z", "".join(p.text for p in opening if isinstance(p, n.Lit)).rstrip(">"))
    if named and not inner:  # its closer may be left to the reader of the arguments
        inner = [f"</{named.group(1)}>"]
    args = n.Args() if kind == "json" else _imported_xml(field, (*inner, end) if end else tuple(inner))
    closing: list[n.Node] = [piece for text in inner for piece in (n.Lit(text, ""), n.Space("\n"))]
    return n.Tag(
        opening[0],
        n.Seq(*opening[1:], args, *(closing or ([n.Space("\n" if end.startswith("<") else "")] if end else []))),
        _marker(end),
    )


def _keys(kind: str, transform: Any) -> tuple[str, str]:
    """The keys of a JSON envelope that hold the name and the arguments."""
    function = transform.get("function") if isinstance(transform, Mapping) else None
    if kind != "json":
        raise DefinitionError(f"content of the kind {kind!r} is not imported without a name before it.")
    if function == "{content}":
        return "name", "arguments"
    found = [re.fullmatch(r"\{content\.(\w+)\}", str((function or {}).get(key))) for key in ("name", "arguments")]
    if found[0] is None or found[1] is None:
        raise DefinitionError(f"the transform {transform!r} is not imported: it tells no name and arguments apart.")
    return found[0].group(1), found[1].group(1)


def _marker(end: str) -> n.Marker | None:
    return n.Tok(end) if end else None


def _ends(field: Mapping[str, Any], stops: Sequence[str]) -> list[str]:
    """The markers that end a call, the last of them the tag's own; empty where that is the end of the turn."""
    if "close" in field:
        return [_literal(field, "close")]
    texts = [p.text for p in _pieces(str(field.get("close_pattern", ""))) if isinstance(p, n.Lit)]
    for stop in stops:
        texts = [t.replace(stop, "") for t in texts]
    return [t for t in texts if t] or [""]


def _imported_xml(field: Mapping[str, Any], until: tuple[str, ...]) -> n.Args:
    if field.get("content") != "xml-inline":
        raise DefinitionError(f"content of the kind {field.get('content')!r} is not imported.")
    pieces = _pieces(str(field.get("content_args", {}).get("tag_pattern", "")))
    text = "".join("\n" if isinstance(p, n.Space) else p.text if isinstance(p, n.Lit) else "\0" for p in pieces)
    if text.count("\0") != 2:
        raise DefinitionError("a tag_pattern without a key and a value is not imported.")
    before, middle, after = text.split("\0")
    return n.Args("xml-params", open=f"{before}{{key}}{middle}", close=after + "\n", until=until)


_TOKEN = re.compile(r"\\s[*+?]?|\\n[*+?]?|\\(.)|\(\?P<(\w+)>|([^\\()\[\]{}*+?|^$.])|(.)", re.DOTALL)


def _pieces(pattern: str) -> list[n.Node]:
    """A regular expression of markers, blanks and named groups as nodes; a group is a name, whatever it matches.

    Raises:
        DefinitionError: It is more than that.
    """
    out: list[n.Node] = []
    at = 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        assert match is not None
        at = match.end()
        if match.group().startswith(("\\s", "\\n")):
            # how the model writes its blanks is not said: a new line behind a tag, a blank elsewhere
            tagged = not out or not isinstance(out[-1], n.Lit) or out[-1].text.endswith(">")
            out.append(n.Space("\n" if tagged or match.group().startswith("\\n") else " "))
        elif match.group(2):
            at = _group_end(pattern, at)
            out.append(n.Name())
        elif match.group(4):
            raise DefinitionError(
                f"the pattern {pattern!r} is more than markers, blanks and a name: it is not imported."
            )
        else:
            text = match.group(1) or match.group(3)
            if out and isinstance(out[-1], n.Lit):
                out[-1] = n.Lit(out[-1].text + text)
            else:
                out.append(n.Lit(text))
    return out


def _group_end(pattern: str, at: int) -> int:
    depth, inside = 1, False
    while at < len(pattern) and depth:
        char = pattern[at]
        if char == "\\":
            at += 1
        elif inside:
            inside = char != "]"
        elif char == "[":
            inside = True
        else:
            depth += {"(": 1, ")": -1}.get(char, 0)
        at += 1
    return at
