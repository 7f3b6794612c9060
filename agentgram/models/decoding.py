"""The decode loop: what is declared is sampled from, what is permitted is appended.

Two grammars run side by side where they differ (``policy``: refuse, do not steer). *Declared* (S) holds every tool, so
that a wish for a denied one shows itself; *permitted* (P) is narrowed to the user. A token is sampled under S and
appended only when P accepts it. One that S allows and P does not is a *denied intent*: it is not appended, the
tool's name and the argument are read off by continuing under S on the side, and the turn ends with one ``CallDenied``.

Nothing here knows a format, a tokenizer or torch: a :class:`Backend` gives logits for a context, the format gives
grammars and a parser, the engine gives matchers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agentgram.engine import allocate_mask, apply_mask
from agentgram.errors import ContextOverflow, DefinitionError, GrammarError, ModelError
from agentgram.events import CallDenied, StepEnd, ToolCallEnd, ToolCallStart
from agentgram.formats.request import Request
from agentgram.messages import Message
from agentgram.models.base import Denial, ModelEvent, ModelRequest
from agentgram.models.gate import Gate
from agentgram.models.sampling import ends_mask, generator, only_token, sample

if TYPE_CHECKING:
    from agentgram.engine import Engine, Grammar, Matcher, Vocabulary
    from agentgram.formats import Format
    from agentgram.formats.parsing import Parser
    from agentgram.formats.request import Prompt
    from agentgram.tools.definition import ToolDefinition

NAMING_TOKENS = 256
"""How far the loop follows a denied intent, in tokens, to learn the tool's name (names have at most 128 bytes)."""
ARGUMENT_TOKENS = 64
"""How far it then follows the arguments; what is open after that is closed by the shortest legal end."""
NO_REASON = Denial((), "")
"""Where nobody can say why."""
GRAMMARS_KEPT = 64
"""How many compiled grammars a decoder keeps for requests that come again."""


class Backend(Protocol):
    """A language model reduced to what decoding needs; called from one thread only."""

    def prefill(self, tokens: Sequence[int]) -> None:
        """Makes the context exactly these tokens, reusing what it shares with the one before."""
        ...

    def append(self, tokens: Sequence[int]) -> None:
        """Adds tokens to the context. They are computed with the next :meth:`logits`, in one forward pass."""
        ...

    def truncate(self, length: int) -> None:
        """Shortens the context to its first ``length`` tokens."""
        ...

    def logits(self) -> NDArray[np.float32]:
        """Scores of the token that follows the context, of shape [vocabulary]; the caller may write to it."""
        ...


