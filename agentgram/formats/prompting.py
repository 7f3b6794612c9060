"""The whole prompt: by the tokenizer's own chat template where it shows tools, else by the format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentgram.formats.channels import closing
from agentgram.formats.guarding import Guard, breaker
from agentgram.formats.json_text import dumps
from agentgram.formats.nodes import Field, Tag, walk
from agentgram.formats.printing import call_ids, called_as, print_turn
from agentgram.formats.request import Prompt, Request
from agentgram.formats.toollists import openai_tool, tool_list
from agentgram.formats.typescript import builtins
from agentgram.messages import Message, ToolCall, ToolResultPart, tool_results
from agentgram.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentgram.formats.template import Format


def render(fmt: Format, request: Request, tokenizer: Any = None) -> Prompt:
    """See :meth:`agentgram.formats.Format.render`."""
    if tokenizer is None:
        prefill = fmt.prefilled(request)
        return Prompt(text=_render(fmt, request, breaker(fmt.markers)) + prefill, prefill=prefill)
    guard = breaker((*fmt.markers, *_added_tokens(tokenizer)))
    reasons = False
    if fmt.prompt == "auto" and renders_tools(tokenizer):
        text, prefill = _render_by_template(fmt, request, guard, tokenizer)
        reasons = request.reasoning is None and any(t in chat_template(tokenizer) for t in _reasoning_begins(fmt))
    else:
        prefill = fmt.prefilled(request)
        text = _render(fmt, request, guard) + prefill
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return Prompt(text=text, tokens=tuple(ids), prefill=prefill, reasons=reasons)


def _reasoning_begins(fmt: Format) -> list[str]:
    """The markers that begin reasoning."""
    tags = (t for t in walk(fmt.output) if isinstance(t, Tag))
    return [t.begin.text for t in tags if any(isinstance(f, Field) and f.kind == "reasoning" for f in walk(t.body))]


def numbered(fmt: Format, messages: Sequence[Message]) -> Iterator[tuple[Message, int, list[str]]]:
    """Each message with the number of calls before it, and with the ids of its calls or results as they are printed."""
    index, ids, order = 0, dict[str, str](), list[str]()
    for message in messages:
        calls = message.calls
        shown: list[str] = []
        if calls:
            shown = order = call_ids(fmt, calls, index)
            ids.update({c.id: printed for c, printed in zip(calls, shown, strict=True) if c.id})
        elif message.role == "tool":
            spare = [*order, *([""] * len(message.results))]
            shown = [ids.get(r.call_id, r.call_id or spare[i]) for i, r in enumerate(message.results)]
        yield message, index, shown
        index += len(calls)


def _render(fmt: Format, request: Request, guard: Guard) -> str:
    messages = list(request.messages)
    instructions = fmt.system
    if messages and messages[0].role in ("system", "developer"):
        instructions = guard(messages.pop(0).text)
    says = fmt.instructions
    tools = tool_list(fmt, request.tools)
    lead = tools if fmt.tools.into == "user" else ""
    head = [says.before + instructions if instructions else "", "" if lead else tools, _answer(fmt, request)]
    out = [fmt.start]
    if says.meta:
        out.append(_turn(fmt, "system", _meta(fmt, request)))
    if any(head):
        out.append(_turn(fmt, says.role, "\n\n".join(p for p in head if p)))
    since = _reasoning_since(fmt, messages)
    for place, (message, index, ids) in enumerate(numbered(fmt, messages)):
        if message.role == "tool":
            out += _results(fmt, message, ids, guard)
        elif message.role == "assistant":
            shown = print_turn(fmt, message, guard, reasoning=place > since, tools=request.tools, index=index)
            out.append(fmt.turn.opening("assistant") + shown + _closing(fmt, message))
        else:
            text = guard(message.text)
            if lead and message.role == "user":
                text, lead = f"{lead}\n\n{text}", ""
            out.append(_turn(fmt, message.role, text))
    out.append(fmt.turn.opening("assistant"))
    return "".join(out)


def _meta(fmt: Format, request: Request) -> str:
    """The first message of all: what the model has to know beside the instructions."""
    says = fmt.instructions
    own = builtins([t for t in request.tools if t.name in fmt.claimed], fmt.markers)
    others = any(t.name not in fmt.claimed for t in request.tools)
    effort = {True: "high", False: "low", None: "medium"}[request.reasoning]
    shown = _fill(says.meta, {"{effort}": effort, "{tools}": f"\n\n# Tools\n\n{own}" if own else ""})
    return shown + (says.meta_tools if others else "")


def _reasoning_since(fmt: Format, messages: Sequence[Message]) -> int:
    """The place of the message behind which reasoning is shown."""
    places = {
        "keep": [-1],
        "drop": [len(messages)],
        "after_last_user": [i for i, m in enumerate(messages) if m.role == "user"],
        "after_last_answer": [i for i, m in enumerate(messages) if m.role == "assistant" and m.text and not m.calls],
    }
    return max(places[fmt.history.reasoning], default=-1)


def _turn(fmt: Format, role: str, text: str) -> str:
    return fmt.turn.opening(role) + text + fmt.turn.closing(role)


def _closing(fmt: Format, message: Message) -> str:
    """What stands after an assistant's turn: where turns have messages of their own, what ends the last of them."""
    if not fmt.channels:
        return fmt.turn.closing("assistant")
    return closing(fmt.channels[0], message.parts)


