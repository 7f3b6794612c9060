"""From a format and a request to the engine's grammar: the holes are filled.

``tool_choice`` and ``parallel`` are transforms of the tree and touch nothing else: *none* leaves free text in which
no call can begin, *required* leaves calls only, a name leaves that one call, and ``parallel`` bounds their number.
"""
# ruff: noqa: ARG001 -- the functions of one singledispatch share a signature, whether they need all of it or not

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from agentgram.engine import spec as e
from agentgram.errors import DefinitionError
from agentgram.formats import nodes as n
from agentgram.formats.codecs import dumps, get_codec
from agentgram.formats.quotient import without_prefix
from agentgram.formats.request import Only, Prompt, Request
from agentgram.formats.sequences import sequence
from agentgram.formats.slots import Slot
from agentgram.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentgram.formats.template import Format

_JSON_STARTS = '{["-0123456789tfn'
_MAX_PERMUTED = 4
NO_TOKENS: Mapping[str, int] = {}
"""The special tokens of a vocabulary that has none."""


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
    reasons: bool = False
    """Whether the model may reason first where the request does not say."""

    @property
    def most(self) -> int | None:
        """How many calls the turn may hold; None for any number."""
        several = self.request.parallel and self.fmt.parallel and not names_one(self.request)
        return None if several else 1

    def slot(self) -> Slot:
        """Where a codec of the call's arguments is at work."""
        return Slot(tool=tool_of(self), avoid=self.fmt.markers, tokens=_special(self), lenient=self.lenient)


def grammar(
    fmt: Format, request: Request, *, lenient: bool, special: Mapping[str, int], prompt: Prompt | None
) -> e.Spec:
    """See :meth:`agentgram.formats.Format.grammar`."""
    prefill = fmt.prefilled(request) if prompt is None else prompt.prefill
    reasons = bool(prefill) or (prompt is not None and prompt.reasons)
    at = Lowering(fmt=fmt, request=request, lenient=lenient, special=special, reasons=reasons)
    return without_prefix(lower(fmt.output, at), prefill)


def names_one(request: Request) -> bool:
    """Whether exactly one call, of one tool, is asked for."""
    return isinstance(request.tool_choice, Only) and len(request.tool_choice.names) == 1


def must_call(request: Request) -> bool:
    """Whether the turn has to call a tool."""
    return isinstance(request.tool_choice, Only) or request.tool_choice == "required"


def allowed_tools(request: Request) -> Sequence[ToolDefinition]:
    """The tools that this turn may call, by its tools and its ``tool_choice``."""
    if request.tool_choice == "none":
        return ()
    if isinstance(request.tool_choice, Only):
        names = request.tool_choice.names
        return [t for t in request.tools if t.name in names]
    return request.tools


def openers(fmt: Format, request: Request) -> dict[str, str]:
    """See :meth:`agentgram.formats.Format.openers`."""
    out = {}
    for tool in allowed_tools(request):
        one = replace(request, tools=[tool], tool_choice="required", output_schema=None, reasoning=False)
        spec = lower(fmt.output, Lowering(fmt=fmt, request=one, special=NO_TOKENS))
        out[tool.name] = "".join(_leading(spec)[0])
    return out


def _leading(spec: e.Spec) -> tuple[list[str], bool]:
    """The text that a specification surely begins with, and whether that is all of it."""
    if isinstance(spec, e.Lit):
        return [spec.text], True
    if isinstance(spec, e.Tok):
        return [str(spec.token)], True
    if isinstance(spec, e.Choice):
        return _leading(spec.options[0])[0], len(spec.options) == 1 and _leading(spec.options[0])[1]
    if isinstance(spec, e.Rep):
        return (_leading(spec.item)[0] if spec.min else []), False
    if isinstance(spec, e.Tag):
        spec = e.Seq([*(e.Lit(str(m.token if isinstance(m, e.Tok) else m)) for m in (spec.begin,)), spec.content])
    if isinstance(spec, e.Seq):
        out: list[str] = []
        for item in spec.items:
            texts, whole = _leading(item)
            out += texts
            if not whole:
                return out, False
        return out, True
    return [], False


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
    return e.Text(text_excludes(at, ()))


@lower.register
def _(node: n.Name, at: Lowering) -> e.Spec:
    return e.Lit(node.prefix + tool_of(at).name)


def tool_of(at: Lowering) -> ToolDefinition:
    """The tool of the call that a node stands in."""
    if at.tool is None:
        raise DefinitionError("a call's name and arguments stand in a Tag of a Dispatch, and nowhere else.")
    return at.tool


@lower.register
def _(node: n.Args, at: Lowering) -> e.Spec:
    return get_codec(node.codec, node.options).grammar(at.slot())


@lower.register
def _(node: n.Count, at: Lowering) -> e.Spec:
    return e.Regex("0|[1-9][0-9]{0,5}")


