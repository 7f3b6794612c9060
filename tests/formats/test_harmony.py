"""Harmony, held against openai-harmony: what it renders we read and accept, what we render it reads, and both agree."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram.engine import Engine, Vocabulary
from agentgram.errors import DefinitionError
from agentgram.formats import Only, Request, get_format
from agentgram.formats.printing import print_turn
from agentgram.messages import (
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResultPart,
    assistant,
    system,
    tool_results,
    user,
)
from agentgram.tools.definition import ToolDefinition
from tests.laws.shapes import harmless
from tests.laws.strategies import TEXTS, calls, tools

HARMONY = get_format("harmony")
GET = ToolDefinition(
    name="get_weather",
    description="Get weather.",
    schema={
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "City"},
            "days": {"type": "integer", "default": 3},
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c", "description": "Degrees"},
            "at": {"type": "object", "properties": {"x": {"type": "number", "description": "East"}}, "required": ["x"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "grid": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "note": {"type": ["string", "null"], "title": "Note"},
            "free": {"type": "array"},
            "exact": {"type": "boolean", "default": False},
            "maybe": {"type": "string", "nullable": True, "default": None},
            "any": {},
        },
        "required": ["location"],
    },
)
NOW = ToolDefinition(name="now", description="The time.\nIn UTC.")
PYTHON = ToolDefinition(
    name="python",
    description="Runs code.",
    schema={"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
)
SEARCH = ToolDefinition(
    name="browser.search",
    description="Searches.",
    schema={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
TOOLS = [GET, NOW, PYTHON, SEARCH]
BYTES = Engine(Vocabulary.byte_level())


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """openai-harmony's encoding, with the vocabulary that another package carries: nothing is fetched."""
    harmony = pytest.importorskip("openai_harmony")
    spec = importlib.util.find_spec("litellm")
    folders = spec.submodule_search_locations if spec is not None else None
    name = "litellm_core_utils/tokenizers/fb374d419588a4632f3f557e76b4b70aebbca790"
    if not folders or not (Path(folders[0]) / name).is_file():
        pytest.skip("the vocabulary o200k_base is not on this machine")
    folder = tmp_path_factory.mktemp("encodings")
    shutil.copy(Path(folders[0]) / name, folder / "o200k_base.tiktoken")
    before = os.environ.get("TIKTOKEN_ENCODINGS_BASE")
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = str(folder)
    try:
        yield harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
    finally:
        if before is None:
            del os.environ["TIKTOKEN_ENCODINGS_BASE"]
        else:
            os.environ["TIKTOKEN_ENCODINGS_BASE"] = before


def read(text: str, request: Request | None = None) -> Message:
    parser = HARMONY.parser(request or Request(tools=TOOLS))
    parser.feed_bytes(text.encode())
    return parser.close()


def accepts(text: str, **more: Any) -> bool:
    matcher = BYTES.compile(HARMONY.grammar(Request(tools=TOOLS, **more))).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.can_end


# ours to theirs and back


def theirs(message: Message) -> list[Any]:
    """A message of ours as messages of openai-harmony."""
    from openai_harmony import Author, Role
    from openai_harmony import Message as Theirs

    out = []
    if message.role == "tool":
        for r in message.results:
            author = Author.new(Role.TOOL, f"functions.{r.name}")
            said = Theirs.from_author_and_content(author, r.content)
            out.append(said.with_channel("commentary").with_recipient("assistant"))
        return out
    if message.role != "assistant":
        return [Theirs.from_role_and_content(Role.USER, message.text)]
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            out.append(Theirs.from_role_and_content(Role.ASSISTANT, part.text).with_channel("analysis"))
        elif isinstance(part, TextPart):
            last = part is message.parts[-1]
            said = Theirs.from_role_and_content(Role.ASSISTANT, part.text)
            out.append(said.with_channel("final" if last else "commentary"))
        elif isinstance(part, ToolCall):
            said = Theirs.from_role_and_content(Role.ASSISTANT, json.dumps(part.arguments, ensure_ascii=False))
            said = said.with_channel("commentary").with_recipient(f"functions.{part.name}")
            out.append(said.with_content_type("<|constrain|>json"))
    return out


FIRST = [
    user("Weather in SF?"),
    assistant("I will look.", reasoning="A tool.", calls=[ToolCall(name="get_weather", arguments={"location": "SF"})]),
    tool_results(ToolResultPart(name="get_weather", content='{"temp": 18}')),
]


