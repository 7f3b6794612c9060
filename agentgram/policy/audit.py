"""What was asked for, what was decided and what came of it: one JSON line each, chained, and keyed.

A line holds the code of the line before it, and its own: HMAC-SHA256 (RFC 2104) of its JSON text under a key. Without
the key nobody can write a line, change one, or take one out and close the gap; a chain of bare hashes could be computed
anew. How long the chain is stands in a second file, ``NAME.head``, under the same key: so lines that are cut off at the
end are missed. Each process writes a file of its own, for two writers cannot share a chain.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from agentgram.closing import Closing
from agentgram.errors import PolicyError, RunError

START = "0" * 64
"""What the first line has in the place of the code before it."""
_LEAST_KEY = 16


class Audit(Closing):
    """Writes the audit of one process. Safe to share between threads, and between agents.

    ::

        agent = Agent("smollm2", tools=[refund], policy=policy, audit=Audit("audit", key=key))

    A line is on the disk before :meth:`write` returns. An intent is written before its call is made; where that fails,
    the call is not made.
    """

    def __init__(self, directory: str | PathLike[str], *, key: bytes) -> None:
        """Args:
            directory: Where to put the file; made where it is missing. Files are named by time and process.
            key: At least 16 bytes, which whoever can write to the directory must not know.

        Raises:
            PolicyError: The key is too short, or no bytes.
            RunError: The directory cannot be written to.
        """
        self._key = _checked(key)
        self._lock = threading.Lock()
        self._number, self._code = 0, START
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
        self.path = Path(directory) / name
        """The file."""
        self._pid = os.getpid()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("xb", buffering=0)
            _write_head(self.path, self._key, 0, START)
        except OSError as error:
            raise RunError(f"no audit can be written to {directory}: {error.strerror or error}.") from error

    def write(self, event: str, **fields: Any) -> None:
        """Adds one line; fields without a value are left out.

        Raises:
            RunError: It cannot be written; or this is another process than the one that made the audit.
        """
        if os.getpid() != self._pid:
            raise RunError("an audit belongs to the process that made it: make one in each process.")
        with self._lock:
            record = {"n": self._number + 1, "time": datetime.now(UTC).isoformat(), "event": event}
            record |= {key: value for key, value in fields.items() if value not in (None, "", (), [])}
            record["before"] = self._code
            text = _text(to_jsonable_python(record, fallback=repr))
            code = _code(self._key, text)
            try:
                self._append(f"{text[:-1]},{json.dumps('code')}:{json.dumps(code)}}}\n".encode())
                self._number, self._code = self._number + 1, code
                _write_head(self.path, self._key, self._number, code)
            except (OSError, ValueError) as error:
                raise RunError(f"the audit {self.path} cannot be written: {error}.") from error

    def _append(self, line: bytes) -> None:
        """Writes a whole line, or none of it: half of one would make all that follow it unsound."""
        end = self._file.tell()
        try:
            if self._file.write(line) != len(line):
                raise OSError("there is no room for a whole line")
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):  # where it cannot be taken back either, the audit says so when it is verified
                self._file.truncate(end)
                self._file.seek(end)
            raise

    def close(self) -> None:
        """Ends the file."""
        with self._lock:
            self._file.close()


def _checked(key: bytes) -> bytes:
    if not isinstance(key, bytes) or len(key) < _LEAST_KEY:
        raise PolicyError(f"an audit's key is at least {_LEAST_KEY} bytes, as of secrets.token_bytes(32).")
    return key


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _code(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _head_of(path: Path) -> Path:
    return path.with_name(path.name + ".head")


def _write_head(path: Path, key: bytes, number: int, code: str) -> None:
    head = {"file": path.name, "n": number, "last": code}
    fresh = _head_of(path).with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(_text({**head, "code": _code(key, _text(head))}))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(_head_of(path))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that is wrong with an audit."""

    file: str
    line: int
    """From 1; 0 for the file as a whole."""
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}" if self.line else f"{self.file}: {self.problem}"


def files(path: str | PathLike[str]) -> list[Path]:
    """The files of an audit: those of a directory in order, or the one.

    Raises:
        RunError: There is none.
    """
    place = Path(path)
    found = sorted(place.glob("*.jsonl")) if place.is_dir() else [place] if place.is_file() else []
    if not found:
        raise RunError(f"there is no audit in {path}: give a file NAME.jsonl, or a directory of such files.")
    return found


def read(path: str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """The records of an audit, in the order of its files; nothing is verified.

    Raises:
        RunError: There is none, or a line is no JSON object.
    """
    for file in files(path):
        for number, line in enumerate(file.read_bytes().splitlines(), 1):
            try:
                record = json.loads(line)
            except ValueError as error:
                raise RunError(f"{file}:{number} is no record: {error}. See `agentgram audit verify`.") from error
            if not isinstance(record, dict):
                raise RunError(f"{file}:{number} is no record. See `agentgram audit verify`.")
            yield record


def verify(path: str | PathLike[str], key: bytes) -> list[Finding]:
    """What is wrong with an audit; nothing where each line is as it was written, in its place, and none is missing.

    That whole files of a directory have been removed does not show, nor that a file and its head were put back together
    as they were at an earlier time: keep copies of the heads elsewhere.

    Raises:
        PolicyError: The key is none.
        RunError: There is no audit.
    """
    _checked(key)
    return [finding for file in files(path) for finding in _verify(file, key)]


def _verify(file: Path, key: bytes) -> Iterator[Finding]:
    def finding(line: int, problem: str) -> Finding:
        return Finding(file=str(file), line=line, problem=problem)

    head = _head(file, key)
    if head is None:
        yield finding(0, f"{_head_of(file).name} is missing, or was not written under this key")
    data = file.read_bytes()
    *lines, rest = data.split(b"\n")
    before, codes = START, []
    for number, line in enumerate(lines, 1):
        code = _sound(line, number, before, key)
        if code is None:
            yield finding(number, "is not the line that was written here")
            return
        before = code
        codes.append(code)
    number, last = (len(lines), before) if head is None else head
    if len(codes) < number:
        yield finding(len(codes) + 1, f"lines are missing: {number} were written")
    elif number and codes[number - 1] != last:
        yield finding(number, "is not the line that was written here")
    elif rest and len(codes) == number and not data.endswith(b"\n"):
        yield finding(len(lines) + 1, "breaks off: the writer was stopped in the middle of it, or it was changed")


def _head(file: Path, key: bytes) -> tuple[int, str] | None:
    try:
        head = json.loads(_head_of(file).read_text("utf-8"))
        code = head.pop("code")
        sound = head["file"] == file.name and hmac.compare_digest(code, _code(key, _text(head)))
        return (int(head["n"]), str(head["last"])) if sound else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _sound(line: bytes, number: int, before: str, key: bytes) -> str | None:
    """A line's code, where the line is sound."""
    try:
        record = json.loads(line)
        code = record.pop("code")
        text = _text(record)
        # The bytes too: another spelling of the same record is another line.
        spelled = f"{text[:-1]},{json.dumps('code')}:{json.dumps(code)}}}".encode() == line
        fits = record["n"] == number and record["before"] == before and hmac.compare_digest(code, _code(key, text))
        return str(code) if spelled and fits else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
