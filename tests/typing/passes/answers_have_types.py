"""What a run answers has the agent's output type."""

from typing import assert_type

from pydantic import BaseModel

from agentgram import Agent, Policy, Principal, allow, tool


class Answer(BaseModel):
    order: int


@tool
def order_status(order: int) -> str:
    """Where an order is."""
    return str(order)


policy = Policy(allow("order_*", roles="support"))
user = Principal("alice", roles={"support"})
plain = Agent("smollm2", tools=[order_status], policy=policy)
typed = Agent("smollm2", tools=[order_status], output_type=Answer)

assert_type(plain.run_sync("?", user=user).output, str)
assert_type(typed.run_sync("?").output, Answer)
for call in typed.run_sync("?").calls:
    assert_type(call.name, str)


async def use() -> None:
    assert_type((await typed.run("?")).output, Answer)
