"""What is left of a grammar behind a text that stands there already: the generation prompt is part of the turn."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentgram.engine import spec as e
from agentgram.errors import DefinitionError

_NOTHING = e.Seq([])


def without_prefix(spec: e.Spec, prefix: str) -> e.Spec:
    """The continuations of ``prefix`` in the language of ``spec`` (its left quotient by that word).

    Exact for literals and tokens and what is composed of them; free text takes all of the prefix or none of it.

    Raises:
        DefinitionError: Nothing in the language begins so.
    """
    if not prefix:
        return spec
    found = [rest for left, rest in _after(spec, prefix) if not left]
    if not found:
        raise DefinitionError(
            f"the prompt ends with {prefix!r}, with which no turn of this format may begin for this request. Ask for "
            "reasoning where the prompt opens it, or render the prompt by the format."
        )
    return found[0] if len(found) == 1 else e.Choice(found)


def _after(spec: e.Spec, text: str) -> Iterator[tuple[str, e.Spec]]:
    """Ways to begin with the text: what is left of it behind the node, and what is left of the node."""
    if isinstance(spec, e.Lit):
        if spec.text.startswith(text):
            yield "", e.Lit(spec.text[len(text) :])
        elif text.startswith(spec.text):
            yield text[len(spec.text) :], _NOTHING
    elif isinstance(spec, e.Tok):
        if isinstance(spec.token, str) and text.startswith(spec.token):
            yield text[len(spec.token) :], _NOTHING
    elif isinstance(spec, e.Text):
        yield text, _NOTHING
        if not any(x in text for x in spec.excludes):
            yield "", spec
    elif isinstance(spec, e.Dispatch):
        if not any(isinstance(x, str) and x in text for x in (*spec.excludes, *spec.triggers, *spec.stops)):
            yield "", spec
    elif isinstance(spec, e.Regex):
        match = re.match(spec.pattern, text)
        if match:
            yield text[match.end() :], _NOTHING
    elif isinstance(spec, e.Seq):
        yield from _after_items(spec.items, text)
    elif isinstance(spec, e.Choice):
        for option in spec.options:
            yield from _after(option, text)
    elif isinstance(spec, e.Opt):
        yield text, _NOTHING
        yield from _after(spec.item, text)
    elif isinstance(spec, e.Rep):
        yield from _after_repeated(spec, text)
    elif isinstance(spec, e.Tag):
        begin, end = (m if isinstance(m, e.Tok) else e.Lit(m) for m in (spec.begin, spec.end))
        yield from _after_items((begin, spec.content, end), text)


def _after_items(items: tuple[e.Spec, ...], text: str) -> Iterator[tuple[str, e.Spec]]:
    if not items:
        yield text, _NOTHING
        return
    for left, rest in _after(items[0], text):
        if left:
            yield from _after_items(items[1:], left)
        else:
            yield "", e.Seq([rest, *items[1:]])


def _after_repeated(spec: e.Rep, text: str) -> Iterator[tuple[str, e.Spec]]:
    if spec.min == 0:
        yield text, _NOTHING
    if spec.max == 0:
        return
    most = None if spec.max is None else spec.max - 1
    sep = [] if spec.sep is None else [spec.sep]
    least = max(spec.min - 1, 0)
    more = e.Seq([*sep, e.Rep(spec.item, max(least, 1), most, spec.sep)])
    rest = _NOTHING if most == 0 else more if least else e.Opt(more)
    for left, inner in _after(spec.item, text):
        if not left:
            yield "", e.Seq([inner, rest])
        elif left != text:
            yield from _after(rest, left)
