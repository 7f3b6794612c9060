"""The pieces that a format is made of: literals, composition, and holes that tools and messages fill.

Every node is frozen data. What it does lives in three places, one function each: :mod:`agentgram.formats.printing`,
:mod:`agentgram.formats.lowering` and :mod:`agentgram.formats.parsing`.

Three languages belong to a format, each within the next: *canonical* is what we print and what the strict grammar
lets a model write; *tolerant* is the grammar with ``lenient=True``; *accepted* is what the parser reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, TypeAlias

from agentgram.errors import DefinitionError, nearest


@dataclass(frozen=True)
class Lit:
    """Fixed text. Only ``text`` is printed; the parser also reads the variants, of which an empty one means none."""

    text: str
    variants: tuple[str, ...] = ()

    def __init__(self, text: str, *more: str, variants: Sequence[str] = ()) -> None:
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "variants", (*more, *variants))


@dataclass(frozen=True)
class Tok:
    """A marker that is one special token where the vocabulary has it, and else its text."""

    name: str
    variants: tuple[str, ...] = ()
    """Other texts that the parser reads as this marker."""

    def __init__(self, name: str, *more: str, variants: Sequence[str] = ()) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "variants", (*more, *variants))

    @property
    def text(self) -> str:
        """The marker as text."""
        return self.name


Marker: TypeAlias = Lit | Tok


def _marker(value: str | Marker) -> Marker:
    return Lit(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Space:
    """Layout: ``canonical`` is printed; elsewhere up to ``max`` blanks and newlines are tolerated."""

    canonical: str = ""
    max: int = 64
    """The longest whitespace that the lenient grammar lets through here, in bytes."""


@dataclass(frozen=True)
class Field:
    """Free text that becomes part of the message. What it may not contain follows from what stands around it."""

    kind: Literal["content", "reasoning"] = "content"

    def __post_init__(self) -> None:
        if self.kind not in ("content", "reasoning"):
            raise DefinitionError(f"Field({self.kind!r}): use 'content' or 'reasoning'.")


@dataclass(frozen=True)
class Name:
    """The called tool's name: fans out over the tools of a request."""

    prefix: str = ""
    """Written before the name, as in ``functions.``; the parser does without it too."""
    only: tuple[str, ...] = ()
    """The tools that this name may stand for; empty for all that no other name of the format claims."""


@dataclass(frozen=True, init=False)
class Args:
    """The call's arguments, written by a named codec (:mod:`agentgram.formats.codecs`)."""

    codec: str
    options: tuple[tuple[str, Any], ...]
    """What the codec is told: (option, value)."""

    def __init__(self, codec: str = "json", options: Sequence[Sequence[Any]] | Mapping[str, Any] = (), **more: Any):
        pairs = options.items() if isinstance(options, Mapping) else options
        given = [*((k, v) for k, v in pairs), *more.items()]
        object.__setattr__(self, "codec", codec)
        object.__setattr__(self, "options", tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in given))


@dataclass(frozen=True)
class Count:
    """The call's number in the conversation, from 0."""


@dataclass(frozen=True)
class CallId:
    """The call's id, where a format carries one.

    An id that the format did not make itself (one of another server, say) is printed as an id of this kind that
    follows from it, so that a result finds its call.
    """

    pattern: str = "[A-Za-z0-9]{9}"
    """Regular expression that the id matches."""
    of: Node | None = None
    """What the id is made of, where it is more than a random word: the id is the text of this node."""


