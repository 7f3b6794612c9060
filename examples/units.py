"""Unit conversion: a pattern in the signature, held by the grammar, on a small real model.

`length` can only be a number and one of four units, so the function never has to guess what it was given. A model this
small misreads some questions; what it cannot do is ask for 12 parsecs. Exits with 1 if fewer than half of the answers
are right.
"""

import math
import sys
from typing import Annotated

from pydantic import BaseModel, Field

from agentgram import Agent, Limits, ModelSettings, RunError, tool
from agentgram.models import load_model

METRES = {"miles": 1609.344, "feet": 0.3048, "inches": 0.0254, "kilometres": 1000.0}


@tool
def to_metres(length: Annotated[str, Field(pattern=rf"^[0-9]{{1,3}} ({'|'.join(METRES)})$")]) -> float:
    """Convert a length to metres.

    Args:
        length: A number and its unit, as in 3 inches.
    """
    number, unit = length.split()
    return round(int(number) * METRES[unit], 2)


class Quantity(BaseModel):
    """What the model has to answer with."""

    metres: float


QUESTIONS = {"26 miles": 41842.94, "12 feet": 3.66, "5 kilometres": 5000.0, "300 feet": 91.44}


def main() -> int:
    agent = Agent(load_model("smollm2"), tools=[to_metres], output_type=Quantity)
    right = 0
    for length, expected in QUESTIONS.items():
        try:
            result = agent.run_sync(
                f"Convert {length} to metres. Write JSON.",
                tool_choice="required",
                parallel=False,
                settings=ModelSettings(seed=1, max_tokens=60),
                limits=Limits(steps=4, identical_calls=1),
            )
        except RunError as error:
            print(f"{length}: {error}")
            continue
        good = math.isclose(result.output.metres, expected)
        right += good
        calls = ", ".join(
            f"{record.name}({record.arguments['length']!r}) -> {record.content}" for record in result.calls
        )
        print(f"{length}: {calls}; the answer: {result.output.metres} {'' if good else '(wrong)'}")
    print(f"{right} of {len(QUESTIONS)} right")
    return 0 if 2 * right >= len(QUESTIONS) else 1


if __name__ == "__main__":
    sys.exit(main())
