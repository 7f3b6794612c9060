"""Masks against an independent recogniser, against a walk of the whole vocabulary, and against what accept says."""

import itertools
import json
import random
from typing import Any

import numpy as np
import pytest

import oracle
from agentgram.engine import (
    Choice,
    Dispatch,
    Engine,
    EngineOptions,
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
    apply_mask,
)
from walks import check_mask

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "ab", 'b"c']}, "maxItems": 3},
        "note": {"anyOf": [{"type": "null"}, {"type": "string"}, {"type": "boolean"}]},
    },
    "required": ["name", "tags"],
    "additionalProperties": False,
}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["v"],
            "additionalProperties": False,
        }
    },
}
OPEN = {"type": "object", "properties": {"id": {"type": "integer"}, "idx": {"type": "null"}}, "required": ["id"]}


def dispatch(**options: Any) -> Dispatch:
    tags = [
        Tag("<f=wipe>", JsonSchema(PERSON, whitespace="canonical"), "</f>"),
        Tag("<f=wipe_cache>", JsonSchema(TREE), "</f>"),
        Tag("<f=w>", Lit("!"), ""),
    ]
    return Dispatch(tags, ["<f="], excludes=["<END>"], **options)


SPECS: dict[str, Spec] = {
    "text": Text(["</think>", "x!"]),
    "text, then its closer": Seq([Text(["</think>"]), Lit("</think>"), Text()]),
    "sequence": Seq([Lit("ab"), Opt(Lit("c")), Choice([Lit("d"), Lit("de"), Lit("é")]), Rep(Lit("z"), 1, 3, Lit(","))]),
    "repeated": Rep(Choice([Lit("ab"), Lit("a")]), 2, 4),
    "person": JsonSchema(PERSON, whitespace="canonical"),
    "person, any blanks": JsonSchema(PERSON),
    "tree": JsonSchema(TREE, whitespace="compact"),
    "dispatch": dispatch(),
    "dispatch, one call": dispatch(at_least=1, at_most=1),
    "dispatch, stop after first": dispatch(at_least=1, stop_after_first=True),
}
REPLIES = {
    "text": ["hello <b> é", "a x", "</think", "</thinx"],
    "text, then its closer": ["so </thin </think> and </think> more", "</think>"],
    "sequence": ["abcdez,z", "abéz,z,z"],
    "repeated": ["aababa", "abab"],
    "person": ['{"name": "Ann\\u00e9", "age": 17, "tags": ["ab", "b\\"c"], "note": null}', '{"name": "x", "tags": []}'],
    "person, any blanks": ['{ "name":"Ann" ,\n "tags" :[ "a" ] }', '{"n\\u0061me":"\\ud83d\\ude00","tags":[]}'],
    "tree": ['{"v":1,"kids":[{"v":-20,"kids":[]},{"v":3}]}'],
    "dispatch": ['one <f=wipe_cache>{"v":1}</f><f=w>!, two <f <f=wipe>{"name": "x", "tags": []}</f> é'],
    "dispatch, one call": ['<f<f=wipe_cache>{"v": 1, "kids": []}</f> and <f'],
    "dispatch, stop after first": ["text <f=w>!"],
}


def bits(mask: np.ndarray, size: int) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little")[:size]).tolist())


def mask_of(matcher: Matcher, vocab: Vocabulary) -> set[int]:
    mask = allocate_mask(1, vocab.size)
    masked = matcher.fill_mask(mask)
    found = bits(mask, vocab.size)
    assert masked == (len(found) < vocab.size)
    return found


def follow(spec: Spec, text: str) -> None:
    """Byte by byte: the mask, the oracle and accept agree on all 257 tokens."""
    vocab = Vocabulary.byte_level()
    matcher = Engine(vocab).compile(spec).matcher()
    state = oracle.build(spec)
    for byte in [*text.encode(), None]:
        legal = {b for b in range(256) if state.feed(b).alive} | ({256} if state.complete else set())
        assert mask_of(matcher, vocab) == legal
        for token in range(257):
            taken = matcher.accept(token)
            assert taken == (token in legal)
            if taken:
                matcher.rollback()
        if byte is not None:
            assert byte in legal, (text, byte)
            assert matcher.accept(byte)
            state = state.feed(byte)


