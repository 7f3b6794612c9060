"""A shop's assistant: a small real model calls plain Python functions over a SQLite database.

Alice works in support and gets her answer, typed and checked against the database. Bob asks the same, may not use that
function, and is refused before a call is written. Exits with 1 if no tool ran, if the answer is not what the database
says, or if Bob was not refused.
"""

import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from agentgram import Agent, ModelSettings, Policy, Principal, RunResult, allow, tool
from agentgram.models import Model, load_model

ORDERS = [(16, "paid", "Porto"), (17, "shipped", "Lyon"), (18, "delivered", "Graz")]
QUESTION = "What is the status of order 17, and where does it go? Write JSON."

folder = tempfile.TemporaryDirectory(prefix="agentgram-shop-")
DATABASE = Path(folder.name) / "shop.sqlite"


def connect() -> sqlite3.Connection:
    return sqlite3.connect(DATABASE)


# Two functions. Their signatures become the grammar of a call, their docstrings tell the model what they are for.


@tool
def order_status(order: int) -> dict[str, int | str]:
    """Look up the status of an order, and the city that it goes to.

    Args:
        order: The order's number.
    """
    with closing(connect()) as database:
        row = database.execute("SELECT number, status, city FROM orders WHERE number = ?", (order,)).fetchone()
    return {"order": row[0], "status": row[1], "city": row[2]} if row else {"error": f"there is no order {order}"}


@tool
def opening_hours(day: Literal["weekday", "saturday", "sunday"]) -> str:
    """When the shop is open.

    Args:
        day: The kind of day.
    """
    return {"weekday": "9 to 18", "saturday": "10 to 16", "sunday": "closed"}[day]


class OrderAnswer(BaseModel):
    """What the model has to answer with: its text is validated into this."""

    order: int
    status: Literal["paid", "packed", "shipped", "delivered"]
    city: str


def make_agent(model: Model) -> Agent[None, OrderAnswer]:
    return Agent(
        model,
        tools=[order_status, opening_hours],
        policy=Policy(allow("opening_hours"), allow("order_status", roles="support")),
        output_type=OrderAnswer,
        instructions="You are the assistant of a shop.",
        on_denied="stop",
    )


def ask(agent: Agent[None, OrderAnswer], user: Principal) -> RunResult[OrderAnswer]:
    roles = ", ".join(sorted(user.roles)) or "none"
    print(f"\n{user.id} (roles: {roles}) asks: {QUESTION}")
    start = time.perf_counter()
    result = agent.run_sync(
        QUESTION, user=user, tool_choice="required", parallel=False, settings=ModelSettings(seed=1, max_tokens=200)
    )
    for call in result.calls:
        print(f"  the model called   {call.name}({call.arguments})")
        print(f"  the function said  {call.content}")
    for denied in result.denied:
        print(f"  refused            {denied.tool}: {denied.rule}. Nothing was written, nothing ran.")
    if result.status == "done":
        print(f"  the typed answer   {result.output!r}")
    usage = result.usage
    print(
        f"  tokens             {usage.sampled_tokens} sampled, {usage.forced_tokens} forced by the grammar; "
        f"{time.perf_counter() - start:.1f} s"
    )
    return result


def problems(alice: RunResult[OrderAnswer], bob: RunResult[OrderAnswer]) -> Iterator[str]:
    with closing(connect()) as database:
        truth = database.execute("SELECT number, status, city FROM orders WHERE number = 17").fetchone()
    if not any(call.name == "order_status" for call in alice.calls):
        yield "order_status did not run for alice"
    if alice.output is None or (alice.output.order, alice.output.status, alice.output.city) != truth:
        yield f"the answer is {alice.output!r}, but the database says {truth}"
    if not any(denied.tool == "order_status" for denied in bob.denied):
        yield "bob was not refused"
    if any(call.name == "order_status" for call in bob.calls):
        yield "order_status ran for bob, who may not use it"


def main() -> int:
    with closing(connect()) as database:
        database.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY, status TEXT, city TEXT)")
        database.executemany("INSERT INTO orders VALUES (?, ?, ?)", ORDERS)
        database.commit()
    print("Loading SmolLM2, a language model of 135 million parameters ...", flush=True)
    model = load_model("smollm2")
    agent = make_agent(model)
    alice = ask(agent, Principal("alice", roles={"support"}))
    bob = ask(agent, Principal("bob"))
    found = list(problems(alice, bob))
    for problem in found:
        print(f"\nFAILED: {problem}.")
    if not found:
        print("\nThe call was valid by construction, and the answer is what the database says.")
    print(
        "A model of 135 million parameters makes mistakes: it may pick the wrong tool, ask for the wrong order,\n"
        "or misread a result. It cannot write a call that does not parse, does not fit the function, or is not allowed."
    )
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        folder.cleanup()