@dataclass(frozen=True, init=False)
class JsonObj:
    """The call's envelope as a JSON object: its keys in the order in which they are written.

    Values are holes (:class:`Name`, :class:`Args`, :class:`CallId`), constants (:class:`Lit`) or further objects.
    The parser reads the keys in any order, several objects one after another, and an array of them.
    """

    keys: tuple[tuple[str, Node], ...]
    aliases: tuple[tuple[str, str], ...]
    """Other spellings of keys that the parser reads: (other, key)."""

    def __init__(
        self,
        keys: Sequence[Sequence[Any]] | Mapping[str, Node] = (),
        aliases: Sequence[Sequence[str]] | Mapping[str, str] = (),
        **more: Node,
    ) -> None:
        pairs = keys.items() if isinstance(keys, Mapping) else keys
        others = aliases.items() if isinstance(aliases, Mapping) else aliases
        object.__setattr__(self, "keys", (*((k, v) for k, v in pairs), *more.items()))
        object.__setattr__(self, "aliases", tuple((a, b) for a, b in others))
        known = [k for k, _ in self.keys]
        if len(set(known)) != len(known):
            raise DefinitionError(f"JsonObj repeats a key among {known}.")
        for other, key in self.aliases:
            if key not in known:
                raise DefinitionError(f"JsonObj: alias {other!r} stands for {key!r}. {nearest(key, known)}")


@dataclass(frozen=True)
class JsonArr:
    """A JSON array of envelopes: all calls of one tag."""

    item: Node


@dataclass(frozen=True, init=False)
class Seq:
    """The items one after another."""

    items: tuple[Node, ...]

    def __init__(self, *nodes: Node, items: Sequence[Node] = ()) -> None:
        object.__setattr__(self, "items", (*nodes, *items))


@dataclass(frozen=True, init=False)
class Choice:
    """One of the options. The first is printed; the parser takes the first that matches."""

    options: tuple[Node, ...]

    def __init__(self, *nodes: Node, options: Sequence[Node] = ()) -> None:
        object.__setattr__(self, "options", (*nodes, *options))
        if not self.options:
            raise DefinitionError("a Choice of no options matches nothing: give it at least one.")


@dataclass(frozen=True)
class Opt:
    """The item, or nothing. Printed only where the item has something to say."""

    item: Node
    written: bool = True
    """False: never printed, and not in the strict grammar; only tolerated."""


@dataclass(frozen=True)
class Rep:
    """The item ``min`` to ``max`` times (None: without end), with ``sep`` between."""

    item: Node
    min: int = 0
    max: int | None = None
    sep: Node | None = None

    def __post_init__(self) -> None:
        if self.min < 0 or (self.max is not None and self.max < self.min):
            raise DefinitionError(f"Rep from {self.min} to {self.max}: use 0 <= min <= max.")


@dataclass(frozen=True)
class Perm:
    """The items in any order; printed, and written by the strict grammar, in this one."""

    items: tuple[Node, ...]

    def __init__(self, items: Sequence[Node]) -> None:
        object.__setattr__(self, "items", tuple(items))


@dataclass(frozen=True, init=False)
class Tag:
    """A marker, a body and a closing marker."""

    begin: Marker
    body: Node
    end: Marker | None
    on_missing_end: Literal["accept", "malformed"]
    """What becomes of a complete body whose end is missing: it is read all the same, or it is malformed. The latter is
    not for envelopes of JSON and for several calls, which are calls before the end is known."""
    peek: bool
    """The begin is only looked for: it is the beginning of the body, which prints and reads it."""
    where: Literal["anywhere", "start"]
    """Where it may stand: anywhere in the text, or nowhere but at the turn's start."""

    def __init__(
        self,
        begin: str | Marker,
        body: Node,
        end: str | Marker | None = None,
        on_missing_end: Literal["accept", "malformed"] = "accept",
        peek: bool = False,
        where: Literal["anywhere", "start"] = "anywhere",
    ) -> None:
        object.__setattr__(self, "begin", _marker(begin))
        object.__setattr__(self, "body", body)
        object.__setattr__(self, "end", _marker(end) if end not in (None, "") else None)
        object.__setattr__(self, "on_missing_end", on_missing_end)
        object.__setattr__(self, "peek", peek)
        object.__setattr__(self, "where", where)
        if not self.begin.text:
            raise DefinitionError("a Tag begins with a marker that is not empty: it is what the parser looks for.")
        if on_missing_end not in ("accept", "malformed"):
            raise DefinitionError(f"Tag(on_missing_end={on_missing_end!r}): use 'accept' or 'malformed'.")
        if on_missing_end == "malformed" and any(isinstance(n, JsonObj | JsonArr | Rep) for n in walk(body)):
            raise DefinitionError("a Tag of JSON envelopes or of several calls is read where its end is missing.")
        if where not in ("anywhere", "start"):
            raise DefinitionError(f"Tag(where={where!r}): use 'anywhere' or 'start'.")


