"""The matcher: history, forks, drafts, forced runs, shortest ends; vocabularies and bad arguments."""

import random
import threading
import tracemalloc

import numpy as np
import pytest

from agentgram.engine import (
    Choice,
    Dispatch,
    Engine,
    EngineOptions,
    GrammarError,
    JsonSchema,
    Lit,
    Matcher,
    Opt,
    Regex,
    Rep,
    Seq,
    Spec,
    Tag,
    Text,
    Tok,
    Vocabulary,
    allocate_mask,
    spec_from_dict,
)
from agentgram.errors import DefinitionError

CALL = Dispatch(
    [
        Tag(
            "<f=a>",
            JsonSchema(
                {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}, whitespace="canonical"
            ),
            "</f>",
        )
    ],
    ["<f="],
)


@pytest.fixture
def vocab() -> Vocabulary:
    return Vocabulary.byte_level()


def start(vocab: Vocabulary, spec: Spec) -> Matcher:
    return Engine(vocab).compile(spec).matcher()


def mask_of(matcher: Matcher, vocab: Vocabulary) -> list[int]:
    mask = allocate_mask(1, vocab.size)
    matcher.fill_mask(mask)
    return mask[0].tolist()


def test_rollback_leads_through_every_earlier_state(vocab: Vocabulary) -> None:
    matcher = start(vocab, CALL)
    text = b'hi <f=a>{"x": 12}</f> there'
    masks = []
    for byte in text:
        masks.append(mask_of(matcher, vocab))
        assert matcher.accept(byte)
    assert not matcher.accept(999) and not matcher.accept(-1)
    for expected in reversed(masks):
        matcher.rollback()
        assert mask_of(matcher, vocab) == expected
    with pytest.raises(ValueError, match="only 0"):
        matcher.rollback()


def test_one_call_of_accept_bytes_is_one_step(vocab: Vocabulary) -> None:
    matcher = start(vocab, CALL)
    before = mask_of(matcher, vocab)
    assert matcher.accept_bytes(b'hi <f=a>{"x": ')
    assert not matcher.accept_bytes(b"1}</f><f=b")
    assert matcher.accept_bytes(b"x" * 0)
    assert matcher.accept_bytes(b"1}</f>" + b" text" * 500)
    matcher.rollback()
    assert matcher.accept(ord("7"))
    matcher.rollback(2)
    assert mask_of(matcher, vocab) == before
    matcher.accept_bytes(b"abc")
    matcher.reset()
    assert mask_of(matcher, vocab) == before


def test_forks_are_independent(vocab: Vocabulary) -> None:
    matcher = start(vocab, CALL)
    matcher.accept_bytes(b'<f=a>{"x": 1')
    other = matcher.fork()
    assert other.accept_bytes(b"23}</f>") and other.can_end
    assert not matcher.can_end and matcher.accept(ord("}"))
    del matcher
    other.rollback()
    assert other.accept(ord("9"))
    copies = [other.fork() for _ in range(50)]
    for n, copy in enumerate(copies):
        assert copy.accept(ord("0") + n % 10)


def test_long_histories_are_released_without_recursion(vocab: Vocabulary) -> None:
    matcher = start(vocab, Text())
    for _ in range(200_000):
        matcher.accept(97)
    fork = matcher.fork()
    del matcher
    fork.rollback(199_999)
    assert fork.accept(98)