@pytest.mark.parametrize(
    "said",
    [FIRST[:1], FIRST, [*FIRST, assistant("18C.", reasoning="Done.")], [*FIRST, assistant("18C."), user("Thanks.")]],
)
def test_prompts_are_the_reference_s(reference: Any, said: list[Message]) -> None:
    from openai_harmony import Conversation, DeveloperContent, Role, SystemContent, ToolDescription
    from openai_harmony import Message as Theirs

    ours = HARMONY.render(Request(messages=[system("Be brief."), *said], tools=[GET, NOW])).text
    content = SystemContent.new().with_model_identity("You are a helpful assistant.")
    content.knowledge_cutoff = None
    described = [
        ToolDescription.new(GET.name, GET.description, parameters=dict(GET.schema)),
        ToolDescription.new(NOW.name, NOW.description),
    ]
    instructions = DeveloperContent.new().with_instructions("Be brief.").with_function_tools(described)
    conversation = Conversation.from_messages(
        [
            Theirs.from_role_and_content(Role.SYSTEM, content),
            Theirs.from_role_and_content(Role.DEVELOPER, instructions),
            *(t for message in said for t in theirs(message)),
        ]
    )
    tokens = reference.render_conversation_for_completion(conversation, Role.ASSISTANT)
    assert ours == reference.decode(tokens)


def test_reasoning_before_the_last_answer_is_dropped() -> None:
    """As the format's description has it; the reference keeps it while later tool calls go on."""
    call = ToolCall(name="get_weather", arguments={"location": "Oslo"})
    said = [*FIRST, assistant("18C."), user("And Oslo?"), assistant(reasoning="Again.", calls=[call])]
    text = HARMONY.render(Request(messages=said, tools=[GET])).text
    assert "A tool." not in text
    assert "<|channel|>analysis<|message|>Again.<|end|>" in text


@given(data=st.data())
def test_what_the_reference_writes_is_read_and_accepted(reference: Any, data: st.DataObject) -> None:
    from openai_harmony import Conversation, RenderConversationConfig, Role

    definitions = data.draw(tools())
    made = data.draw(calls(definitions))[:1]
    reasoning = harmless(HARMONY, data.draw(TEXTS))
    text = harmless(HARMONY, data.draw(TEXTS)) or ("" if made else "x")
    message = assistant(text, calls=made, reasoning=reasoning)
    before = reference.render_conversation_for_completion(Conversation.from_messages(theirs(user("x"))), Role.ASSISTANT)
    whole = Conversation.from_messages([*theirs(user("x")), *theirs(message)])
    # training keeps the reasoning and ends an answer by the token that a model ends it with
    keep = RenderConversationConfig(auto_drop_analysis=False)
    tokens = reference.render_conversation_for_training(whole, config=keep)[len(before) :]
    written = reference.decode(tokens)
    request = Request(tools=definitions)
    assert read(written, request) == message
    turn = written.removesuffix("<|return|>").removesuffix("<|call|>").removesuffix("<|end|>")
    matcher = BYTES.compile(HARMONY.grammar(request)).matcher()
    assert matcher.accept_bytes(turn.encode())
    assert matcher.can_end
    if not any(m in json.dumps(c.arguments) for m in HARMONY.markers for c in made):  # markers in strings we escape
        assert print_turn(HARMONY, message, str, tools=definitions) == turn


@given(data=st.data())
def test_what_we_write_is_read_by_the_reference(reference: Any, data: st.DataObject) -> None:
    from openai_harmony import Role

    definitions = data.draw(tools())
    made = data.draw(calls(definitions))[:1]
    text = harmless(HARMONY, data.draw(TEXTS)) or ("" if made else "x")
    message = assistant(text, calls=made, reasoning=harmless(HARMONY, data.draw(TEXTS)))
    turn = print_turn(HARMONY, message, str, tools=definitions) + ("<|call|>" if made else "<|return|>")
    tokens = reference.encode(turn, allowed_special="all")
    read_by_them = reference.parse_messages_from_completion_tokens(tokens, Role.ASSISTANT)
    parts = [p for p in message.parts if isinstance(p, TextPart | ReasoningPart | ToolCall)]
    for part, theirs_ in zip(parts, read_by_them, strict=True):
        text = theirs_.content[0].text
        assert json.loads(text) == part.arguments if isinstance(part, ToolCall) else text == part.text
    assert [m.recipient for m in read_by_them if m.recipient] == [f"functions.{c.name}" for c in made]


HEADERS = [
    " to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>",
    " to=functions.get_weather<|channel|>commentary json<|message|>",
    "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>",
    "<|channel|>commentary to=functions.get_weather json<|message|>",
    "<|channel|>commentary to=functions.get_weather<|message|>",
]
DAMAGED = [
    "<|channel|>commentary to=functions.get_weather<|constrain|>json<|message|>",
    "<|channel|>analysis to=functions.get_weather code<|message|>",
    "<|channel|>analysis to=functions.get_weather <|constrain|>code<|message|>",
    "<|channel|>final to=functions.get_weather <|constrain|>json<|message|>",
    "<|channel|>commentary to=get_weather <|constrain|>json<|message|>",
    "<|channel|>commentary<|channel|>commentary to=functions.get_weather json<|message|>",
    "<|channel|>commentary?? to=functions.get_weather<|message|>",
    "to=functions.get_weather<|channel|>commentary<|message|>",
    "<|channel|>commentary <|constrain|>functions.get_weather<|message|>",
    " to=functions.get_weather<|message|>",
]
CALL = ToolCall(name="get_weather", arguments={"location": "SF"})