def _results(fmt: Format, message: Message, ids: Sequence[str], guard: Guard) -> list[str]:
    texts = []
    for result, printed in zip(message.results, ids, strict=True):
        before, after = wrapped(fmt, replace(result, name=guard(result.name)), guard(printed))
        texts.append(before + guard(result.content) + after)
    if fmt.results.group == "consecutive":
        texts = [fmt.results.sep.join(texts)]
    return [_turn(fmt, fmt.results.role, text) if fmt.results.role else text for text in texts]


def wrapped(fmt: Format, result: ToolResultPart, call_id: str) -> tuple[str, str]:
    """What stands before and after a result."""
    filled = {"{name}": result.name, "{to}": called_as(fmt, result.name), "{id}": call_id}
    before, after = fmt.results.wrap
    return _fill(before, filled), _fill(after, filled)


def _fill(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{\w+\}", lambda m: values.get(m.group(), m.group()), text)


def _answer(fmt: Format, request: Request) -> str:
    if request.output_schema is None:
        return ""
    return fmt.answer.before + dumps(dict(request.output_schema), fmt.markers) + fmt.answer.after


# the tokenizer and its chat template


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


def _render_by_template(fmt: Format, request: Request, guard: Guard, tokenizer: Any) -> tuple[str, str]:
    """The prompt, and what it has of the assistant's turn already."""
    chat = list(_chat(fmt, request.messages, guard))
    answer = _answer(fmt, request)
    if answer and chat and chat[0]["role"] == "system":
        chat[0] = {**chat[0], "content": chat[0]["content"] + "\n\n" + answer}
    elif answer:
        chat.insert(0, {"role": "system", "content": answer})
    options = {} if request.reasoning is None else {"enable_thinking": request.reasoning}
    tools = [_guarded_tool(t, guard) for t in request.tools] or None

    def write(*, generate: bool) -> str:
        return str(
            tokenizer.apply_chat_template(chat, tools=tools, tokenize=False, add_generation_prompt=generate, **options)
        )

    text = write(generate=True)
    opened = fmt.turn.opening("assistant")
    begun = text[text.rfind(opened) + len(opened) :] if opened in text else ""
    if begun and not (text.startswith(before := write(generate=False)) and opened in text[len(before) :]):
        begun = ""  # this is an earlier turn, which the model continues
    return text, begun


def _chat(fmt: Format, messages: Sequence[Message], guard: Guard) -> Iterable[dict[str, Any]]:
    for message, _, ids in numbered(fmt, list(_one_call_a_turn(fmt, messages))):
        for place, item in enumerate(message.to_openai()):
            out = {**item, "content": guard(item["content"])}
            if "reasoning_content" in item:
                out["reasoning_content"] = guard(item["reasoning_content"])
            if message.calls:
                # templates write the arguments themselves, so markers in values can only be broken up
                out["tool_calls"] = [
                    {"type": "function", "id": i, "function": {"name": c.name, "arguments": _deep(c.arguments, guard)}}
                    for c, i in zip(message.calls, ids, strict=True)
                ]
            elif message.role == "tool":
                out["tool_call_id"] = ids[place]
            yield out


def _one_call_a_turn(fmt: Format, messages: Sequence[Message]) -> Iterator[Message]:
    """Where a turn holds one call, several become turns of their own, each with its result behind it."""
    waiting: list[tuple[Message, ToolCall]] = []
    for message in messages:
        calls = message.calls
        if waiting and message.role == "tool":
            results: list[ToolResultPart | None] = list(message.results)
            for place, (turn, call) in enumerate(waiting):
                at = next((i for i, r in enumerate(results) if r and call.id and r.call_id == call.id), place)
                yield turn
                if at < len(results) and (result := results[at]) is not None:
                    results[at] = None
                    yield tool_results(result)
            left = [r for r in results if r is not None]
            if left:
                yield tool_results(*left)
            waiting = []
            continue
        yield from (turn for turn, _ in waiting)
        waiting = []
        if fmt.parallel or len(calls) < 2:
            yield message
            continue
        parts = [p for p in message.parts if not isinstance(p, ToolCall)]
        waiting = [
            (Message(role=message.role, parts=(*(parts if i == 0 else []), call)), call) for i, call in enumerate(calls)
        ]
    yield from (turn for turn, _ in waiting)


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
