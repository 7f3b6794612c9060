"""Two steps and a typed answer: the second call needs what the first one found, and the answer what the second did.

The customer, the order and the city are drawn anew for each seed, and only the second function knows the city. A small
real model is asked ten times; the script counts how often the answer is what the functions' data say, and shows how
many tokens the model chose and how many the grammar left no choice about. Exits with 1 if fewer than eight are right.

    python two_steps.py            all ten
    python two_steps.py 3          one seed
"""

import random
import sys
from dataclasses import dataclass

from pydantic import BaseModel

from agentgram import Agent, Limits, ModelSettings, RunContext, RunError, tool
from agentgram.models import Model, load_model

CITIES = ["Porto", "Lyon", "Graz", "Oslo", "Bergen", "Turin", "Ghent", "Krakow"]


@dataclass(frozen=True)
class World:
    """What the functions look into."""

    customer: int
    order: int
    city: str

    @classmethod
    def draw(cls, seed: int) -> "World":
        chance = random.Random(seed)
        return cls(chance.randint(100, 999), chance.randint(1000, 9999), chance.choice(CITIES))


class Delivery(BaseModel):
    """What the model has to answer with."""

    order: int
    city: str


@tool
def find_order(ctx: RunContext[World], customer: int) -> str:
    """Find the order number of a customer. Call this first.

    Args:
        customer: The customer's number.
    """
    if customer != ctx.deps.customer:
        return f"There is no customer {customer}."
    return f"The order number is {ctx.deps.order}. Now call delivery_city with order {ctx.deps.order}."


@tool
def delivery_city(ctx: RunContext[World], order: int) -> dict[str, int | str]:
    """Find the city that an order goes to, by the order number that find_order gives.

    Args:
        order: The order number.
    """
    return {"order": order, "city": ctx.deps.city if order == ctx.deps.order else "unknown"}


def make_agent(model: Model) -> Agent[World, Delivery]:
    return Agent(
        model,
        tools=[find_order, delivery_city],
        output_type=Delivery,
        deps_type=World,
        instructions="You are the assistant of a shop.",
    )


def ask(agent: Agent[World, Delivery], seed: int) -> bool:
    world = World.draw(seed)
    question = f"Which city does the order of customer {world.customer} go to? Write JSON."
    try:
        result = agent.run_sync(
            question,
            deps=world,
            tool_choice="required",
            parallel=False,
            settings=ModelSettings(seed=seed, max_tokens=120),
            # A model this small likes to ask again what it has been told: once is enough, then it has to answer.
            limits=Limits(steps=6, identical_calls=1),
        )
    except RunError as error:
        print(f"seed {seed}: {error}")
        return False
    calls = " -> ".join(f"{call.name}({', '.join(map(str, call.arguments.values()))})" for call in result.calls)
    dependent = [call.name for call in result.calls] == ["find_order", "delivery_city"]
    right = dependent and result.output == Delivery(order=world.order, city=world.city)
    usage = result.usage
    print(
        f"seed {seed}: {'right' if right else 'wrong'}  {calls} -> {result.output!r}, "
        f"{usage.sampled_tokens} tokens sampled, {usage.forced_tokens} forced"
    )
    return right


def main(seeds: list[int]) -> int:
    agent = make_agent(load_model("smollm2"))
    right = sum(ask(agent, seed) for seed in seeds)
    print(f"{right} of {len(seeds)} right")
    return 0 if right >= 0.8 * len(seeds) else 1


if __name__ == "__main__":
    sys.exit(main([int(seed) for seed in sys.argv[1:]] or list(range(10))))
