"""Reads the bytes of each token out of a ``transformers`` tokenizer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from agentgram.errors import DefinitionError

_BYTE_FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")


def byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: the printable character that stands for each byte in a byte-level BPE vocabulary."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    out = {chr(b): b for b in plain}
    following = 256
    for b in range(256):
        if b not in out.values():
            out[chr(following)] = b
            following += 1
    return out


def transformers_tokens(
    tokenizer: Any, size: int | None
) -> tuple[list[bytes], dict[str, int], Callable[[bytes], Sequence[int]]]:
    """Token bytes by id, special tokens by name, and the tokenizer's own encoding of bytes.

    Raises:
        DefinitionError: The tokenizer's kind is not known, or ``size`` is smaller than an id in use.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise DefinitionError(
            f"{type(tokenizer).__name__} is not a fast tokenizer: load it with AutoTokenizer.from_pretrained(...), "
            "or give Vocabulary(tokens=...) the bytes of each token."
        )
    state = json.loads(backend.to_str())
    to_bytes = _token_reader(state)
    vocabulary = tokenizer.get_vocab()
    added = tokenizer.added_tokens_decoder
    highest = max(vocabulary.values(), default=-1)
    count = highest + 1 if size is None else size
    if count <= highest:
        raise DefinitionError(f"size is {count}, but the tokenizer uses id {highest}: pass model.config.vocab_size.")
    tokens = [b""] * count
    special: dict[str, int] = {}
    for text, index in vocabulary.items():
        if index in added:
            if added[index].special:
                special[text] = index
            tokens[index] = text.encode()
        else:
            tokens[index] = to_bytes(text)

    def tokenize(text: bytes) -> Sequence[int]:
        try:
            plain = text.decode()
        except UnicodeDecodeError:
            return []
        return list(tokenizer.encode(plain, add_special_tokens=False, split_special_tokens=True))

    return tokens, special, tokenize


def _steps(part: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    if part is None:
        return []
    return [part, *(part.get(key) or ())]


def _token_reader(state: dict[str, Any]) -> Callable[[str], bytes]:
    decoders = _steps(state.get("decoder"), "decoders")
    kinds = {d["type"] for d in decoders} | {p["type"] for p in _steps(state.get("pre_tokenizer"), "pretokenizers")}
    if "ByteLevel" in kinds:
        alphabet = byte_alphabet()

        def byte_level(token: str) -> bytes:
            try:
                return bytes(alphabet[c] for c in token)
            except KeyError:
                return token.encode()

        return byte_level
    blank = next((d["replacement"] for d in decoders if d["type"] == "Metaspace"), None)
    if blank is None:
        for d in decoders:
            if d["type"] == "Replace" and d.get("content") == " ":
                blank = d["pattern"].get("String")
    if blank is not None or "ByteFallback" in kinds:

        def byte_fallback(token: str) -> bytes:
            found = _BYTE_FALLBACK.match(token)
            if found:
                return bytes([int(found[1], 16)])
            return (token.replace(blank, " ") if blank else token).encode()

        return byte_fallback
    if "WordPiece" in kinds or state["model"].get("type") in ("WordPiece", "Unigram"):
        raise DefinitionError(
            f"tokenizers of kind {state['model'].get('type')} lose spaces, so that tokens have no bytes of their own: "
            "use a model with a byte-level or byte-fallback tokenizer."
        )
    return str.encode
