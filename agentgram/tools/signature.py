"""From a function's signature or a Pydantic model to what a tool needs: a schema to show, a validator to trust."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, get_origin

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind

from agentgram.errors import DefinitionError
from agentgram.tools.context import Bound, RunContext


class InvalidArguments(ValueError):
    """Arguments that the tool's schema does not admit; the message is written for the model."""


class _JsonSchema(GenerateJsonSchema):
    """Pydantic's schemas without titles, in reading order, with objects closed unless they are declared open.

    The methods are Pydantic's, overridden; hence their arguments.
    """

    # A default that is not JSON stays what it is; it is only not published.
    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:  # noqa: ARG002
        return value

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def set_schema(self, schema: Any) -> JsonSchemaValue:
        return _repeatable(super().set_schema(schema))

    def frozenset_schema(self, schema: Any) -> JsonSchemaValue:
        return _repeatable(super().frozenset_schema(schema))

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        # As published, a string of any text would do, and bounds would hold for numbers only.
        number = {"type": "number", **_bounds(schema)}
        if len(number) > 1:
            return number
        return {"anyOf": [number, {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}]}

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, Decimal) and Decimal(repr(float(dft))) == dft:
            return int(dft) if dft == dft.to_integral_value() else float(dft)  # as the schema has it, not as a text
        return super().encode_default(dft)

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        return _close(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        return _close(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return _close(super().typed_dict_schema(schema), schema.get("cls"))


def _repeatable(out: JsonSchemaValue) -> JsonSchemaValue:
    # A set is read from any list: an item that comes twice is in it once.
    out.pop("uniqueItems", None)
    return out


_BOUNDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}


def _bounds(schema: Mapping[str, Any]) -> dict[str, float]:
    return {keyword: float(schema[key]) for key, keyword in _BOUNDS.items() if schema.get(key) is not None}


def _close(out: JsonSchemaValue, cls: type | None) -> JsonSchemaValue:
    # A type's name says nothing that the property or the definition does not say already. Keys that Pydantic would
    # ignore are not offered: a model that may write anything writes anything.
    if cls is not None and out.get("title") == cls.__name__:
        del out["title"]
    if out.get("type") == "object" and "properties" in out:
        out.setdefault("additionalProperties", False)
    return out


def json_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of what an adapter reads from JSON."""
    return adapter.json_schema(schema_generator=_JsonSchema)


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """How a tool is called: its schema, its validator, and where the rest of its parameters come from."""

    schema: Mapping[str, Any]
    """JSON Schema of the arguments that the model writes."""
    validate: Callable[[str], Any]
    """Validates JSON text; raises :class:`InvalidArguments` or Pydantic's ``ValidationError``."""
    positional: tuple[str, ...] = ()
    """Parameters that Python takes by position only."""
    whole: bool = False
    """True when the validated value is one argument (a model instance) instead of a mapping of keywords."""
    context: str | None = None
    """The parameter that takes the :class:`RunContext`, if any; ``""`` for the one after a model instance."""
    bound: Mapping[str, Bound] = field(default_factory=dict)
    """Parameters that come from the run: never shown, never generated."""
    rebuild: Callable[[Mapping[str, Bound]], Parameters] | None = None
    """Makes the same parameters with more of them bound; None where that cannot be."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What an argument is called in the schema, and in Python; where these differ."""

    def read(self, arguments: str | Mapping[str, Any]) -> Any:
        """Validates a call's arguments, given as JSON text or as JSON values.

        Raises:
            InvalidArguments: They are not what the schema describes; the message says what and where.
        """
        values = parse_object(arguments) if isinstance(arguments, str) else dict(arguments)
        self._refuse_unknown(values)
        try:
            text = json.dumps(values, allow_nan=False)
        except ValueError:
            raise InvalidArguments("a number is too large, or not a number") from None
        except TypeError as error:
            raise InvalidArguments(f"not JSON: {error}") from None
        try:
            return self.validate(text)
        except ValidationError as error:
            raise InvalidArguments(describe(error)) from None

    def _refuse_unknown(self, values: Mapping[str, Any]) -> None:
        # Before Pydantic sees them: it would take a field by any of its names, and ignore what it does not know.
        if self.schema.get("additionalProperties") is False:
            known = self.schema.get("properties", {})
            unknown = [name for name in values if name not in known]
            if unknown:
                raise InvalidArguments(
                    f"unknown argument {', '.join(map(repr, unknown))}; known: {', '.join(known) or 'none'}"
                )

    def by_name(self, value: Any) -> dict[str, Any]:
        """What :meth:`read` returned, argument by argument, by the names that the schema has for them."""
        found = {}
        for name in self.schema.get("properties", {}):
            attribute = self.names.get(name, name)
            if not self.whole and attribute in value:
                found[name] = value[attribute]
            elif self.whole and hasattr(value, attribute):
                found[name] = getattr(value, attribute)
        return found

    def arrange(self, value: Any, context: RunContext[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and keyword arguments for the function, from a validated value and the run's context."""
        if self.whole:
            return [value, context] if self.context is not None else [value], {}
        keywords = {**value, **{name: bound.value(context) for name, bound in self.bound.items()}}
        if self.context is not None:
            keywords[self.context] = context
        return [keywords.pop(name) for name in self.positional if name in keywords], keywords


def parse_object(text: str) -> dict[str, Any]:
    """Reads a JSON object, refusing what readers disagree about.

    Raises:
        InvalidArguments: The text is not one JSON object, or a key occurs twice (RFC 8259, section 4: which value
            counts is then anybody's choice, so a check and a tool could choose differently).
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in pairs:
            if key in out:
                raise InvalidArguments(f"the key {key!r} occurs twice")
            out[key] = value
        return out

    def constant(word: str) -> Any:
        raise InvalidArguments(f"{word} is not JSON")

    try:
        value = json.loads(text, object_pairs_hook=once, parse_constant=constant)
    except InvalidArguments:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidArguments("the arguments must be a JSON object")
    return value


def describe(error: ValidationError) -> str:
    """What is wrong with a value, in one line: each place with its complaint."""
    lines = []
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join(map(str, item["loc"]))
        lines.append(f"{where}: {item['msg']}" if where else item["msg"])
    return "; ".join(lines)


def of_function(
    function: Callable[..., Any], *, name: str, scope: Mapping[str, Any], bind: Mapping[str, Bound] | None = None
) -> Parameters:
    """The parameters of a function, from its signature and docstring.

    Args:
        function: The tool's function; a leading ``self`` is left out.
        name: What to call it in errors.
        scope: Names that annotations may use besides the function's globals.
        bind: Parameters to bind besides those that the signature marks.

    Raises:
        DefinitionError: A parameter has no type, a type that Pydantic cannot describe, or a kind (``*args``) that
            JSON arguments cannot fill.
    """
    hints = _hints(function, name, scope)
    fields_: list[tuple[str, Any, Any]] = []
    positional: list[str] = []
    bound: dict[str, Bound] = dict(bind or {})
    context = None
    for parameter in _signature(function):
        hint = hints.get(parameter.name, parameter.empty)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise DefinitionError(
                f"tool {name!r} takes {parameter}, which no schema describes: give each argument a name, "
                "or take one list or dict."
            )
        if hint is parameter.empty:
            raise DefinitionError(
                f"parameter {parameter.name!r} of tool {name!r} has no type: annotate it, as in {parameter.name}: str."
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(parameter.name)
        marker = next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Bound)), None)
        if is_context(hint):
            if context is not None:
                raise DefinitionError(
                    f"tool {name!r} takes two contexts, {context!r} and {parameter.name!r}: keep one."
                )
            context = parameter.name
        elif marker is not None:
            bound.setdefault(parameter.name, marker)
        elif parameter.name not in bound:
            default = (
                dataclasses.MISSING
                if parameter.default is parameter.empty
                else Field(default=parameter.default, kw_only=True)
            )
            fields_.append((parameter.name, hint, default))
    adapter = _adapter(fields_, name)
    return Parameters(
        schema=_describe_properties(_schema(adapter, f"tool {name!r}"), documentation(function)[1]),
        validate=lambda text: _values(adapter.validate_json(text, strict=True)),
        names=_aliases((n, m) for n, hint, _ in fields_ for m in getattr(hint, "__metadata__", ())),
        positional=tuple(positional),
        context=context,
        bound=bound,
        rebuild=lambda more: of_function(function, name=name, scope=scope, bind={**bound, **more}),
    )


def of_model(model: type[BaseModel], run: Callable[..., Any], *, name: str, scope: Mapping[str, Any]) -> Parameters:
    """The parameters of a tool whose arguments are a Pydantic model.

    Args:
        model: The arguments.
        run: Called with an instance, and with the context when it takes one.
        name: What to call the tool in errors.
        scope: Names that annotations may use besides globals.

    Raises:
        DefinitionError: ``run`` cannot be called so, or the model has no JSON Schema.
    """
    hints = _hints(run, name, scope)
    # The first parameter is the instance, whatever it is called; `self` where `run` is the model's own method.
    parameters = list(inspect.signature(run).parameters.values())
    rest = [p for p in parameters[1:] if p.default is p.empty or is_context(hints.get(p.name))]
    if not parameters or len(rest) > 1 or (rest and not is_context(hints.get(rest[0].name))):
        raise DefinitionError(
            f"what runs tool {name!r} must take the {model.__name__} and, if it wants, one RunContext; it takes "
            f"{inspect.signature(run)}."
        )
    adapter = TypeAdapter(model)
    schema = _schema(adapter, f"tool {name!r}")
    if "$ref" in schema:
        # A model that holds itself is published by reference: its root is needed as an object.
        schema = {**schema["$defs"][schema["$ref"].rpartition("/")[2]], "$defs": schema["$defs"]}
    schema.pop("description", None)
    return Parameters(
        schema=_describe_properties(schema, documentation(model)[1]),
        validate=lambda text: adapter.validate_json(text, strict=True),
        names=_aliases(model.model_fields.items()),
        whole=True,
        context="" if rest else None,
    )


def of_schema(schema: Mapping[str, Any], *, name: str, bind: Mapping[str, Bound] | None = None) -> Parameters:
    """The parameters of a tool that comes with a schema of its own; calls are checked by ``jsonschema``.

    Args:
        schema: JSON Schema of the arguments.
        name: What to call the tool in errors.
        bind: Properties that come from the run; they are taken out of the schema.

    Raises:
        DefinitionError: The schema is not a JSON Schema.
    """
    bound = dict(bind or {})
    if bound:
        schema = _without(schema, bound)
    cache: list[Any] = []

    def validate(text: str) -> dict[str, Any]:
        if not cache:
            cache.append(_jsonschema_validator(schema, name))
        value: dict[str, Any] = json.loads(text)
        problems = [
            f"{'.'.join(map(str, e.absolute_path))}: {e.message}".removeprefix(": ")
            for e in cache[0].iter_errors(value)
        ]
        if problems:
            raise InvalidArguments("; ".join(problems[:5]))
        return value

    return Parameters(
        schema=schema,
        validate=validate,
        bound=bound,
        rebuild=lambda more: of_schema(schema, name=name, bind={**bound, **more}),
    )


def _without(schema: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    out = dict(schema)
    out["properties"] = {key: value for key, value in schema.get("properties", {}).items() if key not in names}
    if "required" in schema:
        out["required"] = [key for key in schema["required"] if key not in names]
    return out


def _jsonschema_validator(schema: Mapping[str, Any], name: str) -> Any:
    import jsonschema
    from jsonschema_specifications import REGISTRY

    cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        cls.check_schema(dict(schema))
    except jsonschema.SchemaError as error:
        raise DefinitionError(f"the schema of tool {name!r} is not a JSON Schema: {error.message}.") from error
    # A registry of its own: the default one would fetch references from the network.
    return cls(dict(schema), format_checker=cls.FORMAT_CHECKER, registry=REGISTRY)


def documentation(source: Any) -> tuple[str, dict[str, str]]:
    """A docstring's description and what it says of each parameter (Google, NumPy or Sphinx style).

    Returns:
        The text before the sections, and a description per parameter or attribute.
    """
    text = source.__doc__ if not isinstance(source, type) else source.__dict__.get("__doc__")
    if not text or not text.strip():
        return "", {}
    import docstring_parser

    parsed = docstring_parser.parse(inspect.cleandoc(text))
    head = "\n\n".join(part.strip() for part in (parsed.short_description, parsed.long_description) if part)
    return head, {p.arg_name: _one_line(p.description) for p in parsed.params if p.description}


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def is_context(hint: Any) -> bool:
    """Whether an annotation is a :class:`RunContext`."""
    return hint is RunContext or get_origin(hint) is RunContext


def _signature(function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    return parameters[1:] if is_method(function) else parameters


def is_method(function: Callable[..., Any]) -> bool:
    """Whether a function is written in a class and still lacks its instance."""
    if inspect.ismethod(function) or not inspect.isfunction(function):
        return False
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.name == "self" and first.annotation is first.empty


def _hints(function: Callable[..., Any], name: str, scope: Mapping[str, Any]) -> dict[str, Any]:
    target: Any = function
    if not inspect.isroutine(function) and not isinstance(function, type):
        target = type(function).__call__ if not hasattr(function, "func") else function.func
    try:
        return typing.get_type_hints(inspect.unwrap(target), localns=dict(scope), include_extras=True)
    except NameError as error:
        raise DefinitionError(
            f"an annotation of tool {name!r} names {error.name!r}, which is not defined where the tool is declared: "
            "import it outside of TYPE_CHECKING, or declare it before the tool."
        ) from error
    except TypeError as error:
        raise DefinitionError(f"the annotations of tool {name!r} cannot be read: {error}.") from error


def _adapter(parameters: Iterable[tuple[str, Any, Any]], name: str) -> TypeAdapter[Any]:
    # A dataclass, because its fields may have any name: a Pydantic model has no field named `json` or `_id`.
    cls = dataclasses.make_dataclass(
        "Arguments",
        [(n, hint) if default is dataclasses.MISSING else (n, hint, default) for n, hint, default in parameters],
        kw_only=True,
        namespace={"__pydantic_config__": ConfigDict(extra="forbid"), "__doc__": None},
    )
    cls.__doc__ = None
    try:
        return TypeAdapter(cls)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise DefinitionError(f"tool {name!r} has a parameter that Pydantic cannot describe: {error}") from error


def _aliases(fields_: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """The names under which a schema publishes fields, where these are not their own."""
    out = {}
    for name, info in fields_:
        alias = getattr(info, "validation_alias", None) or getattr(info, "alias", None)
        alias = alias.choices[0] if isinstance(alias, AliasChoices) else alias
        if isinstance(alias, str):
            out[alias] = name
    return out


def _values(instance: Any) -> dict[str, Any]:
    return {f.name: getattr(instance, f.name) for f in dataclasses.fields(instance)}


def _schema(adapter: TypeAdapter[Any], what: str) -> dict[str, Any]:
    try:
        return json_schema(adapter)
    except PydanticUserError as error:
        raise DefinitionError(f"{what} has a type without a JSON Schema: {error}") from error


def _describe_properties(schema: dict[str, Any], descriptions: Mapping[str, str]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    for name, text in descriptions.items():
        if name in properties and "description" not in properties[name]:
            properties[name] = {**properties[name], "description": text}
    return schema