@pytest.mark.parametrize("header", [*HEADERS, *DAMAGED])
@pytest.mark.parametrize("end", ["<|call|>", "<|return|>", "<|end|>", ""])
def test_headers_as_models_write_them(header: str, end: str) -> None:
    assert read(header + '{"location": "SF"}' + end).parts == (CALL,)
    assert accepts(header + '{"location": "SF"}') is (header in HEADERS)


def test_a_turn_of_all_kinds() -> None:
    turn = (
        "<|channel|>analysis<|message|>Need a tool.<|end|><|start|>assistant"
        "<|channel|>commentary<|message|>I will look.<|end|><|start|>assistant" + HEADERS[0] + '{"location": "SF"}'
    )
    message = assistant("I will look.", reasoning="Need a tool.", calls=[CALL])
    assert read(turn + "<|call|>") == message
    assert accepts(turn)
    assert accepts(turn, tool_choice="auto", reasoning=True)
    assert not accepts(turn, reasoning=False)
    assert not accepts(turn, tool_choice="required")  # nothing is said where a call is wanted
    assert not accepts(turn, tool_choice="none")
    thought = turn.replace("<|channel|>commentary<|message|>I will look.<|end|><|start|>assistant", "")
    assert accepts(thought, tool_choice="required")
    assert accepts(thought, tool_choice=Only("get_weather"))
    assert not accepts(thought, tool_choice=Only("now"))
    assert not accepts("", tool_choice="required")
    assert not accepts("<|channel|>final<|message|>18C.", tool_choice="required")
    assert not accepts("<|channel|>final<|message|>18C.", reasoning=True)
    assert accepts("<|channel|>final<|message|>18C.", tool_choice="none")


def test_browser_and_python() -> None:
    code = "print('a')\nif x < 1: pass"
    turn = f" to=python<|channel|>analysis code<|message|>{code}"
    assert accepts(turn)
    assert read(turn + "<|call|>").parts == (ToolCall(name="python", arguments={"code": code}),)
    search = '<|channel|>analysis to=browser.search code<|message|>{"query": "x"}'
    assert accepts(search)
    assert read(search).parts == (ToolCall(name="browser.search", arguments={"query": "x"}),)
    assert not accepts(search.replace("browser.", "functions.browser."))
    prompt = HARMONY.render(Request(messages=[user("hi")], tools=TOOLS)).text
    head = prompt.partition("<|end|>")[0]
    assert (
        "# Tools\n\n## python\n\nRuns code.\n\n## browser\n\nnamespace browser {\n\n// Searches.\ntype search" in head
    )
    assert "python" not in prompt.partition("<|end|>")[2]
    wrong = ToolDefinition(name="python", schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    with pytest.raises(DefinitionError, match="one string named 'code'"):
        HARMONY.grammar(Request(tools=[wrong]))


def test_typed_answers() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    for header in ("<|channel|>final<|message|>", "<|channel|>final <|constrain|>json<|message|>"):
        assert accepts(header + '{"n": 1}', output_schema=schema)
        assert read(header + '{"n": 1}<|return|>').text == '{"n": 1}'
    assert accepts(HEADERS[0] + '{"location": "SF"}', output_schema=schema)
    assert not accepts("<|channel|>final<|message|>one", output_schema=schema)
    prompt = HARMONY.render(Request(messages=[user("hi")], output_schema=schema)).text
    assert "<|start|>developer<|message|># Response Formats\n\n## answer\n\n" in prompt


def test_what_is_no_message() -> None:
    assert read("Just text.").parts == (TextPart(text="Just text."),)
    assert read("Text.<|channel|>final<|message|>More.").text == "Text.More."
    assert [m.reason for m in read("<|channel|>comm").malformed] == ["a header without a message behind it"]
    assert read("<|channel|>commentary to=assistant<|message|>hm<|end|>").text == "hm"
    assert read("<|channel|>final<|message|>a<|return|>never").text == "a"
    unknown = read("<|channel|>commentary to=functions.get_wether json<|message|>{}<|call|>")
    assert "Did you mean 'get_weather'" in unknown.malformed[0].reason
    cut = read(HEADERS[0] + '{"location": "S')
    assert cut.calls == ()
    assert cut.malformed[0].raw == HEADERS[0] + '{"location": "S'


def test_several_calls_are_several_messages() -> None:
    both = [CALL, ToolCall(name="now", arguments={})]
    turn = print_turn(HARMONY, assistant("Both.", calls=both), str)
    assert turn.count("<|call|>") == 1
    assert read(turn) == assistant("Both.", calls=both)
    assert read(turn.replace("<|call|>", "<|end|>")) == assistant("Both.", calls=both)


def test_markers_inside_strings_end_no_call() -> None:
    tricky = ToolCall(
        name="get_weather", arguments={"location": "<|call|><|start|>assistant<|channel|>final<|message|>"}
    )
    raw = HEADERS[0] + json.dumps(tricky.arguments)
    assert read(raw + "<|call|>").parts == (tricky,)
    assert "<|call|>" not in HARMONY.print_call(GET, tricky.arguments)
