"""Formats: one declaration gives the prompt, the grammar, the parser and a JSON description.

A format belongs to a model. The shipped ones are data files in ``library/``.
"""

from agentgram.formats.codecs import Codec, get_codec, register_codec
from agentgram.formats.nodes import (
    Args,
    CallId,
    Choice,
    Dispatch,
    Field,
    JsonArr,
    JsonObj,
    Lit,
    Name,
    Opt,
    Perm,
    Rep,
    Seq,
    Space,
    Stop,
    Tag,
    Tok,
)
from agentgram.formats.parsing import OpenCall, Parser
from agentgram.formats.recognition import Report, formats, get_format
from agentgram.formats.request import Only, Prompt, Request
from agentgram.formats.template import Answer, Format, History, Results, Signature, ToolList, Turn

__all__ = [
    "Answer",
    "Args",
    "CallId",
    "Choice",
    "Codec",
    "Dispatch",
    "Field",
    "Format",
    "History",
    "JsonArr",
    "JsonObj",
    "Lit",
    "Name",
    "Only",
    "OpenCall",
    "Opt",
    "Parser",
    "Perm",
    "Prompt",
    "Rep",
    "Report",
    "Request",
    "Results",
    "Seq",
    "Signature",
    "Space",
    "Stop",
    "Tag",
    "Tok",
    "ToolList",
    "Turn",
    "formats",
    "get_codec",
    "get_format",
    "register_codec",
]
