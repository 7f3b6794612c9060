"""What is closed by leaving a ``with``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Entered, it is itself; left, it is closed, whatever happened meanwhile."""

    @abstractmethod
    def close(self) -> None:
        """Ends what is open; once is enough, and more does no harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