@dataclass(frozen=True, init=False)
class Dispatch:
    """Free text with tags in it: the text goes into ``text``'s part of the message, each tag is a call, or several."""

    text: Field
    tags: tuple[Tag, ...]
    """The calls' tags; the first is the one that is printed."""
    sep: str
    """Printed between calls, and between a call and a text; the parser takes it off the text."""
    before: str
    """Printed between a text and a call, where that is something else."""
    also: tuple[Tag, ...]
    """Tags that only the parser knows: what models write beside what they should."""

    def __init__(
        self, text: Field, tags: Sequence[Tag], sep: str = "", also: Sequence[Tag] = (), before: str | None = None
    ) -> None:
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "tags", tuple(tags))
        object.__setattr__(self, "sep", sep)
        object.__setattr__(self, "before", sep if before is None else before)
        object.__setattr__(self, "also", tuple(also))
        if not self.tags:
            raise DefinitionError("a Dispatch needs at least one tag.")
        if len({t.where for t in self.tags}) > 1:
            raise DefinitionError("the tags of a Dispatch stand all anywhere, or all at the start: make them agree.")
        if any(t.peek and t.where == "anywhere" for t in self.tags):
            raise DefinitionError("a tag without a marker of its own (peek) is for the start: give it where='start'.")


@dataclass(frozen=True, kw_only=True)
class Channel:
    """One kind of message in a turn of several (:class:`Channels`): it binds a header to what its body is."""

    name: str
    """The channel that the header names."""
    content: Node
    """The body: a :class:`Field`, or :class:`Args` where ``to`` names a tool."""
    to: Name | None = None
    """The recipient: the called tool."""
    types: tuple[str, ...] = ()
    """Content types as the header spells them, the first of them printed; the parser reads any."""
    last: bool = False
    """Whether the turn ends with this message."""
    end: str = ""
    """What the history shows at the end of a last message; empty for the common end."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", tuple(self.types))


@dataclass(frozen=True, kw_only=True)
class Channels:
    """A turn of several messages, each with a header that says what it is; the turn begins inside the first header.

    A header has a recipient, a channel and a content type, the first two in any order. The parser finds them wherever
    they stand between ``start`` and ``body``, with whatever a model put around them.
    """

    messages: tuple[Channel, ...]
    start: tuple[str, str] = ("<|start|>", "assistant")
    """What begins a further message: a marker, and the role after it."""
    channel: str = "<|channel|>"
    """The marker before the channel's name."""
    constrain: str = "<|constrain|>"
    """The marker before the content type; the parser does without it."""
    to: str = " to="
    """What stands before the recipient."""
    body: str = "<|message|>"
    """The marker between header and body."""
    end: str = "<|end|>"
    """The marker after a message that others follow."""
    most: int = 8
    """How many messages the strict grammar allows before the last one."""

    def __post_init__(self) -> None:
        first, role = self.start
        object.__setattr__(self, "start", (first, role))
        object.__setattr__(self, "messages", tuple(self.messages))
        if not any(m.last and m.to is None for m in self.messages):
            raise DefinitionError("Channels need a last message without a recipient: the answer.")

    @property
    def controls(self) -> tuple[str, ...]:
        """The markers."""
        ends = (m.end for m in self.messages if m.end)
        return tuple(dict.fromkeys((self.start[0], self.channel, self.constrain, self.body, self.end, *ends)))


@dataclass(frozen=True)
class Stop:
    """Where the turn ends. Zero bytes wide: an end-of-turn token is never a literal of the grammar."""

    token: str
    reason: str = "stop"


Node: TypeAlias = (
    Lit | Tok | Space | Field | Name | Args | Count | CallId | JsonObj | JsonArr | Seq | Choice | Opt | Rep | Perm
    | Tag | Dispatch | Channels | Stop
)  # fmt: skip

