"""What one run may do: its policy, asked at each step and again before each call, and what the run has done so far."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentgram.errors import PolicyError
from agentgram.messages import Message, ToolCall
from agentgram.models.base import Denial, Fits
from agentgram.policy import Decision, Policy, Principal
from agentgram.policy.answers import Narrowed
from agentgram.policy.conditions import Times
from agentgram.policy.decision import stricter
from agentgram.policy.rules import Rule
from agentgram.policy.state import Counts, Past, scope
from agentgram.sessions import Session
from agentgram.tools import Tool, Toolset


@dataclass(kw_only=True)
class Rights:
    """A run's view of its policy; without one, everything is allowed."""

    policy: Policy | None
    user: Principal | None
    tools: Toolset
    session: Session | None = None
    past: Past = field(default_factory=Past)
    _counting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _then: Policy | None = None
    """The policy as it was when the step began: what has been sampled was narrowed by it."""

    def remember(self, messages: Sequence[Message]) -> None:
        """Takes note of the conversation before the run."""
        self.past.remember(messages)

    async def step(self) -> Narrowed:
        """What the run may call now. Rights are looked up anew at each step.

        Raises:
            PolicyError: Calls are counted per session or day, and there is no session that can count.
        """
        if self.policy is None or self.user is None:
            every = self.tools.definitions
            return Narrowed(permitted=every, sampled=every, common=every)
        self._then = self.policy.snapshot()
        await self._recount(self._then.counting)
        return self._then.narrow(self.user, self.tools.definitions, state=self.past)

    async def _recount(self, rules: Iterable[Rule]) -> None:
        assert self.user is not None
        for rule in rules:
            for condition in rule.when if rule.includes(self.user) else ():
                if isinstance(condition, Times) and condition.per != "run":
                    counts, place = self._counts(condition)
                    self.past.count(str(rule), condition.per, await counts.used(place, str(rule)))

    def _counts(self, condition: Times) -> tuple[Counts, str]:
        assert self.user is not None
        if self.session is None or not isinstance(self.session, Counts):
            raise PolicyError(
                f"the policy has {condition}, which is counted where the session is kept: give the run a session=, as "
                "in SQLiteSession('chats.db', 'id'), or count per='run'."
            )
        return self.session, scope(condition.per, self.session.id, self.user)

    def decide(
        self, tool: Tool[..., Any], arguments: Mapping[str, Any] | None, value: Mapping[str, Any] | None = None
    ) -> Decision:
        """What the policy says of a call: as it was when the step began, and as it is now; the stricter counts."""
        if self.policy is None or self.user is None:
            return Decision(outcome="allowed", rule="", narrowed=tool.definition)
        now = self.policy.decide(self.user, tool, arguments, value=value, state=self.past)
        if self._then is None or self._then.version == self.policy.version:
            return now
        return stricter(now, self._then.decide(self.user, tool, arguments, value=value, state=self.past))

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of the policy that count now: one, or two while it changes."""
        known = [policy.version for policy in (self._then, self.policy) if policy is not None]
        return tuple(dict.fromkeys(known))

    def denial(self, name: str, arguments: Mapping[str, Any] | None, fits: Fits | None = None, /) -> Denial | None:
        """Why a model may not write a call; for a tool as such, which rule it is that speaks of it.

        Where the call is allowed, and ``fits`` is given, it is the spelling of an argument that cannot be written.
        """
        tool = self.tools.get(name)
        if tool is None:
            return None
        decision = self.decide(tool, arguments)
        if decision.denied or arguments is None:
            return Denial(decision.path, decision.rule)
        policy = self._then or self.policy  # by which the tools have been narrowed
        if fits is None or policy is None or self.user is None:
            return None
        found = policy.spelling(self.user, tool, fits, state=self.past)
        return Denial((), decision.rule) if found is None else Denial((found[0],), found[1])

    def visible(self) -> list[str]:
        """The names of the tools that the user knows of."""
        return [tool.name for tool in self.tools if not self.decide(tool, None).denied]

    async def reserve(self, decision: Decision) -> bool:
        """Counts a call that is about to be made under one of the rules that let it through.

        Returns:
            Whether one of them had room.
        """
        if not decision.counted:
            return True
        for rule in decision.counted:
            if await self._reserved(rule):
                return True
        return False

    async def _reserved(self, rule: Rule) -> bool:
        conditions = [condition for condition in rule.when if isinstance(condition, Times)]
        if len(conditions) > 1:  # where one of them has no room, none of the others is to lose any
            async with self._counting:
                await self._recount([rule])
                room = all(self.past.used(str(rule), c.per) < c.most for c in conditions)
                return room and await self._reserved_all(rule, conditions)
        return await self._reserved_all(rule, conditions)

    async def _reserved_all(self, rule: Rule, conditions: Iterable[Times]) -> bool:
        for condition in conditions:
            used = self.past.used(str(rule), condition.per)
            if condition.per == "run":
                if used >= condition.most:
                    return False
            else:
                counts, place = self._counts(condition)
                if not await counts.reserve(place, str(rule), condition.most):
                    self.past.count(str(rule), condition.per, condition.most)
                    return False
            self.past.count(str(rule), condition.per, self.past.used(str(rule), condition.per) + 1)
        return True

    def made(self, call: ToolCall, tool: Tool[..., Any] | None, *, succeeded: bool) -> None:
        """Takes note of what a tool has answered."""
        self.past.tainted = self.past.tainted or tool is None or tool.output != "trusted"
        if succeeded:
            self.past.succeeded(call.name, call.arguments)
