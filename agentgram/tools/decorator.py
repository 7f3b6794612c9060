"""``tool``: what turns a function or a Pydantic model into something that a model may call."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Collection, Mapping
from types import FrameType
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, overload

from pydantic import BaseModel

from agentgram.errors import DefinitionError, nearest
from agentgram.tools import signature
from agentgram.tools.context import bind
from agentgram.tools.definition import ToolDefinition, Unsupported

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
M = TypeVar("M", bound=BaseModel)

Trust: TypeAlias = Literal["untrusted", "trusted"]


_SETTINGS = ("function", "definition", "parameters", "timeout", "retries", "sequential", "max_result_tokens", "output")


class ModelRetry(Exception):
    """Raised by a tool to tell the model what to do differently: the text goes back, and it may call again."""


class ToolFailed(Exception):
    """Raised by a tool when it cannot answer: the text goes back to the model as the call's error."""


class Tool(Generic[P, R_co]):
    """A function that a model may call. It stays callable, with its own signature.

    Made by :func:`tool` and :meth:`from_schema`.
    """

    def __init__(
        self,
        function: Callable[P, R_co] | None,
        definition: ToolDefinition,
        parameters: signature.Parameters,
        *,
        timeout: float | None = None,
        retries: int = 2,
        sequential: bool = False,
        max_result_tokens: int | None = None,
        output: Trust = "untrusted",
    ) -> None:
        if timeout is not None and timeout <= 0:
            raise DefinitionError(
                f"tool {definition.name!r} has timeout={timeout}: it must be above 0 seconds, or None."
            )
        if retries < 0:
            raise DefinitionError(f"tool {definition.name!r} has retries={retries}: it must be 0 or more.")
        if max_result_tokens is not None and max_result_tokens < 1:
            raise DefinitionError(
                f"tool {definition.name!r} has max_result_tokens={max_result_tokens}: it must be at least 1, or None."
            )
        if output not in ("untrusted", "trusted"):
            raise DefinitionError(f"tool {definition.name!r} has output={output!r}: use 'untrusted' or 'trusted'.")
        self.function = function
        """What runs; None for a tool that is only declared, whose calls the caller answers."""
        self.definition = definition
        """What the model is told."""
        self.parameters = parameters
        """How calls are validated and handed to the function."""
        self.timeout = timeout
        """Seconds that a call may take; None is no limit."""
        self.retries = retries
        """How often in a row the tool may ask for another attempt (wrong arguments, :class:`ModelRetry`)."""
        self.sequential = sequential
        """True when no other call may run at the same time."""
        self.max_result_tokens = max_result_tokens
        """Tokens of a result that the model sees; what is longer is cut, and says so. None is no limit."""
        self.output: Trust = output
        """Whether results may be believed: ``trusted`` only where no outsider can write into them."""
        if function is not None:
            functools.update_wrapper(self, function, updated=())

    @property
    def name(self) -> str:
        """The tool's qualified name."""
        return self.definition.name

    @property
    def is_unbound_method(self) -> bool:
        """True for a decorated method that was taken from its class instead of an instance."""
        return not self.parameters.whole and self.function is not None and signature.is_method(self.function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Calls the function, as if it were no tool: nothing is validated.

        Raises:
            DefinitionError: The tool was only declared.
        """
        if self.function is None:
            raise DefinitionError(f"tool {self.name!r} was declared without run=: there is nothing to call.")
        return self.function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Tool[..., R_co]:
        if instance is None or not self.is_unbound_method:
            return self
        assert self.function is not None
        return self._copy(function=self.function.__get__(instance, owner))

    def __repr__(self) -> str:
        return f"<Tool {self.name}({', '.join(self.definition.schema.get('properties', {}))})>"

    def _copy(self, **changes: Any) -> Tool[..., Any]:
        values = {key: getattr(self, key) for key in _SETTINGS}
        return Tool(**{**values, **changes})

    def renamed(self, name: str) -> Tool[..., R_co]:
        """The same tool under another name.

        Raises:
            DefinitionError: The name cannot name a tool.
        """
        return self._copy(definition=dataclasses.replace(self.definition, name=name))

    def bind(self, **paths: str) -> Tool[..., R_co]:
        """The same tool with arguments that come from the run (:func:`agentgram.bind`) and are not shown.

        Args:
            **paths: For each argument, where its value lies, such as ``user_id="user.id"``.

        Raises:
            DefinitionError: The tool has no such argument, or the path names nothing; or the arguments are a model.
        """
        if self.parameters.rebuild is None:
            raise DefinitionError(f"the arguments of tool {self.name!r} are one model: take ctx.user there instead.")
        known = self.definition.schema.get("properties", {})
        for key in paths:
            if key not in known:
                raise DefinitionError(f"tool {self.name!r} has no argument {key!r} to bind. {nearest(key, known)}")
        parameters = self.parameters.rebuild({key: bind(path) for key, path in paths.items()})
        return self._copy(
            definition=dataclasses.replace(self.definition, schema=parameters.schema), parameters=parameters
        )

    @classmethod
    def from_schema(
        cls,
        name: str,
        schema: Mapping[str, Any],
        *,
        description: str = "",
        run: Callable[..., Any] | None = None,
        tags: str | Collection[str] = (),
        timeout: float | None = None,
        retries: int = 2,
        sequential: bool = False,
        max_result_tokens: int | None = None,
        output: Trust = "untrusted",
        unsupported: Unsupported = "error",
        source: str = "",
    ) -> Tool[..., Any]:
        """A tool whose arguments are described by a schema.

        Args:
            name: The tool's name.
            schema: JSON Schema of the arguments: an object.
            description: What the tool does, for the model.
            run: Called with the arguments as keywords; None for a tool that is only declared.
            tags: Words that policies select by.
            timeout: Seconds that a call may take.
            retries: How often in a row wrong arguments may be corrected.
            sequential: True when no other call may run at the same time.
            max_result_tokens: Tokens of a result that the model sees; what is longer is cut.
            output: Whether results may be believed.
            unsupported: What to do with keywords that the grammar cannot enforce: refuse, or loosen them and leave
                them to validation.
            source: Who else offers the tool; a policy's globs reach it only where they name it or its source.

        Raises:
            DefinitionError: The name cannot name a tool, or the schema does not describe an object.
        """
        definition = ToolDefinition(
            name=name,
            description=description,
            schema=schema,
            tags=_words(tags),
            unsupported=unsupported,
            source=source,
            fills_defaults=False,
        )
        parameters = signature.of_schema(schema, name=name)
        return Tool(
            run,
            definition,
            parameters,
            timeout=timeout,
            retries=retries,
            sequential=sequential,
            max_result_tokens=max_result_tokens,
            output=output,
        )


@overload
def tool(
    function: type[M],
    /,
    *,
    run: Callable[..., R] | None = None,
    name: str | None = None,
    tags: str | Collection[str] = (),
    timeout: float | None = None,
    retries: int = 2,
    sequential: bool = False,
    max_result_tokens: int | None = None,
    output: Trust = "untrusted",
    unsupported: Unsupported = "error",
) -> Tool[..., R]: ...


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    tags: str | Collection[str] = (),
    timeout: float | None = None,
    retries: int = 2,
    sequential: bool = False,
    max_result_tokens: int | None = None,
    output: Trust = "untrusted",
    unsupported: Unsupported = "error",
) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    tags: str | Collection[str] = (),
    timeout: float | None = None,
    retries: int = 2,
    sequential: bool = False,
    max_result_tokens: int | None = None,
    output: Trust = "untrusted",
    unsupported: Unsupported = "error",
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    run: Callable[..., Any] | None = None,
    name: str | None = None,
    tags: str | Collection[str] = (),
    unsupported: Unsupported = "error",
    **settings: Any,
) -> Any:
    """Makes a tool of a function or of a Pydantic model.

    The schema comes from the signature by Pydantic; descriptions come from the docstring (Google, NumPy or Sphinx
    style); a parameter annotated :class:`RunContext` is hidden, and so is one marked with :func:`bind`.

    Args:
        function: A function, a method, or a Pydantic model that holds the arguments and either has ``__call__`` or
            comes with ``run``.
        run: What runs a model's instance: ``run(instance)`` or ``run(instance, ctx)``.
        name: The tool's name; the function's own by default.
        tags: Words that policies select by.
        unsupported: What to do with keywords of the schema that the grammar cannot enforce: refuse, or loosen them
            and leave them to validation.
        **settings: ``timeout`` in seconds, ``retries``, ``sequential``, ``max_result_tokens``, ``output``: see
            :class:`Tool`.

    Raises:
        DefinitionError: The function cannot be a tool; the message names the parameter.
    """
    if function is None:
        return functools.partial(tool, run=run, name=name, tags=tags, unsupported=unsupported, **settings)
    return _make(function, run, name, tags, unsupported, settings)


def as_tool(value: Any) -> Tool[..., Any]:
    """A tool from whatever is welcome where tools are: a tool, a function, a Pydantic model.

    Raises:
        DefinitionError: It is none of these, or cannot be a tool.
    """
    if isinstance(value, Tool):
        if value.is_unbound_method:
            raise DefinitionError(f"tool {value.name!r} is a method without its object: take it from an instance.")
        return value
    if callable(value):
        return _make(value, None, None, (), "error", {})
    raise DefinitionError(f"{value!r} is not a tool: pass a function, a Tool, or a Pydantic model with __call__.")


def _make(
    function: Callable[..., Any],
    run: Callable[..., Any] | None,
    name: str | None,
    tags: str | Collection[str],
    unsupported: Unsupported,
    settings: Mapping[str, Any],
) -> Tool[..., Any]:
    if isinstance(function, Tool):
        raise DefinitionError(f"{function.name!r} is already a tool: decorate it once.")
    if not callable(function) and not isinstance(function, staticmethod | classmethod):
        raise DefinitionError(f"{function!r} is not a function or a Pydantic model.")
    if isinstance(function, staticmethod | classmethod):
        raise DefinitionError(f"put @tool below @{type(function).__name__}, or use an ordinary method.")
    name = name or getattr(function, "__name__", "")
    scope = _scope(function)
    if not name or name == "<lambda>":
        raise DefinitionError("a lambda has no name to show: write a function, or pass name=.")
    if isinstance(function, type) and issubclass(function, BaseModel):
        run = run or next((base.__dict__["__call__"] for base in function.__mro__ if "__call__" in base.__dict__), None)
        if run is None:
            raise DefinitionError(
                f"model {function.__name__} does not say what to do: give it __call__(self), or pass run=."
            )
        parameters = signature.of_model(function, run, name=name, scope=scope)
        target = run
    elif isinstance(function, type):
        raise DefinitionError(f"{function.__name__} is a class but not a Pydantic model: pass a function or a model.")
    elif run is not None:
        raise DefinitionError(f"run= belongs to a Pydantic model; {name!r} is a function already.")
    else:
        parameters = signature.of_function(function, name=name, scope=scope)
        target = function
    description = signature.documentation(function)[0]
    definition = ToolDefinition(
        name=name, description=description, schema=parameters.schema, tags=_words(tags), unsupported=unsupported
    )
    return Tool(target, definition, parameters, **settings)


def _scope(function: Any) -> dict[str, Any]:
    """Local names of the function body that declares a tool: its annotations may use them."""
    if "<locals>" not in getattr(function, "__qualname__", ""):
        return {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _module(frame).startswith("agentgram."):
        frame = frame.f_back
    return dict(frame.f_locals) if frame is not None and _module(frame) == function.__module__ else {}


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _words(tags: str | Collection[str]) -> frozenset[str]:
    return frozenset((tags,) if isinstance(tags, str) else tags)