@pytest.mark.parametrize("name", SPECS)
def test_masks_are_those_of_an_independent_recogniser(name: str) -> None:
    for text in REPLIES[name]:
        follow(SPECS[name], text)


@pytest.mark.parametrize("name", SPECS)
def test_random_walks_never_meet_a_dead_end_and_can_always_be_ended(name: str) -> None:
    vocab = Vocabulary.byte_level()
    grammar = Engine(vocab).compile(SPECS[name])
    rng = random.Random(name)
    for _ in range(30):
        matcher, state, text = grammar.matcher(), oracle.build(SPECS[name]), b""
        for _ in range(rng.randrange(60)):
            legal = sorted(mask_of(matcher, vocab) - {256})
            if not legal:
                break
            byte = rng.choice(legal)
            assert matcher.accept(byte)
            state, text = state.feed(byte), text + bytes([byte])
            assert state.alive, text
        end = matcher.shortest_end()
        assert matcher.accept_bytes(end) and matcher.can_end, (text, end)
        assert state.feed_bytes(end).complete, (text, end)
        assert matcher.accept(256) and matcher.ended
        assert mask_of(matcher, vocab) == set()


def small_vocabulary() -> Vocabulary:
    """Bytes, and many strings that cross the borders of text, keys, values and tags."""
    # One a line would say no more: they are separated by what none of them holds.
    pieces = (
        '{"~":~": "~", "~"}~}}~]}~"],~</f>~</f><f=~<f=w~pe>{~ipe_~ache>~name~nam~'
        'age~tags~é~é"~\\u00~\\n~12~15~0,~null~ue~true}~  ~ \n~x!~</thi~'
        'nk>~ab~abc~zz~z,z~a"~ab", "~😀~<EN~D>~!<~a]~", "note": ~</think>a'
    ).split("~")
    tokens = [bytes([b]) for b in range(256)] + [p.encode() for p in pieces] + [b"\xc3", b"\xa9x", b"ab", b"", b""]
    return Vocabulary(tokens, special={"<end>": len(tokens) - 1, "<pad>": len(tokens) - 2}, end=["<end>"])


