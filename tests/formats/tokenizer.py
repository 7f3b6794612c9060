"""A byte-level tokenizer of transformers, made on the spot: one token a byte, and the added tokens that are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def byte_tokenizer(special: Sequence[str], added: Sequence[str] = (), chat_template: str | None = None) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[])
    raw = tokenizers.Tokenizer(model)
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    raw.add_special_tokens(list(special))
    raw.add_tokens(list(added))
    out = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=special[0])
    out.chat_template = chat_template
    return out
