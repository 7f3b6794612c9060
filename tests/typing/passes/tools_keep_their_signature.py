"""A decorated function is still called with its own types."""

from typing import assert_type

from agentgram import tool


@tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@tool(name="sum_of", tags={"math"}, timeout=2.0)
def total(numbers: list[int]) -> int:
    """Add numbers."""
    return sum(numbers)


@tool
async def fetch(order: int) -> dict[str, str]:
    """Where an order is."""
    return {"order": str(order)}


async def use() -> None:
    assert_type(add(1, b=2), int)
    assert_type(total([1, 2]), int)
    assert_type(await fetch(1), dict[str, str])
    assert_type(add.definition.name, str)
