"""Who may call what with which arguments: rules without an order, and the one function that decides."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from agentgram.errors import PolicyError
from agentgram.policy.answers import Answers, Narrowed, Standing
from agentgram.policy.calls import of_call
from agentgram.policy.conditions import NOTHING, State
from agentgram.policy.decision import Decision
from agentgram.policy.loading import read
from agentgram.policy.rules import Rule
from agentgram.principal import Principal
from agentgram.tools.decorator import Tool, as_tool
from agentgram.tools.definition import ToolDefinition


class Policy:
    """Rules without an order: a matching deny wins, allows unite, what nothing matches is denied.

    Where both an ``ask`` and an ``allow`` match, the call is allowed: a person is asked only for what is not allowed
    already. Safe to share between threads.
    """

    def __init__(self, *rules: Rule) -> None:
        """Args:
            *rules: What :func:`allow`, :func:`ask` and :func:`deny` made.

        Raises:
            PolicyError: Something is not a rule.
        """
        self._path: Path | None = None
        self._answers = Answers(_rules(rules))

    def __repr__(self) -> str:
        return f"Policy({', '.join(map(str, self.rules))})"

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules as they are now."""
        return self._answers.rules

    @property
    def counting(self) -> tuple[Rule, ...]:
        """The rules that count calls where the session is kept."""
        return self._answers.counting

    @property
    def version(self) -> str:
        """A hash of the rules as they are now, whatever their order."""
        return self._answers.version

    def snapshot(self) -> Policy:
        """The policy as it is now: later changes of this one do not reach it."""
        frozen = copy.copy(self)
        frozen._path = None
        return frozen

    def replace(self, *rules: Rule) -> None:
        """Puts other rules in the place of these, also for runs that go on: their next call is decided by both.

        Raises:
            PolicyError: Something is not a rule; then nothing changes.
        """
        self._answers = Answers(_rules(rules), self._answers)

    def reload(self) -> None:
        """Reads the file again that the policy was loaded from; see :meth:`replace`.

        Raises:
            PolicyError: It was not loaded from a file, or the file is wrong; then nothing changes.
        """
        if self._path is None:
            raise PolicyError("this policy was not loaded from a file: use policy.replace(...).")
        self.replace(*read(self._path))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Policy:
        """Reads a policy from a TOML file.

        ::

            [[allow]]
            tools = ["refund"]
            roles = ["support"]
            where.amount = { le = 50 }
            where.customer = "$user.id"

            [[deny]]
            tools = ["*"]
            tags = ["write"]
            when = { tainted = true }

        Each ``[[allow]]``, ``[[ask]]`` and ``[[deny]]`` has ``tools``, and may have what the functions of these names
        take.

        Raises:
            PolicyError: The file cannot be read, or says something that is not a rule.
        """
        policy = cls(*read(path))
        policy._path = Path(path).absolute()  # for reload(): the working directory may change
        return policy

    def decide(
        self,
        principal: Principal,
        tool: Any,
        arguments: Mapping[str, Any] | None = None,
        *,
        value: Mapping[str, Any] | None = None,
        state: State = NOTHING,
    ) -> Decision:
        """Whether a user may call a tool.

        Prompt, grammar, executor, approvals and audit all ask this function, so that they cannot disagree.

        Args:
            principal: The user.
            tool: A definition, a tool or a function.
            arguments: The call's arguments as JSON values; None asks what may be called at all, and narrows the tool.
            value: What validation made of the arguments, by the same names; constraints have to hold for both.
            state: What has happened in the run so far.

        Raises:
            PolicyError: ``principal`` is not a :class:`Principal`, or ``arguments`` are no dict.
            DefinitionError: ``tool`` is not a tool, or a rule speaks of an argument that it does not have.
        """
        standing = self._standing(principal)
        definition = _definition(tool)
        if arguments is not None:
            if not isinstance(arguments, Mapping):
                raise PolicyError(f"a call's arguments are a dict of JSON values, and not {type(arguments).__name__}.")
            return of_call(standing.matching(definition), principal, definition, arguments, value, state)
        plan = standing.plan(definition, state)
        decision = plan.of(principal)
        return replace(decision, left=plan.left(state)) if plan.counted else decision

    def spelling(
        self, principal: Principal, tool: Any, fits: Callable[[ToolDefinition], bool], *, state: State = NOTHING
    ) -> tuple[str, str] | None:
        """Why a call that is allowed cannot be written as it was begun: an argument, and a rule that speaks of it.

        What an argument may be is enforced in fewer spellings than there are: 50 where one of 5 and 50 is asked for,
        and neither 50.0 nor 5e1.

        Args:
            principal: The user.
            tool: A definition, a tool or a function.
            fits: Whether the call could be written as it was begun, were its tool this one.
            state: What has happened in the run so far.

        Returns:
            None where it is no single argument.

        Raises:
            PolicyError: ``principal`` is not a :class:`Principal`.
            DefinitionError: ``tool`` is not a tool, or a rule speaks of an argument that it does not have.
        """
        plan = self._standing(principal).plan(_definition(tool), state)
        return next(((key, str(rule)) for key, rule, wider in plan.wider(principal) if fits(wider)), None)

    def narrow(
        self, principal: Principal, definitions: tuple[ToolDefinition, ...], *, state: State = NOTHING
    ) -> Narrowed:
        """All that one step of a run has to know of its tools. The same question gets the same objects.

        Raises:
            PolicyError: ``principal`` is not a :class:`Principal`.
            DefinitionError: A rule speaks of an argument that a tool does not have.
        """
        return self._standing(principal).narrow(principal, definitions, state)

    def tools_for(self, principal: Principal, tools: Iterable[Any], *, state: State = NOTHING) -> list[ToolDefinition]:
        """The tools that a user may call, as they may call them; those that a person is asked about included.

        Raises:
            PolicyError: ``principal`` is not a :class:`Principal`.
            DefinitionError: Something in ``tools`` is not a tool, or a rule speaks of an argument that it has not.
        """
        decisions = (self.decide(principal, tool, state=state) for tool in tools)
        return [d.narrowed for d in decisions if d.narrowed is not None]

    def _standing(self, principal: Principal) -> Standing:
        if not isinstance(principal, Principal):
            raise PolicyError(
                f"a policy decides for a Principal, not for {principal!r}: pass Principal('id', roles=...)."
            )
        return self._answers.standing(principal)


def _rules(rules: Iterable[Any]) -> tuple[Rule, ...]:
    made = tuple(rules)
    for rule in made:
        if not isinstance(rule, Rule):
            raise PolicyError(f"{rule!r} is not a rule: use allow(...), ask(...) and deny(...).")
    return made


def _definition(tool: Any) -> ToolDefinition:
    if isinstance(tool, ToolDefinition):
        return tool
    return tool.definition if isinstance(tool, Tool) else as_tool(tool).definition
