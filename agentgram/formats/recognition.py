"""Which format a tokenizer's model speaks, and whether the two fit together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgram.errors import DefinitionError, nearest
from agentgram.formats import printing, prompting
from agentgram.formats.request import Prompt, Request
from agentgram.messages import ToolCall, ToolResultPart, assistant, tool_results, user
from agentgram.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentgram.formats.template import Format


_LIBRARY = Path(__file__).parent / "library"


def formats() -> tuple[str, ...]:
    """The names of the shipped formats."""
    return tuple(sorted(path.stem for path in _LIBRARY.glob("*.json")))


def get_format(name: str | PathLike[str]) -> Format:
    """A shipped format by its name, or one from a file by its path.

    Raises:
        DefinitionError: There is neither; the nearest name is suggested.
    """
    text = fspath(name)
    if text in formats():
        return _shipped(text)
    if text.endswith(".json") or Path(text).is_file():
        return _format_class().load(text)
    raise DefinitionError(
        f"there is no format {text!r}. {nearest(text, formats())} A format of your own is a path to its JSON file."
    )


@cache
def _shipped(name: str) -> Format:
    return _format_class().load(_LIBRARY / f"{name}.json")


def _format_class() -> type[Format]:
    from agentgram.formats.template import Format  # that module imports this one

    return Format


def detect(tokenizer: Any) -> Format:
    """See :meth:`agentgram.formats.Format.detect`."""
    template = prompting.chat_template(tokenizer)
    if not template:
        raise DefinitionError(
            "the tokenizer has no chat template to detect a format from: name one, as format='hermes'."
        )
    fitting = []
    for name in formats():
        fmt = get_format(name)
        by = fmt.detect_by
        if by.all and all(s in template for s in by.all) and not any(s in template for s in by.none):
            fitting.append(fmt)
    if len(fitting) == 1:
        return fitting[0]
    found = "fits none of the formats" if not fitting else "fits several formats: " + ", ".join(f.name for f in fitting)
    raise DefinitionError(
        f"the tokenizer's chat template {found}. Name one of {', '.join(formats())}, or the file of your own."
    )


@dataclass(frozen=True, kw_only=True)
class Report:
    """What came of holding a format against a tokenizer."""

    format: str
    problems: tuple[str, ...] = ()
    """What makes the two unfit for each other."""
    notes: tuple[str, ...] = ()
    """What is good to know."""

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def __str__(self) -> str:
        lines = [*(f"problem: {p}" for p in self.problems), *(f"note: {p}" for p in self.notes)]
        return f"format {self.format}: {'fits' if self.ok else 'does not fit'}" + "".join(f"\n  {x}" for x in lines)


_PROBE = ToolDefinition(
    name="probe_tool",
    description="A tool to try a template with.",
    schema={"type": "object", "properties": {"word": {"type": "string"}, "times": {"type": "integer"}}},
)


def check(fmt: Format, tokenizer: Any) -> Report:
    """See :meth:`agentgram.formats.Format.check`."""
    known = {*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens}
    lost = fmt.stops if fmt.stops and not known & set(fmt.stops) else ()
    problems = [f"{stop!r} should end a turn, but it is no token of its own in this vocabulary" for stop in lost]
    notes = []
    for trigger in fmt.triggers:
        if trigger in tokenizer.all_special_tokens:
            notes.append(f"{trigger!r} is a special token here: decode without skipping special tokens")
        elif trigger not in known:
            notes.append(f"{trigger!r} is plain text here, which users and tools can spell: it is broken up in theirs")
    if fmt.prompt == "format":
        notes.append("prompts are written by the format")
    elif not prompting.renders_tools(tokenizer):
        notes.append("prompts are written by the format: the chat template shows no tools")
    else:
        notes.append("prompts are written by the tokenizer's own chat template")
        found, more = _disagreements(fmt, tokenizer)
        problems += found
        notes += more
    return Report(format=fmt.name, problems=tuple(problems), notes=tuple(notes))


def _disagreements(fmt: Format, tokenizer: Any) -> tuple[list[str], list[str]]:
    """Whether what the chat template writes for a call and a result is what the format would read and write.

    Returns what is wrong, and what is only worth knowing.
    """
    arguments = {"word": 'a "quoted" é', "times": 2}
    call = ToolCall(name=_PROBE.name, arguments=arguments, id="probe0001")
    asked = Request(tools=[_PROBE])
    result = tool_results(ToolResultPart(name=_PROBE.name, content="17", call_id=call.id))
    said = [user("Go."), assistant(calls=[call]), result]
    try:
        prompt, after = (fmt.render(replace(asked, messages=said[:count]), tokenizer) for count in (1, 3))
    except Exception as error:  # a chat template is foreign code and may raise anything
        return [f"the chat template fails on a call and its result: {error!r}"], []
    before = prompt.text.removesuffix(prompt.prefill)
    if not after.text.startswith(before):
        return ["the chat template's prompt after a call does not begin with the prompt before it"], []
    parser = fmt.parser(asked, prompt=Prompt(text=before))
    parser.feed_bytes(after.text[len(before) :].encode())
    calls = parser.close().calls
    if [(c.name, c.arguments) for c in calls] != [(_PROBE.name, arguments)]:
        return [f"the chat template writes a call that the format reads as {list(calls)}"], []
    (index,) = printing.call_ids(fmt, [call], 0)
    wrapped = prompting.wrapped(fmt, ToolResultPart(name=_PROBE.name, content="17"), index)
    if "17".join(wrapped) in after.text:
        return [], []
    if '"17"'.join(wrapped) in after.text:
        return [], ["the chat template writes results as JSON strings, quotes and all"]
    return [f"the chat template does not write a result as the format does: {'17'.join(wrapped)!r}"], []