@pytest.mark.parametrize("name", SPECS)
def test_tokens_that_cross_borders(name: str) -> None:
    vocab = small_vocabulary()
    ordinary = [vocab.token_bytes(t) for t in range(vocab.size - 2)]
    root = oracle.trie(ordinary)
    grammar = Engine(vocab).compile(SPECS[name])
    rng = random.Random(name)
    for _ in range(12):
        matcher, state = grammar.matcher(), oracle.build(SPECS[name])
        for _ in range(25):
            legal = set(oracle.allowed(state, root)) | ({vocab.size - 1} if state.complete else set())
            found = mask_of(matcher, vocab)
            assert found == legal
            # Long tokens first: they are the ones that cross borders.
            pool = sorted(found - {vocab.size - 1}, key=lambda t: (-len(ordinary[t]), t))
            if not pool:
                break
            token = rng.choice(pool[: max(4, len(pool) // 4)])
            assert matcher.accept(token)
            state = state.feed_bytes(ordinary[token])


def test_special_tokens_are_taken_by_id_and_never_by_their_bytes() -> None:
    tokens = [bytes([b]) for b in range(256)] + [b"<call>", b"</call>", b"ab", b""]
    vocab = Vocabulary(tokens, special={"<call>": 256, "</call>": 257, "<end>": 259}, end=[259])
    spec = Dispatch([Tag(Tok("<call>"), Seq([Lit("a"), Tok("</call>")]))], [Tok("<call>")], at_most=1)
    matcher = Engine(vocab).compile(spec).matcher()
    assert mask_of(matcher, vocab) >= {256, 258, 259, ord("<")}
    assert 257 not in mask_of(matcher, vocab)
    assert matcher.accept_bytes(b"text <call>")  # spelled, it is text
    assert matcher.accept(256)
    assert mask_of(matcher, vocab) == {ord("a")}  # "ab" runs on beyond what only a token can end
    assert matcher.accept(ord("a")) and mask_of(matcher, vocab) == {257}
    assert matcher.shortest_end() == b"" and matcher.shortest_end_tokens() == [257]
    assert matcher.accept(257)
    assert 256 not in mask_of(matcher, vocab) and 259 in mask_of(matcher, vocab)
    by_id = Engine(vocab).compile(Seq([Tok(258), Lit("c")])).matcher()
    assert mask_of(by_id, vocab) == {258} and by_id.accept(258) and by_id.accept(ord("c"))


def test_an_ordinary_token_named_in_the_grammar_is_taken_both_ways() -> None:
    vocab = Vocabulary([b"a", b"b", b"ab", b""], end=[3])
    matcher = Engine(vocab).compile(Choice([Seq([Tok(2), Lit("a")]), Lit("abb")])).matcher()
    assert mask_of(matcher, vocab) == {0, 2}
    assert matcher.accept(2)
    assert mask_of(matcher, vocab) == {0, 1}


def test_undeclared_keys_do_not_repeat_however_they_are_spelled() -> None:
    vocab = Vocabulary.byte_level()
    grammar = Engine(vocab).compile(JsonSchema(OPEN, whitespace="compact"))
    for text, end in (
        ('{"id":1,"a":2,"b":3', True),
        ('{"id":1,"a":2,"a"', False),
        ('{"id":1,"a":2,"\\u0061"', False),
        ('{"id":1,"id"', False),
        ('{"id":1,"i\\u0064"', False),
        ('{"id":1,"idx":null', True),
        ('{"id":1,"idy":null', True),
        ('{"id":1,"id":', False),
    ):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text.encode()) == end, text


def test_many_tokens_that_could_have_left_a_terminal_earlier() -> None:
    """More than are copied out of the vocabulary: what follows takes some of them from the middle."""
    words = ["".join(w) for n in (2, 3, 4, 5) for w in itertools.product("abcdefgh", repeat=n) if n < 5 or w[0] == "a"]
    tokens = [bytes([b]) for b in range(256)] + [w.encode() for w in [*words, "ab!", "abcd!", "hhh!"]] + [b""]
    vocab = Vocabulary(tokens, special={"<end>": len(tokens) - 1}, end=["<end>"])
    engine = Engine(vocab, EngineOptions(threads=1))
    for first, then in (("[a-h]{0,2}", "[a-h]{2,5}!"), ("[a-h]{0,3}", "b[a-h]*!"), ("[a-h]{1,2}", "[a-d]{1,3}h")):
        for start in (b"", b"a", b"ab", b"abc"):
            matcher = engine.compile(Seq([Regex(first), Regex(then)])).matcher()
            if matcher.accept_bytes(start):
                check_mask(matcher, vocab)


def test_many_tokens_that_are_longer_than_what_may_still_come() -> None:
    rng = random.Random(5)
    words = {"".join(rng.choices("abcdefghij", k=rng.randint(4, 12))) + rng.choice(["", "", "!"]) for _ in range(9000)}
    tokens = [bytes([b]) for b in range(256)] + [w.encode() for w in sorted(words)] + [b""]
    vocab = Vocabulary(tokens, special={"<end>": len(tokens) - 1}, end=["<end>"])
    engine = Engine(vocab, EngineOptions(threads=1))
    for most, then in ((5, "[a-e]{1,3}!"), (7, "K"), (9, "[a-j]+!"), (10, "!")):
        matcher = engine.compile(Seq([Regex(f"[a-j]{{0,{most}}}"), Regex(then)])).matcher()
        for byte in b"abh":
            check_mask(matcher, vocab)
            assert matcher.accept(byte)


def test_a_key_with_a_backslash_is_not_repeated_by_the_escape_that_looks_like_it() -> None:
    vocab = Vocabulary(
        [bytes([b]) for b in range(256)] + [b'\\b"', b'\\\\b"', b""], special={"<end>": 258}, end=["<end>"]
    )
    for order in ("any", "declared"):
        matcher = Engine(vocab).compile(JsonSchema({"type": "object"}, property_order=order)).matcher()  # type: ignore[arg-type]
        assert matcher.accept_bytes(b'{"\\\\b":0,"')
        allowed = check_mask(matcher, vocab)
        assert 256 in allowed and 257 not in allowed


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"b": {"type": "integer"}}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "patternProperties": {"^[a-c]+$": {"type": "integer"}}, "minProperties": 2},
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#"}}, "required": ["a"]},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    ],
    ids=str,
)
def test_tokens_with_several_keys(schema: dict[str, Any]) -> None:
    """A key inside a token may repeat one that the same token has ended before."""
    pieces = [
        'a":1,"a":~a":1,"b":~"a":1,"a":~"a":1,"b":1,"a":~{"a":1,"a":1}~{"a":1,"b":1}~b":1,"a":1,"b":~"a":{"a":1},"b":',
        '"a":{"b":1},"a":~,"a":1, "a"~ab":1,\n"ab"~\\u0061":1,"a":~"a":1,"\\u0061":~a":1,"c":2,"a"~a":",\\"a\\"",',
        ',"a":{"a":"~b","b","~"b","a","b"~,"b","c"',
    ]
    tokens = [bytes([b]) for b in range(256)] + [p.encode() for p in "~".join(pieces).split("~")] + [b""]
    vocab = Vocabulary(tokens, special={"<end>": len(tokens) - 1}, end=["<end>"])
    engine = Engine(vocab)
    for order in ("declared", "any"):
        grammar = engine.compile(JsonSchema(schema, property_order=order))  # type: ignore[arg-type]
        for start in (
            "[",
            '["',
            '["b","',
            '{"a":"x"',
            "",
            "{",
            '{"',
            '{"b',
            '{"a',
            '{"c":1,',
            '{"c":1,"',
            '{"a":1,"',
            '{"b":1,',
            '{"b":1,"\\u00',
        ):
            matcher = grammar.matcher()
            if not matcher.accept_bytes(start.encode()):
                continue
            walked = allocate_mask(1, vocab.size)
            matcher.fill_by_walk(walked)
            assert mask_of(matcher, vocab) == bits(walked, vocab.size), start