def test_deep_nesting(vocab: Vocabulary) -> None:
    matcher = start(
        vocab, JsonSchema({"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}})
    )
    depth = 20_000
    assert matcher.accept_bytes(b"[" * depth)
    assert not matcher.can_end
    end = matcher.shortest_end()
    assert end == b"]" * depth
    assert matcher.accept_bytes(end) and matcher.can_end


def test_a_shortest_end_inside_an_escape_makes_a_key_that_is_not_there_yet(vocab: Vocabulary) -> None:
    schema = {"patternProperties": {"^x": {"type": "boolean"}}, "additionalProperties": False, "minProperties": 1}
    matcher = start(vocab, JsonSchema({"type": "object", "maxProperties": 3, **schema}))
    assert matcher.accept_bytes(b'{"x":true,"\\u0')
    end = matcher.shortest_end()
    assert end and matcher.accept_bytes(end) and matcher.can_end


def test_validate_does_not_advance(vocab: Vocabulary) -> None:
    matcher = start(vocab, Lit("abcd"))
    assert matcher.validate(list(b"abxd")) == 2
    assert matcher.validate([*b"abcd", 256, 256]) == 5
    assert matcher.accept_bytes(b"abcd")


@pytest.mark.parametrize(
    ("spec", "reply"),
    [
        (Dispatch([Tag("<f=a>", Lit("x"), "</f>")], ["<f="]), "some text, and a < b <f=a>x</f> more text"),
        (Dispatch([Tag("<f=a>", Lit("x"), "</f>")], ["<f="], stops=["STOP"]), "some text STO and S STOP"),
        (Dispatch([Tag("<f=a>", Lit("x"), "</f>")], ["<f="], at_least=1), "text text <f=a>x</f> text"),
        (Seq([Text(["ab"]), Lit("ab"), Text()]), "aaa xx a b abab text"),
        (Choice([Lit("abab"), Seq([Text(["!"]), Lit("!")])]), "ababxxabab xx!"),
        (Choice([Seq([Text(["!"]), Lit("!")]), Regex("[a-z]*")]), "ababxxabab xx!"),
        (Regex("(ab|[a-c]+d|[^!]{3,7})*"), "abcdabxyzabcabab"),
        (JsonSchema({"type": "object"}), '{"text": "more text\\n\\u00e9", "texts": ["xx ", 1111]}'),
        (JsonSchema({"type": "string", "minLength": 4, "maxLength": 20}), '"some text text"'),
        (JsonSchema({"type": "array", "items": {"enum": ["texttext", "text text"]}}), '["texttext", "text text" ]'),
        (JsonSchema({"type": "object", "properties": {"a": {}}}, property_order="any"), '{"xx": "a", "xxx": "xx"}'),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_tokens_that_change_nothing_do_what_their_bytes_do(spec: Spec, reply: str) -> None:
    pieces = ["text", "xx", "ab", " ", "  ", "aa", "aaa", "te", "xt", " text", "abab", "11", "STO", "bc"]
    pieces += ["x<", " <f=", 'x"', 'xt"', "x!", "xx!", "xxab", "text,", "S ", "xa"]
    vocab = Vocabulary([*(bytes([b]) for b in range(256)), *(p.encode() for p in pieces), b""], end=[256 + len(pieces)])
    grammar = Engine(vocab).compile(spec)
    rng = random.Random(3)
    for _ in range(40):
        by_tokens, by_bytes = grammar.matcher(), grammar.matcher()
        left = reply.encode()
        while left:
            fits = [t for t in range(vocab.size - 1) if left.startswith(vocab.token_bytes(t))]
            token = rng.choice([t for t in fits if len(vocab.token_bytes(t)) > 1] or fits)
            taken = by_bytes.accept_bytes(vocab.token_bytes(token))
            assert by_tokens.fork().accept(token) == by_tokens.accept(token) == taken  # the state has seen it then
            assert by_tokens.can_end == by_bytes.can_end
            assert mask_of(by_tokens, vocab) == mask_of(by_bytes, vocab)
            if not taken:
                break
            left = left[len(vocab.token_bytes(token)) :]


@pytest.mark.parametrize(
    "spec",
    [
        Seq([Text(["!"]), Tok(256), Lit("!")]),
        Dispatch([Tag(Tok(256), Lit("!"), "!")], [Tok(256)], excludes=["!"]),
        Rep(Choice([Regex("[a-z]"), Seq([Tok(256), Lit("!")])])),
    ],
    ids=["sequence", "dispatch", "repetition"],
)
def test_a_token_that_changes_nothing_may_be_what_the_grammar_names_by_its_id(spec: Spec) -> None:
    vocab = Vocabulary([*(bytes([b]) for b in range(256)), b"text", b""], end=[257])
    matcher = start(vocab, spec)
    for _ in range(3):
        assert matcher.accept(ord("x")) and matcher.accept(ord("x")) and not matcher.fork().accept(ord("!"))
    assert matcher.accept(256) and matcher.accept(ord("!"))


def test_masks_and_tokens_by_name(vocab: Vocabulary) -> None:
    matcher = start(vocab, Lit("ab"))
    mask, named = allocate_mask(2, vocab.size), allocate_mask(2, vocab.size)
    assert matcher.fill_mask(mask, 1) and matcher.fill_mask(row=1, mask=named)
    assert (mask == named).all() and mask[1].any()
    assert matcher.accept(token=97) and matcher.accept(np.int64(98)) and matcher.can_end
    for wrong in ((), ("a",), (97, 98), (10**30,), (1.5,), (None,)):
        with pytest.raises(TypeError, match="accept"):
            matcher.accept(*wrong)
    for wrong in ((), (mask, "a"), (mask, 0, 0), (mask, 10**30)):
        with pytest.raises(TypeError, match="fill_mask"):
            matcher.fill_mask(*wrong)
    assert matcher.depth == 2


def test_draft_trees(vocab: Vocabulary) -> None:
    matcher = start(vocab, Seq([Lit("a"), Choice([Lit("bc"), Lit("d")])]))
    tokens, parents = [*b"abxcd", ord("d")], [-1, 0, 0, 1, 0, 2]
    mask = allocate_mask(len(tokens), vocab.size)
    mask[:] = -1
    matcher.fill_draft(mask, tokens, parents)
    for row, prefix in ((0, b"a"), (1, b"ab"), (3, b"abc"), (4, b"ad")):
        expected = start(vocab, Seq([Lit("a"), Choice([Lit("bc"), Lit("d")])]))
        expected.accept_bytes(prefix)
        assert mask[row].tolist() == mask_of(expected, vocab)
    assert not mask[2].any() and not mask[5].any()
    assert matcher.accept(ord("a"))
    with pytest.raises(ValueError, match="parent"):
        matcher.fill_draft(mask, [97], [0])


def test_batches(vocab: Vocabulary) -> None:
    engine = Engine(vocab)
    matchers = [engine.compile(Lit(t)).matcher() for t in ("a", "b", "c")]
    mask = allocate_mask(4, vocab.size)
    engine.fill_masks(matchers, mask, [3, 1, 0])
    rows = [np.flatnonzero(np.unpackbits(r.view(np.uint8), bitorder="little")).tolist() for r in mask]
    assert rows == [[99], [98], [], [97]]
    with pytest.raises(ValueError, match="row"):
        engine.fill_masks(matchers, mask, [0])
    with pytest.raises(IndexError, match="rows"):
        engine.fill_masks(matchers, mask, [0, 1, 9])


def test_forced_bytes_and_tokens() -> None:
    tokens = [bytes([b]) for b in range(256)] + [b'{"', b'{"x', b'x": ', b'": ', b"> ", b'>{"', b""]
    vocab = Vocabulary(tokens, end=[262])
    matcher = start(vocab, CALL)
    assert matcher.forced_bytes() == b"" and matcher.forced_tokens() == []
    assert matcher.accept_bytes(b"<f=")
    assert matcher.forced_bytes() == b'a>{"x": '
    forced = matcher.forced_tokens()
    spelled = b"".join(vocab.token_bytes(t) for t in forced)
    assert forced and b'a>{"x": '.startswith(spelled)
    for token in forced:
        assert matcher.accept(token)
    ended = start(vocab, Lit("ab"))
    assert ended.forced_bytes() == b"ab"
    ended.accept_bytes(b"ab")
    assert ended.forced_bytes() == b""


def test_forced_tokens_leave_room_for_a_longer_token() -> None:
    vocab = Vocabulary([b"a", b"b", b"ab", b"abc", b"c", b"d", b""], end=[6])
    matcher = start(vocab, Seq([Lit("ab"), Choice([Lit("c"), Lit("d")])]))
    assert matcher.forced_bytes() == b"ab"
    assert matcher.forced_tokens() == []  # "abc" is legal, and "ab" would rule it out
    matcher = start(vocab, Seq([Lit("ab"), Choice([Lit("d"), Lit("a")])]))
    assert matcher.forced_tokens() == [2]


def test_a_tokenizers_own_encoding_is_used_for_forced_tokens() -> None:
    vocab = Vocabulary(
        [b"a", b"b", b"ab", b""], end=[3], tokenize=lambda text: [text[0] - 97, *[b - 97 for b in text[1:]]]
    )
    assert start(vocab, Lit("ab")).forced_tokens() == [0, 1]
    vocab = Vocabulary([b"a", b"b", b"ab", b""], end=[3], tokenize=lambda text: [7])  # nonsense is not believed
    assert start(vocab, Lit("ab")).forced_tokens() == []


@pytest.mark.parametrize(
    ("spec", "prefix", "end"),
    [
        (JsonSchema({"type": "object"}), '{"a', b'":0}'),
        (
            JsonSchema({"type": "array", "minItems": 3, "items": {"type": "integer"}}, whitespace="compact"),
            "[1,",
            b"0,0]",
        ),
        (JsonSchema({"enum": ["long one", "short"]}), "", b'"short"'),
        (JsonSchema({"type": "string", "minLength": 4}), '"a\\', None),
        (Rep(Lit("ab"), 3, None, Lit(",")), "ab", b",ab,ab"),
        (Seq([Text(["X"]), Lit("X")]), "abc", b"X"),
        (Opt(Lit("a")), "", b""),
    ],
)
def test_shortest_ends(vocab: Vocabulary, spec: Spec, prefix: str, end: bytes | None) -> None:
    matcher = start(vocab, spec)
    assert matcher.accept_bytes(prefix.encode())
    found = matcher.shortest_end()
    if end is not None:
        assert len(found) == len(end), found
    assert matcher.accept_bytes(found) and matcher.can_end


@pytest.mark.parametrize(
    "spec",
    [
        Dispatch([Tag("<a>", Lit("x"), "")], ["<b"]),
        Dispatch([Tag("<a>", Lit("x"), ""), Tag("<a>", Lit("y"), "")], ["<a"]),
        Dispatch([Tag("<a>", Lit("x"), "")], ["<a"], stops=["<a>"]),
        Tok("<nothing>"),
        Tok(70_000),
        JsonSchema({"type": "string", "minLength": 3, "maxLength": 2}),
        JsonSchema(
            {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/a"}}}}
        ),
    ],
)
def test_what_cannot_be_is_refused(vocab: Vocabulary, spec: Spec) -> None:
    with pytest.raises(GrammarError):
        Engine(vocab).compile(spec)


def test_forks_are_small(vocab: Vocabulary) -> None:
    matcher = Engine(vocab).compile(CALL).matcher()
    assert matcher.accept_bytes(b'<f=a>{"x')
    forks: list[Matcher | None] = [None] * 10_000
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for i in range(len(forks)):
            forks[i] = matcher.fork()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(forks) <= 100  # bytes
    assert all(type(fork) is Matcher and fork.depth == 1 for fork in forks if fork)


def test_matchers_come_from_a_grammar_or_a_matcher(vocab: Vocabulary) -> None:
    grammar = Engine(vocab).compile(Lit("a"))
    with pytest.raises(TypeError, match="cannot create"):
        Matcher()
    assert grammar.matcher().vocab is vocab is grammar.matcher().fork().vocab
    with pytest.raises(TypeError, match="takes matchers"):
        Engine(vocab).fill_masks([grammar], allocate_mask(1, vocab.size))  # type: ignore[list-item]


def test_bad_vocabularies_and_masks(vocab: Vocabulary) -> None:
    with pytest.raises(DefinitionError, match="outside"):
        Vocabulary([b"a"], end=[5])
    with pytest.raises(DefinitionError, match="special"):
        Vocabulary([b"a"], end=["<end>"])
    with pytest.raises(DefinitionError, match="bytes"):
        Vocabulary(["a"])  # type: ignore[list-item]
    matcher = start(vocab, Lit("a"))
    for wrong in (np.zeros((1, 3), np.int32), np.zeros((1, 9), np.int64)):
        with pytest.raises((ValueError, TypeError), match="allocate_mask"):
            matcher.fill_mask(wrong)
    with pytest.raises(IndexError, match="rows"):
        matcher.fill_mask(allocate_mask(1, vocab.size), 1)


def test_vocabularies_with_duplicates_and_without_some_bytes() -> None:
    vocab = Vocabulary([b"a", b"a", b"aa", b"", b"b"], end=[3])
    matcher = start(vocab, Rep(Lit("a"), 1, 2))
    assert mask_of(matcher, vocab) == [0b00111]
    assert matcher.accept(1) and mask_of(matcher, vocab) == [0b01011]
    assert vocab.fingerprint == Vocabulary([b"a", b"a", b"aa", b"", b"b"], end=[3]).fingerprint
    assert vocab.fingerprint != Vocabulary([b"a", b"a", b"aa", b"", b"c"], end=[3]).fingerprint


def test_specs_read_back() -> None:
    for spec in (CALL, Seq([Opt(Lit("a")), Rep(Choice([Tok("<x>"), Tok(3)]), 1, None, Lit(","))]), Text(["a"])):
        assert spec_from_dict(spec.to_dict()) == spec  # type: ignore[union-attr]
    with pytest.raises(DefinitionError):
        spec_from_dict({"type": "Nothing"})


def test_shared_engines_and_timeouts(vocab: Vocabulary) -> None:
    engine = Engine.shared(vocab)
    assert Engine.shared(Vocabulary.byte_level()) is engine
    assert engine.compile(Lit("a"), timeout=30).matcher().accept(97)


def test_threads_share_an_engine(vocab: Vocabulary) -> None:
    engine = Engine(vocab, EngineOptions(cache_bytes=64 << 10))
    specs = [
        JsonSchema({"type": "object", "properties": {f"k{i}": {"type": "string", "maxLength": i}}}) for i in range(12)
    ]
    failures: list[str] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        mask = allocate_mask(1, vocab.size)
        for _ in range(60):
            i = rng.randrange(12)
            matcher = engine.compile(specs[i]).matcher()
            for byte in f'{{"k{i}":"{"x" * i}"}}'.encode():
                matcher.fill_mask(mask)
                if not matcher.accept(byte):
                    failures.append(f"{i}: {byte}")
            if not matcher.can_end:
                failures.append(f"{i} cannot end")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
