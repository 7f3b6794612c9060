"""A machine that stops at any moment: after every single write and sync, and with any part of what was not synced.

A process works on a session while ``recorder.c`` writes down each of its writes, truncations, syncs and removals. From
this log the disk is put together as a crash would leave it, at every point, in three ways: all that was written is there
(the process was killed); only what was synced is there (the power failed); and some of the rest, in pieces of a disk's
sector, by chance. From each disk the session has to open, hold everything that was acknowledged, nothing that was not
said, no part of an append, and take more.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentgram import SQLiteSession
from agentgram.messages import user

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SECTOR = 512

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"),
]

# Appends of several messages and of several pages; the log of SQLite is folded into the file every few of them.
WORKER = """
import asyncio, os, sqlite3, sys
real = sqlite3.connect
def connect(*args, **kwargs):
    db = real(*args, **kwargs)
    db.execute("PRAGMA wal_autocheckpoint = 12")
    return db
sqlite3.connect = connect
from agentgram import SQLiteSession
from agentgram.messages import user
async def main():
    directory = sys.argv[1]
    acks = os.open(directory + "/acks", os.O_WRONLY | os.O_CREAT)
    session = SQLiteSession(directory + "/chats.db", "a")
    version, said = (await session.claim("r", "alice")).version, 0
    for number in range(12):
        size = 9000 if number % 4 == 3 else 20
        messages = [user(f"{said + i} " + "x" * size) for i in range(1 + number % 3)]
        version = await session.append("r", version, messages)
        said += len(messages)
        os.write(acks, bytes([said]))
    await session.release("r")
asyncio.run(main())
"""
SAID = tuple(
    user(f"{place} " + "x" * (9000 if number % 4 == 3 else 20))
    for place, number in enumerate(n for n in range(12) for _ in range(1 + n % 3))
)
APPENDS = [0]
for _n in range(12):
    APPENDS.append(APPENDS[-1] + 1 + _n % 3)


@dataclass(frozen=True, kw_only=True)
class Operation:
    kind: str
    name: str
    offset: int
    data: bytes


def read_log(path: Path) -> Iterator[Operation]:
    raw, at = path.read_bytes(), 0
    while at < len(raw):
        kind, length = struct.unpack_from("<cH", raw, at)
        at += 3
        name = raw[at : at + length].decode()
        at += length
        offset, size = struct.unpack_from("<QQ", raw, at)
        at += 16
        data = raw[at : at + size]
        at += size
        yield Operation(kind=kind.decode(), name=name, offset=offset, data=data)


@dataclass
class File:
    """A file as a program sees it, and what of it is sure to be on the disk."""

    synced: bytearray = field(default_factory=bytearray)
    pending: list[Operation] = field(default_factory=list)

    def content(self, keep: random.Random | bool) -> bytes:
        out = bytearray(self.synced)
        for operation in self.pending:
            if operation.kind == "t":
                if keep is True or (keep is not False and keep.random() < 0.5):
                    del out[operation.offset :]
                continue
            for start in range(0, len(operation.data), SECTOR):
                if keep is True or (keep is not False and keep.random() < 0.5):
                    piece = operation.data[start : start + SECTOR]
                    place = operation.offset + start
                    out.extend(bytes(max(0, place - len(out))))
                    out[place : place + len(piece)] = piece
        return bytes(out)


def disks(log: Path) -> Iterator[tuple[int, int, dict[str, File]]]:
    """After each operation: its number, how many messages were acknowledged, and the files."""
    files: dict[str, File] = {}
    acknowledged = 0
    for number, operation in enumerate(read_log(log)):
        if operation.name == "acks":
            acknowledged = operation.data[-1] if operation.data else acknowledged
            continue
        if operation.name.endswith("-shm"):
            continue  # shared memory: it does not outlive the processes
        if operation.kind == "u":
            files.pop(operation.name, None)
        else:
            file = files.setdefault(operation.name, File())
            if operation.kind == "s":
                file.synced, file.pending = bytearray(file.content(True)), []
            elif operation.kind in "wt":
                file.pending.append(operation)
        yield number, acknowledged, files


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recorded")
    library, log = directory / "recorder.so", directory / "log"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "recorder.c", "-ldl"], check=True)
    work = directory / "work"
    work.mkdir()
    record = {"LD_PRELOAD": str(library), "RECORD_DIRECTORY": str(work), "RECORD_LOG": str(log)}
    command = [sys.executable, "-c", WORKER, str(work)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **record}, check=True)
    assert SQLiteSession(work / "chats.db", "a").messages == SAID
    return log


def check(directory: Path, acknowledged: int, said: str) -> None:
    session = SQLiteSession(directory / "chats.db", "a")
    messages = session.messages
    assert len(messages) >= acknowledged, said
    assert len(messages) in APPENDS, said
    assert messages == SAID[: len(messages)], said

    async def go_on() -> None:
        snapshot = await session.claim("next", "alice")
        assert snapshot.messages == messages, said
        await session.append("next", snapshot.version, [user("on")])

    asyncio.run(go_on())
    assert session.messages == (*messages, user("on")), said


def test_the_log_has_what_it_needs(log: Path) -> None:
    kinds = [(o.kind, o.name) for o in read_log(log)]
    assert kinds.count(("s", "chats.db-wal")) >= 12, "each append is synced"
    assert ("s", "chats.db") in kinds, "the log of SQLite was folded into the file"
    assert kinds.count(("w", "acks")) == 12


@pytest.mark.parametrize("way", ["killed", "power failed", "some of it", "some more of it"])
def test_nothing_acknowledged_is_lost_at_any_point(log: Path, tmp_path: Path, way: str) -> None:
    points = 0
    for number, acknowledged, files in disks(log):
        keep: random.Random | bool = way == "killed"
        if way.startswith("some"):
            keep = random.Random(f"{way} {number}")
        directory = tmp_path / str(number)
        directory.mkdir()
        for name, file in files.items():
            (directory / name).write_bytes(file.content(keep))
        check(directory, acknowledged, f"{way}, after operation {number}")
        shutil.rmtree(directory)
        points += 1
    assert points > 100
