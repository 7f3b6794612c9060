"""Conversations that outlive a process: the protocol, and one in SQLite.

A run *claims* its session, appends what is said as it is said, and releases it. One run has it at a time; a second one
is told ``SessionBusy``. A claim ends with its lease, or at once where the process that held it is seen to be gone, so
that a killed process blocks nobody. Each append names the version that it follows; a holder that lost its claim can
therefore write nothing behind the back of the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from agentgram.errors import DefinitionError, PolicyError, RunError, SessionBusy
from agentgram.messages import Message

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What a session holds when it is claimed."""

    version: int
    """Counts appends; the next one names it."""
    messages: tuple[Message, ...]


@runtime_checkable
class Session(Protocol):
    """A conversation that runs append to, one at a time."""

    @property
    def id(self) -> str:
        """Which conversation it is."""
        ...

    @property
    def lease(self) -> float:
        """Seconds that a claim holds unless it is renewed."""
        ...

    async def claim(self, run_id: str, owner: str | None) -> Snapshot:
        """Takes the session for one run; a session that is new gets this owner.

        Raises:
            PolicyError: It belongs to somebody else.
            SessionBusy: Another run has it.
        """
        ...

    async def append(self, run_id: str, version: int, messages: Sequence[Message]) -> int:
        """Adds messages, all or none; when this returns they are there for good. Returns the new version.

        Raises:
            SessionBusy: The claim was lost, or the session is no longer at this version.
        """
        ...

    async def renew(self, run_id: str) -> None:
        """Lets the lease begin again, where the claim still holds."""
        ...

    async def release(self, run_id: str) -> None:
        """Gives the session free, where the claim still holds."""
        ...


class Keeper:
    """One run's hold on its session; does nothing where there is none.

    Entering claims the session and returns its messages; leaving releases it.
    """

    def __init__(self, session: Session | None, run_id: str, owner: str | None) -> None:
        self.session = session
        self.run_id = run_id
        self.owner = owner
        self.kept = 0
        """How many messages of the conversation the session has."""
        self._version = 0
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> tuple[Message, ...] | None:
        if self.session is None:
            return None
        snapshot = await settled(self.session.claim(self.run_id, self.owner))
        self._version, self.kept = snapshot.version, len(snapshot.messages)
        self._renewing = asyncio.ensure_future(self._renew(self.session))
        return snapshot.messages

    async def __aexit__(self, *_: object) -> None:
        if self.session is not None and self._renewing is not None:
            self._renewing.cancel()
            await settled(self.session.release(self.run_id))

    async def keep(self, messages: Sequence[Message]) -> None:
        """Appends those messages of the conversation that the session does not have; they are there for good then.

        Raises:
            SessionBusy: The claim was lost.
        """
        if self.session is not None and len(messages) > self.kept:
            await settled(self._append(self.session, messages[self.kept :]))

    async def _append(self, session: Session, fresh: Sequence[Message]) -> None:
        # Both are known also where whoever waits is cancelled meanwhile: see settled().
        self._version = await session.append(self.run_id, self._version, fresh)
        self.kept += len(fresh)

    async def _renew(self, session: Session) -> None:
        while True:
            await asyncio.sleep(session.lease / 3)
            with contextlib.suppress(sqlite3.Error, OSError):  # the next append will tell
                await session.renew(self.run_id)


async def settled(work: Coroutine[Any, Any, T]) -> T:
    """Awaits work to its end, also when the caller is cancelled meanwhile: half a write would be known to nobody."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


_SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, owner TEXT, version INTEGER NOT NULL DEFAULT 0,
    holder TEXT, process TEXT, lease REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (
    session TEXT NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counts (
    scope TEXT NOT NULL, rule TEXT NOT NULL, used INTEGER NOT NULL, PRIMARY KEY (scope, rule)
) WITHOUT ROWID;
"""
_FORMAT = 2
"""What ``PRAGMA user_version`` says of files of this shape; those before it are brought to it."""
_BUSY_SECONDS = 30.0
"""How long one process waits for another's transaction; these take milliseconds."""


