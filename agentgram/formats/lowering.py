"""From a format and a request to the engine's grammar: the holes are filled.

``tool_choice`` and ``parallel`` are transforms of the tree and touch nothing else: *none* leaves free text in which
no call can begin, *required* leaves calls only, a name leaves that one call, and ``parallel`` bounds their number.
"""
# ruff: noqa: ARG001 -- the functions of one singledispatch share a signature, whether they need all of it or not

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from agentgram.engine import spec as e
from agentgram.errors import DefinitionError
from agentgram.formats import nodes as n
from agentgram.formats.codecs import dumps, get_codec
from agentgram.formats.request import Only, Request
from agentgram.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentgram.formats.template import Format

_JSON_STARTS = '{["-0123456789tfn'
_MAX_PERMUTED = 4


@dataclass(frozen=True, kw_only=True)
class Lowering:
    """What a node is lowered with."""

    fmt: Format
    request: Request
    lenient: bool = False
    special: Mapping[str, int]
    tool: ToolDefinition | None = None
    """The tool of the call that the node stands in."""
    until: tuple[str, ...] = ()
    """What ends the surrounding tag: free text inside may not hold it."""


def grammar(fmt: Format, request: Request, *, lenient: bool, special: Mapping[str, int]) -> e.Spec:
    """See :meth:`agentgram.formats.Format.grammar`."""
    return lower(fmt.output, Lowering(fmt=fmt, request=request, lenient=lenient, special=special))


def allowed_tools(request: Request) -> Sequence[ToolDefinition]:
    """The tools that this turn may call, by its tools and its ``tool_choice``."""
    if request.tool_choice == "none":
        return ()
    if isinstance(request.tool_choice, Only):
        only = request.tool(request.tool_choice.name)
        return () if only is None else (only,)
    return request.tools


def openers(fmt: Format, request: Request) -> dict[str, str]:
    """See :meth:`agentgram.formats.Format.openers`."""
    at = Lowering(fmt=fmt, request=request, special={})
    return {tool.name: str(call_tag(fmt.call_tags[0], tool, at).begin) for tool in allowed_tools(request)}


@singledispatch
def lower(node: Any, at: Lowering) -> e.Spec:
    """The language of a node."""
    raise TypeError(f"{type(node).__name__} cannot become grammar")


@lower.register
def _(node: n.Lit, at: Lowering) -> e.Spec:
    return e.Lit(node.text)


@lower.register
def _(node: n.Tok, at: Lowering) -> e.Spec:
    return e.Tok(node.name) if node.name in at.special else e.Lit(node.text)


@lower.register
def _(node: n.Space, at: Lowering) -> e.Spec:
    return _blanks(node.max) if at.lenient else e.Lit(node.canonical)


def _blanks(most: int) -> e.Spec:
    return e.Regex(f"[ \\t\\r\\n]{{0,{most}}}")


@lower.register
def _(node: n.Stop, at: Lowering) -> e.Spec:
    return e.Seq([])


@lower.register
def _(node: n.Field, at: Lowering) -> e.Spec:
    return e.Text(_excludes(at, ()))


@lower.register
def _(node: n.Name, at: Lowering) -> e.Spec:
    return e.Lit(node.prefix + _tool(at).name)


def _tool(at: Lowering) -> ToolDefinition:
    if at.tool is None:
        raise DefinitionError("a call's name and arguments stand in a Tag of a Dispatch, and nowhere else.")
    return at.tool


@lower.register
def _(node: n.Args, at: Lowering) -> e.Spec:
    return get_codec(node.codec).grammar(_tool(at), lenient=at.lenient)


@lower.register
def _(node: n.CallId, at: Lowering) -> e.Spec:
    return e.Regex(node.pattern)