@pytest.mark.parametrize("order", ["declared", "any"])
def test_entries_give_the_mask_of_a_walk(order: str) -> None:
    vocab = small_vocabulary()
    engine = Engine(vocab)
    rng = random.Random(order)
    for schema in (PERSON, OPEN, TREE, {"type": "object"}, {"type": "array", "items": {"type": "number"}}):
        grammar = engine.compile(Dispatch([Tag("<f=w", JsonSchema(schema, property_order=order), "</f>")], ["<f="]))  # type: ignore[arg-type]
        for _ in range(10):
            matcher = grammar.matcher()
            assert matcher.accept_bytes(b"<f=w")
            for _ in range(30):
                walked = allocate_mask(1, vocab.size)
                matcher.fill_by_walk(walked)
                found = mask_of(matcher, vocab)
                assert found == bits(walked, vocab.size)
                pool = sorted(found - {vocab.size - 1}, key=lambda t: -len(vocab.token_bytes(t)))
                if not pool or not matcher.accept(rng.choice(pool[:40])):
                    break


def test_what_is_cached_changes_nothing() -> None:
    vocab = small_vocabulary()
    warm = Engine(vocab, EngineOptions(threads=1))  # nothing is built in the background
    for spec in SPECS.values():
        warm.compile(spec)
    for name, spec in SPECS.items():
        cold = Engine(vocab).compile(spec).matcher()
        hot = warm.compile(spec).matcher()
        for byte in REPLIES[name][0].encode()[:40]:
            assert mask_of(cold, vocab) == mask_of(hot, vocab)
            assert cold.accept(byte) and hot.accept(byte)
    assert warm.stats().entries > 0
    warm.clear()
    assert warm.stats().entries == 0


