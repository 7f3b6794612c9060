"""The EBNF reader: what it understands, and what it says about mistakes."""

from __future__ import annotations

import functools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram.engine import Ebnf, Grammar
from agentgram.errors import GrammarError
from tests.engine.schemas import engine, takes


@functools.cache
def grammar(text: str) -> Grammar:
    return engine().compile(Ebnf(text))


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ('root ::= "a" "b" | "c"', ["ab", "c"], ["a", "abc", ""]),
        ("root ::= 'it''s'", ["its"], ["it's"]),
        (r'root ::= "\"\\\n\t\x41\u00e9\u{1F600}\U0001F601"', ['"\\\n\tAé😀😁'], [""]),
        ('root ::= ("a" | "b")* "!"', ["!", "abba!"], ["ab", "c!"]),
        ('root ::= "a"? "b"+ "c"{2} "d"{1,} "e"{0,2}', ["bccd", "abbccddee"], ["ccd", "bcd", "bcc", "bccdeee"]),
        ("root ::= [a-c0_] [^a-c] [-x] [\\]\\-]", ["0d-]", "_z--", "ax\n-"[:2] + "x-"], ["da-]", "aa-]"]),
        ("root ::= . .", ["é😀", "\n\n"], ["a", "abc"]),
        ("root ::= [α-ω]+", ["βγ"], ["b", ""]),
        (r"root ::= [\d\s]+", ["1 2"], ["a"]),
        ("# a comment\nroot ::= a # more\n  b\na ::= 'x'\nb ::= |\n 'y'\n", ["x", "xy"], ["y"]),
        ('root ::= Regex("[a-z]{2,3}\\d\\"?") "."', ["ab1.", 'abc2".'], ["a1.", "abcd1."]),
        ('root ::= "k"{1000000,2000000} | "b"', ["b"], ["k", "kk"]),
        ('root ::= root "x" | "y"', ["y", "yxx"], ["x", "xy"]),
        ('root ::= a "1" | "z"\na ::= root "0"', ["z", "z01", "z0101"], ["01"]),
        ('root ::= "(" root ")" root | ""', ["", "(())()"], ["(", ")("]),
        ('root ::= e\ne ::= e "+" e | [0-9]', ["1", "1+2+3"], ["+", "1+"]),
        ('root ::= a a\na ::= a a | "" | "x"', ["", "xxx"], ["y"]),
        (
            "root ::= gap 'm' gap\ngap ::= (blank | eol)*\nblank ::= [ \\t]*\neol ::= '\\r'? '\\n'",
            ["m", " m\n", "\t\r\nm "],
            ["m\r", ""],
        ),
        ("root ::= my-rule.x\nmy-rule.x ::= 'q'", ["q"], ["x"]),
        ('root ::= unused? "a"\nunused ::= "u"\nnever-used ::= "n"', ["a", "ua"], ["n"]),
    ],
)
def test_language(text: str, good: list[str], bad: list[str]) -> None:
    assert [t for t in good if not takes(grammar(text), t)] == []
    assert [t for t in bad if takes(grammar(text), t)] == []


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "1:1", "empty"),
        ("# nothing", "1:10", "empty"),
        ('start ::= "a"', "1:1", 'no rule "root"'),
        ('root ::= "a" missing', "1:14", '"missing" is used but not defined'),
        ('root ::= a\nroot ::= "b"\na ::= "a"', "2:1", "defined twice"),
        ('root ::= "a', "1:10", "closing quote"),
        ("root ::= [a", "1:10", "']'"),
        ("root ::= [z-a]", "1:11", "reversed"),
        ("root ::= []", "1:10", "empty"),
        ('root ::= ("a"', "1:10", "')'"),
        ('root ::= "a")', "1:13", "expected"),
        ('root ::= "a"{3,2}', "1:13", "above the greatest"),
        ('root ::= "a"{x}', "1:13", "count"),
        ('root ::= "a"{99999999999999999999}', "1:14", "too large"),
        ('root ::= "\\q"', "1:11", "escape"),
        ('root ::= "\\ud800"', "1:11", "names no character"),
        ("root ::= *", "1:10", "unexpected"),
        ('root := "a"', "1:1", "expected a rule"),
        ('root ::= "a"\nx ::= x "b"', "2:1", "never be completed"),
        ('root ::= a b\na ::= b "1"\nb ::= a "2"', "1:1", "never be completed"),
        ("root ::= " + "(" * 5000 + "'a'" + ")" * 5000, "1:510", "nested"),
    ],
)
def test_mistakes_are_named_with_line_and_column(text: str, place: str, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        grammar(text)
    assert caught.value.pointer == place
    assert words in str(caught.value)


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(GrammarError, match='Did you mean "my_rule"'):
        grammar("root ::= My-rule\nmy_rule ::= 'a'")


def random_grammar(rng: random.Random) -> dict[str, list[list[str]]]:
    """Alternatives of sequences over the letters x, y and the rules root, a, b."""
    symbols = ["'x'", "'y'", "root", "a", "b"]
    rules = {}
    for name in ("root", "a", "b"):
        rules[name] = [[rng.choice(symbols) for _ in range(rng.randint(0, 3))] for _ in range(rng.randint(1, 3))]
    return rules


def derivable(rules: dict[str, list[list[str]]], longest: int) -> set[str]:
    """Every text up to a length that the rules derive, by a plain fixpoint."""
    words: dict[str, set[str]] = {name: set() for name in rules}
    while True:
        grown = False
        for name, alternatives in rules.items():
            for sequence in alternatives:
                texts = {""}
                for symbol in sequence:
                    ends = words[symbol] if symbol in rules else {symbol[1]}
                    texts = {t + e for t in texts for e in ends if len(t + e) <= longest}
                if not texts <= words[name]:
                    words[name] |= texts
                    grown = True
        if not grown:
            return words["root"]


def ends_of(rules: dict[str, list[list[str]]]) -> dict[str, bool]:
    """Which rules can be completed at all."""
    ends = dict.fromkeys(rules, False)
    for _ in rules:
        for name, alternatives in rules.items():
            ends[name] = any(all(ends.get(symbol, True) for symbol in sequence) for sequence in alternatives)
    return ends


@given(st.integers(0, 2**32))
def test_random_grammars_against_a_fixpoint(seed: int) -> None:
    rules = random_grammar(random.Random(seed))
    text = "\n".join(
        f"{name} ::= " + " | ".join(" ".join(seq) or '""' for seq in alternatives)
        for name, alternatives in rules.items()
    )
    longest = 5
    expected = derivable(rules, longest)
    if not all(ends_of(rules)[name] for name in rules):
        with pytest.raises(GrammarError, match="never be completed"):
            engine().compile(Ebnf(text))
        return
    made = engine().compile(Ebnf(text))
    texts = {""}
    everything = {""}
    for _ in range(longest):
        texts = {t + c for t in texts for c in "xy"}
        everything |= texts
    assert {t for t in everything if takes(made, t)} == expected, text


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= e "x"\ne ::= e e | e | "" | "a"',
        'root ::= a\na ::= b b | "" | "y"\nb ::= a a | a | ""',
        "root ::= (root root | item)?\nitem ::= root | [0-9]*",
    ],
)
def test_rules_that_call_each_other_without_a_byte_between(grammar: str) -> None:
    matcher = engine().compile(Ebnf(grammar)).matcher()
    assert matcher.accept_bytes(matcher.shortest_end()) and matcher.can_end
    matcher.reset()
    for byte in b"aay01x":
        if matcher.accept(byte):
            assert matcher.fork().accept_bytes(matcher.shortest_end())