@lower.register
def _(node: n.JsonObj, at: Lowering) -> e.Spec:
    gap = [_blanks(64)] if at.lenient else []
    blank: list[e.Spec] = gap or [e.Lit(" ")]
    members = [[e.Lit(dumps(key)), *gap, e.Lit(":"), *blank, *_json_value(value, at)] for key, value in node.keys]
    orders = [members]
    if at.lenient and len(members) <= _MAX_PERMUTED:
        orders = [list(order) for order in itertools.permutations(members)]
    options = []
    for order in orders:
        pieces: list[e.Spec] = [e.Lit("{"), *gap]
        for index, member in enumerate(order):
            pieces += [*member, *gap] if index == 0 else [e.Lit(","), *blank, *member, *gap]
        options.append(sequence([*pieces, e.Lit("}")]))
    return options[0] if len(options) == 1 else e.Choice(options)


def _json_value(node: n.Node, at: Lowering) -> list[e.Spec]:
    if isinstance(node, n.Args | n.JsonObj):
        return [lower(node, at)]
    if isinstance(node, n.Lit | n.Name):
        inner = lower(node, at)
        assert isinstance(inner, e.Lit)
        return [e.Lit(dumps(inner.text))]
    return [e.Lit('"'), lower(node, at), e.Lit('"')]


@lower.register
def _(node: n.JsonArr, at: Lowering) -> e.Spec:
    gap = [_blanks(64)] if at.lenient else []
    return sequence([e.Lit("["), *gap, lower(node.item, at), *gap, e.Lit("]")])


@lower.register
def _(node: n.Seq, at: Lowering) -> e.Spec:
    return sequence([lower(item, at) for item in node.items])


@lower.register
def _(node: n.Perm, at: Lowering) -> e.Spec:
    items = [lower(item, at) for item in node.items]
    if at.lenient and len(items) <= _MAX_PERMUTED:
        return e.Choice([sequence(order) for order in itertools.permutations(items)])
    return sequence(items)


@lower.register
def _(node: n.Choice, at: Lowering) -> e.Spec:
    return e.Choice([lower(option, at) for option in node.options])


@lower.register
def _(node: n.Opt, at: Lowering) -> e.Spec:
    if _reasons(node) and not at.request.reasoning:
        return e.Seq([])
    return e.Opt(lower(node.item, at))


def _reasons(node: n.Node) -> bool:
    return any(isinstance(hole, n.Field) and hole.kind == "reasoning" for hole in n.walk(node))


@lower.register
def _(node: n.Rep, at: Lowering) -> e.Spec:
    return e.Rep(lower(node.item, at), node.min, node.max, lower(node.sep, at) if node.sep is not None else None)


@lower.register
def _(node: n.Tag, at: Lowering) -> e.Spec:
    ends = (node.end.text, *node.end.variants) if node.end else ()
    body = lower(node.body, replace(at, until=(*at.until, *ends)))
    return sequence([lower(node.begin, at), body, *([lower(node.end, at)] if node.end else [])])


@lower.register
def _(node: n.Dispatch, at: Lowering) -> e.Spec:
    request, tools = at.request, allowed_tools(at.request)
    schema = request.output_schema
    free: e.Spec = e.Text(_excludes(at, ())) if schema is None else e.JsonSchema(schema, whitespace="canonical")
    if not tools:
        return free
    tags = _merged([call_tag(tag, tool, at) for tag in node.tags for tool in tools])
    only = isinstance(request.tool_choice, Only)
    most = None if request.parallel and not only else 1
    if only or request.tool_choice == "required":
        return _calls(tags, most, node.sep)
    if schema is not None:
        _tell_apart(at.fmt, [t.begin.text for t in node.tags])
        return e.Choice([_calls(tags, most, node.sep), free])
    triggers = tuple(dict.fromkeys(_begin(t.begin, at) for t in node.tags))
    excludes = _excludes(at, [t for t in triggers if isinstance(t, str)])
    return e.Dispatch(tags, triggers, excludes=excludes, at_most=most, stop_after_first=most == 1)


def _merged(tags: Sequence[e.Tag]) -> Sequence[e.Tag]:
    """Tags of which no two begin alike: those that do are one, with a choice inside."""
    groups: dict[tuple[str | e.Tok, str | e.Tok], list[e.Tag]] = {}
    for tag in tags:
        groups.setdefault((tag.begin, tag.end), []).append(tag)
    if len(groups) == len(tags):
        return tags
    return [
        same[0] if len(same) == 1 else e.Tag(begin, e.Choice([t.content for t in same]), end)
        for (begin, end), same in groups.items()
    ]


