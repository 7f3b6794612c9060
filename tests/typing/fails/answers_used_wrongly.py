"""An answer is not text when a model was asked for."""

from pydantic import BaseModel

from agentgram import Agent


class Answer(BaseModel):
    order: int


agent = Agent("smollm2", output_type=Answer)
text: str = agent.run_sync("?").output  # error: assignment
number = agent.run_sync("?").output.number  # error: attr-defined
agent.run_sync("?", tool_choice="sometimes")  # error: arg-type
