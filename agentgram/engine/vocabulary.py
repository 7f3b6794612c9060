"""A model's vocabulary as the engine sees it: the bytes of each token, and which tokens are special."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentgram.engine import _core
from agentgram.errors import DefinitionError, nearest

Tokenize = Callable[[bytes], Sequence[int]]


class Vocabulary:
    """Token bytes by id, special tokens, and the tokens that end a turn.

    Special ids never match bytes: they are taken only where a grammar names them (``Tok``) or where it may end.
    Ids with empty bytes are never allowed. Tokens with equal bytes are all allowed together.

    Args:
        tokens: The bytes of every token, by id.
        special: Names of special tokens and their ids; their bytes are ignored.
        end: Ids or special names that end a turn.
        tokenize: The tokenizer's own encoding of bytes, used for forced tokens; without it the longest token is taken.

    Raises:
        DefinitionError: An id or a name is unknown, or a token is not bytes.
    """

    __slots__ = ("_native", "_special", "_tokenize", "end", "size")

    def __init__(
        self,
        tokens: Sequence[bytes],
        *,
        special: Mapping[str, int] | None = None,
        end: Sequence[int | str] = (),
        tokenize: Tokenize | None = None,
    ) -> None:
        self._special: dict[str, int] = dict(special or {})
        ids: list[int] = []
        for item in end:
            if isinstance(item, str):
                if item not in self._special:
                    raise DefinitionError(
                        f"end names {item!r}, which is no special token. {nearest(item, self._special)}"
                    )
                ids.append(self._special[item])
            else:
                ids.append(int(item))
        try:
            self._native = _core.Vocabulary(list(tokens), list(self._special.items()), ids)
        except (ValueError, TypeError) as error:
            raise DefinitionError(f"not a vocabulary: {error}.") from error
        self._tokenize = tokenize
        self.size: int = self._native.size
        """Number of ids, padding included."""
        self.end: tuple[int, ...] = tuple(sorted(set(ids)))
        """Ids that end a turn."""

    @property
    def special(self) -> Mapping[str, int]:
        """Special tokens by name."""
        return self._special

    @property
    def fingerprint(self) -> str:
        """A name for this vocabulary's content: equal vocabularies have equal fingerprints."""
        return f"{self._native.fingerprint:016x}"

    def token_bytes(self, token: int) -> bytes:
        """The bytes of a token; of a special token, those that were given for it.

        Raises:
            IndexError: The id is outside the vocabulary.
        """
        return self._native.token_bytes(token)

    def encode(self, text: bytes) -> list[int]:
        """Bytes as ordinary tokens.

        By the tokenizer's own encoding where it spells exactly these bytes, else by longest match.

        Raises:
            DefinitionError: No tokens of this vocabulary spell the bytes.
        """
        if self._tokenize is not None:
            tokens = list(self._tokenize(text))
            if b"".join(self.token_bytes(t) for t in tokens) == text:
                return tokens
        tokens = self._native.longest_match(text)
        if b"".join(map(self.token_bytes, tokens)) != text:
            raise DefinitionError(f"no tokens of this vocabulary spell {text!r}.")
        return tokens

    @classmethod
    def byte_level(cls) -> Vocabulary:
        """Ids 0 to 255 are the bytes, 256 is the end: for tests."""
        return cls([bytes([i]) for i in range(256)] + [b""], special={"<end>": 256}, end=[256])

    @classmethod
    def from_tiktoken(cls, encoding: Any, *, end: Sequence[int | str] = ()) -> Vocabulary:
        """The vocabulary of a ``tiktoken.Encoding``.

        Args:
            encoding: A ``tiktoken.Encoding``.
            end: Ids or special names that end a turn.

        Raises:
            DefinitionError: A name in ``end`` is no special token.
        """
        special = dict(encoding._special_tokens)
        tokens = [b""] * encoding.n_vocab
        for token, index in encoding._mergeable_ranks.items():
            tokens[index] = token

        def tokenize(text: bytes) -> Sequence[int]:
            try:
                return list(encoding.encode(text.decode(), disallowed_special=()))
            except UnicodeDecodeError:
                return list(encoding._encode_bytes(text))

        return cls(tokens, special=special, end=end, tokenize=tokenize)

    @classmethod
    def from_transformers(
        cls, tokenizer: Any, size: int | None = None, end: Sequence[int | str] | None = None
    ) -> Vocabulary:
        """The vocabulary of a ``transformers`` tokenizer.

        Byte-level BPE, byte-fallback (SentencePiece-like) and plain vocabularies are told apart by their decoders.
        Added tokens flagged special, and only these, are special.

        Args:
            tokenizer: A fast tokenizer.
            size: Number of ids, ``model.config.vocab_size``: models pad theirs. Default: the tokenizer's.
            end: Ids or names that end a turn. Default: the tokenizer's end-of-sequence token.

        Raises:
            DefinitionError: The tokenizer's kind is not known, or ``size`` is smaller than an id in use.
        """
        from agentgram.engine.tokenizers import transformers_tokens

        tokens, special, tokenize = transformers_tokens(tokenizer, size)
        if end is None:
            end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
        return cls(tokens, special=special, end=end, tokenize=tokenize)

    def __repr__(self) -> str:
        return f"Vocabulary(size={self.size}, special={len(self._special)}, end={list(self.end)})"
