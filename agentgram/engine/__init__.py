"""The structured-generation engine: grammars to token masks. See ``docs/how-it-works.md``."""

from agentgram.engine.core import (
    CoverageReport,
    CoverageRow,
    Engine,
    EngineOptions,
    EngineStats,
    Grammar,
    Matcher,
    allocate_mask,
    apply_mask,
)
from agentgram.engine.spec import (
    Choice,
    Dispatch,
    Ebnf,
    JsonSchema,
    Lit,
    Opt,
    Regex,
    Rep,
    Seq,
    Spec,
    Tag,
    Text,
    Tok,
    spec_from_dict,
)
from agentgram.engine.vocabulary import Vocabulary
from agentgram.errors import GrammarError

__all__ = [
    "Choice",
    "CoverageReport",
    "CoverageRow",
    "Dispatch",
    "Ebnf",
    "Engine",
    "EngineOptions",
    "EngineStats",
    "Grammar",
    "GrammarError",
    "JsonSchema",
    "Lit",
    "Matcher",
    "Opt",
    "Regex",
    "Rep",
    "Seq",
    "Spec",
    "Tag",
    "Text",
    "Tok",
    "Vocabulary",
    "allocate_mask",
    "apply_mask",
    "spec_from_dict",
]