def _calls(tags: Sequence[e.Tag], most: int | None, sep: str) -> e.Spec:
    choice = e.Choice(tags)
    return choice if most == 1 else e.Rep(choice, 1, most, e.Lit(sep) if sep else None)


def _tell_apart(fmt: Format, triggers: Iterable[str]) -> None:
    for trigger in triggers:
        if trigger[0] in _JSON_STARTS:
            raise DefinitionError(
                f"in format {fmt.name!r} a call begins with {trigger!r}, which JSON may begin with too, so a typed "
                "answer cannot be told from a call. Ask for text, or set tool_choice to 'none' or 'required'."
            )


def _excludes(at: Lowering, triggers: Sequence[str]) -> tuple[str, ...]:
    """What free text may not hold: every marker but the triggers, without those that another one implies."""
    wanted = dict.fromkeys((*at.until, *at.fmt.markers))
    free = [w for w in wanted if w and not any(t in w for t in triggers)]
    return tuple(w for w in free if not any(o != w and o in w for o in free))


def _begin(marker: n.Marker, at: Lowering) -> str | e.Tok:
    return e.Tok(marker.name) if isinstance(marker, n.Tok) and marker.name in at.special else marker.text


# a tool's tag is made once


def call_tag(tag: n.Tag, tool: ToolDefinition, at: Lowering) -> e.Tag:
    """The tag of one tool: as much as possible is its begin, and its arguments are the content.

    The same definition gives the same object again, so that the engine need not look at its schema twice.
    """
    ids = (tag.begin.text in at.special, tag.end is not None and tag.end.text in at.special)
    made = _made_for(tool)
    key = (id(tag), at.lenient, ids)
    if key not in made:
        made[key] = (tag, _call_tag(tag, replace(at, tool=tool)))
    return made[key][1]


def _call_tag(tag: n.Tag, at: Lowering) -> e.Tag:
    spec = lower(tag, at)
    pieces = list(spec.items) if isinstance(spec, e.Seq) else [spec]
    first = pieces.pop(0)
    assert isinstance(first, e.Lit | e.Tok), "a tag begins with its marker"
    end: str | e.Tok = ""
    if pieces and isinstance(pieces[-1], e.Lit | e.Tok):
        last = pieces.pop()
        assert isinstance(last, e.Lit | e.Tok)
        end = last.text if isinstance(last, e.Lit) else last
    return e.Tag(first.text if isinstance(first, e.Lit) else first, sequence(pieces), end)


_Made = dict[tuple[int, bool, tuple[bool, bool]], tuple[n.Tag, e.Tag]]
_MADE: dict[int, tuple[weakref.ref[ToolDefinition], _Made]] = {}


def _made_for(tool: ToolDefinition) -> _Made:
    """What has been made for this very definition; forgotten with it."""
    key = id(tool)
    entry = _MADE.get(key)
    if entry is None or entry[0]() is not tool:
        entry = (weakref.ref(tool, lambda ref: _forget(key, ref)), {})
        _MADE[key] = entry
    return entry[1]


def _forget(key: int, ref: weakref.ref[ToolDefinition]) -> None:
    entry = _MADE.get(key)
    if entry is not None and entry[0] is ref:
        del _MADE[key]


def sequence(items: Iterable[e.Spec]) -> e.Spec:
    """A sequence without nesting, in which neighbouring literals are one."""
    out: list[e.Spec] = []
    for item in items:
        for piece in item.items if isinstance(item, e.Seq) else (item,):
            if isinstance(piece, e.Lit) and out and isinstance(out[-1], e.Lit):
                out[-1] = e.Lit(out[-1].text + piece.text)
            elif not (isinstance(piece, e.Lit) and not piece.text):
                out.append(piece)
    return out[0] if len(out) == 1 else e.Seq(out)
