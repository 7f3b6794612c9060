"""Tools: functions and Pydantic models that a model may call."""

from __future__ import annotations

from agentgram.tools.context import RunContext, bind
from agentgram.tools.decorator import ModelRetry, Tool, ToolFailed, as_tool, tool
from agentgram.tools.definition import ToolDefinition
from agentgram.tools.mcp import MCPToolset
from agentgram.tools.sensitive import Sensitive
from agentgram.tools.signature import InvalidArguments
from agentgram.tools.toolset import Toolset

__all__ = [
    "InvalidArguments",
    "MCPToolset",
    "ModelRetry",
    "RunContext",
    "Sensitive",
    "Tool",
    "ToolDefinition",
    "ToolFailed",
    "Toolset",
    "as_tool",
    "bind",
    "tool",
]
