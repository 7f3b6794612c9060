"""From messages and calls to text: what the format writes."""
# ruff: noqa: ARG001 -- the functions of one singledispatch share a signature, whether they need all of it or not

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import TYPE_CHECKING, Any

from agentgram.errors import DefinitionError, nearest
from agentgram.formats import nodes as n
from agentgram.formats.codecs import dumps, get_codec
from agentgram.formats.request import Prompt, Request
from agentgram.messages import MalformedPart, Message, Part, ReasoningPart, TextPart, ToolCall
from agentgram.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentgram.formats.template import Format

Guard = Callable[[str], str]
"""Makes text of users and tools harmless: what would be a marker in it is broken up."""


# one turn of the assistant


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a node prints from."""

    parts: Sequence[Part] = ()
    """The message's parts, for nodes outside of a call."""
    call: ToolCall | None = None
    """The call, for nodes inside one."""
    avoid: tuple[str, ...] = ()
    """Markers that may not occur in a call's values."""
    guard: Guard = str
    """Breaks up markers in free text; as it stands, it leaves all as it is."""


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
    return get_codec(node.codec).encode(_call(said).arguments, said.avoid)


@emit.register
def _(node: n.CallId, said: Said) -> str:
    return _call(said).id


@emit.register
def _(node: n.JsonObj, said: Said) -> str:
    return "{" + ", ".join(f"{dumps(key)}: {_json_value(value, said)}" for key, value in node.keys) + "}"


def _json_value(node: n.Node, said: Said) -> str:
    if isinstance(node, n.Args | n.JsonObj):
        return emit(node, said)
    return dumps(emit(node, said), said.avoid)


@emit.register
def _(node: n.JsonArr, said: Said) -> str:
    return "[" + emit(node.item, said) + "]"


@emit.register(n.Seq)
@emit.register(n.Perm)
def _(node: n.Seq | n.Perm, said: Said) -> str:
    return "".join(emit(item, said) for item in node.items)


@emit.register
def _(node: n.Choice, said: Said) -> str:
    return emit(node.options[0], said)


@emit.register(n.Opt)
def _(node: n.Opt, said: Said) -> str:
    return emit(node.item, said) if _has_something_to_say(node.item, said) else ""


@emit.register
def _(node: n.Rep, said: Said) -> str:
    sep = emit(node.sep, said) if node.sep is not None else ""
    return sep.join([emit(node.item, said)] * max(node.min, int(_has_something_to_say(node.item, said))))


def _has_something_to_say(node: n.Node, said: Said) -> bool:
    filled = (emit(hole, said) for hole in n.walk(node) if isinstance(hole, n.Field))
    return any(filled) or (said.call is not None and n.names_a_tool(node))


@emit.register
def _(node: n.Tag, said: Said) -> str:
    return node.begin.text + emit(node.body, said) + (node.end.text if node.end else "")


@emit.register
def _(node: n.Dispatch, said: Said) -> str:
    pieces = []
    for part in said.parts:
        if isinstance(part, ToolCall):
            pieces.append(emit(node.tags[0], Said(call=part, avoid=said.avoid, guard=said.guard)))
        elif isinstance(part, TextPart) and part.text:
            pieces.append(said.guard(part.text))
        elif isinstance(part, MalformedPart):
            pieces.append(said.guard(part.raw))
    return node.sep.join(pieces)


def print_call(fmt: Format, name: str, arguments: Mapping[str, Any], call_id: str = "") -> str:
    """One call, from its opening marker to its closing one."""
    call = ToolCall(name=name, arguments=dict(arguments), id=call_id)
    return emit(fmt.call_tags[0], Said(call=call, avoid=fmt.markers))


def print_turn(fmt: Format, message: Message, guard: Guard, *, reasoning: bool = True) -> str:
    """What the assistant wrote, without the markers of the turn."""
    parts = [p for p in message.parts if reasoning or not isinstance(p, ReasoningPart)]
    return emit(fmt.output, Said(parts=parts, avoid=fmt.markers, guard=guard))


# the whole prompt


def render(fmt: Format, request: Request, tokenizer: Any = None) -> Prompt:
    """See :meth:`agentgram.formats.Format.render`."""
    if tokenizer is None:
        return Prompt(text=_render(fmt, request, breaker(fmt.markers)))
    guard = breaker((*fmt.markers, *_added_tokens(tokenizer)))
    if fmt.prompt == "auto" and renders_tools(tokenizer):
        text = _render_by_template(fmt, request, guard, tokenizer)
    else:
        text = _render(fmt, request, guard)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return Prompt(text=text, tokens=tuple(ids))


def _render(fmt: Format, request: Request, guard: Guard) -> str:
    messages = list(request.messages)
    instructions = fmt.system
    if messages and messages[0].role in ("system", "developer"):
        instructions = guard(messages.pop(0).text)
    tools = tool_list(fmt, request.tools)
    answer = _answer(fmt, request)
    lead = tools if fmt.tools.into == "user" else ""
    head = [instructions, "" if lead else tools, answer]
    out = [fmt.start]
    if any(head):
        out.append(_turn(fmt, "system", "\n\n".join(p for p in head if p)))
    last_user = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1)
    for index, message in enumerate(messages):
        if message.role == "tool":
            out += _results(fmt, message, guard)
        elif message.role == "assistant":
            shown = fmt.history.reasoning == "keep" or (
                fmt.history.reasoning == "after_last_user" and index > last_user
            )
            out.append(_turn(fmt, "assistant", print_turn(fmt, message, guard, reasoning=shown)))
        else:
            text = guard(message.text)
            if lead and message.role == "user":
                text, lead = f"{lead}\n\n{text}", ""
            out.append(_turn(fmt, message.role, text))
    out.append(fmt.turn.opening("assistant"))
    return "".join(out)


