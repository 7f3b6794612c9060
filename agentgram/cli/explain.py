"""``agentgram explain``: what a model may write next, and which rule takes the rest away."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import to_json

from agentgram.cli.options import FAILED, USAGE, FormatOption, PolicyOption, SourceArgument, color, fail, principal_of
from agentgram.errors import AgentgramError, PolicyError
from agentgram.policy import Policy, Principal
from agentgram.tools import ToolDefinition, Toolset

if TYPE_CHECKING:
    from agentgram.engine import Matcher
    from agentgram.formats import Format, Request

MANY = 12
"""How many texts of one kind are told one by one."""
LONGEST = 100
"""Bytes of a text that is shown whole."""


@dataclass(frozen=True, kw_only=True)
class Next:
    """A text that may come next, or may not."""

    text: str
    allowed: bool
    tool: str = ""
    path: str = ""
    rule: str = ""
    """What takes it away."""
    many: bool = False
    """Whether ``text`` tells how many texts there are, and not which."""


def explain(
    source: SourceArgument,
    prefix: Annotated[str, typer.Argument(help=r"What has been written so far; \n and \t are read.")] = "",
    user: Annotated[str | None, typer.Option(help="The user's id, for the policy.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="A role of the user; may be given several times.")] = None,
    policy: PolicyOption = None,
    format: FormatOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Show what may come next in a model's turn, and which rule of the policy takes away what may not.

    No model is loaded. Ends with 1 where the format cannot write the prefix at all.
    """
    from agentgram.cli.source import load_agent
    from agentgram.formats import get_format

    try:
        agent = load_agent(source, model=None, policy=Policy.load(policy) if policy is not None else None)
        principal = principal_of(user, role)
        if agent.policy is not None and principal is None:
            raise PolicyError("there is a policy, so --user says for whom.")
        explained = Explained(agent.tools, agent.policy, principal, get_format(format or "hermes"))
    except AgentgramError as error:
        fail(str(error), USAGE)
    written = prefix.replace(r"\n", "\n").replace(r"\t", "\t").encode()
    wrong = explained.fits(written)
    if wrong < len(written):
        begun = written[:wrong].decode("utf-8", "replace")
        fail(f"this format writes nothing that begins so: it goes wrong after {begun!r}.", FAILED)
    for items in _alike(explained.after(written), apart=json):
        _show(items, json=json)


def _alike(items: Iterator[Next], *, apart: bool) -> Iterator[list[Next]]:
    """Texts that one rule takes away are told together; those that may come, one by one."""
    reasons: dict[Any, list[Next]] = {}
    for number, item in enumerate(items):
        reasons.setdefault(number if item.allowed or apart else (item.tool, item.path, item.rule), []).append(item)
    yield from reasons.values()


def _show(items: list[Next], *, json: bool) -> None:
    item = items[0]
    if json:
        typer.echo(to_json(asdict(item)).decode())
        return
    word, hue = ("may", "green") if item.allowed else ("denied", "yellow")
    why = "" if item.allowed else f"  ({' '.join(filter(None, (item.tool, item.path)))}: {item.rule})"
    texts = " ".join(each.text if each.many else repr(each.text) if each.text else "(the end)" for each in items)
    typer.secho(f"{word:<7}{texts}{why}", fg=hue, color=color(sys.stdout))


