"""Rules without an order: a matching deny wins, allows unite, nothing matching is denied."""

from __future__ import annotations

import fnmatch
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgram import Policy, PolicyError, Principal, Tool, ToolDefinition, allow, ask, deny, tool
from agentgram.policy import Rule, times

ANN = Principal("ann", roles={"support", "sales"})
BOB = Principal("bob")


def named(name: str, *tags: str) -> ToolDefinition:
    return ToolDefinition(name=name, tags=frozenset(tags))


def test_nothing_matching_is_denied() -> None:
    decision = Policy().decide(ANN, named("get"))
    assert (decision.denied, decision.allowed, decision.ask) == (True, False, False)
    assert decision.rule == "no rule allows it"
    assert decision.narrowed is None


@pytest.mark.parametrize(
    ("rule", "user", "definition", "matches"),
    [
        (allow("get_*"), BOB, named("get_order"), True),
        (allow("get_*"), BOB, named("Get_order"), False),
        (allow("get_*"), BOB, named("forget_order"), False),
        (allow("get_?"), BOB, named("get_1"), True),
        (allow("get_?"), BOB, named("get_12"), False),
        (allow("get_[ab]"), BOB, named("get_b"), True),
        (allow("get", "set"), BOB, named("set"), True),
        (allow("wipe"), BOB, named("wipe_cache"), False),
        (allow("crm.*"), BOB, named("crm.get.all"), True),
        (allow("a.c"), BOB, named("abc"), False),
        (allow("*", tags="read"), BOB, named("get", "read", "slow"), True),
        (allow("*", tags={"read", "write"}), BOB, named("get", "read"), True),
        (allow("*", tags="read"), BOB, named("get"), False),
        (allow("*", roles="support"), ANN, named("get"), True),
        (allow("*", roles="support"), BOB, named("get"), False),
        (allow("*", users="bob"), BOB, named("get"), True),
        (allow("*", users="support"), ANN, named("get"), False),
        (allow("*", roles="bob"), BOB, named("get"), False),
        (allow("*", users="ann", roles="admin"), ANN, named("get"), False),
        (allow("*", users=["ann", "bob"], roles=["admin", "sales"]), ANN, named("get"), True),
    ],
)
def test_what_a_rule_matches(rule: Rule, user: Principal, definition: ToolDefinition, matches: bool) -> None:
    assert Policy(rule).decide(user, definition).allowed is matches


def test_deny_wins_and_allow_needs_no_person() -> None:
    policy = Policy(allow("*", roles="support"), ask("refund"), deny("refund", users="ann"), ask("mail"))
    refund, mail = named("refund"), named("mail")
    assert policy.decide(ANN, refund).rule == "deny('refund', users=['ann'])"
    assert policy.decide(BOB, refund).ask
    assert policy.decide(ANN, mail).allowed
    assert policy.decide(BOB, mail).rule == "ask('mail')"


def test_rules_of_one_name_are_told_apart_by_what_they_say() -> None:
    by_one, by_other = ask("pay", by="manager", name="pay"), ask("pay", by="director", name="pay", roles="support")
    once, thrice = allow("pay", when=times(1), name="n"), allow("pay", when=times(3), name="n", roles="support")
    for rules in ([by_one, by_other], [by_other, by_one]):
        assert Policy(*rules).decide(ANN, named("pay")).by == {"manager", "director"}
        assert Policy(*rules).decide(ANN, named("pay"), {}).by == {"manager", "director"}
        assert Policy(*rules).decide(BOB, named("pay"), {}).by == {"manager"}
    for rules in ([once, thrice], [thrice, once]):
        assert Policy(*rules).decide(ANN, named("pay")).left == 3
        assert Policy(*rules).decide(BOB, named("pay")).left == 1
    assert Policy(by_one, ask("pay")).decide(BOB, named("pay"), {}).by == frozenset(), "one of them asks anybody"


def test_tools_of_every_kind_are_decided_alike() -> None:
    def get_order(order: int) -> str:
        return ""

    policy = Policy(allow("get_*", "lookup"))
    lookup = Tool.from_schema("lookup", {})
    for item in (get_order, tool(get_order), tool(get_order).definition, lookup):
        assert policy.decide(BOB, item).allowed
    wipe = named("wipe")
    assert policy.tools_for(BOB, [get_order, wipe, lookup]) == [tool(get_order).definition, lookup.definition]


def test_a_person_is_asked_about_a_tool_that_is_shown() -> None:
    assert Policy(ask("refund")).tools_for(BOB, [named("refund"), named("wipe")]) == [named("refund")]


names = st.text("abc._", min_size=1, max_size=4).filter(lambda s: s[0] in "abc_")
words = st.sets(st.sampled_from(["x", "y", "z"]), max_size=2)
rules = st.builds(
    lambda make, globs, tags, users, roles: make(*globs, tags=tags or None, users=users or None, roles=roles or None),
    st.sampled_from([allow, ask, deny]),
    st.lists(st.text("abc*?", min_size=1, max_size=3), min_size=1, max_size=2),
    words,
    words,
    words,
)
users = st.builds(lambda id_, roles: Principal(id_, roles=roles), st.sampled_from(["x", "y", "w"]), words)
definitions = st.builds(lambda name, tags: named(name, *tags), names, words)