def _turn(fmt: Format, role: str, text: str) -> str:
    return fmt.turn.opening(role) + text + fmt.turn.close


def _results(fmt: Format, message: Message, guard: Guard) -> list[str]:
    before, after = fmt.results.wrap
    texts = [before + guard(r.content) + after for r in message.results]
    if fmt.results.group == "consecutive":
        texts = [fmt.results.sep.join(texts)]
    return [_turn(fmt, fmt.results.role, text) for text in texts]


def _answer(fmt: Format, request: Request) -> str:
    if request.output_schema is None:
        return ""
    return fmt.answer.before + dumps(dict(request.output_schema), fmt.markers) + fmt.answer.after


def openai_tool(definition: ToolDefinition) -> dict[str, Any]:
    """A tool as chat templates expect it."""
    function = {"name": definition.name, "description": definition.description, "parameters": dict(definition.schema)}
    return {"type": "function", "function": function}


def _json_lines(tools: Sequence[ToolDefinition], avoid: tuple[str, ...]) -> str:
    return "\n".join(dumps(openai_tool(t), avoid) for t in tools)


def _json_functions(tools: Sequence[ToolDefinition], avoid: tuple[str, ...]) -> str:
    return "\n".join(dumps(openai_tool(t)["function"], avoid) for t in tools)


TOOL_LISTS: dict[str, Callable[[Sequence[ToolDefinition], tuple[str, ...]], str]] = {
    "json-lines": _json_lines,
    "json-functions": _json_functions,
}
"""How tools are listed, by the name that :class:`agentgram.formats.ToolList` gives."""


def tool_list(fmt: Format, tools: Sequence[ToolDefinition]) -> str:
    """The part of the prompt that shows the tools; empty where there are none.

    Raises:
        DefinitionError: The format names a way of listing tools that does not exist.
    """
    if not tools:
        return ""
    if fmt.tools.codec not in TOOL_LISTS:
        raise DefinitionError(f"there is no tool list {fmt.tools.codec!r}. {nearest(fmt.tools.codec, TOOL_LISTS)}")
    return fmt.tools.before + TOOL_LISTS[fmt.tools.codec](tools, fmt.markers) + fmt.tools.after


# data is not markup


@lru_cache(maxsize=64)
def breaker(markers: tuple[str, ...]) -> Guard:
    """A function that puts a space after the first character of every marker in a text."""
    known = sorted(set(markers), key=len, reverse=True)
    if not known:
        return lambda text: text
    pattern = re.compile("|".join(re.escape(m) for m in known))

    def guard(text: str) -> str:
        while pattern.search(text):
            text = pattern.sub(lambda m: m.group()[0] + " " + m.group()[1:], text)
        return text

    return guard


def _added_tokens(tokenizer: Any) -> Iterable[str]:
    """The added tokens that act as markers: all special ones, and others that are not a word or blanks."""
    special = set(tokenizer.all_special_tokens)
    for text in sorted({*tokenizer.get_added_vocab(), *special}):
        if len(text) > 1 and text.strip() and (text in special or not text.strip().isalnum()):
            yield text


def chat_template(tokenizer: Any) -> str:
    """The tokenizer's chat template; empty where it has none. Of several, the one for tools."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, Mapping):
        template = template.get("tool_use") or template.get("default")
    return template if isinstance(template, str) else ""


def renders_tools(tokenizer: Any) -> bool:
    """Whether the tokenizer's own chat template shows tools and their calls."""
    template = chat_template(tokenizer)
    return bool(re.search(r"\btools\b", template)) and "tool_calls" in template


def _render_by_template(fmt: Format, request: Request, guard: Guard, tokenizer: Any) -> str:
    chat = [guarded for message in request.messages for guarded in _chat(message, guard)]
    answer = _answer(fmt, request)
    if answer and chat and chat[0]["role"] == "system":
        chat[0] = {**chat[0], "content": chat[0]["content"] + "\n\n" + answer}
    elif answer:
        chat.insert(0, {"role": "system", "content": answer})
    options = {} if request.reasoning is None else {"enable_thinking": request.reasoning}
    text = tokenizer.apply_chat_template(
        chat,
        tools=[_guarded_tool(t, guard) for t in request.tools] or None,
        tokenize=False,
        add_generation_prompt=True,
        **options,
    )
    return str(text)


def _chat(message: Message, guard: Guard) -> Iterable[dict[str, Any]]:
    for item in message.to_openai():
        out = {**item, "content": guard(item["content"])}
        if "reasoning_content" in item:
            out["reasoning_content"] = guard(item["reasoning_content"])
        if message.calls:
            # templates write the arguments themselves, so markers in values can only be broken up
            out["tool_calls"] = [
                {"type": "function", "id": c.id, "function": {"name": c.name, "arguments": _deep(c.arguments, guard)}}
                for c in message.calls
            ]
        yield out


def _guarded_tool(definition: ToolDefinition, guard: Guard) -> dict[str, Any]:
    guarded = _deep(openai_tool(definition), guard)
    assert isinstance(guarded, dict)
    return guarded


def _deep(value: Any, guard: Guard) -> Any:
    if isinstance(value, str):
        return guard(value)
    if isinstance(value, Mapping):
        return {guard(k): _deep(v, guard) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_deep(v, guard) for v in value]
    return value
