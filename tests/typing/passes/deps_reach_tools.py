"""What a run is given as deps has the type that the agent declares, and tools see it so."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, assert_type

from agentgram import Agent, RunContext, Tool, bind, tool


@dataclass
class Shop:
    name: str


@tool
def order_status(ctx: RunContext[Shop], order: int) -> str:
    """Where an order is."""
    assert_type(ctx.deps, Shop)
    return f"{ctx.deps.name} {order}"


@tool
def my_orders(user_id: Annotated[str, bind("user.id")]) -> list[int]:
    """The user's orders."""
    return [len(user_id)]


@tool
async def export(ctx: RunContext[Shop]) -> AsyncIterator[int]:
    """Counts."""
    yield ctx.step


def instructions(ctx: RunContext[Shop]) -> str:
    return ctx.deps.name


agent = Agent("smollm2", tools=[order_status, my_orders, export], deps_type=Shop, instructions=instructions)
assert_type(agent.run_sync("?", deps=Shop("a")).output, str)
assert_type(my_orders("alice"), list[int])
helper: Tool[..., object] = agent.as_tool("shop", "Knows the shop.")
