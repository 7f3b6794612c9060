"""Models of the transformers library, decoded by our own loop on a thread of their own."""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

from agentgram.engine import Engine, Vocabulary
from agentgram.errors import DefinitionError, ModelError
from agentgram.formats import Format, get_format
from agentgram.models import guard
from agentgram.models.base import ModelEvent, ModelRequest
from agentgram.models.bundled import quiet
from agentgram.models.decoding import Decoder
from agentgram.models.threads import stream_from_thread

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CACHES = 4
"""Key-value caches kept for runs that take turns; the least recently used goes first."""
FORK_TOKENS = 64
"""A cache that would lose more tokens than this to another run is copied instead, while there is room."""


class TransformersModel:
    """A causal language model of the transformers library.

    One thread runs all its forward passes, one turn after another; the event loop only ever receives events.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        device: str = "auto",
        dtype: str = "auto",
        format: str | Path | Format | None = None,
        name: str | None = None,
    ) -> None:
        """Loads a model.

        Args:
            source: A directory, or an id on the hub.
            device: ``"auto"`` (a GPU where there is one), or what torch calls a device.
            dtype: ``"auto"`` (as the weights are saved), or a torch type's name, as in ``"float32"``.
            format: The response format, by name, file or value; None detects it from the chat template.
            name: What to call the model; None for ``source``.

        Raises:
            ModelError: The model cannot be found or loaded.
            DefinitionError: The format is unknown or cannot be detected.
        """
        guard.check(f"loading {str(source)!r}")
        place = _device(device)
        try:
            with quiet():
                model = AutoModelForCausalLM.from_pretrained(str(source), dtype=_dtype(dtype)).to(place)
                tokenizer = AutoTokenizer.from_pretrained(str(source))
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"could not load {str(source)!r}: {str(error).strip()} Give a directory that transformers can read, "
                "or the id of a model on its hub."
            ) from error
        self._setup(model, tokenizer, format, name or str(source))

    @classmethod
    def wrap(
        cls,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        format: str | Path | Format | None = None,
        name: str | None = None,
    ) -> TransformersModel:
        """A model and a tokenizer that are loaded already.

        Raises:
            DefinitionError: The format is unknown or cannot be detected.
        """
        self = cls.__new__(cls)
        self._setup(model, tokenizer, format, name or getattr(model, "name_or_path", "") or type(model).__name__)
        return self

    def _setup(self, model: Any, tokenizer: Any, format: str | Path | Format | None, name: str) -> None:
        self._name = name
        self.tokenizer = tokenizer
        self.format = _format(format, tokenizer)
        config = model.config.get_text_config()
        vocabulary = Vocabulary.from_transformers(
            tokenizer, size=config.vocab_size, end=_end_ids(model, tokenizer, self.format)
        )
        self.engine = Engine.shared(vocabulary)
        self.backend = TorchBackend(model.eval())
        self.context: int | None = getattr(config, "max_position_embeddings", None)
        """Tokens that the model can attend to, prompt and reply together."""
        self._decoder = Decoder(self.engine, self.format, context=self.context)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"agentgram {name}")

    @property
    def name(self) -> str:
        """What to call the model in messages and logs."""
        return self._name

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Writes one turn; see :meth:`agentgram.models.Model.stream`."""
        return stream_from_thread(self._thread, lambda stopped: self._turn(request, stopped))

    def count_tokens(self, what: str | ModelRequest) -> int:
        """Tokens of a text, or of the prompt of a turn. Safe from any thread, also while the model writes."""
        # The forward thread may encode at the same time: that only reads, for no truncation or padding is ever set.
        if isinstance(what, str):
            return len(self.tokenizer(what, add_special_tokens=False)["input_ids"])
        return len(self.format.render(what.shown, self.tokenizer).tokens or ())

    def _turn(self, request: ModelRequest, stopped: Callable[[], bool]) -> Iterator[ModelEvent]:
        prompt = self.format.render(request.shown, self.tokenizer)
        return self._decoder.decode(self.backend, request, prompt, stopped)


def _device(device: str) -> str:
    if device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _dtype(dtype: str) -> Any:
    if dtype == "auto":
        return "auto"
    value = getattr(torch, dtype, None)
    if not isinstance(value, torch.dtype):
        raise ModelError(f"torch has no type named {dtype!r}: use 'auto', 'float32', 'bfloat16' or 'float16'.")
    return value


