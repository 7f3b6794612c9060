"""Formats: one declaration gives the prompt, the grammar, the parser and a JSON description.

A format belongs to a model. The shipped ones are data files in ``library/``.
"""

from agentgram.formats.codecs import Codec, get_codec, register_codec
from agentgram.formats.nodes import (
    Args,
    CallId,
    Channel,
    Channels,
    Choice,
    Count,
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
from agentgram.formats.slots import Slot
from agentgram.formats.template import Answer, Format, History, Prefill, Results, Signature, System, ToolList, Turn

__all__ = [
    "Answer",
    "Args",
    "CallId",
    "Channel",
    "Channels",
    "Choice",
    "Codec",
    "Count",
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
    "Prefill",
    "Prompt",
    "Rep",
    "Report",
    "Request",
    "Results",
    "Seq",
    "Signature",
    "Slot",
    "Space",
    "Stop",
    "System",
    "Tag",
    "Tok",
    "ToolList",
    "Turn",
    "formats",
    "get_codec",
    "get_format",
    "register_codec",
]
