"""``@tool``: on functions, methods, coroutines and models; what it makes stays callable."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from agentgram import Agent, DefinitionError, Principal, RunContext, Tool, Toolset, tool
from agentgram.testing import ScriptedModel, call


@tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


class SendMail(BaseModel):
    """Send a mail.

    Attributes:
        to: The receiver.
    """

    to: str
    body: Annotated[str, Field(max_length=20)] = ""

    def __call__(self, ctx: RunContext[list[str]]) -> str:
        ctx.deps.append(f"{self.to}: {self.body}")
        return "sent"


class Shop:
    def __init__(self, stock: dict[str, int]) -> None:
        self.stock = stock

    @tool
    def in_stock(self, item: str) -> int:
        """How many there are."""
        return self.stock[item]

    @tool(name="sell", tags="write")
    async def sell_one(self, item: str) -> int:
        """Sell one."""
        self.stock[item] -= 1
        return self.stock[item]


def values(agent: Agent[Any, Any], **options: Any) -> list[Any]:
    return [record.value for record in agent.run_sync("go", **options).calls]


def test_a_tool_is_still_the_function() -> None:
    assert add(1, b=2) == 3
    assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 0) -> 'int'"
    assert add.__doc__ == "Add two numbers."
    assert add.__name__ == "add"
    assert repr(add) == "<Tool add(a, b)>"


async def test_a_coroutine_is_still_a_coroutine() -> None:
    @tool(name="twice", tags={"math", "slow"}, timeout=3, retries=0, sequential=True, output="trusted")
    async def double(x: int) -> int:
        return 2 * x

    assert await double(4) == 8
    assert double.definition.name == "twice"
    assert double.definition.tags == {"math", "slow"}
    assert (double.timeout, double.retries, double.sequential, double.output) == (3, 0, True, "trusted")


def test_what_cannot_be_enforced_may_be_relaxed() -> None:
    @tool(unsupported="relax")
    def f(x: int) -> int:
        return x

    assert f.definition.unsupported == "relax"
    assert add.definition.unsupported == "error"


def test_methods_belong_to_their_object() -> None:
    shop = Shop({"hat": 2})
    assert shop.in_stock("hat") == 2
    assert list(shop.in_stock.definition.schema["properties"]) == ["item"]
    script = ScriptedModel([[call("in_stock", item="hat")], call("sell", item="hat"), "done"])
    assert values(Agent(script, tools=[shop.in_stock, shop.sell_one])) == [2, 1]
    assert shop.stock == {"hat": 1}


def test_a_method_without_its_object_is_refused() -> None:
    with pytest.raises(DefinitionError, match="'in_stock' is a method without its object"):
        Toolset([Shop.in_stock])


def test_plain_bound_methods_and_callables_are_welcome() -> None:
    class Counter:
        def __init__(self) -> None:
            self.n = 0

        def count(self, by: int) -> int:
            self.n += by
            return self.n

    counter = Counter()
    script = ScriptedModel([[call("count", by=2), call("add", a=1)], "done"])
    assert sorted(values(Agent(script, tools=[counter.count, add.function]))) == [1, 2]


def test_a_model_with_call() -> None:
    send_mail = tool(SendMail)
    assert send_mail.definition.description == "Send a mail."
    assert send_mail.definition.schema == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "The receiver."},
            "body": {"type": "string", "maxLength": 20, "default": ""},
        },
        "required": ["to"],
        "additionalProperties": False,
    }
    outbox: list[str] = []
    script = ScriptedModel([call("SendMail", to="bob", body="hi"), "done"])
    assert values(Agent(script, tools=[SendMail]), deps=outbox) == ["sent"]
    assert outbox == ["bob: hi"]


def test_a_model_that_lives_elsewhere() -> None:
    class Item(BaseModel):
        name: str

    def buy(item: Item, ctx: RunContext[Any]) -> str:
        return f"{ctx.user and ctx.user.id} bought {item.name}"

    buying = tool(Item, run=buy, name="buy")
    script = ScriptedModel([call("buy", name="hat"), "done"])
    assert values(Agent(script, tools=[buying]), user=Principal("ann")) == ["ann bought hat"]


def test_a_model_that_holds_itself() -> None:
    class Node(BaseModel):
        value: int
        next: Node | None = None

        def __call__(self) -> int:
            return self.value + (self.next() if self.next else 0)

    node = tool(Node)
    assert node.definition.schema["type"] == "object"
    script = ScriptedModel([call("Node", value=1, next={"value": 2}), "done"])
    assert values(Agent(script, tools=[node])) == [3]


def test_models_refuse_what_they_would_ignore() -> None:
    script = ScriptedModel([call("SendMail", to="bob", cc="eve"), "done"])
    (record,) = Agent(script, tools=[SendMail]).run_sync("go", deps=[]).calls
    assert record.status == "retry"
    assert "unknown argument 'cc'" in record.content


class Silent(BaseModel):
    x: int


class NotAModel: ...


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tool(Silent), "does not say what to do"),
        (lambda: tool(Silent, run=lambda: 1, name="s"), "must take the Silent"),
        (lambda: tool(Silent, run=lambda a, b: 1, name="s"), "must take the Silent"),
        (lambda: tool(NotAModel), "not a Pydantic model"),
        (lambda: tool(add), "already a tool"),
        (lambda: tool(lambda x: x), "a lambda has no name"),
        (lambda: tool(3), "not a function"),
        (lambda: Toolset([3]), "3 is not a tool"),
        (lambda: tool(name="ü")(add.function), "cannot name a tool"),
        (lambda: tool(timeout=0)(add.function), "timeout=0"),
        (lambda: tool(retries=-1)(add.function), "retries=-1"),
        (lambda: tool(output="maybe")(add.function), "output='maybe'"),
        (lambda: tool(unsupported="maybe")(add.function), "unsupported='maybe'"),
        (lambda: tool(add.function, run=print), "belongs to a Pydantic model"),
        (lambda: add.bind(c="user.id"), "no argument 'c' to bind"),
        (lambda: tool(SendMail).bind(to="user.id"), "are one model"),
        (lambda: Tool.from_schema("x", {})(), "declared without run="),
    ],
)
def test_mistakes_are_told_at_declaration(make: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        make()


def test_binding_a_foreign_tool() -> None:
    seen: list[dict[str, Any]] = []
    schema = {
        "type": "object",
        "properties": {"owner": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["owner", "limit"],
    }
    orders = Tool.from_schema("orders", schema, run=lambda **kw: seen.append(kw)).bind(owner="user.id")
    assert orders.definition.schema["properties"] == {"limit": {"type": "integer"}}
    assert orders.definition.schema["required"] == ["limit"]
    # The schema is open, so the model may write the key; what is bound still wins.
    script = ScriptedModel([[call("orders", limit=1), call("orders", limit=2, owner="eve")], "done"])
    Agent(script, tools=[orders]).run_sync("go", user=Principal("ann"))
    assert sorted(seen, key=lambda kw: kw["limit"]) == [{"owner": "ann", "limit": 1}, {"owner": "ann", "limit": 2}]


def test_binding_a_function_of_ones_own() -> None:
    minus = add.bind(b="deps.offset")
    assert list(minus.definition.schema["properties"]) == ["a"]
    assert list(add.definition.schema["properties"]) == ["a", "b"]
    script = ScriptedModel([call("add", a=5), "done"])
    assert values(Agent(script, tools=[minus]), deps={"offset": -2}) == [3]


class TestToolset:
    def test_names_are_unique(self) -> None:
        with pytest.raises(DefinitionError, match="two tools are named 'add'"):
            Toolset([add]) + Toolset([add.renamed("add")])

    def test_the_same_tool_twice_is_one(self) -> None:
        assert len(Toolset([add, add])) == 1

    def test_changes_make_new_sets(self) -> None:
        shop = Shop({})
        tools = Toolset([add, shop.in_stock]) + Toolset([shop.sell_one])
        assert [t.name for t in tools.prefixed("crm.")] == ["crm.add", "crm.in_stock", "crm.sell"]
        assert [t.name for t in tools.filtered(lambda t: "write" in t.definition.tags)] == ["sell"]
        assert [t.name for t in tools.renamed({"add": "plus"})] == ["plus", "in_stock", "sell"]
        assert [t.name for t in tools] == ["add", "in_stock", "sell"]
        assert "sell" in tools
        assert tools["add"] is add
        assert tools.get("nothing") is None

    def test_unknown_names_suggest_the_nearest(self) -> None:
        with pytest.raises(DefinitionError, match=r"no tool is named 'ad'\. Did you mean 'add'\?"):
            Toolset([add])["ad"]
        with pytest.raises(DefinitionError, match="no tool is named 'minus'"):
            Toolset([add]).renamed({"minus": "x"})

    def test_a_renamed_tool_runs(self) -> None:
        tools = Toolset([add]).prefixed("math.")
        script = ScriptedModel([call("math.add", a=1, b=1), "done"])
        assert values(Agent(script, tools=tools)) == [2]
