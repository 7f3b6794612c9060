"""A decorated function refuses what the function itself would refuse."""

from agentgram import tool


@tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


add("1")  # error: arg-type
add()  # error: call-arg
add(1, c=2)  # error: call-arg
text: str = add(1)  # error: assignment
