"""Turns of several messages with headers (:class:`agentgram.formats.Channels`): printed, lowered and read.

A model writes headers less reliably than bodies. So the reader takes from a header what it finds in it, a recipient, a
channel, a content type, in any order and with anything around; a header that leads to no body is malformed output, and
what follows it is read on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentgram.engine import spec as e
from agentgram.errors import DefinitionError
from agentgram.formats import nodes as n
from agentgram.formats.assembly import Draft, Run
from agentgram.formats.codecs import JsonCodec, get_codec
from agentgram.formats.lowering import Lowering, allowed_tools, lower, lowered_once, must_call, text_excludes
from agentgram.formats.printing import Said, emit
from agentgram.formats.reading import any_of, encoded, read
from agentgram.formats.scanning import Holder, Mismatch, Wait, holder
from agentgram.messages import MalformedPart, Part, ReasoningPart, TextPart, ToolCall

_LONGEST_HEADER = 4096


def _kind(channel: n.Channel) -> str:
    return channel.content.kind if isinstance(channel.content, n.Field) else "call"


def _for_tool(node: n.Channels, name: str) -> n.Channel:
    """How a tool is called: the message that claims it by name, or the one for all others."""
    calls = [m for m in node.messages if m.to is not None]
    for message in calls:
        if message.to is not None and name in message.to.only:
            return message
    found = next((m for m in calls if m.to is not None and not m.to.only), None)
    if found is None:
        raise DefinitionError(f"the format says of no message how tool {name!r} is called.")
    return found


def _for_text(node: n.Channels, kind: str, *, last: bool) -> n.Channel:
    """The message that text of a kind goes into; for the turn's answer the last one."""
    found = [m for m in node.messages if _kind(m) == kind]
    return next((m for m in found if m.last is last), next(iter(found), node.messages[-1]))


# printing


def _chosen(node: n.Channels, parts: Sequence[Part]) -> Iterator[tuple[n.Channel, Part]]:
    shown = [p for p in parts if not isinstance(p, TextPart | ReasoningPart) or p.text]
    for place, part in enumerate(shown or [TextPart(text="")]):
        if isinstance(part, ToolCall):
            yield _for_tool(node, part.name), part
        elif isinstance(part, ReasoningPart):
            yield _for_text(node, "reasoning", last=False), part
        elif isinstance(part, TextPart | MalformedPart):
            yield _for_text(node, "content", last=place >= len(shown) - 1), part


@emit.register
def _(node: n.Channels, said: Said) -> str:
    out: list[str] = []
    done = 0
    for channel, part in _chosen(node, said.parts):
        if isinstance(part, ToolCall):
            at = said.of(part, done)
            recipient, body = node.to + emit(channel.to, at), emit(channel.content, at)
            done += 1
        else:
            text = part.raw if isinstance(part, MalformedPart) else getattr(part, "text", "")
            recipient, body = "", said.guard(text)
        header = recipient + node.channel + channel.name + (channel.types[0] if channel.types else "") + node.body
        out += [header + body, channel.end or node.end, "".join(node.start)]
    return "".join(out[:-2])


def closing(node: n.Channels, parts: Sequence[Part]) -> str:
    """What the history shows behind a turn of these parts."""
    chosen = list(_chosen(node, parts))
    return (chosen[-1][0].end if chosen else "") or node.end


# lowering


@lower.register
def _(node: n.Channels, at: Lowering) -> e.Spec:
    request, tools, calls_only = at.request, allowed_tools(at.request), must_call(at.request)
    thinking = [m for m in node.messages if _kind(m) == "reasoning"] if request.reasoning is not False else []
    alone = calls_only or request.output_schema is not None  # what is said beside a typed answer would be part of it
    saying = [] if alone else [m for m in node.messages if _kind(m) == "content" and not m.last]
    before = [e.Seq([_text(node, m, at), *_between(node, at)]) for m in (*thinking, *saying)]
    last = [lowered_once(_call_node(node, t.name, at), t, at) for t in tools]
    if not calls_only:
        last += [_answer(node, m, at) for m in node.messages if m.last and m.to is None]
    spec: list[e.Spec] = []
    if thinking and request.reasoning:
        spec += [e.Seq([_text(node, m, at), *_between(node, at)]) for m in thinking[:1]]
    if before and node.most > len(spec):
        spec.append(e.Rep(e.Choice(before), 0, node.most - len(spec)))
    return e.Seq([*spec, e.Choice(last)])


@dataclass(frozen=True)
class _Call:
    """The message that calls a tool, as a node of its own, so that it is made once for each tool."""

    node: n.Channels
    channel: n.Channel


def _call_node(node: n.Channels, name: str, at: Lowering) -> _Call:
    channel = _for_tool(node, name)
    made = at.fmt.memo.setdefault(("call", id(channel)), _Call(node, channel))
    assert isinstance(made, _Call)
    return made