class Decoder:
    """Decodes turns of one format with one vocabulary; keeps the grammars that it compiled.

    Single-threaded: a model calls it from its forward thread only.
    """

    def __init__(self, engine: Engine, format: Format, *, context: int | None = None) -> None:
        """Args:
        engine: Compiles the grammars; its vocabulary is the model's.
        format: The model's response format.
        context: Tokens that the model can attend to, prompt and reply together; None for no bound.
        """
        self.engine = engine
        self.format = format
        self.context = context
        self._grammars: OrderedDict[Hashable, Grammar] = OrderedDict()
        self._requests: OrderedDict[Hashable, tuple[object, Grammar]] = OrderedDict()
        """The grammars by what they were asked for, with the objects whose identity is part of that."""

    def decode(
        self, backend: Backend, request: ModelRequest, prompt: Prompt, cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[ModelEvent]:
        """Writes one turn.

        Args:
            backend: The model; its context is replaced.
            request: The turn.
            prompt: The rendered prompt of ``request.permitted``.
            cancelled: Asked before each token; once true, the turn ends with ``finish="cancelled"``.

        Raises:
            ContextOverflow: The prompt leaves no room for the shortest legal reply.
            ModelError: ``max_tokens`` is too small for the shortest legal reply, or the model gave no usable scores.
            GrammarError: The tools or the output type cannot be compiled.
        """
        steer = request.on_denied == "steer" or _same_turn(request.declared, request.permitted)
        declared = None if steer else self.grammar(request.declared, prompt)
        turn = _Turn(self, backend, request, prompt, declared)
        turn.check_room()
        backend.prefill(prompt.tokens or ())
        return turn.run(cancelled)

    def grammar(self, request: Request, prompt: Prompt | None = None, *, keep: bool = True) -> Grammar:
        """The compiled grammar of a turn: what may follow its prompt, or one that the format renders.

        Args:
            request: The turn.
            prompt: Its prompt.
            keep: Whether the request will come again.

        Raises:
            GrammarError: The tools or the output type cannot be compiled.
        """
        key = _key(request, prompt)
        if key is not None and (known := self._requests.get(key)) is not None:
            self._requests.move_to_end(key)
            return known[1]
        spec = self.format.grammar(request, special=self.engine.vocab.special, prompt=prompt)
        if not keep:
            return self.engine.compile(spec)
        grammar = self._grammars.get(spec)
        if grammar is None:
            grammar = self._grammars[spec] = self.engine.compile(spec)
            if len(self._grammars) > GRAMMARS_KEPT:
                self._grammars.popitem(last=False)
        self._grammars.move_to_end(spec)
        if key is not None:
            self._requests[key] = ((request.tools, request.output_schema), grammar)
            if len(self._requests) > GRAMMARS_KEPT:
                self._requests.popitem(last=False)
        return grammar

    def permitted(self, request: Request, prompt: Prompt, keep: bool) -> Grammar:
        """The grammar of what may be called: without tools of which the policy leaves this user no call at all.

        Raises:
            GrammarError: As :meth:`grammar`; or ``tool_choice`` asks for such a tool.
        """
        try:
            return self.grammar(request, prompt, keep=keep)
        except GrammarError as error:
            left = tuple(tool for tool in request.tools if self._has_calls(tool)) if error.unsatisfiable else ()
            wanted = request.tool_choice != "auto" and not left
            if wanted or not error.unsatisfiable or len(left) == len(request.tools):
                raise
            try:
                fewer = replace(request, tools=left) if left else replace(request, tool_choice="none")
            except DefinitionError:  # tool_choice names one of them
                raise error from None
        return self.grammar(fewer, prompt, keep=keep)

    def _has_calls(self, tool: ToolDefinition) -> bool:
        try:
            self.engine.compile(self.format.grammar(Request(tools=[tool], tool_choice="required")))
        except GrammarError as error:
            return not error.unsatisfiable
        return True


def speller(vocabulary: Vocabulary) -> Callable[[int], bytes]:
    """What a token stands for in a reply's text: its bytes, and for a special token its name."""
    names = {token: name.encode() for name, token in vocabulary.special.items()}

    def spell(token: int) -> bytes:
        name = names.get(token)
        return vocabulary.token_bytes(token) if name is None else name

    return spell


def _key(request: Request, prompt: Prompt | None) -> Hashable | None:
    """What a request's grammar depends on; None where that cannot be told by looking at objects that never change."""
    if prompt is None or not isinstance(request.tools, tuple):
        return None
    how = (request.tool_choice, request.parallel, request.reasoning, prompt.prefill, prompt.reasons)
    return (id(request.tools), id(request.output_schema), *how)


def _same_turn(a: Request, b: Request) -> bool:
    return a is b or (
        a.tools == b.tools
        and a.tool_choice == b.tool_choice
        and a.parallel == b.parallel
        and a.output_schema == b.output_schema
        and a.reasoning == b.reasoning
    )


class _Turn:
    """One turn being written: P gates every append, S (where it differs) is what is sampled under."""

    def __init__(
        self, decoder: Decoder, backend: Backend, request: ModelRequest, prompt: Prompt, declared: Grammar | None
    ) -> None:
        self.format = decoder.format
        self.vocabulary = decoder.engine.vocab
        self.backend = backend
        self.request = request
        self.spell = speller(self.vocabulary)
        self.prompt = prompt
        self.prefill = prompt.prefill.encode()
        self.start = len(prompt.tokens or ())
        self.context = decoder.context
        # Where the turn has to hold a call, whether one fits must be known from the start.
        free = request.permitted.tool_choice == "auto" and request.permitted.output_schema is None
        permitted, common = request.permitted, request.common if free and declared is not None else None
        if not permitted.tools and request.declared.tools:
            # Where a message is a call by how it begins, text must not begin so: that takes knowing that there are any.
            permitted, common = replace(request.declared, tool_choice="none"), None
        self.gate = Gate(permitted, common, lambda request, keep: decoder.permitted(request, prompt, keep))
        self.declared = declared.matcher() if declared is not None else None
        # By what is declared: the beginning of a call that will be denied is then held back like any other's.
        self.seen = request.permitted if declared is None else request.declared
        self.parser = self._parser()
        self.mask = allocate_mask(1, self.vocabulary.size)
        self.ends = ends_mask(self.vocabulary)
        self.random = generator(request.settings.seed, request.step)
        self.tokens: list[int] = []
        self.chosen: list[bool] = []
        """Which of the tokens the model chose; the others were forced."""
        self.sampled = 0
        """Tokens that it chose besides: the end, and where a denied call would have gone."""
        self.begun: dict[str, int] = {}
        """Calls of each tool that the turn holds."""
        self.budget = request.settings.max_tokens
        if self.context is not None:
            self.budget = min(self.budget, self.context - self.start)

    def check_room(self) -> None:
        """Refuses a turn that could not be ended legally; raises as :meth:`Decoder.decode` says."""
        shortest = max(1, len(self.gate.matcher.shortest_end_tokens()))
        if self.context is not None and self.start + shortest > self.context:
            raise ContextOverflow(
                f"the prompt has {self.start} tokens and the shortest reply {shortest}, but the model's context holds "
                f"{self.context}. Drop old messages, shorten tool descriptions, or offer fewer tools."
            )
        if shortest > self.budget:
            raise ModelError(
                f"max_tokens is {self.request.settings.max_tokens}, but the shortest reply that these tools and this "
                f"output type allow has {shortest} tokens. Raise ModelSettings.max_tokens."
            )

    def run(self, cancelled: Callable[[], bool]) -> Iterator[ModelEvent]:
        """The loop: forced tokens, else one that the model chooses; gate, append, parse."""
        while not cancelled():
            sampler = self.declared or self.gate.matcher
            tokens = self._forced(sampler)
            chosen = not tokens
            if chosen:
                tokens = [self._choose()]
            legal = self.gate.matcher.validate(tokens)
            if legal == 0:
                yield from self._deny(tokens[0])
                return
            if not self._accept(tokens[:legal]):
                yield from self._close()
                return
            if self.gate.matcher.ended:
                self.sampled += legal if chosen else 0
                yield from self._end("stop")
                return
            events, ending = self._append(tokens[:legal], chosen=chosen)
            yield from events
            if ending is not None:
                yield from ending
                return
            if len(self.tokens) >= self.budget:
                yield from self._end("length")
                return
        yield from self._withdraw("cancelled")

    def _forced(self, matcher: Matcher) -> list[int]:
        """Tokens that the grammar leaves no choice about; none where the model has to be asked."""
        tokens = matcher.forced_tokens()
        if not tokens:
            matcher.fill_mask(self.mask)
            row = self.mask[0]
            if not np.any(row & ~self.ends):
                return list(self.vocabulary.end[:1])  # whichever end token: the turn is over
            only = only_token(row)
            tokens = [] if only is None else [only]
        return tokens

    def _choose(self) -> int:
        """The model's choice under the mask that :meth:`_forced` left."""
        logits = self.backend.logits()
        apply_mask(logits[None], self.mask)
        return sample(logits, self.request.settings, self.random)

    def _accept(self, tokens: Sequence[int]) -> bool:
        """Moves the matchers over tokens that P allows; False, and nothing moves, where no legal end would fit then."""
        for token in tokens:
            _must(self.gate.matcher.accept(token), self, token)
        rest = [] if self.gate.matcher.ended else self.gate.matcher.shortest_end_tokens()
        if len(self.tokens) + len(tokens) + len(rest) > self.budget:
            self.gate.matcher.rollback(len(tokens))
            return False
        if self.declared is not None:
            for token in tokens:
                _must(self.declared.accept(token), self, token)
        return True

    def _append(self, tokens: Sequence[int], *, chosen: bool) -> tuple[list[ModelEvent], Iterator[ModelEvent] | None]:
        """What the tokens tell; and how the turn ends, where they begin a call too many, or one that is not permitted.

        What a call of a tool may hold is known for sure once it begins: no token of it is appended before.
        """
        told: list[tuple[int, ModelEvent]] = []
        begun: set[str] = set()
        ending: Iterator[ModelEvent] | None = None
        written = len(self.tokens)
        for token in tokens:
            self.tokens.append(token)
            self.chosen.append(chosen)
            settled = self.parser.commit_offset
            for event in self.parser.feed_token(token):
                if isinstance(event, ToolCallStart):
                    if not self._may_begin(event.name):
                        call = self.parser.open_call
                        ending = self._refuse_another(event.name, settled if call is None else call.offset)
                        break
                    begun.add(event.name)
                told.append((len(self.tokens), event))
            if ending is not None:
                break
        legal = self.gate.enter(begun, self.tokens)
        if legal < len(self.tokens):
            refused = self.tokens[legal]
            self._take_back(legal)
            ending = self._deny(refused)
        elif begun and ending is None and not self._fits():
            ending = self._withdraw("length")
        if legal < written:
            self.backend.truncate(self.start + legal)
        self.backend.append(self.tokens[written:])
        return [event for number, event in told if number <= legal], ending

    def _take_back(self, length: int) -> None:
        """Makes the turn as it was when it had so many tokens."""
        assert self.declared is not None, "one grammar cannot disagree with itself"
        self.declared.rollback(self.declared.depth - length)
        self.tokens, self.chosen = self.tokens[:length], self.chosen[:length]
        self.parser = self._parser()
        for token in self.tokens:
            self.parser.feed_token(token)

    def _fits(self) -> bool:
        rest = [] if self.gate.matcher.ended else self.gate.matcher.shortest_end_tokens()
        return len(self.tokens) + len(rest) <= self.budget

    def _may_begin(self, name: str) -> bool:
        """Whether the turn may hold one more call of a tool; counts it."""
        self.begun[name] = self.begun.get(name, 0) + 1
        return self.begun[name] <= self.request.left.get(name, self.begun[name])

    def _refuse_another(self, name: str, offset: int) -> Iterator[ModelEvent]:
        """The grammar does not count calls of one tool; one too many is taken back as soon as its name is known."""
        _, rule = self.request.denial(name, None) or NO_REASON
        yield CallDenied(tool=name, rule=rule)
        yield from self._withdraw("denied", offset)

    def _close(self) -> Iterator[ModelEvent]:
        """The budget is used up but for the shortest legal end: writes that."""
        if self.gate.unsure and self._begun_by(self.gate.matcher.shortest_end_tokens()) & self.gate.unsure:
            legal = self.gate.enter(set(self.gate.unsure), self.tokens)
            if legal < len(self.tokens) or not self._fits():
                yield from self._withdraw("length")
                return
        tokens = self.gate.matcher.shortest_end_tokens()
        for token in tokens:
            _must(self.gate.matcher.accept(token), self, token)
        events, ending = self._append(tokens, chosen=False)
        yield from events
        yield from self._end("length") if ending is None else ending

    def _begun_by(self, tokens: Sequence[int]) -> set[str]:
        """The tools of which calls would begin."""
        parser = self._parser()
        for token in self.tokens:
            parser.feed_token(token)
        return {e.name for token in tokens for e in parser.feed_token(token) if isinstance(e, ToolCallStart)}

    def _end(self, finish: str) -> Iterator[ModelEvent]:
        yield from self.parser.finish()
        yield self._step_end(self.parser.close(), finish)

    def _withdraw(self, finish: str, settled: int | None = None) -> Iterator[ModelEvent]:
        """Ends the turn before an unfinished call: rolls back to where its trigger began."""
        settled = self.parser.commit_offset if settled is None else settled
        text = self.prefill + b"".join(map(self.spell, self.tokens))
        kept, length = 0, len(self.prefill)
        for token in self.tokens:
            after = length + len(self.spell(token))
            if after > settled:
                break
            kept, length = kept + 1, after
        self.backend.truncate(self.start + kept)
        if length < settled:  # a token ran across: its settled part is spelled with others
            with suppress(DefinitionError):  # where it cannot be, it is read again with the next prompt
                self.backend.append(self.vocabulary.encode(text[length:settled]))
        parser = self._parser()
        parser.feed_bytes(text[len(self.prefill) : settled])
        yield self._step_end(parser.close(), finish)

    def _step_end(self, message: Message, finish: str) -> StepEnd:
        return StepEnd(
            step=self.request.step,
            message=message,
            input_tokens=self.start,
            sampled_tokens=self.sampled + sum(self.chosen),
            forced_tokens=len(self.chosen) - sum(self.chosen),
            enforced_by="grammar",
            finish=finish,
        )

    def _deny(self, token: int) -> Iterator[ModelEvent]:
        """S allows this token and P does not: the intent is reported, and nothing of it stays."""
        tool, arguments = self._intent(token)
        path, rule = self.request.denial(tool, arguments, lambda wider: self._fits_in(wider, token)) or NO_REASON
        yield CallDenied(tool=tool, path=path, rule=rule)
        yield from self._withdraw("denied")

    def _fits_in(self, definition: ToolDefinition, token: int) -> bool:
        """Whether a token that was refused would not have been, were a tool this one."""
        gate = self.gate.instead(definition)
        return gate is not None and gate.validate([*self.tokens, token]) > len(self.tokens)

    def _permitted_of(self, token: int) -> int:
        """How many bytes of a refused token are not what is refused."""
        if token in self.vocabulary.special.values():
            return 0
        matcher, spelling = self.gate.matcher.fork(), self.spell(token)
        return next((n for n in range(len(spelling)) if not matcher.accept_bytes(spelling[n : n + 1])), len(spelling))

    def _intent(self, token: int) -> tuple[str, dict[str, Any] | None]:
        """Which tool was meant, and with which arguments where it is permitted: follows S on the side to find out."""
        matcher = self.declared
        assert matcher is not None, "one grammar cannot disagree with itself"
        parser = self._parser()
        for committed in self.tokens:
            parser.feed_token(committed)
        # A call that ends within what is permitted of the token is not the one.
        passed = self._permitted_of(token)
        parser.feed_bytes(self.spell(token)[:passed])
        name, tokens, left = "", [token], NAMING_TOKENS
        while True:
            for each in tokens:
                _must(matcher.accept(each), self, each)
                for event in () if matcher.ended else parser.feed_bytes(self.spell(each)[passed:]):
                    if isinstance(event, ToolCallEnd):
                        return event.call.name, event.call.arguments
                    if isinstance(event, ToolCallStart) and self.request.permitted.tool(event.name) is None:
                        return event.name, None
                passed = 0
            if not name and (call := parser.open_call) is not None and call.name:
                name, left = call.name, ARGUMENT_TOKENS
                if self.request.permitted.tool(name) is None:
                    return name, None
            if matcher.ended or left < 0:
                ended = (event for event in parser.finish() if isinstance(event, ToolCallEnd))
                return next(((event.call.name, event.call.arguments) for event in ended), (name, None))
            self.backend.append(tokens)
            left -= 1
            if left > 0:
                tokens = self._forced(matcher) or [self._choose()]
                self.sampled += 1
            else:
                tokens, left = matcher.shortest_end_tokens(), -1

    def _parser(self) -> Parser:
        return self.format.parser(self.seen, self.vocabulary, prompt=self.prompt)


def _must(accepted: bool, turn: _Turn, token: int) -> None:
    """A matcher refused a token that its own mask, or its own forced run, allowed: never go on from there."""
    if not accepted:
        raise ModelError(
            f"the grammar refused token {token} ({turn.spell(token)!r}) that it had allowed, after "
            f"{len(turn.tokens)} tokens. This is a bug in agentgram: please report it with the tools' schemas."
        )
