"""Who asks: the person or service on whose behalf a run acts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass

from agentgram.errors import PolicyError


@dataclass(frozen=True)
class Principal:
    """A user, with the roles that the host application gives them.

    Raises:
        PolicyError: The id or a role is not a non-empty string.
    """

    id: str
    """The user's id: what rules name under ``users``."""
    _: KW_ONLY
    roles: Collection[str] = frozenset()
    """What the user may act as: what rules name under ``roles``. A single string is one role."""

    def __post_init__(self) -> None:
        roles = (self.roles,) if isinstance(self.roles, str) else tuple(self.roles)
        for kind, word in (("id", self.id), *(("role", r) for r in roles)):
            if not isinstance(word, str) or not word:
                raise PolicyError(f"a principal's {kind} is {word!r}: it must be a non-empty string.")
        object.__setattr__(self, "roles", frozenset(roles))

    def __str__(self) -> str:
        return f"{self.id} ({', '.join(sorted(self.roles))})" if self.roles else self.id