@lower.register
def _(node: _Call, at: Lowering) -> e.Spec:
    channels, channel = node.node, node.channel
    assert channel.to is not None
    assert at.tool is not None
    recipient = e.Lit(channels.to + channel.to.prefix + at.tool.name)
    named, behind = _for_every_tool(channels, channel, at)
    spelled = e.Choice([e.Seq([recipient, named]), e.Seq([named, recipient])])
    return e.Seq([spelled, behind, lower(channel.content, at)])


def _for_every_tool(node: n.Channels, channel: n.Channel, at: Lowering) -> tuple[e.Spec, e.Spec]:
    """Of a call's header, the channel and what is behind both: the same objects for every tool."""
    key = ("header", id(channel), id(at.special))
    made = at.fmt.memo.get(key)
    if made is None:
        types = e.Choice([e.Seq(marked(t, node, at)) for t in (channel.types or ("",))])
        named = e.Seq(marked(node.channel + channel.name, node, at))
        made = at.fmt.memo[key] = (at.special, (named, e.Seq([types, *marked(node.body, node, at)])))
    return made[1]  # type: ignore[index,no-any-return]


def _header(node: n.Channels, channel: n.Channel, at: Lowering) -> list[e.Spec]:
    return marked(node.channel + channel.name + node.body, node, at)


def _text(node: n.Channels, channel: n.Channel, at: Lowering) -> e.Spec:
    return e.Seq([*_header(node, channel, at), e.Text(text_excludes(at, ()))])


def _between(node: n.Channels, at: Lowering) -> list[e.Spec]:
    return marked(node.end + "".join(node.start), node, at)


def _answer(node: n.Channels, channel: n.Channel, at: Lowering) -> e.Spec:
    schema = at.request.output_schema
    if schema is None:
        return _text(node, channel, at)
    types = e.Choice([e.Seq(marked(t, node, at)) for t in ("", f" {node.constrain}json")])
    named, body = marked(node.channel + channel.name, node, at), marked(node.body, node, at)
    return e.Seq([*named, types, *body, e.JsonSchema(schema, whitespace="canonical")])


def marked(text: str, node: n.Channels, at: Lowering) -> list[e.Spec]:
    """A text with markers in it, these as tokens where the vocabulary has them."""
    pattern = "|".join(re.escape(c) for c in node.controls)
    special = {c for c in node.controls if c in at.special}
    return [e.Tok(p) if p in special else e.Lit(p) for p in re.split(f"({pattern})", text) if p]


# reading


@read.register
def _(node: n.Channels, run: Run, until: tuple[str, ...]) -> Wait[None]:  # noqa: ARG001
    src = run.src
    started = False
    while True:
        if not started:
            yield from _stray(node, run)
        if run.stopped or ((yield from src.peek()) < 0):
            return
        if (yield from src.literal(encoded(node.start[0]), move=False)):
            yield from _start(node, run)
        yield from _message(node, run)
        run.opened = run.draft = None
        if run.stopped:
            return
        started = yield from _start(node, run)
        if not started and run.called:
            return


def _start(node: n.Channels, run: Run) -> Wait[bool]:
    """Moves past what begins a further message."""
    src = run.src
    before = src.pos
    yield from src.skip_blanks()
    if not (yield from src.literal(encoded(node.start[0]))):
        src.pos = before
        return False
    yield from src.literal(encoded(node.start[1]))
    return True


def _ends(node: n.Channels, run: Run) -> tuple[bytes, ...]:
    own = (node.end, *(m.end for m in node.messages), *run.fmt.stops)
    return encoded(*own)


def _stray(node: n.Channels, run: Run) -> Wait[None]:
    """Text without a header is shown as it is."""
    src = run.src
    to = node.to.strip()
    if (
        yield from src.literal(encoded(node.channel, node.to, to, node.constrain, node.body, node.start[0]), move=False)
    ):
        return
    options = (*encoded(node.channel, node.start[0]), *_ends(node, run))
    run.begin_text()
    found = yield from src.until(any_of(options), holder(options))
    run.end_text()
    if found is not None and found.group() in _ends(node, run):
        yield from _end(node, run)


def _end(node: n.Channels, run: Run) -> Wait[bool]:
    """Moves past the end of a message; the turn is over where it is one of those that end turns."""
    src = run.src
    start = src.pos
    size = yield from src.literal(_ends(node, run))
    if not size:
        return False
    marker = src.take(start, src.pos).decode()
    run.called = marker in {m.end for m in node.messages if m.to is not None and m.end}
    run.stopped = marker in run.fmt.stops and not run.called
    return True


@dataclass(frozen=True)
class _Header:
    """What a header says."""

    channel: str
    recipient: str


