"""A run refuses what it has no use for."""

from dataclasses import dataclass

from agentgram import Agent, ModelSettings, SQLiteSession
from agentgram.events import Event
from agentgram.testing import ScriptedModel


@dataclass
class Shop:
    name: str


def deaf(event: Event) -> None: ...


agent = Agent(ScriptedModel([]), deps_type=Shop)
agent.run_sync("?", deps="a shop")  # error: arg-type
agent.run_sync("?", user="alice")  # error: arg-type
agent.run_sync("?", sessions=SQLiteSession("chats.db", "a"))  # error: call-arg
agent.run_sync("?", session="chats.db")  # error: arg-type
agent.run_sync("?", on_event=deaf)  # error: arg-type
agent.run_sync(17)  # error: arg-type
ModelSettings(temprature=1)  # error: call-arg
Agent(3)  # error: call-overload
