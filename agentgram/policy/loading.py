"""Policies in TOML files: the same rules as from Python."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from agentgram.errors import PolicyError, nearest
from agentgram.policy import conditions, constraints
from agentgram.policy.conditions import Condition
from agentgram.policy.fragments import fragment
from agentgram.policy.rules import Rule, allow, ask, deny

_MAKERS: dict[str, Any] = {"allow": allow, "ask": ask, "deny": deny}
_WORDS = ("tools", "tags", "users", "roles", "by")
_KEYS = ("tools", "tags", "users", "roles", "name", "where", "when", "by")
_CONSTRAINTS: dict[str, Any] = {
    "le": constraints.le,
    "lt": constraints.lt,
    "ge": constraints.ge,
    "gt": constraints.gt,
    "matches": constraints.matches,
    "under": constraints.under,
}


def read(path: str | PathLike[str]) -> list[Rule]:
    """The rules of a file; see :meth:`agentgram.Policy.load`.

    Raises:
        PolicyError: The file cannot be read, or says something that is not a rule.
    """
    try:
        data = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise PolicyError(f"no policy can be read from {path}: {error.strerror or error}.") from error
    except ValueError as error:
        raise PolicyError(f"{path} is not TOML: {error}.") from error
    return list(_rules(data, str(path)))


def _rules(data: Mapping[str, Any], path: str) -> Iterator[Rule]:
    for effect, entries in data.items():
        if effect not in _MAKERS:
            raise PolicyError(f"{path}: a policy has no {effect!r}. {nearest(effect, _MAKERS)}")
        if not isinstance(entries, list):
            raise PolicyError(f"{path}: write [[{effect}]] with two brackets; each one is a rule.")
        for number, entry in enumerate(entries, start=1):
            where = f"{path}: [[{effect}]] number {number}"
            if not isinstance(entry, dict):
                raise PolicyError(f"{where} is {entry!r}: it must be a table.")
            yield _rule(effect, dict(entry), where)


def _rule(effect: str, entry: dict[str, Any], where: str) -> Rule:
    for key, value in entry.items():
        if key not in _KEYS:
            raise PolicyError(f"{where} has {key!r}, which no rule has. {nearest(key, _KEYS)}")
        if key == "by" and effect != "ask":
            raise PolicyError(f"{where} has 'by', which only [[ask]] has: it says who may decide about a call.")
        if key == "name" and not isinstance(value, str):
            raise PolicyError(f"{where}: name is {value!r}, it must be a string.")
        if key in _WORDS and not isinstance(value, str | list):
            raise PolicyError(f"{where}: {key} is {value!r}, it must be a string or a list of strings.")
        if key in ("where", "when") and not isinstance(value, dict):
            raise PolicyError(f"{where}: {key} is {value!r}, it must be a table.")
    tools = entry.pop("tools", [])
    try:
        if "where" in entry:
            entry["where"] = {key: _constraint(key, value) for key, value in entry["where"].items()}
        if "when" in entry:
            entry["when"] = [_condition(key, value) for key, value in entry["when"].items()]
        rule: Rule = _MAKERS[effect](*([tools] if isinstance(tools, str) else tools), **entry)
        return rule
    except (PolicyError, TypeError) as error:
        raise PolicyError(f"{where}: {error}") from error


def _constraint(key: str, value: Any) -> Any:
    if not isinstance(value, dict):
        return _value(value)
    given = dict(value)
    steer = given.pop("steer", False)
    if not isinstance(steer, bool):
        raise PolicyError(f"where.{key}: steer is {steer!r}, it must be true or false.")
    made = []
    for word, operand in given.items():
        if word in _CONSTRAINTS:
            made.append(_CONSTRAINTS[word](operand, steer=steer))
        elif word == "one_of" and isinstance(operand, list):
            made.append(constraints.one_of(*map(_value, operand), steer=steer))
        elif word == "same_as":
            made.append(constraints.same_as(operand, steer=steer))
        elif word == "schema" and isinstance(operand, dict):
            made.append(fragment(operand, key, steer=steer))
        else:
            known = (*_CONSTRAINTS, "one_of", "same_as", "schema", "steer")
            raise PolicyError(f"where.{key} has {word} = {operand!r}. {nearest(word, known)}")
    if not made:
        raise PolicyError(f"where.{key} says nothing: write it as in where.{key} = {{ le = 50 }}.")
    return tuple(made)


def _value(value: Any) -> Any:
    """A constant; ``$user.id`` is the user's, and ``$$`` begins a text that begins with a dollar."""
    if isinstance(value, str) and value.startswith("$"):
        return value[1:] if value.startswith("$$") else constraints.same_as(value[1:])
    return value


def _condition(key: str, value: Any) -> Condition:
    given = dict(value) if isinstance(value, dict) else {"tool": value}
    if key == "tainted" and value is True:
        return conditions.tainted()
    if key == "times" and {"most"} <= given.keys() <= {"most", "per"}:
        return conditions.times(**given)
    if key == "after" and {"tool"} <= given.keys() <= {"tool", "same"}:
        return conditions.after(**given)
    raise PolicyError(
        f"when.{key} = {value!r}: write tainted = true, times = {{ most = 1, per = 'session' }} or "
        "after = { tool = 'confirm', same = 'order' }."
    )