def _format(format: str | Path | Format | None, tokenizer: Any) -> Format:
    if format is None:
        found = Format.detect(tokenizer)
    else:
        found = format if isinstance(format, Format) else get_format(format)
    report = found.check(tokenizer)
    if not report.ok:
        raise DefinitionError(
            f"{report}\nName another format, or let this one write the prompts itself: "
            "format=dataclasses.replace(fmt, prompt='format')."
        )
    return found


def _end_ids(model: Any, tokenizer: Any, format: Format) -> list[int]:
    """Every id that ends a turn: tokenizer, generation settings and format each may know one that the others do not."""
    ends: set[int] = set()
    configured = getattr(model.generation_config, "eos_token_id", None) if model.generation_config else None
    for value in (tokenizer.eos_token_id, configured):
        ends.update(value if isinstance(value, (list, tuple)) else [] if value is None else [value])
    for stop in format.stops:
        token = tokenizer.convert_tokens_to_ids(stop)
        if isinstance(token, int) and token != tokenizer.unk_token_id:
            ends.add(token)
    return sorted(ends)


class _Context:
    """Tokens and the key-value cache of those that are computed."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache
        self.tokens: list[int] = []
        """All tokens of the context."""
        self.computed: int = 0
        """How many of them are in the cache."""


class TorchBackend:
    """A :class:`agentgram.models.decoding.Backend` over a causal language model.

    Contexts of earlier turns are kept: a prompt that begins as one of them did is computed from where they part.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.device = next(model.parameters()).device
        self.computed_tokens = 0
        """Tokens that went through the model so far."""
        self.passes = 0
        """Forward passes so far."""
        names = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._options: dict[str, Any] = {"logits_to_keep": 1} if "logits_to_keep" in names else {}
        self._contexts: list[_Context] = []  # least recently used first
        self._context = self._fresh()

    def _fresh(self) -> _Context:
        return _Context(DynamicCache(config=self.model.config))

    @property
    def tokens(self) -> list[int]:
        """The context: prompt and reply."""
        return list(self._context.tokens)

    def prefill(self, tokens: Sequence[int]) -> None:
        """Makes the context exactly these tokens; nothing is computed yet."""
        shared, best = 0, None
        for context in self._contexts:
            length = _common(context.tokens[: context.computed], tokens)
            if length > shared:
                shared, best = length, context
        room = len(self._contexts) < CACHES
        if best is None:
            best = self._fresh()
        else:
            if room and best.computed - shared > FORK_TOKENS:
                best = self._fork(best)
            else:
                self._contexts.remove(best)
            self._crop(best, shared)
        if not room and len(self._contexts) >= CACHES:
            self._contexts.pop(0)
        self._contexts.append(best)
        best.tokens = list(tokens)
        self._context = best

    def append(self, tokens: Sequence[int]) -> None:
        """Adds tokens; they are computed with the next scores."""
        self._context.tokens.extend(tokens)

    def truncate(self, length: int) -> None:
        """Shortens the context to ``length`` tokens."""
        del self._context.tokens[length:]
        self._crop(self._context, length)

    def logits(self) -> NDArray[np.float32]:
        """Scores of the next token, of shape [vocabulary]."""
        context = self._context
        # The last token's scores are needed: where the whole context is in the cache, it is computed again.
        self._crop(context, len(context.tokens) - 1)
        fresh = context.tokens[context.computed :]
        ids = torch.tensor([fresh], dtype=torch.long, device=self.device)
        try:
            with torch.inference_mode():
                output = self.model(input_ids=ids, use_cache=True, **{self._cache_name: context.cache}, **self._options)
        except BaseException:
            context.cache, context.computed = self._fresh().cache, 0  # it may hold some layers' half of the pass
            raise
        context.computed = len(context.tokens)
        self.computed_tokens += len(fresh)
        self.passes += 1
        scores: NDArray[np.float32] = output.logits[0, -1].float().cpu().numpy()
        return scores

    def _crop(self, context: _Context, length: int) -> None:
        if context.computed <= length:
            return
        try:
            context.cache.crop(length - context.computed)
            context.computed = length
        except (RuntimeError, NotImplementedError, AttributeError, ValueError):
            # A cache that forgets (sliding windows, recurrent states) cannot go back: it is made anew.
            context.cache, context.computed = self._fresh().cache, 0

    def _fork(self, context: _Context) -> _Context:
        new = _Context(copy.deepcopy(context.cache))
        new.tokens, new.computed = list(context.tokens), context.computed
        return new


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length