class SQLiteSession:
    """A session in an SQLite file, which may hold any number of them, for any number of processes.

    ::

        session = SQLiteSession("chats.db", "order-17")
        agent.run_sync("Where is it?", user=alice, session=session)

    The user of the first run becomes its owner; a run for anybody else is refused. An append is one transaction, synced
    to the disk before it counts (write-ahead log, ``synchronous=FULL``).
    """

    def __init__(self, path: str | PathLike[str], id: str, *, lease: float = 30.0) -> None:
        """Args:
            path: The file; made when it is first needed.
            id: Which conversation of the file.
            lease: Seconds after which another run may take over from one that was not heard of.

        Raises:
            DefinitionError: The id is empty, or the lease is not above 0.
        """
        if not isinstance(id, str) or not id:
            raise DefinitionError(f"a session's id is {id!r}: it must be a non-empty string.")
        if not lease > 0:
            raise DefinitionError(f"a session's lease is {lease}: it must be above 0 seconds.")
        self.path = fspath(path)
        self._id, self._lease = id, lease
        self._file: _File | None = None

    def __repr__(self) -> str:
        return f"SQLiteSession({self.path!r}, {self._id!r})"

    @property
    def id(self) -> str:
        """Which conversation of the file it is."""
        return self._id

    @property
    def lease(self) -> float:
        """Seconds that a claim holds unless it is renewed."""
        return self._lease

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as it is in the file now.

        Raises:
            RunError: The file cannot be read.
        """
        with self._open() as db:
            return _messages(db, self._id)

    @property
    def owner(self) -> str | None:
        """Whose it is; None where it has not begun, or was begun without a user.

        Raises:
            RunError: The file cannot be read.
        """
        with self._open() as db:
            row = db.execute("SELECT owner FROM sessions WHERE id = ?", (self._id,)).fetchone()
        return row[0] if row else None

    @classmethod
    def ids(cls, path: str | PathLike[str], *, owner: str | None = None) -> list[str]:
        """The ids of a file's sessions, in order; with ``owner``, of this user's.

        Raises:
            RunError: The file cannot be read.
        """
        with _transaction(fspath(path)) as file:
            rows = file.db.execute("SELECT id FROM sessions WHERE ?1 IS NULL OR owner = ?1 ORDER BY id", (owner,))
            return [row[0] for row in rows]

    def delete(self) -> None:
        """Removes the conversation; nothing happens where there is none.

        Raises:
            SessionBusy: A run has it.
        """
        with self._open() as db:
            self._refuse_held(db, "")
            db.execute("DELETE FROM messages WHERE session = ?", (self._id,))
            db.execute("DELETE FROM sessions WHERE id = ?", (self._id,))

    async def claim(self, run_id: str, owner: str | None) -> Snapshot:
        """Takes the session for one run; see :meth:`Session.claim`."""
        return await self._in_thread(self._claim, run_id, owner)

    async def append(self, run_id: str, version: int, messages: Sequence[Message]) -> int:
        """Adds messages for good; see :meth:`Session.append`."""
        return await self._in_thread(self._append, run_id, version, [m.to_dict() for m in messages])

    async def renew(self, run_id: str) -> None:
        """Lets the lease begin again; see :meth:`Session.renew`."""
        await self._in_thread(self._hold, run_id, time.time() + self._lease)

    async def release(self, run_id: str) -> None:
        """Gives the session free; see :meth:`Session.release`."""
        await self._in_thread(self._hold, run_id, None)

    async def used(self, scope: str, rule: str) -> int:
        """How many calls a rule has let through; see :class:`agentgram.policy.state.Counts`."""
        return await self._in_thread(_used, scope, rule)

    async def reserve(self, scope: str, rule: str, most: int) -> bool:
        """Counts one more call, in one transaction; see :class:`agentgram.policy.state.Counts`."""
        return await settled(self._in_thread(_reserve, scope, rule, most))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with _transaction(self.path, self._file) as file:
            self._file = file
            yield file.db

    async def _in_thread(self, work: Callable[..., T], *args: Any) -> T:
        def transaction() -> T:
            with self._open() as db:
                return work(db, *args)

        return await asyncio.to_thread(transaction)

    def _claim(self, db: sqlite3.Connection, run_id: str, owner: str | None) -> Snapshot:
        db.execute("INSERT OR IGNORE INTO sessions (id, owner) VALUES (?, ?)", (self._id, owner))
        known, version = db.execute("SELECT owner, version FROM sessions WHERE id = ?", (self._id,)).fetchone()
        if known != owner:
            who = f"user {owner!r}" if owner is not None else "a run without user="
            raise PolicyError(f"session {self._id!r} does not belong to {who}: use another session.")
        self._refuse_held(db, run_id)
        db.execute(
            "UPDATE sessions SET holder = ?, process = ?, lease = ? WHERE id = ?",
            (run_id, _this_process(), time.time() + self._lease, self._id),
        )
        return Snapshot(version=version, messages=_messages(db, self._id))

    def _refuse_held(self, db: sqlite3.Connection, run_id: str) -> None:
        row = db.execute("SELECT holder, process, lease FROM sessions WHERE id = ?", (self._id,)).fetchone()
        if row is None or row[0] in (None, run_id) or row[2] <= time.time() or _is_gone(row[1]):
            return
        raise SessionBusy(
            f"another run has session {self._id!r}. Wait until it has ended, or use a session of its own for what goes "
            "on at the same time."
        )

    def _append(self, db: sqlite3.Connection, run_id: str, version: int, messages: Sequence[dict[str, Any]]) -> int:
        done = db.execute(
            "UPDATE sessions SET version = version + 1, lease = ? WHERE id = ? AND holder = ? AND version = ?",
            (time.time() + self._lease, self._id, run_id, version),
        )
        if done.rowcount != 1:
            raise SessionBusy(
                f"session {self._id!r} was taken over by another run: this one was not heard of for {self._lease:g} "
                "seconds. Give the session a longer lease."
            )
        (number,) = db.execute("SELECT count(*) FROM messages WHERE session = ?", (self._id,)).fetchone()
        rows = [(self._id, number + i, json.dumps(m)) for i, m in enumerate(messages)]
        db.executemany("INSERT INTO messages VALUES (?, ?, ?)", rows)
        return version + 1

    def _hold(self, db: sqlite3.Connection, run_id: str, until: float | None) -> None:
        db.execute(
            "UPDATE sessions SET lease = ?, holder = ? WHERE id = ? AND holder = ?",
            (until or 0, run_id if until is not None else None, self._id, run_id),
        )


def _used(db: sqlite3.Connection, scope: str, rule: str) -> int:
    row = db.execute("SELECT used FROM counts WHERE scope = ? AND rule = ?", (scope, rule)).fetchone()
    return row[0] if row else 0


def _reserve(db: sqlite3.Connection, scope: str, rule: str, most: int) -> bool:
    if _used(db, scope, rule) >= most:
        return False
    db.execute("INSERT INTO counts VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET used = used + 1", (scope, rule))
    return True


def _messages(db: sqlite3.Connection, id: str) -> tuple[Message, ...]:
    rows = db.execute("SELECT body FROM messages WHERE session = ? ORDER BY number", (id,))
    return tuple(Message.from_dict(json.loads(body)) for (body,) in rows)


class _File:
    """One connection per process and file, used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self.lock = threading.Lock()
        self.pid = os.getpid()
        self.db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self._close = weakref.finalize(self, self.db.close)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self._prepare(path)

    def _prepare(self, path: str) -> None:
        if self._format() == _FORMAT:
            return
        self.db.execute("BEGIN IMMEDIATE")
        try:
            if (found := self._format()) > _FORMAT:
                raise RunError(f"{path} was written by another version (format {found}, this is {_FORMAT}).")
            for statement in _SCHEMA.split(";"):
                self.db.execute(statement)
            self.db.execute(f"PRAGMA user_version = {_FORMAT}")
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise

    def _format(self) -> int:
        return int(self.db.execute("PRAGMA user_version").fetchone()[0])