def test_a_call_in_a_real_vocabulary() -> None:
    """200 tokens, more than 100 of them inside calls, on 128,256 tokens: every mask is the oracle's."""
    tiktoken = pytest.importorskip("tiktoken")
    encoding = llama3(tiktoken)
    vocab = Vocabulary.from_tiktoken(encoding, end=["<|eot_id|>"])
    ordinary = [t for t, _ in sorted(encoding._mergeable_ranks.items(), key=lambda item: item[1])]
    root = oracle.trie(ordinary)
    people = [
        {
            "name": 'Zoë "Q" \n',
            "age": 42,
            "tags": ["a", 'b"c'],
            "note": "twelve tokens of plain text, and some more of them",
        },
        {"name": "x", "tags": [], "note": None},
        {"name": "日本語", "age": 0, "tags": ["ab", "ab", "a"], "note": True},
    ]
    calls = [f"<f=wipe>{json.dumps(p, ensure_ascii=False)}</f>" for p in people]
    tree = '<f=wipe_cache>{"v": 1, "kids": [{"v": -22,\n "kids": []}, {"v": 333, "kids": [{"v": 4}]}]}</f>'
    between = " Now the next of them, which is the one that the first was made for: 3 < 4, and so on.\n"
    parts = ["Let me see: 1 < 2 <f ", calls[0], between, tree, between, calls[1], calls[2], " done, é."]
    reply = "".join(parts)
    spec = dispatch()
    matcher, state = Engine(vocab).compile(spec).matcher(), oracle.build(spec)
    tokens = encoding.encode(reply, disallowed_special=())
    assert len(tokens) >= 200
    assert sum(len(encoding.encode(p, disallowed_special=())) for p in parts if p.startswith("<f=")) >= 100
    end = vocab.end[0]
    known: dict[Any, set[int]] = {}  # states are interned: text and the insides of strings come again and again
    for token in tokens:
        if state not in known:
            known[state] = set(oracle.allowed(state, root)) | ({end} if state.complete else set())
        assert mask_of(matcher, vocab) == known[state]
        assert token in known[state] and matcher.accept(token)
        state = state.feed_bytes(ordinary[token])
    assert state.complete and matcher.can_end


def llama3(tiktoken: Any) -> Any:
    import importlib.util

    found = importlib.util.find_spec("llama_models")
    if found is None or not found.submodule_search_locations:
        pytest.skip("llama-models is not installed")
    from tiktoken.load import load_tiktoken_bpe

    ranks = load_tiktoken_bpe(next(iter(found.submodule_search_locations)) + "/llama3/tokenizer.model")
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
    )
    special = {"<|eot_id|>": len(ranks)}
    return tiktoken.Encoding("llama3-test", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)


def test_apply_mask_bans_what_is_beyond_the_vocabulary() -> None:
    vocab = Vocabulary.byte_level()
    matcher = Engine(vocab).compile(Regex("[ab]")).matcher()
    mask = allocate_mask(1, vocab.size)
    matcher.fill_mask(mask)
    logits = np.zeros(300)
    apply_mask(logits, mask)
    assert np.flatnonzero(np.isfinite(logits)).tolist() == [ord("a"), ord("b")]
    with pytest.raises(ValueError, match="rows"):
        apply_mask(np.zeros((2, 300)), mask)
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(1, 300)
    apply_mask(tensor, mask)
    assert torch.isfinite(tensor[0]).nonzero().flatten().tolist() == [ord("a"), ord("b")]