class Explained:
    """The two grammars of a turn: what can be written at all, and what a user may write."""

    def __init__(self, tools: Toolset, policy: Policy | None, user: Principal | None, fmt: Format) -> None:
        from agentgram.engine import Engine, Vocabulary
        from agentgram.formats import Request

        self.tools, self.policy, self.user, self.fmt = tools, policy, user, fmt
        sampled = permitted = tools.definitions
        if policy is not None and user is not None:
            narrow = policy.narrow(user, tools.definitions)
            sampled, permitted = narrow.sampled, narrow.permitted
        self.declared: Request = Request(tools=sampled)
        self.permitted: Request = Request(tools=permitted)
        self.engine = Engine.shared(Vocabulary.byte_level())
        self.wide = self.engine.compile(fmt.grammar(self.declared)).matcher()
        self.narrow = self.engine.compile(fmt.grammar(self.permitted)).matcher()

    def fits(self, written: bytes) -> int:
        """How many bytes of a text the format can write."""
        matcher = self.wide.fork()
        return next((n for n in range(len(written)) if not matcher.accept_bytes(written[n : n + 1])), len(written))

    def after(self, written: bytes) -> Iterator[Next]:
        """What may come after a text, and what not; the same texts as a user of all rights might write."""
        wide, narrow = self.wide.fork(), self.narrow.fork()
        wide.accept_bytes(written)
        denied = not narrow.accept_bytes(written)
        permitted: list[Next] = []
        refused: list[Next] = []
        for byte in _bytes(wide):
            more, matcher = _forced(wide, byte)
            if not denied and narrow.fork().accept_bytes(more):
                permitted.append(Next(text=_cut(more), allowed=True))
            else:
                refused.append(self._denied(written, more, matcher))
        yield from _in_short(permitted)
        reasons: dict[tuple[str, str, str], list[Next]] = {}
        for item in refused:
            reasons.setdefault((item.tool, item.path, item.rule), []).append(item)
        for items in reasons.values():
            yield from _in_short(items)
        if wide.can_end and not denied and narrow.can_end:
            yield Next(text="", allowed=True)

    def _denied(self, written: bytes, more: bytes, matcher: Matcher) -> Next:
        """Which rule takes a text away: read off the shortest call that goes on so."""
        text = _cut(more)
        parser = self.fmt.parser(self.declared)
        parser.feed_bytes(written + more + matcher.shortest_end())
        calls = parser.close().calls
        call = calls[-1] if calls else None
        tool = self.tools.get(call.name) if call is not None else None
        if self.policy is None or self.user is None or call is None or tool is None:
            return Next(text=text, allowed=False, rule="the grammar")
        decision = self.policy.decide(self.user, tool)
        if not decision.denied:
            decision = self.policy.decide(self.user, tool, call.arguments)
        if decision.denied:
            path = ".".join(map(str, decision.path))
            return Next(text=text, allowed=False, tool=call.name, path=path, rule=decision.rule)
        found = self.policy.spelling(self.user, tool, lambda wider: self._fits_in(wider, written + more))
        path, rule = found or ("", decision.rule)
        return Next(text=text, allowed=False, tool=call.name, path=path, rule=f"the spelling, by {rule}")

    def _fits_in(self, definition: ToolDefinition, text: bytes) -> bool:
        """Whether a text could be written, were a tool this one."""
        tools = tuple(definition if tool.name == definition.name else tool for tool in self.permitted.tools)
        grammar = self.engine.compile(self.fmt.grammar(replace(self.permitted, tools=tools)))
        return grammar.matcher().accept_bytes(text)


def _in_short(items: list[Next]) -> list[Next]:
    """Texts of one kind; how many, where there are too many to read."""
    if len(items) <= MANY:
        return items
    return [replace(items[0], text=f"({len(items)} texts)", many=True)]


def _bytes(matcher: Matcher) -> list[int]:
    from agentgram.engine import Vocabulary, allocate_mask

    mask = allocate_mask(1, Vocabulary.byte_level().size)
    matcher.fill_mask(mask)
    return [byte for byte in range(256) if mask[0, byte // 32] >> (byte % 32) & 1]


def _forced(matcher: Matcher, byte: int) -> tuple[bytes, Any]:
    """A byte and what has to follow it."""
    fork = matcher.fork()
    fork.accept_bytes(bytes([byte]))
    more = fork.forced_bytes()
    fork.accept_bytes(more)
    return bytes([byte]) + more, fork


def _cut(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    return shown if len(shown) <= LONGEST else shown[:LONGEST] + " ..."
