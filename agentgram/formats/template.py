"""A format: how one family of models is spoken to, and how it answers. Data, declared once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from agentgram.engine.spec import Spec
from agentgram.errors import DefinitionError, nearest
from agentgram.formats import (
    channels as _channels,  # noqa: F401 -- it adds its node to printing, lowering and reading
)
from agentgram.formats import (
    dispatching as _dispatching,  # noqa: F401 -- it adds its node to reading
)
from agentgram.formats import export, lowering, parsing, printing, prompting, recognition, responses
from agentgram.formats.codecs import get_codec
from agentgram.formats.nodes import (
    Args,
    Channels,
    Dispatch,
    Lit,
    Name,
    Node,
    Stop,
    Tag,
    Tok,
    node_from_dict,
    node_to_dict,
    texts,
    walk,
)
from agentgram.formats.request import Prompt, Request
from agentgram.tools.definition import ToolDefinition


@dataclass(frozen=True)
class Turn:
    """What stands around a message."""

    open: str
    """Before it; ``{role}`` is replaced by the role."""
    close: str
    """After it."""
    stop: Sequence[str] = ()
    """End-of-turn tokens, by their text."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Our role names to the format's, where they differ."""
    around: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What stands around the messages of single roles, where it differs from ``open`` and ``close``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", tuple(self.stop))
        object.__setattr__(self, "roles", dict(self.roles))
        object.__setattr__(self, "around", {role: (a, b) for role, (a, b) in self.around.items()})

    def opening(self, role: str) -> str:
        """What stands before a message of this role."""
        opened = self.around.get(role, (self.open, ""))[0]
        return opened.replace("{role}", self.roles.get(role, role))

    def closing(self, role: str) -> str:
        """What stands after a message of this role."""
        return self.around.get(role, ("", self.close))[1]


@dataclass(frozen=True)
class ToolList:
    """How the prompt shows the tools."""

    codec: str = "json-lines"
    """How the tools are written: ``json-lines``, ``json-functions``, ``json-array``, ``typescript``."""
    into: Literal["system", "user"] = "system"
    """The message that holds the list: the system message, or the first user message."""
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class System:
    """How instructions are given."""

    role: str = "system"
    """The role of the message with the instructions, the tools and the wanted answer."""
    before: str = ""
    """What stands before the instructions."""
    meta: str = ""
    """A message of its own before all others, of the role ``system``; empty for none."""
    meta_tools: str = ""
    """What is added to it where there are tools."""


@dataclass(frozen=True)
class Prefill:
    """How a prompt that this format renders begins the assistant's turn; the model continues there."""

    on: str = ""
    """Where reasoning is asked for."""
    off: str = ""
    """Where it is asked not to be."""
    free: str = ""
    """Where nothing is said about it."""


@dataclass(frozen=True)
class Results:
    """How tool results go back to the model."""

    role: str = "tool"
    """The role of the message that holds them; empty where results stand between the turns."""
    wrap: tuple[str, str] = ("", "")
    """What stands around each result: ``{name}`` is the tool's name, ``{to}`` the name as calls write it, and ``{id}``
    the call's id as it was written."""
    sep: str = "\n"
    """What stands between two results of one message."""
    group: Literal["consecutive", "each"] = "consecutive"
    """Results of one turn share a message, or have one each."""

    def __post_init__(self) -> None:
        before, after = self.wrap
        object.__setattr__(self, "wrap", (before, after))


@dataclass(frozen=True)
class History:
    """What of earlier turns is shown again."""

    reasoning: Literal["drop", "keep", "after_last_user", "after_last_answer"] = "drop"
    """Which reasoning: none, all, that after the last user's message, or that after the last answer without a call."""


@dataclass(frozen=True)
class Answer:
    """How the prompt asks for a typed answer: the schema stands between the two texts."""

    before: str = "Answer with JSON only. It must satisfy this JSON Schema: "
    after: str = ""


