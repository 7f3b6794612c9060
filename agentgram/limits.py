"""What a run has used, and how much it may use."""

from __future__ import annotations

from dataclasses import dataclass, fields

from agentgram.errors import DefinitionError, LimitExceeded


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a run has used so far."""

    steps: int = 0
    """Turns of the model."""
    tool_calls: int = 0
    """Calls that were handed to a tool, those that it refused or failed included."""
    denied: int = 0
    """Calls that the policy refused."""
    malformed: int = 0
    """Times that output began a call and did not become one."""
    input_tokens: int = 0
    """Tokens of the prompts, all steps together, as far as the model tells."""
    sampled_tokens: int = 0
    """Tokens that the model chose."""
    forced_tokens: int = 0
    """Tokens that the grammar left no choice about: appended without sampling."""

    @property
    def output_tokens(self) -> int:
        """Tokens written, sampled and forced."""
        return self.sampled_tokens + self.forced_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a run may use; None is no limit.

    Raises:
        DefinitionError: A limit is negative, or allows no step.
    """

    steps: int | None = 20
    """Turns of the model."""
    tool_calls: int | None = None
    """Calls handed to tools."""
    input_tokens: int | None = None
    """Tokens of the prompts, all steps together."""
    output_tokens: int | None = None
    """Tokens written, sampled and forced, all steps together."""
    seconds: float | None = None
    """Wall-clock time of the whole run, tools included."""
    identical_calls: int | None = 3
    """In how many turns the same call, with the same arguments, may be made while nothing new is learned. Then it is
    not made again; after a turn of nothing else, the next has to answer, or the run ends where the calls had failed."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            least = int(f.name in ("steps", "identical_calls"))
            if value is not None and value < least:
                raise DefinitionError(f"Limits({f.name}={value}): it must be at least {least}, or None.")

    def before_step(self, usage: Usage) -> None:
        """Asks whether one more turn may begin.

        Raises:
            LimitExceeded: No.
        """
        _check("steps", self.steps, usage.steps + 1)
        # A turn needs a token in and a token out.
        _check("input_tokens", self.input_tokens, usage.input_tokens + 1)
        _check("output_tokens", self.output_tokens, usage.output_tokens + 1)

    def after_step(self, usage: Usage) -> None:
        """Asks whether the turn that ended kept within the bounds on tokens.

        Raises:
            LimitExceeded: No.
        """
        _check("input_tokens", self.input_tokens, usage.input_tokens)
        _check("output_tokens", self.output_tokens, usage.output_tokens)

    def before_calls(self, usage: Usage, calls: int) -> None:
        """Asks whether so many more calls may be made.

        Raises:
            LimitExceeded: No; none of them is made.
        """
        _check("tool_calls", self.tool_calls, usage.tool_calls + calls)


def _check(name: str, limit: int | None, needed: int) -> None:
    if limit is not None and needed > limit:
        raise LimitExceeded(
            f"the run would use {needed} {name.replace('_', ' ')}, its limit is {limit}. "
            f"Raise Limits({name}=...), or look at the error's .run to see what it was doing."
        )