@lower.register
def _(node: n.CallId, at: Lowering) -> e.Spec:
    return e.Regex(node.pattern) if node.of is None else lower(node.of, at)


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
    comma = sequence([e.Lit(","), *(gap or [e.Lit(" ")])])
    return sequence([e.Lit("["), *gap, _fanned_out(node.item, 1, None, comma, at), *gap, e.Lit("]")])


def _fanned_out(item: n.Node, least: int, most: int | None, sep: e.Spec | None, at: Lowering) -> e.Spec:
    """Several calls, of any of the tools each."""
    one = e.Choice([lowered_once(item, tool, at) for tool in allowed_tools(at.request)])
    bound = at.most if most is None else most if at.most is None else min(most, at.most)
    return one if bound == 1 else e.Rep(one, max(least, 1), bound, sep)


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
    if not node.written and not at.lenient:
        return e.Seq([])
    if not _reasons(node):
        return e.Opt(lower(node.item, at))
    if at.request.reasoning:
        return lower(node.item, at)
    if at.request.reasoning is None and at.reasons:
        return e.Opt(lower(node.item, at))
    return _closed_at_once(node.item, at) if at.reasons else e.Seq([])


def _closed_at_once(node: n.Node, at: Lowering) -> e.Spec:
    """Reasoning that says nothing: how prompts tell a model not to reason."""
    return e.Opt(lower(_without_text(node), at))


def _without_text(node: n.Node) -> n.Node:
    if isinstance(node, n.Seq):
        return n.Seq(*(_without_text(i) for i in node.items if not isinstance(i, n.Field)))
    if isinstance(node, n.Tag):
        return n.Tag(node.begin, _without_text(node.body), node.end)
    return node


def _reasons(node: n.Node) -> bool:
    return any(isinstance(hole, n.Field) and hole.kind == "reasoning" for hole in n.walk(node))


@lower.register
def _(node: n.Rep, at: Lowering) -> e.Spec:
    sep = None if node.sep is None else lower(node.sep, at)
    if at.tool is None and n.names_a_tool(node.item):
        return _fanned_out(node.item, node.min, node.max, sep, at)
    return e.Rep(lower(node.item, at), node.min, node.max, sep)


@lower.register
def _(node: n.Tag, at: Lowering) -> e.Spec:
    ends = (node.end.text, *node.end.variants) if node.end else ()
    body = lower(node.body, replace(at, until=(*at.until, *ends)))
    begin = [] if node.peek else [lower(node.begin, at)]
    return sequence([*begin, body, *([lower(node.end, at)] if node.end else [])])


@lower.register
def _(node: n.Dispatch, at: Lowering) -> e.Spec:
    request, tools = at.request, allowed_tools(at.request)
    schema = request.output_schema
    if not tools:
        return _no_call(node, at) if schema is None else e.JsonSchema(schema, whitespace="canonical")
    tags = _merged([made for tag in node.tags for made in call_tags(tag, tools, at)])
    most = 1 if all(map(n.holds_many, node.tags)) else at.most
    if must_call(request):
        return _calls(tags, most, node.sep)
    if schema is not None:
        _tell_apart(at.fmt, node.tags, schema)
        return e.Choice([_calls(tags, most, node.sep), e.JsonSchema(schema, whitespace="canonical")])
    if node.tags[0].where == "start":
        return e.Choice([_calls(tags, most, node.sep), _no_call(node, at)])
    triggers = tuple(dict.fromkeys(_begin(t.begin, at) for t in node.tags))
    excludes = text_excludes(at, [t for t in triggers if isinstance(t, str)])
    return e.Dispatch(tags, triggers, excludes=excludes, at_most=at.most, stop_after_first=at.most == 1)


def _no_call(node: n.Dispatch, at: Lowering) -> e.Spec:
    """Free text in which no call can begin."""
    if at.request.tools and node.tags[0].where == "start":
        return _text_unlike([t.begin.text for t in node.tags], at)
    return e.Text(text_excludes(at, ()))


def call_tags(tag: n.Tag, tools: Sequence[ToolDefinition], at: Lowering) -> list[e.Tag]:
    """A tag's engine tags: one for each tool, or one for all where it holds several calls."""
    if n.holds_many(tag):
        return [_call_tag(tag, at)]
    key = _key(tag, at)  # of hundreds of tools, nearly all are known
    return [made[1] if (made := _made_for(tool).get(key)) else call_tag(tag, tool, at) for tool in tools]  # type: ignore[misc]