def _message(node: n.Channels, run: Run) -> Wait[None]:
    src = run.src
    run.opened = start = src.pos
    stops = (*encoded(node.body, node.start[0]), *_ends(node, run))
    found = yield from _until_near(run, any_of(stops), holder(stops))
    text = src.take(start, src.pos).decode("utf-8", "replace")
    if found is None or found.group() != node.body.encode():
        before, brace, _ = text.partition("{")
        if brace and found is not None and (said := _parsed(node, run, before)).recipient in _spellings(node, run):
            src.pos = start + len(before.encode())  # the marker before the body is missing
            yield from _call(node, run, said, start)
        elif text.strip():
            run.malformed(start, src.pos, "a header without a message behind it")
        if found is not None and found.group() in _ends(node, run):
            yield from _end(node, run)
        return
    src.at += len(node.body)
    header = _parsed(node, run, text)
    if header.recipient:
        yield from _call(node, run, header, start)
    else:
        yield from _body(node, run, header)
    yield from _end(node, run)


def _until_near(run: Run, pattern: re.Pattern[bytes], hold: Holder) -> Wait[re.Match[bytes] | None]:
    """The next match, if it is not too far for a header."""
    src = run.src
    start = src.pos
    while True:
        match = pattern.search(src.data, src.at)
        if match:
            src.at = match.start()
            return match
        src.at = len(src.data) - (0 if src.closed else hold(src.data, src.at))
        if src.closed or src.pos - start > _LONGEST_HEADER:
            return None
        yield from src.wait()


def _spellings(node: n.Channels, run: Run) -> set[str]:
    """The known tools as recipients."""
    prefixes = {m.to.prefix for m in node.messages if m.to is not None}
    return {prefix + name for prefix in prefixes for name in run.tools}


def _parsed(node: n.Channels, run: Run, text: str) -> _Header:
    found = re.search(re.escape(node.to.strip()) + r"\s*([^\s<]+)", text)
    recipient = found.group(1) if found else ""
    if recipient not in (known := _spellings(node, run)):  # garbage behind the name
        recipient = next((k for k in sorted(known, key=len, reverse=True) if _begins(recipient, k)), recipient)
    rest = text.rpartition(node.channel)[2] if node.channel in text else ""
    names = [m.name for m in node.messages]
    channel = next((w for w in re.findall(r"[a-z]+", rest) if w in names), "")
    if recipient == node.start[1]:
        recipient = ""
    if not recipient:  # a known tool's name with its prefix is meant as a recipient wherever it stands
        prefixes = {m.to.prefix for m in node.messages if m.to is not None and m.to.prefix}
        words = re.split(r"[\s<>|]+", text)
        recipient = next((w for w in words for p in prefixes if w.startswith(p) and w[len(p) :] in run.tools), "")
    return _Header(channel=channel, recipient=recipient)


def _begins(text: str, name: str) -> bool:
    """Whether a text is a name with something behind it that is no part of a name."""
    return text.startswith(name) and not re.match(r"[\w.\-]", text[len(name) :])


def _body(node: n.Channels, run: Run, header: _Header) -> Wait[None]:
    """A body that is text of some kind."""
    kinds = [m for m in node.messages if m.name == header.channel and m.to is None]
    field = kinds[0].content if kinds else n.Field()
    options = (*encoded(node.start[0]), *_ends(node, run))
    run.opened = None
    run.begin_text(field.kind if isinstance(field, n.Field) else "content")
    yield from run.src.until(any_of(options), holder(options))
    run.end_text()


def _call(node: n.Channels, run: Run, header: _Header, start: int) -> Wait[None]:
    src = run.src
    draft = run.draft = Draft(start=start)
    name = _tool_name(node, run, header.recipient)
    channel = _for_tool(node, name)
    args = channel.content
    assert isinstance(args, n.Args)
    run.named(name)
    body = src.pos
    options = (*encoded(node.start[0]), *_ends(node, run))
    run.begin_arguments(args)
    try:
        if isinstance(get_codec(args.codec, args.options), JsonCodec):
            yield from _json_body(run, options)
        else:
            yield from src.until(any_of(options), holder(options))
        run.end_arguments(src.take(body, src.pos))
        run.end_call()
    except Mismatch as problem:
        run.cut_arguments()
        src.pos = body
        yield from src.until(any_of(options), holder(options))
        run.malformed(draft.start, src.pos, str(problem))
    run.called = True


def _json_body(run: Run, options: tuple[bytes, ...]) -> Wait[None]:
    """Moves past one JSON value, whatever markers are in its strings, and past all that is behind it."""
    src = run.src
    yield from src.skip_blanks()
    if not (yield from src.literal(options, move=False)) and (yield from src.peek()) >= 0:
        yield from src.json_value()
    yield from src.until(any_of(options), holder(options))


def _tool_name(node: n.Channels, run: Run, recipient: str) -> str:
    """The tool that a recipient names; models leave prefixes out, or write them where none belongs."""
    if recipient in run.tools:
        return recipient
    prefixes = {m.to.prefix for m in node.messages if m.to is not None and m.to.prefix}
    for prefix in prefixes:
        if recipient.startswith(prefix):
            return recipient[len(prefix) :]
    return recipient
