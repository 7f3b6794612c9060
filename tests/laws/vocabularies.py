"""Real vocabularies, read from the data files of packages that carry them; the packages themselves are not imported."""

from __future__ import annotations

import base64
import importlib.util
import json
from functools import lru_cache
from pathlib import Path

import pytest

from agentgram.engine import Engine, Vocabulary
from agentgram.formats import Channels, Format, Tok
from agentgram.formats.nodes import Tag, walk
from tests.laws.shapes import format_of

FILES = {
    "llama3": ("llama_models", "llama3/tokenizer.model"),
    "llama4": ("llama_models", "llama4/tokenizer.model"),
    "qwen": ("dashscope", "resources/qwen.tiktoken"),
    "o200k": ("litellm", "litellm_core_utils/tokenizers/fb374d419588a4632f3f557e76b4b70aebbca790"),
    "tekken": ("mistral_common", "data/tekken_240911.json"),
}
SPOKEN_IN = {
    "hermes": "qwen",
    "smollm2": "qwen",
    "qwen3_coder": "qwen",
    "harmony": "o200k",
    "llama3_json": "llama3",
    "llama_function": "llama3",
    "llama_pythonic": "llama4",
    "mistral_v11": "tekken",
    "gemma4": "qwen",
    "kimi_k2": "qwen",
}
"""Which vocabulary each format is tried with; the markers that a model of it has as tokens are added."""


@lru_cache(maxsize=8)
def token_bytes(name: str) -> tuple[bytes, ...]:
    package, path = FILES[name]
    found = importlib.util.find_spec(package)
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    file = next((Path(f) / path for f in folders if (Path(f) / path).is_file()), None)
    if file is None:
        pytest.skip(f"{package}, which carries the vocabulary {name}, is not installed")
    if file.suffix == ".json":
        rows = json.loads(file.read_text("utf-8"))["vocab"]
        return tuple(base64.b64decode(row["token_bytes"]) for row in rows)
    lines = (line.split() for line in file.read_bytes().splitlines() if line)
    ranks = {int(rank): base64.b64decode(token) for token, rank in lines}
    return tuple(ranks.get(i, b"") for i in range(max(ranks) + 1))


def marker_tokens(fmt: Format) -> list[str]:
    """The markers that are single tokens for the models of a format."""
    found = [*fmt.stops, *fmt.controls]
    for node in walk(fmt.output):
        markers = (node.begin, node.end) if isinstance(node, Tag) else (node,)
        found += [m.name for m in markers if isinstance(m, Tok)]
        found += node.controls if isinstance(node, Channels) else []
    return list(dict.fromkeys(found))


@lru_cache(maxsize=16)
def engine_for(name: str, special: bool) -> Engine:
    """An engine for a format's vocabulary, its markers being tokens, or spelled like any text (its stops excepted)."""
    fmt, tokens = format_of(name), token_bytes(SPOKEN_IN[name])
    names = marker_tokens(fmt) if special else list(fmt.stops)
    ids = {marker: len(tokens) + i for i, marker in enumerate(names)}
    return Engine(Vocabulary([*tokens, *(b"" for _ in names)], special=ids, end=list(fmt.stops[:1])))
