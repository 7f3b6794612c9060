"""Reads a file of tools, or an agent from one."""

from __future__ import annotations

import copy
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from agentgram.agent import Agent
from agentgram.errors import DefinitionError, nearest
from agentgram.models.base import Model
from agentgram.policy import Policy
from agentgram.tools import Tool, Toolset

DEFAULT_MODEL = "smollm2"
"""The model of the command line, where neither the file nor an option names one."""


def load_agent(source: str, *, model: Model | str | None, policy: Policy | None) -> Agent[Any, Any]:
    """The agent that ``FILE.py:name`` holds, or one with the tools of ``FILE.py``.

    Args:
        source: A file, and after a colon what to take from it.
        model: Takes the place of the agent's model.
        policy: Takes the place of the agent's policy.

    Raises:
        DefinitionError: The file cannot be loaded, or holds no such agent, or no tools.
    """
    path, _, name = source.rpartition(":") if ":" in source[2:] else (source, "", "")
    module = _load(Path(path))
    if not name:
        return Agent(model or DEFAULT_MODEL, tools=_tools(module), policy=policy)
    agent = getattr(module, name, None)
    if not isinstance(agent, Agent):
        agents = [key for key, value in vars(module).items() if isinstance(value, Agent)]
        raise DefinitionError(f"{path} has no agent named {name!r}. {nearest(name, agents)}")
    agent = copy.copy(agent)
    agent.model = model or agent.model
    agent.policy = policy or agent.policy
    return agent


def load_model(name: str | None, format: str | None) -> Model | str | None:
    """The model that the options name; loaded here only when its format is to be another.

    Raises:
        DefinitionError: The format is unknown.
        ModelError: The model cannot be loaded.
    """
    if format is None:
        return name
    from agentgram.models import load_model as load

    return load(name or DEFAULT_MODEL, format=format)


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise DefinitionError(f"there is no file {path}. Give a Python file with @tool functions, as in shop.py.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise DefinitionError(f"{path} is not a Python file: its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    # As `python FILE.py` does: the file may import its neighbours, and its own annotations are resolved by name.
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise DefinitionError(f"{path} could not be loaded: {type(error).__name__}: {error}") from error
    return module


def _tools(module: ModuleType) -> Toolset:
    public = [value for name, value in vars(module).items() if not name.startswith("_")]
    found: list[Any] = []
    for value in public:
        if isinstance(value, Tool | Toolset) and not any(value is other for other in found):
            found.append(value)
    if not found:
        raise DefinitionError(f"{module.__file__} has no tools: decorate a function with @tool.")
    return Toolset(found)
