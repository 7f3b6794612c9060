"""ECMA-262 patterns for Python's re: the same strings are found."""

from __future__ import annotations

import re

_DIGIT, _WORD = "0-9", "A-Za-z0-9_"
_SPACE = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}


def for_python(pattern: str) -> str:
    """Classes of ASCII characters, and ``$`` and ``.`` as ECMA-262 means them.

    Raises:
        ValueError: The pattern has something that is not translated.
    """
    out, inside = [], False
    for piece in re.findall(r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\.|.", pattern, re.DOTALL):
        letter = piece[1:2]
        if piece[0] == "\\" and letter in "dwsDWS":
            if letter.isupper() and inside:
                raise ValueError(f"{piece} in a class")
            body = _CLASSES[letter.lower()]
            out.append(body if inside else f"[^{body}]" if letter.isupper() else f"[{body}]")
        elif piece[0] == "\\" and len(piece) == 2 and letter.isalnum() and letter not in "tnrfv0":
            raise ValueError(f"{piece} is not translated")
        elif piece == "\\/" or piece == "\\-":
            out.append(re.escape(letter))
        elif inside:
            inside = piece != "]"
            out.append(f"\\{piece}" if piece in ("[", "&", "~", "|") else piece)
        elif piece == "[":
            inside = True
            out.append(piece)
        else:
            out.append({"$": r"\Z", ".": "[^\\n\\r\\u2028\\u2029]"}.get(piece, piece))
    return "".join(out)
