"""What a run tells of itself without what is sensitive: the lines of its audit, and its events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentgram.events import ApprovalNeeded, ArgumentsDelta, CallDenied, Event, StepEnd, ToolCallEnd, ToolResult
from agentgram.messages import Message, ToolCall
from agentgram.policy import Audit, Principal
from agentgram.rights import Rights
from agentgram.tools.sensitive import redacted


@dataclass(kw_only=True)
class Recorder:
    """Writes the audit of one run, where there is one."""

    audit: Audit | None
    rights: Rights
    run_id: str
    enforced_by: str = "validator"
    """What kept the turn that is being acted on within what is permitted while it was written."""

    def __post_init__(self) -> None:
        self._hiding = {tool.name for tool in self.rights.tools if tool.definition.sensitive}

    async def write(self, event: str, **fields: Any) -> None:
        """Adds a line, which is on the disk when this returns.

        Raises:
            RunError: It cannot be written.
        """
        if self.audit is not None:
            user = self.rights.user
            who = {} if user is None else {"user": user.id, "roles": sorted(user.roles)}
            policy = list(self.rights.versions)
            await asyncio.to_thread(self.audit.write, event, run=self.run_id, **who, policy=policy, **fields)

    async def intent(self, call: ToolCall, rule: str, **more: Any) -> None:
        """A call is about to be made."""
        await self.write("intent", **self._told(call), rule=rule, enforced_by=self.enforced_by, **more)

    async def outcome(self, call: ToolCall, status: str, seconds: float) -> None:
        """A call has been made."""
        await self.write("outcome", call=call.id, tool=call.name, status=status, seconds=round(seconds, 6))

    async def denied(self, event: CallDenied, enforced_by: str, call: ToolCall | None = None) -> None:
        """A call was wished for, and refused."""
        told = {"tool": event.tool} if call is None else self._told(call)
        await self.write("denied", **told, path=list(event.path), rule=event.rule, enforced_by=enforced_by)

    async def ruled(self, call: ToolCall, by: Principal | None, verdict: str) -> None:
        """A person has decided about a call; its arguments are those that the person approves."""
        await self.write("ruled", **self._told(call), by=None if by is None else by.id, status=verdict)

    async def asked(self, call: ToolCall, rule: str) -> None:
        """A person has to decide about a call."""
        await self.write("asked", **self._told(call), rule=rule, enforced_by=self.enforced_by)

    def _told(self, call: ToolCall) -> dict[str, Any]:
        return {"call": call.id, "tool": call.name, "arguments": self.hidden(call).arguments}

    # ---- without what is sensitive ----

    def hidden(self, call: ToolCall) -> ToolCall:
        """A call without the values that its tool declares sensitive."""
        tool = self.rights.tools.get(call.name)
        if tool is None or call.name not in self._hiding:
            return call
        arguments: Mapping[str, Any] = redacted(call.arguments, tool.definition.schema)
        return replace(call, arguments=dict(arguments))

    def shown(self, event: Event) -> Event:
        """An event as it is told, without what is sensitive."""
        if not self._hiding:
            return event
        match event:
            case ArgumentsDelta():
                return replace(event, text="")  # whose text it is shows only when the call is complete
            case ToolCallEnd() | ApprovalNeeded() | ToolResult():
                return replace(event, call=self.hidden(event.call))
            case StepEnd():
                return replace(event, message=self.without(event.message))
        return event

    def without(self, message: Message) -> Message:
        """A message without what is sensitive."""
        if not self._hiding.intersection(call.name for call in message.calls):
            return message
        return replace(message, parts=tuple(self.hidden(p) if isinstance(p, ToolCall) else p for p in message.parts))
