"""Files and dates: a folder that the model cannot leave, dates as Python values, and a conversation that is kept.

The folder comes from the run (`bind`), so no prompt can talk the model into another one; dates arrive as
`datetime.date`. A small real model answers about files that were made a moment ago. Exits with 1 if a call did not find
what is there.
"""

import datetime
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from agentgram import Agent, Limits, ModelRetry, ModelSettings, Principal, SQLiteSession, bind, tool
from agentgram.models import load_model


@dataclass
class Deps:
    folder: Path


Folder = Annotated[Path, bind("deps.folder")]


@tool
def files_changed_since(folder: Folder, day: datetime.date) -> list[str]:
    """List the files that were changed on a day or after it.

    Args:
        day: The first day, as in 2026-03-01.
    """
    start = datetime.datetime.combine(day, datetime.time(), tzinfo=datetime.UTC).timestamp()
    return sorted(path.name for path in folder.iterdir() if path.stat().st_mtime >= start)


@tool(max_result_tokens=200)
def read_file(folder: Folder, name: str) -> str:
    """Read a file.

    Args:
        name: The file's name, as in notes.txt.
    """
    names = sorted(path.name for path in folder.iterdir())
    if name not in names:
        raise ModelRetry(f"There is no file {name}. There are: {', '.join(names)}.")
    return (folder / name).read_text()


def make(folder: Path) -> None:
    for name, day, text in (("old.txt", 1, "Buy milk."), ("plan.txt", 20, "Ship on Friday."), ("new.txt", 25, "Done.")):
        (folder / name).write_text(text)
        when = datetime.datetime(2026, 3, day, 12, tzinfo=datetime.UTC).timestamp()
        os.utime(folder / name, (when, when))


def main() -> int:
    agent = Agent(load_model("smollm2"), tools=[files_changed_since, read_file], deps_type=Deps)
    with tempfile.TemporaryDirectory(prefix="agentgram-files-") as place:
        deps = Deps(Path(place) / "notes")
        deps.folder.mkdir()
        make(deps.folder)
        session = SQLiteSession(Path(place) / "chats.db", "files")
        found = []
        for question in ("Which files were changed since 2026-03-15?", "Read the file plan.txt."):
            result = agent.run_sync(
                question,
                deps=deps,
                user=Principal("ada"),
                session=session,
                tool_choice="required",
                parallel=False,
                settings=ModelSettings(seed=1, max_tokens=80),
                limits=Limits(steps=4, identical_calls=1),
            )
            print(question)
            for record in result.calls:
                print(f"  {record.name}({record.arguments}) -> {record.content}")
            print(f"  the model says: {result.output.strip()}")
            found.append(result.calls[-1].value)
        print(f"{len(session.messages)} messages are kept")
    right = found == [["new.txt", "plan.txt"], "Ship on Friday."]
    print("The functions found what is there." if right else f"FAILED: {found}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
