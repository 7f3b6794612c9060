"""Calls that wait for a person: a run's state that can leave the server, and what a person says of it."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from agentgram.errors import DefinitionError, PolicyError, nearest
from agentgram.limits import Usage
from agentgram.messages import Message, ToolCall
from agentgram.policy import Principal
from agentgram.policy.state import Counts

_VERSION = 1


@dataclass(frozen=True)
class Verdict:
    """What a person says of a call; made by :func:`approve` and :func:`reject`."""

    approved: bool
    _: KW_ONLY
    arguments: Mapping[str, Any] | None = None
    """Arguments in the place of the model's."""
    reason: str = ""
    """What the model is told where the call is rejected."""


def approve(*, arguments: Mapping[str, Any] | None = None) -> Verdict:
    """The call may be made.

    Args:
        arguments: In the place of the model's, as JSON values. They are decided anew, for the user of the run.
    """
    return Verdict(True, arguments=None if arguments is None else dict(arguments))


def reject(reason: str = "") -> Verdict:
    """The call may not be made.

    Args:
        reason: What the model is told.
    """
    return Verdict(False, reason=reason)


def check_approver(call: str, by: Principal | None, user: Principal | None, roles: Collection[str]) -> None:
    """Whether somebody may approve a call.

    Args:
        call: The call's id, for errors.
        by: Who approves.
        user: Who asked for it.
        roles: One of these is needed, where there are any.

    Raises:
        PolicyError: They may not.
    """
    if not isinstance(by, Principal):
        raise PolicyError("an approval is somebody's: pass by=Principal('id', roles=...).")
    if user is not None and by.id == user.id:
        raise PolicyError(f"{by.id!r} asked for call {call!r}: nobody approves for themselves.")
    if roles and set(roles).isdisjoint(by.roles):
        raise PolicyError(f"call {call!r} is approved by one of {sorted(roles)}, which {by} is not.")


class Approvals:
    """How states are sealed, how long they hold, and that each verdict counts once. Safe to share between threads."""

    def __init__(self, *, key: bytes | None = None, seconds: float = 3600.0, store: Counts | None = None) -> None:
        """Args:
            key: Seals states: at least 16 bytes that are the server's secret. None: one of this process, so that no
                other can resume them.
            seconds: How long a state holds.
            store: Where it is kept that a verdict has been used, such as an ``SQLiteSession``. None: where the run's
                session is kept, or in this process where there is none.

        Raises:
            DefinitionError: The key is too short, or the time is not above 0.
        """
        if key is not None and (not isinstance(key, bytes) or len(key) < 16):
            raise DefinitionError("the key of approvals is at least 16 bytes, as of secrets.token_bytes(32).")
        if not seconds > 0:
            raise DefinitionError(f"approvals hold {seconds} seconds: it must be above 0.")
        self._key = key or secrets.token_bytes(32)
        self.seconds = seconds
        self.store = store
        self._used: set[str] = set()
        self._lock = threading.Lock()

    def seal(self, text: str) -> str:
        """The code of a text under the key."""
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    async def use(self, once: str, session: object) -> bool:
        """Takes note that a call has been decided (see :attr:`PendingCall.once`); False where it had been before."""
        store = self.store or (session if isinstance(session, Counts) else None)
        if store is not None:
            return await store.reserve("approval", once, 1)
        with self._lock:
            if once in self._used:
                return False
            self._used.add(once)
            return True


@dataclass(frozen=True, kw_only=True)
class PendingCall:
    """A call that waits."""

    call: ToolCall
    rule: str
    """The rule that wants a person to decide."""
    hidden: bool
    """Whether sensitive arguments have been taken out: then it can only be approved with arguments."""
    once: str
    """What a verdict uses up. The same in every state in which the call waits: of two states of a run, one that was
    made before some of its calls were decided and one after, both hold it."""


