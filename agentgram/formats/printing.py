"""From an assistant's message and its calls to text: what the format writes for them."""
# ruff: noqa: ARG001 -- the functions of one singledispatch share a signature, whether they need all of it or not

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, singledispatch
from typing import TYPE_CHECKING, Any

from agentgram.errors import DefinitionError
from agentgram.formats import nodes as n
from agentgram.formats.codecs import get_codec
from agentgram.formats.guarding import Guard
from agentgram.formats.json_text import dumps
from agentgram.formats.slots import Slot
from agentgram.messages import Message, Part, ReasoningPart, TextPart, ToolCall
from agentgram.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentgram.formats.template import Format

# one turn of the assistant


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a node prints from."""

    fmt: Format
    parts: Sequence[Part] = ()
    """The message's parts, for nodes outside of a call."""
    call: ToolCall | None = None
    """The call, for nodes inside one."""
    calls: tuple[ToolCall, ...] = ()
    """The calls of a tag that holds several."""
    index: int = 0
    """How many calls the conversation has before this one."""
    tools: Mapping[str, ToolDefinition] = field(default_factory=dict)
    """What is known of the tools, by name."""
    avoid: tuple[str, ...] = ()
    """Markers that may not occur in a call's values."""
    guard: Guard = str
    """Breaks up markers in free text; as it stands, it leaves all as it is."""

    def of(self, call: ToolCall, offset: int = 0) -> Said:
        """To print one of the calls."""
        return replace(self, call=call, calls=(), parts=(), index=self.index + offset)


@singledispatch
def emit(node: Any, said: Said) -> str:
    """The canonical text of a node."""
    raise TypeError(f"{type(node).__name__} cannot be printed")


@emit.register(n.Lit)
@emit.register(n.Tok)
def _(node: n.Marker, said: Said) -> str:
    return node.text


@emit.register
def _(node: n.Space, said: Said) -> str:
    return node.canonical


@emit.register
def _(node: n.Stop, said: Said) -> str:
    return ""


@emit.register
def _(node: n.Field, said: Said) -> str:
    kind = TextPart if node.kind == "content" else ReasoningPart
    return said.guard("".join(p.text for p in said.parts if isinstance(p, kind)))


def _call(said: Said) -> ToolCall:
    if said.call is None:
        raise DefinitionError("a call's name and arguments stand in a Tag of a Dispatch, and nowhere else.")
    return said.call


@emit.register
def _(node: n.Name, said: Said) -> str:
    return node.prefix + _call(said).name


@emit.register
def _(node: n.Args, said: Said) -> str:
    call = _call(said)
    slot = Slot(tool=said.tools.get(call.name), avoid=said.avoid)
    return get_codec(node.codec, node.options).encode(call.arguments, slot)


@emit.register
def _(node: n.Count, said: Said) -> str:
    return str(said.index)


@emit.register
def _(node: n.CallId, said: Said) -> str:
    if node.of is not None:
        return emit(node.of, said)
    call = _call(said)
    return call.id if re.fullmatch(node.pattern, call.id) else _word(node.pattern, f"{call.id} {said.index}")


@lru_cache(maxsize=256)
def _word(pattern: str, seed: str) -> str:
    """A word of letters or digits that follows from the seed and matches a pattern."""
    for alphabet in (string.ascii_letters + string.digits, string.digits, string.hexdigits[:16]):
        number, word = int.from_bytes(hashlib.sha256(seed.encode()).digest()), ""
        while number:
            number, digit = divmod(number, len(alphabet))
            word += alphabet[digit]
            if re.fullmatch(pattern, word):
                return word
    raise DefinitionError(f"no call id of letters or digits matches {pattern!r}: give CallId what it is made 'of'.")


def call_ids(fmt: Format, calls: Sequence[ToolCall], index: int) -> list[str]:
    """The ids of a turn's calls as they are printed; ``index`` calls were before them."""
    node = next((i for i in n.walk(fmt.output) if isinstance(i, n.CallId)), None)
    if node is None:
        return [c.id for c in calls]
    return [emit(node, Said(fmt=fmt, call=c, index=index + i)) for i, c in enumerate(calls)]