def reference(policy: list[Rule], user: Principal, definition: ToolDefinition) -> str:
    """The policy's definition, spelled out without the implementation's helpers."""
    effects = set()
    for rule in policy:
        if rule.users and user.id not in rule.users:
            continue
        if rule.roles and not set(rule.roles) & set(user.roles):
            continue
        if rule.tags and not set(rule.tags) & set(definition.tags):
            continue
        if any(fnmatch.fnmatchcase(definition.name, glob) for glob in rule.tools):
            effects.add(rule.effect)
    if "deny" in effects:
        return "denied"
    return "allowed" if "allow" in effects else "ask" if "ask" in effects else "denied"


@given(st.lists(rules, max_size=6), users, definitions, st.randoms(use_true_random=False))
def test_order_changes_nothing(
    policy: list[Rule], user: Principal, definition: ToolDefinition, rng: random.Random
) -> None:
    decision = Policy(*policy).decide(user, definition)
    assert decision.outcome == reference(policy, user, definition)
    assert (decision.narrowed is None) == decision.denied
    shuffled = list(policy)
    rng.shuffle(shuffled)
    assert Policy(*shuffled).decide(user, definition) == decision


@given(st.lists(rules, max_size=6), users, st.lists(definitions, max_size=4), rules)
def test_one_more_deny_never_allows_more(
    policy: list[Rule], user: Principal, tools: list[ToolDefinition], more: Rule
) -> None:
    before = Policy(*policy).tools_for(user, tools)
    after = Policy(*policy, deny(*more.tools, users=more.users or None, roles=more.roles or None)).tools_for(
        user, tools
    )
    assert all(definition in before for definition in after)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: allow(), r"names no tool: write allow\('\*'\)"),
        (lambda: deny(""), "can match no tool"),
        (lambda: allow("größe"), "can match no tool"),
        (lambda: allow("get order"), "can match no tool"),
        (lambda: allow("*", roles=""), "roles are non-empty strings"),
        (lambda: allow("*", roles=[]), r"roles=\[\]\) names none: leave roles out"),
        (lambda: allow("*", users=set()), "users=.* names none"),
        (lambda: ask("*", by=()), "by=.* names none"),
        (lambda: allow("get_[ab"), "can match no tool"),
        (lambda: allow("get_]"), "can match no tool"),
        (lambda: Policy(allow("*")).decide(BOB, named("get"), [1]), "arguments are a dict"),  # type: ignore[arg-type]
        (lambda: allow("*", users=[3]), "users are non-empty strings"),  # type: ignore[list-item]
        (lambda: Policy("*"), "not a rule"),  # type: ignore[arg-type]
        (lambda: Principal(""), "id is ''"),
        (lambda: Principal("a", roles={""}), "role is ''"),
        (lambda: Policy().decide("ann", named("get")), "decides for a Principal"),  # type: ignore[arg-type]
    ],
)
def test_mistakes(make: object, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        make()  # type: ignore[operator]


def test_a_single_role_may_be_a_string() -> None:
    assert Principal("ann", roles="support").roles == frozenset({"support"})
    assert str(ANN) == "ann (sales, support)"
    assert str(BOB) == "bob"


FILE = """
[[allow]]
tools = ["get_*", "lookup"]

[[ask]]
tools = "refund"
roles = ["support"]
name = "refunds by support"

[[deny]]
tools = ["*"]
users = "mallory"
tags = ["write"]
"""


def test_a_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(FILE)
    assert Policy.load(path).rules == (
        allow("get_*", "lookup"),
        ask("refund", roles="support", name="refunds by support"),
        deny("*", users="mallory", tags="write"),
    )
    assert Policy.load(str(path)).decide(ANN, named("refund")).rule == "refunds by support"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[alow]]\ntools = ['a']", r"a policy has no 'alow'\. Did you mean 'allow'\?"),
        ("[allow]\ntools = ['a']", "two brackets"),
        ("allow = ['a']", r"\[\[allow\]\] number 1 is 'a'"),
        ("[[allow]]\ntool = ['a']", r"number 1 has 'tool', which no rule has\. Did you mean 'tools'\?"),
        ("[[allow]]\ntools = ['a']\n[[allow]]\ntools = 3", "number 2: tools is 3"),
        ("[[allow]]\ntools = ['a']\nwhere = 50", "where is 50, it must be a table"),
        ("[[allow]]\nroles = ['a']", "names no tool"),
        ("[[allow]]\ntools = ['a']\nusers = []", r"number 1: allow\(\.\.\., users=\[\]\) names none"),
        ("[[allow]]\ntools = ['a b']", "can match no tool"),
        ("[[allow]]\ntools = ['a']\nname = 3", "name is 3"),
        ("[[allow", "is not TOML"),
    ],
)
def test_mistakes_in_a_file_are_told_with_their_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(PolicyError, match=message):
        Policy.load(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="no policy can be read from"):
        Policy.load(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("glob", "reaches"),
    [
        ("*", False),
        ("*.wipe", False),
        ("sho*", False),
        ("shop*", False),
        ("shop.*", True),
        ("shop.w?pe", True),
        ("shop.wipe", True),
    ],
)
def test_a_glob_reaches_foreign_tools_only_where_it_names_them(glob: str, reaches: bool) -> None:
    foreign = ToolDefinition(name="shop.wipe", source="shop")
    own = named("shop.wipe")
    for make in (allow, ask):
        assert not Policy(make(glob)).decide(BOB, own).denied
        assert Policy(make(glob)).decide(BOB, foreign).denied is not reaches
    assert Policy(allow("shop.*"), deny(glob)).decide(BOB, foreign).denied, "what is denied is denied everywhere"
    renamed = Tool.from_schema("shop.wipe", {"type": "object"}, source="shop").renamed("wipe")
    assert Policy(allow("*")).decide(BOB, renamed).denied
    assert Policy(allow("wipe")).decide(BOB, renamed).allowed