@dataclass(frozen=True, kw_only=True)
class RunState:
    """A run that waits for a person. It says who asked, and not what they may do: that is looked up again.

    Arguments that are declared sensitive are not in it.
    """

    id: str
    run_id: str
    user: str | None
    """The id of the user for whom the run acts."""
    session: str | None
    """The id of its session."""
    policy: str
    """The version of the policy that wants a person to decide."""
    expires: float
    """Until when it holds, in seconds since 1970."""
    messages: tuple[Message, ...]
    """The conversation; empty where a session keeps it."""
    pending: tuple[PendingCall, ...]
    usage: Usage = field(default_factory=Usage)
    tainted: bool = False
    _approvals: Approvals = field(repr=False, compare=False)

    def to_json(self) -> str:
        """The state as text, sealed: it may be stored anywhere, and be read there, but not be changed."""
        body = {
            "version": _VERSION,
            "id": self.id,
            "run": self.run_id,
            "user": self.user,
            "session": self.session,
            "policy": self.policy,
            "expires": self.expires,
            "messages": [message.to_dict() for message in self.messages],
            "pending": [
                {
                    "name": p.call.name,
                    "arguments": p.call.arguments,
                    "id": p.call.id,
                    "rule": p.rule,
                    "hidden": p.hidden,
                    "once": p.once,
                }
                for p in self.pending
            ],
            "usage": {key: getattr(self.usage, key) for key in Usage.__dataclass_fields__},
            "tainted": self.tainted,
        }
        text = json.dumps(body)
        return json.dumps({"state": text, "seal": self._approvals.seal(text)})

    @classmethod
    def from_json(cls, text: str, approvals: Approvals) -> RunState:
        """Reads what :meth:`to_json` wrote under the same key.

        Raises:
            PolicyError: It was changed, sealed under another key, or has expired.
        """
        try:
            sealed = json.loads(text)
            inner, seal = sealed["state"], sealed["seal"]
            sound = hmac.compare_digest(seal, approvals.seal(inner))
        except (ValueError, KeyError, TypeError, AttributeError):
            sound = False
        if not sound:
            raise PolicyError(
                "this is no state of a run that was sealed here: it was changed, or sealed under another key. Give the "
                "agent approvals=Approvals(key=...) where another process resumes its runs."
            )
        body = json.loads(inner)
        if body["version"] != _VERSION:
            raise PolicyError(f"the state was written by another version ({body['version']}, this is {_VERSION}).")
        if body["expires"] <= time.time():
            raise PolicyError("the state has expired: run the prompt again, and decide sooner.")
        return cls(
            id=body["id"],
            run_id=body["run"],
            user=body["user"],
            session=body["session"],
            policy=body["policy"],
            expires=body["expires"],
            messages=tuple(map(Message.from_dict, body["messages"])),
            pending=tuple(
                PendingCall(
                    call=ToolCall(name=p["name"], arguments=p["arguments"], id=p["id"]),
                    rule=p["rule"],
                    hidden=p["hidden"],
                    once=p["once"],
                )
                for p in body["pending"]
            ),
            usage=Usage(**body["usage"]),
            tainted=body["tainted"],
            _approvals=approvals,
        )

    def checked(self, verdicts: Mapping[str, Verdict]) -> Sequence[tuple[PendingCall, Verdict | None]]:
        """Each call that waits, with what is said of it.

        Raises:
            PolicyError: A verdict is none, or of a call that does not wait, or approves what has been taken out.
        """
        known = {p.call.id: p for p in self.pending}
        for id_, verdict in verdicts.items():
            if id_ not in known:
                raise PolicyError(f"no call {id_!r} waits for a person. {nearest(str(id_), known)}")
            if not isinstance(verdict, Verdict):
                raise PolicyError(f"{verdict!r} is no verdict: use approve(...) and reject(...).")
            if verdict.approved and verdict.arguments is None and known[id_].hidden:
                raise PolicyError(
                    f"call {id_!r} has sensitive arguments, which its state does not hold: use approve(arguments=...)."
                )
        return [(p, verdicts.get(p.call.id)) for p in self.pending]