@dataclass(frozen=True)
class Signature:
    """How a tokenizer's chat template gives the format away."""

    all: Sequence[str] = ()
    """Strings that all occur in the chat template."""
    none: Sequence[str] = ()
    """Strings none of which occurs in it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "all", tuple(self.all))
        object.__setattr__(self, "none", tuple(self.none))


_PARTS: dict[str, type] = {
    "turn": Turn,
    "tools": ToolList,
    "results": Results,
    "history": History,
    "answer": Answer,
    "instructions": System,
    "prefill": Prefill,
}


@dataclass(frozen=True, kw_only=True, repr=False)
class Format:
    """One declaration, from which the prompt, the grammar, the parser and a JSON description are derived.

    Raises:
        DefinitionError: The output tree has no call, or names an unknown codec.
    """

    name: str
    turn: Turn
    tools: ToolList
    output: Node
    """The assistant's turn, as a tree of :mod:`agentgram.formats.nodes`."""
    results: Results
    history: History = History()
    answer: Answer = Answer()
    instructions: System = System()
    prefill: Prefill = Prefill()
    parallel: bool = True
    """Whether one turn may hold several calls at all."""
    start: str = ""
    """What a prompt begins with, such as a begin-of-text marker."""
    system: str = ""
    """The system text where the conversation brings none."""
    prompt: Literal["auto", "format"] = "auto"
    """``auto``: by the tokenizer's own chat template where that renders tools; ``format``: always by this format."""
    controls: Sequence[str] = ()
    """Further strings that no free text may hold."""
    detect_by: Signature = Signature()
    description: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "controls", tuple(self.controls))
        for node in walk(self.output):
            if isinstance(node, Args):
                get_codec(node.codec, node.options)
        if not self.call_tags and not self.channels:
            raise DefinitionError(f"format {self.name!r} has no Dispatch with a call tag in its output.")

    def __repr__(self) -> str:
        return f"<Format {self.name}>"

    # what is known without a request

    @cached_property
    def memo(self) -> dict[object, object]:
        """What readers make of the format's own nodes once, by the nodes' identity."""
        return {}

    @cached_property
    def dispatches(self) -> tuple[Dispatch, ...]:
        """The places where calls may stand in text."""
        return tuple(n for n in walk(self.output) if isinstance(n, Dispatch))

    @cached_property
    def channels(self) -> tuple[Channels, ...]:
        """The places where messages with headers stand."""
        return tuple(n for n in walk(self.output) if isinstance(n, Channels))

    @cached_property
    def call_tags(self) -> tuple[Tag, ...]:
        """The tags that hold calls, as they should be written."""
        return tuple(t for d in self.dispatches for t in d.tags)

    @cached_property
    def claimed(self) -> frozenset[str]:
        """The names of tools that a call writes in a way of their own."""
        return frozenset(tool for n in walk(self.output) if isinstance(n, Name) for tool in n.only)

    @cached_property
    def stops(self) -> tuple[str, ...]:
        """The texts of the tokens that end the assistant's turn."""
        tree = (n.token for n in walk(self.output) if isinstance(n, Stop))
        return tuple(dict.fromkeys((*self.turn.stop, *tree)))

    @cached_property
    def triggers(self) -> tuple[str, ...]:
        """The texts that begin a call wherever they stand."""
        return tuple(dict.fromkeys(t.begin.text for t in self.call_tags if t.where == "anywhere"))

    @cached_property
    def aside(self) -> tuple[str, ...]:
        """Texts that begin a call for the parser though they are no markers; the grammar's text has none of them."""
        tags = (t for d in self.dispatches for t in d.also if t.peek and t.where == "anywhere")
        return tuple(dict.fromkeys(text for t in tags for text in texts(t.begin)))

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """Every string that is part of the format and so may not occur in free text, longest first."""
        wraps = (piece.strip() for w in self.results.wrap for piece in re.split(r"\{\w+\}", w))
        found = [*self.controls, *self.stops, *wraps, *_turn_markers(self.turn)]
        for channels in self.channels:
            found += channels.controls
        for node in walk(self.output):
            begin = [node.begin] if isinstance(node, Tag) and not node.peek else []
            for marker in (*begin, node.end) if isinstance(node, Tag) else (node,):
                if isinstance(marker, Tok) or (isinstance(node, Tag) and isinstance(marker, Lit)):
                    found += [marker.text, *marker.variants]
        return tuple(sorted({m for m in found if len(m) > 2}, key=lambda m: (-len(m), m)))

    # the three artefacts

    def grammar(
        self,
        request: Request,
        *,
        lenient: bool = False,
        special: Mapping[str, int] | None = None,
        prompt: Prompt | None = None,
    ) -> Spec:
        """What the model may write for this request, without the end-of-turn token.

        Args:
            request: The turn that is asked for.
            lenient: Let whitespace inside calls vary.
            special: The vocabulary's special tokens: a marker among them is matched by its id.
            prompt: What was rendered for this request: the grammar is what may follow it. None for a prompt that this
                format renders.

        Raises:
            DefinitionError: The format cannot tell a typed answer from a call, or no turn begins as the prompt has it.
            GrammarError: A tool's schema says what this format's way of writing arguments cannot be held to.
        """
        return lowering.grammar(self, request, lenient=lenient, special=special or lowering.NO_TOKENS, prompt=prompt)

    def prefilled(self, request: Request) -> str:
        """How a prompt that this format renders begins the assistant's turn."""
        kinds = {True: self.prefill.on, False: self.prefill.off, None: self.prefill.free}
        return kinds[request.reasoning]

    def render(self, request: Request, tokenizer: Any = None) -> Prompt:
        """The prompt for this request; with a transformers tokenizer, its token ids too.

        Text of users and tools is data: markers of the format and added tokens of the tokenizer that occur in it are
        broken up by a space after their first character.
        """
        return prompting.render(self, request, tokenizer)

    def parser(self, request: Request, vocabulary: Any = None, *, prompt: Prompt | None = None) -> parsing.Parser:
        """A parser of one assistant turn, for bytes, or for token ids where a vocabulary is given.

        Args:
            request: The turn that was asked for.
            vocabulary: The model's vocabulary, for :meth:`agentgram.formats.Parser.feed_token`.
            prompt: What was rendered for this request: what it has of the turn is read first. None for a prompt that
                this format renders.
        """
        prefill = self.prefilled(request) if prompt is None else prompt.prefill
        return parsing.Parser(self, request, vocabulary, prefill)

    def print_call(self, definition: ToolDefinition, arguments: Mapping[str, Any]) -> str:
        """One call in canonical spelling, from its opening marker to its closing one."""
        return printing.print_call(self, definition, arguments)

    def openers(self, request: Request) -> dict[str, str]:
        """For each tool that the request lets the model call: the canonical text from the trigger to the arguments."""
        return lowering.openers(self, request)

    def check(self, tokenizer: Any) -> recognition.Report:
        """Holds the format against a tokenizer: its markers, its stops, and its chat template where that has tools."""
        return recognition.check(self, tokenizer)

    # for others

    def lark(self, request: Request, *, special: Mapping[str, int] | None = None) -> export.Export:
        """The grammar of a request for llguidance, and where the two languages differ.

        Raises:
            DefinitionError: It cannot be said in Lark.
        """
        return export.lark(self.grammar(request, special=special), special)

    def structural_tag(self, request: Request, *, special: Mapping[str, int] | None = None) -> export.Export:
        """The grammar of a request for xgrammar, and where the two languages differ.

        Raises:
            DefinitionError: It cannot be said as a structural tag.
        """
        return export.structural_tag(self.grammar(request, special=special))

    def to_response_template(self) -> responses.ResponseTemplate:
        """This format as a ``response_template`` of transformers, and what that reads otherwise.

        Raises:
            DefinitionError: No response_template says what this format is.
        """
        return responses.to_response_template(self)

    @classmethod
    def from_response_template(cls, value: Mapping[str, Any], base: Format | None = None) -> Format:
        """Reads a ``response_template`` of transformers: a tokenizer's own description of what its model writes.

        Args:
            value: The template, as ``tokenizer.response_template`` has it.
            base: What the template does not say is taken from here: turns, the list of tools, results. None for
                ``hermes``.

        Raises:
            DefinitionError: It says more than markers, blanks and names.
        """
        return responses.from_response_template(value, base or recognition.get_format("hermes"))

    # the fourth

    def to_dict(self) -> dict[str, Any]:
        """A JSON value that :meth:`from_dict` reads back to an equal format; defaults are left out."""
        out: dict[str, Any] = {"name": self.name}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "output":
                out["output"] = node_to_dict(value)
            elif item.name in _PARTS or item.name == "detect_by":
                if value != item.default:
                    out[item.name] = _part_to_dict(value)
            elif value != item.default and value != ():
                out[item.name] = list(value) if isinstance(value, tuple) else value
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Format:
        """Reads what :meth:`to_dict` wrote.

        Raises:
            DefinitionError: The value does not describe a format; what is wrong is named.
        """
        values = dict(data)
        known = {f.name for f in fields(cls)}
        for key in values:
            if key not in known:
                raise DefinitionError(f"a format has no {key!r}. {nearest(key, known)}")
        try:
            for key, part in (*_PARTS.items(), ("detect_by", Signature)):
                if key in values:
                    values[key] = part(**values[key])
            values["output"] = node_from_dict(values["output"])
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise DefinitionError(f"format {data.get('name', '?')!r} is described wrongly: {error!r}.") from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Format:
        """Reads a format from a JSON file.

        Raises:
            DefinitionError: The file cannot be read, or does not describe a format.
        """
        try:
            data = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise DefinitionError(f"no format can be read from {path}: {error}.") from error
        if not isinstance(data, dict):
            raise DefinitionError(f"{path} holds no format: its JSON is not an object.")
        return cls.from_dict(data)

    @classmethod
    def detect(cls, tokenizer: Any) -> Format:
        """The shipped format that a tokenizer's chat template belongs to.

        Raises:
            DefinitionError: No shipped format fits, or there is no chat template; name a format instead.
        """
        return recognition.detect(tokenizer)


def _part_to_dict(part: Any) -> dict[str, Any]:
    out = {}
    for item in fields(part):
        value = getattr(part, item.name)
        if value not in ((), {}) and value != item.default:
            out[item.name] = list(value) if isinstance(value, tuple) else value
            if isinstance(value, Mapping):
                out[item.name] = {k: list(v) if isinstance(v, tuple) else v for k, v in value.items()}
    return out


_ROLES = ("system", "developer", "user", "assistant", "tool")


def _turn_markers(turn: Turn) -> list[str]:
    """The control strings in a turn's opening and closing: up to the role where that is one, else with each role."""
    head = turn.open.partition("{role}")[0].strip()
    if head and head[-1] in ">]|}" and len(head) > 2:
        opened = [head]
    else:
        opened = [turn.opening(role).strip() for role in _ROLES]
    for before, after in turn.around.values():
        opened += [*(piece.strip() for piece in before.split("{role}")), after.strip()]
    return [*opened, turn.close.strip()]