NODES: tuple[type, ...] = (
    Lit, Tok, Space, Field, Name, Args, Count, CallId, JsonObj, JsonArr, Seq, Choice, Opt, Rep, Perm, Tag, Dispatch,
    Channels, Stop,
)  # fmt: skip
"""Every kind of node."""

_PARTS = (*NODES, Channel)
_BY_NAME = {cls.__name__: cls for cls in _PARTS}


def node_to_dict(node: Node) -> dict[str, Any]:
    """A JSON value that :func:`node_from_dict` reads back to an equal node; defaults are left out."""
    out: dict[str, Any] = {"type": type(node).__name__}
    for item in fields(node):
        value = getattr(node, item.name)
        default = _DEFAULTS.get(item.name, item.default) if item.default is MISSING else item.default
        if item.name == "before":
            default = getattr(node, "sep", MISSING)
        if value not in (None, ()) and (default is MISSING or value != default):
            out[item.name] = _plain(value)
    return out


_DEFAULTS = {"on_missing_end": "accept", "peek": False, "where": "anywhere", "sep": "", "codec": "json"}
"""Defaults of those nodes that say them in their ``__init__``."""


def _plain(value: Any) -> Any:
    if isinstance(value, _PARTS):
        return node_to_dict(value)  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def node_from_dict(data: Mapping[str, Any]) -> Any:
    """Reads what :func:`node_to_dict` wrote.

    Raises:
        DefinitionError: The value does not describe a node; what is unknown is named.
    """
    values = dict(data)
    kind = values.pop("type", None)
    if kind not in _BY_NAME:
        raise DefinitionError(f"{kind!r} is not a kind of format node. {nearest(str(kind), _BY_NAME)}")
    try:
        return _BY_NAME[kind](**{k: _read(v) for k, v in values.items()})
    except TypeError as error:
        raise DefinitionError(f"a format node {kind} is described wrongly: {error}.") from error


def _read(value: Any) -> Any:
    if isinstance(value, Mapping):
        return node_from_dict(value)
    if isinstance(value, list):
        return tuple(_read(v) for v in value)
    return value


def children(node: Node) -> Iterator[Node]:
    """The nodes directly under a node, in order."""
    for item in fields(node):
        yield from _nodes_in(getattr(node, item.name))


def _nodes_in(value: Any) -> Iterator[Node]:
    if isinstance(value, NODES):
        yield value  # type: ignore[misc]
    elif isinstance(value, Channel):
        yield from children(value)  # type: ignore[arg-type]
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_in(item)


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes under it, outermost first."""
    yield node
    for child in children(node):
        yield from walk(child)


def names_a_tool(node: Node) -> bool:
    """Whether the node's text depends on which tool is called."""
    return any(isinstance(n, Name | Args | CallId | Count) for n in walk(node))


def holds_many(tag: Tag) -> bool:
    """Whether one tag holds several calls: a list of them, or a section."""
    return any(isinstance(n, Rep | JsonArr) and names_a_tool(n) for n in walk(tag.body))


def texts(marker: Marker | None) -> tuple[str, ...]:
    """All spellings of a marker that the parser reads."""
    return () if marker is None else (marker.text, *marker.variants)


def firsts(items: Sequence[Node], follow: tuple[str, ...]) -> tuple[str, ...]:
    """The texts that the items, and what follows them, may begin with, as far as these are fixed."""
    if not items:
        return follow
    head, rest = items[0], items[1:]
    if isinstance(head, Lit | Tok):
        return texts(head)
    if isinstance(head, Tag):
        return texts(head.begin)
    if isinstance(head, Seq | Perm):
        return firsts((*head.items, *rest), follow)
    if isinstance(head, Choice):
        return tuple(t for option in head.options for t in firsts((option, *rest), follow))
    if isinstance(head, Space):
        after = firsts(rest, follow)
        return (*(head.canonical + t for t in after), *after)
    if isinstance(head, JsonObj):
        return ("{", "[")
    if isinstance(head, JsonArr):
        return ("[",)
    if isinstance(head, Opt):
        return (*firsts((head.item,), ()), *firsts(rest, follow))
    if isinstance(head, Rep):
        return (*firsts((head.item,), ()), *(firsts(rest, follow) if head.min == 0 else ()))
    return ()