_files: weakref.WeakValueDictionary[str, _File] = weakref.WeakValueDictionary()
_files_lock = threading.Lock()
_inherited: list[_File] = []


def _after_fork() -> None:
    # A connection must not be used, nor closed, by another process than its own.
    global _files_lock
    _files_lock = threading.Lock()
    _inherited.extend(_files.values())
    _files.clear()


if hasattr(os, "register_at_fork"):  # where processes can be forked
    os.register_at_fork(after_in_child=_after_fork)


def _connected(path: str, known: _File | None = None) -> _File:
    """The process's connection to a file; lives as long as somebody holds it."""
    if known is not None and known.pid == os.getpid() and Path(path).exists():
        return known
    with _files_lock:
        place = str(Path(path).resolve())
        file = _files.get(place)
        if file is None or not Path(place).exists():
            file = _files[place] = _File(place)
        return file


@contextmanager
def _transaction(path: str, known: _File | None = None) -> Iterator[_File]:
    """A transaction on a file; takes effect as a whole, or not at all.

    Raises:
        RunError: The file cannot be opened, read or written.
    """
    try:
        file = _connected(path, known)
        with file.lock:
            file.db.execute("BEGIN IMMEDIATE")
            try:
                yield file
            except BaseException:
                file.db.execute("ROLLBACK")
                raise
            file.db.execute("COMMIT")
    except sqlite3.Error as error:
        raise RunError(f"the sessions in {path} cannot be used: {error}.") from error


def _this_process() -> str:
    return json.dumps([socket.gethostname(), os.getpid(), _started(os.getpid())])


def _is_gone(process: str | None) -> bool:
    """Whether a process is known not to run any more; one of another machine never is."""
    if process is None:
        return False
    host, pid, started = json.loads(process)
    if host != socket.gethostname() or sys.platform == "win32":  # where signal 0 would end the process
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return bool(started != _started(pid))


def _started(pid: int) -> str:
    """When a process was started, where the system tells: its number may have been given to another since."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