def called_as(fmt: Format, name: str) -> str:
    """A tool's name as calls write it."""
    nodes = [i for i in n.walk(fmt.output) if isinstance(i, n.Name) and (name in i.only or name not in fmt.claimed)]
    node = next((i for i in nodes if name in i.only), nodes[0] if nodes else n.Name())
    return node.prefix + name


@emit.register
def _(node: n.JsonObj, said: Said) -> str:
    return "{" + ", ".join(f"{dumps(key)}: {_json_value(value, said)}" for key, value in node.keys) + "}"


def _json_value(node: n.Node, said: Said) -> str:
    if isinstance(node, n.Args | n.JsonObj):
        return emit(node, said)
    return dumps(emit(node, said), said.avoid)


@emit.register
def _(node: n.JsonArr, said: Said) -> str:
    return "[" + ", ".join(_each(node.item, said)) + "]"


def _each(item: n.Node, said: Said) -> list[str]:
    """An item once for each call."""
    return [emit(item, said.of(call, offset)) for offset, call in enumerate(said.calls)]


@emit.register(n.Seq)
@emit.register(n.Perm)
def _(node: n.Seq | n.Perm, said: Said) -> str:
    return "".join(emit(item, said) for item in node.items)


@emit.register
def _(node: n.Choice, said: Said) -> str:
    return emit(node.options[0], said)


@emit.register(n.Opt)
def _(node: n.Opt, said: Said) -> str:
    return emit(node.item, said) if node.written and _has_something_to_say(node.item, said) else ""


@emit.register
def _(node: n.Rep, said: Said) -> str:
    sep = emit(node.sep, said) if node.sep is not None else ""
    if said.call is None and n.names_a_tool(node.item):
        return sep.join(_each(node.item, said))
    return sep.join([emit(node.item, said)] * max(node.min, int(_has_something_to_say(node.item, said))))


def _has_something_to_say(node: n.Node, said: Said) -> bool:
    filled = (emit(hole, said) for hole in n.walk(node) if isinstance(hole, n.Field))
    return any(filled) or (said.call is not None and n.names_a_tool(node))


@emit.register
def _(node: n.Tag, said: Said) -> str:
    begin = "" if node.peek else node.begin.text
    return begin + emit(node.body, said) + (node.end.text if node.end else "")


@emit.register
def _(node: n.Dispatch, said: Said) -> str:
    out, tag, done, after_text = "", node.tags[0], 0, False
    parts = list(said.parts)
    while parts:
        part = parts.pop(0)
        if isinstance(part, ToolCall):
            calls = [part]
            while n.holds_many(tag) and parts and isinstance(parts[0], ToolCall):
                calls.append(parts.pop(0))  # type: ignore[arg-type]
            piece = _print_calls(tag, calls, replace(said, index=said.index + done))
            done += len(calls)
        else:
            piece = said.guard(part.text if isinstance(part, TextPart) else getattr(part, "raw", ""))
        if piece:
            sep = node.before if after_text and isinstance(part, ToolCall) else node.sep
            out += (sep if out else "") + piece
            after_text = not isinstance(part, ToolCall)
    return out


def _print_calls(tag: n.Tag, calls: Sequence[ToolCall], said: Said) -> str:
    many = n.holds_many(tag)
    return emit(tag, replace(said, parts=(), call=None, calls=tuple(calls)) if many else said.of(calls[0]))


def print_call(fmt: Format, definition: ToolDefinition, arguments: Mapping[str, Any], call_id: str = "") -> str:
    """One call, from its opening marker to its closing one."""
    call = ToolCall(name=definition.name, arguments=dict(arguments), id=call_id)
    said = Said(fmt=fmt, parts=(call,), avoid=fmt.markers, tools={definition.name: definition})
    if fmt.channels:
        return emit(fmt.channels[0], said)
    return _print_calls(fmt.call_tags[0], [call], said)


def print_turn(
    fmt: Format,
    message: Message,
    guard: Guard,
    *,
    reasoning: bool = True,
    tools: Sequence[ToolDefinition] = (),
    index: int = 0,
) -> str:
    """What the assistant wrote, without the markers of the turn."""
    parts = [p for p in message.parts if reasoning or not isinstance(p, ReasoningPart)]
    known = {t.name: t for t in tools}
    return emit(fmt.output, Said(fmt=fmt, parts=parts, avoid=fmt.markers, guard=guard, tools=known, index=index))
