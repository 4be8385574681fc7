"""Time that passes only when somebody waits."""

from __future__ import annotations

from zibaldone.push.retry import Deadline, Retry


class Clock:
    def __init__(self) -> None:
        self.now_seconds = 100.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now_seconds

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_seconds += seconds

    def retry(self, tries: int = 4, *, seconds: float | None = None, jitter: float = 0.0) -> Retry:
        deadline = Deadline.after(seconds, self)
        return Retry(tries=tries, jitter=jitter, sleep=self.sleep, deadline=deadline)
