"""Three users and one policy, with a small real model: who may give back how much, and what the audit says of it.

Alice works in support: she may give back up to 50, and up to 500 if a manager agrees. Carol is a manager. Bob is a
customer, and may only ask. Whatever the model writes, the database shows afterwards that nothing else was paid. Exits
with 1 if it was, or if a refusal is not on record.
"""

import sys
import tempfile
import time
from typing import Annotated

from pydantic import Field

from agentgram import Agent, Approvals, Audit, ModelSettings, Policy, Principal, RunResult, allow, approve, ask, tool
from agentgram.models import load_model
from agentgram.policy import le
from agentgram.policy.audit import read, verify

ALICE = Principal("alice", roles={"support"})
BOB = Principal("bob", roles={"customer"})
CAROL = Principal("carol", roles={"support", "manager"})
KEY = b"what only the auditor knows"
PAID: list[tuple[int, int]] = []


@tool
def order_status(order: int) -> str:
    """Look up the status of an order.

    Args:
        order: The order's number.
    """
    return f"order {order} is shipped"


@tool(tags="write")
def refund(order: int, amount: Annotated[int, Field(ge=1)]) -> str:
    """Give money back for an order.

    Args:
        order: The order's number.
        amount: How many euros to give back.
    """
    PAID.append((order, amount))
    return f"{amount} euros for order {order} are on their way"


POLICY = Policy(
    allow("order_status"),
    allow("refund", roles="support", where={"amount": le(50)}, name="small refunds"),
    ask("refund", roles="support", where={"amount": le(500)}, by="manager", name="larger refunds"),
)


def show(who: Principal, prompt: str, result: RunResult[str]) -> None:
    print(f"\n{who}: {prompt}")
    for record in result.calls:
        print(f"  called {record.name}({record.arguments}) by the rule {record.rule!r}: {record.content}")
    for denied in result.denied:
        where = ".".join(map(str, denied.path)) or "the tool"
        print(f"  denied {denied.tool}: {where}")
    for waiting in result.pending:
        print(f"  waits  {waiting.name}({waiting.arguments}): {waiting.rule}")


def main() -> int:
    started = time.perf_counter()
    folder = tempfile.TemporaryDirectory(prefix="agentgram-audit-")
    with folder, Audit(folder.name, key=KEY) as audit:
        agent = Agent(
            load_model("smollm2"),
            tools=[order_status, refund],
            policy=POLICY,
            on_denied="stop",
            visibility="masked",  # everybody's model sees all tools: so that Bob's wants what he may not have
            audit=audit,
            approvals=Approvals(key=b"a secret of the server"),
        )

        def run(who: Principal, prompt: str) -> RunResult[str]:
            settings = ModelSettings(max_tokens=60)
            result = agent.run_sync(prompt, user=who, tool_choice="required", parallel=False, settings=settings)
            show(who, prompt, result)
            return result

        small = run(ALICE, "Refund 20 euros for order 17.")
        large = run(ALICE, "Refund 300 euros for order 17.")
        huge = run(ALICE, "Refund 900 euros for order 17.")
        others = run(BOB, "Refund 20 euros for order 17.")
        if large.state is not None:
            state = large.state.to_json()  # this is what would wait in a database for the manager
            verdicts = {call.id: approve() for call in large.pending}
            show(CAROL, "agrees", agent.resume_sync(state, verdicts, user=ALICE, by=CAROL))

        print("\nThe audit:")
        lines = list(read(folder.name))
        for line in lines:
            print(
                f"  {line['event']:<8} {line['user']:<6} {line['tool']:<12} {line.get('rule', line.get('status', ''))}"
            )
        paid = [(c.arguments["order"], c.arguments["amount"]) for c in (*small.calls, *large.pending)]
        right = (
            len(small.calls) == len(large.pending) == 1
            and small.calls[0].arguments["amount"] <= 50
            and paid == PAID  # what the policy let through, and what Carol agreed to
            and [(d.tool, d.path) for d in huge.denied] == [("refund", ("amount",))]
            and [(d.tool, d.path) for d in others.denied] == [("refund", ())]
            and [line["event"] for line in lines].count("denied") == 2
            and verify(folder.name, KEY) == []
        )
    print(f"\n{'As it should be' if right else 'NOT as it should be'}, after {time.perf_counter() - started:.1f} s")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