def _text_unlike(begins: Sequence[str], at: Lowering) -> e.Spec:
    """Free text that begins like none of these, whatever blanks are before it.

    One regular expression, of text without what it excludes: that is (a | P*Q)*P*, where ``a`` is a character that
    begins no marker, ``P`` a proper beginning of a marker and ``Q`` one with a character that neither goes on with it
    nor begins one. Exact where no marker has another's first character inside, which is what markers look like; where
    one has, less is let through.
    """
    excludes = text_excludes(at, ())
    firsts = {x[0] for x in excludes}
    never = {b[0] for b in begins}
    begun = sorted({x[:i] for x in excludes for i in range(1, len(x))})
    following = {p: {x[len(p)] for x in excludes if x.startswith(p)} | firsts for p in begun}
    heads = "|".join(map(re.escape, begun))
    left = [re.escape(p) + f"[^{_class(following[p])}]" for p in begun]
    plain = f"[^{_class(firsts)}]"
    if not begun:
        return e.Regex(f"[ \\t\\r\\n]*(?:[^ \\t\\r\\n{_class(never)}][\\s\\S]*)?")
    rest = f"(?:{plain}|(?:{heads})*(?:{'|'.join(left)}))*(?:{heads})*"
    first = f"[^ \\t\\r\\n{_class(firsts | never)}]"
    marked = [p for p in begun if p[0] not in never]
    starts = [first]
    if marked:
        mine = "|".join(map(re.escape, marked))
        starts.append(f"(?:{mine})*(?:{'|'.join(re.escape(p) + f'[^{_class(following[p])}]' for p in marked)})")
    alone = f"(?:{'|'.join(map(re.escape, marked))})*" if marked else ""
    return e.Regex(f"[ \\t\\r\\n]*(?:(?:{'|'.join(starts)}){rest}|{alone})")


def _class(characters: Iterable[str]) -> str:
    return "".join(re.escape(c) for c in sorted(set(characters)))


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


def _tell_apart(fmt: Format, tags: Sequence[n.Tag], schema: Mapping[str, Any]) -> None:
    for trigger in (t.begin.text for t in tags):
        alike = trigger[0] in ("{" if schema.get("type") == "object" else _JSON_STARTS)
        if alike:
            raise DefinitionError(
                f"in format {fmt.name!r} a call begins with {trigger!r}, which JSON may begin with too, so a typed "
                "answer cannot be told from a call. Ask for text, or set tool_choice to 'none' or 'required'."
            )


def text_excludes(at: Lowering, triggers: Sequence[str]) -> tuple[str, ...]:
    """What free text may not hold: every marker but the triggers, without those that another one implies."""
    wanted = dict.fromkeys((*at.until, *at.fmt.markers, *at.fmt.aside))
    free = [w for w in wanted if w and not any(t in w for t in triggers)]
    return tuple(w for w in free if not any(o != w and o in w for o in free))


def _begin(marker: n.Marker, at: Lowering) -> str | e.Tok:
    return e.Tok(marker.name) if isinstance(marker, n.Tok) and marker.name in at.special else marker.text


# a tool's tag is made once


def call_tag(tag: n.Tag, tool: ToolDefinition, at: Lowering) -> e.Tag:
    """The tag of one tool: as much as possible is its begin, and its arguments are the content.

    The same definition gives the same object again, so that the engine need not look at its schema twice.
    """
    made = _once(tag, tool, at, lambda: _call_tag(tag, replace(at, tool=tool)))
    assert isinstance(made, e.Tag)
    return made


def lowered_once(node: Any, tool: ToolDefinition, at: Lowering) -> e.Spec:
    """What a node is for one tool; the same object again for the same definition."""
    return _once(node, tool, at, lambda: lower(node, replace(at, tool=tool)))


def _special(at: Lowering) -> frozenset[str]:
    """The format's markers that are tokens of the vocabulary."""
    known = at.fmt.memo.get(("special", id(at.special)))
    if known is None or known[0] is not at.special:  # type: ignore[index]
        known = (at.special, frozenset(m for m in at.fmt.markers if m in at.special))
        at.fmt.memo["special", id(at.special)] = known
    return known[1]  # type: ignore[index,no-any-return]


def _once(node: Any, tool: ToolDefinition, at: Lowering, make: Callable[[], e.Spec]) -> e.Spec:
    made, key = _made_for(tool), _key(node, at)
    if key not in made:
        made[key] = (node, make())
    return made[key][1]


def _key(node: Any, at: Lowering) -> tuple[object, ...]:
    """What the specification of a node for one tool depends on."""
    return id(node), at.lenient, at.reasons, _special(at)


def _call_tag(tag: n.Tag, at: Lowering) -> e.Tag:
    spec = lower(tag, at)
    pieces = list(spec.items) if isinstance(spec, e.Seq) else [spec]
    first = pieces.pop(0) if isinstance(pieces[0], e.Lit | e.Tok) else e.Lit("")
    assert isinstance(first, e.Lit | e.Tok)
    end: str | e.Tok = ""
    if pieces and isinstance(pieces[-1], e.Lit | e.Tok):
        last = pieces.pop()
        assert isinstance(last, e.Lit | e.Tok)
        end = last.text if isinstance(last, e.Lit) else last
    return e.Tag(first.text if isinstance(first, e.Lit) else first, sequence(pieces), end)


_Made = dict[tuple[object, ...], tuple[object, e.Spec]]
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
