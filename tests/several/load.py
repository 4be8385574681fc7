"""Clients that write all the time, and know afterwards what must be there.

lost      an acknowledged write is not there
doubled   a write is there twice, or though its client was told that nothing was stored
partial   a document is neither as it was before a write nor as it was to be after it
stale     a write that was just acknowledged is not read, through whichever server
refused   an answer that no client can do anything with: neither done nor "try again"
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx2 as httpx

TRY_AGAIN = frozenset({"STORAGE_UNAVAILABLE", "SHUTTING_DOWN", "TOO_MANY_REQUESTS"})
"""Codes of errors after which the same request may succeed."""

GATEWAY = frozenset({502, 503, 504})
"""Of a proxy whose server is gone: an answer without a code of ours."""

END = "(end)"
_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.05
_READ_BACK_SHARE = 0.25


@dataclass(slots=True)
class Report:
    acknowledged: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    """How often each code of an error was seen; "none" is a connection without an answer."""
    unknown: int = 0
    """Writes whose clients had to look what became of them."""
    problems: list[str] = field(default_factory=list)
    acknowledged_at_s: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note_problem(self, kind: str, what: str) -> None:
        with self._lock:
            self.problems.append(f"{kind}: {what}"[:600])

    def note_error(self, code: str) -> None:
        with self._lock:
            self.answers[code] += 1

    def note_acknowledged(self, is_unknown: bool) -> None:
        with self._lock:
            self.acknowledged += 1
            self.unknown += is_unknown
            self.acknowledged_at_s.append(time.monotonic())

    def longest_gap_s(self) -> float:
        """Between two acknowledgements of any client."""
        times = self.acknowledged_at_s
        return max((later - earlier for earlier, later in pairwise(times)), default=0.0)

    def first_after_s(self, moment_s: float) -> float:
        """How long after a moment the first write was acknowledged."""
        return (
            min((at for at in self.acknowledged_at_s if at >= moment_s), default=float("inf"))
            - moment_s
        )


class NoAnswerError(Exception):
    """Nobody knows what became of the request."""


class Client(threading.Thread):
    """Creates documents of its own, and adds entries to one; each request to any of the servers."""

    def __init__(
        self,
        name: str,
        urls: Sequence[str],
        report: Report,
        *,
        headers: dict[str, str] | None = None,
        seed: int = 1,
        is_proxy: bool = False,
        verify: Any = False,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._report = report
        self._chance = random.Random(f"{seed}.{name}")
        self._is_proxy = is_proxy
        self._clients = [
            httpx.Client(base_url=url, timeout=60, trust_env=False, headers=headers, verify=verify)
            for url in urls
        ]
        self._stopping = threading.Event()
        self.created: dict[str, str] = {}
        self.log_path = f"{name}/log"
        self.entries: list[str] = []

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        try:
            self._write("POST", self.log_path, {"path": self.log_path, "content": END}, None, END)
            number = 0
            while not self._stopping.is_set():
                number += 1
                if self._chance.random() < 0.5:
                    self._create(number)
                else:
                    self._append(number)
        except Exception as problem:
            self._report.note_problem("refused", f"{self.name}: {problem!r}")
        finally:
            for client in self._clients:
                client.close()

    def _create(self, number: int) -> None:
        path, text = f"{self.name}/{number}", f"text {number} of {self.name}"
        if self._write("POST", path, {"path": path, "content": text}, None, text):
            self.created[path] = text

    def _append(self, number: int) -> None:
        before = " ".join([*self.entries, END])
        entry = f"e{number}"
        after = " ".join([*self.entries, entry, END])
        change = {"old_str": END, "new_str": f"{entry} {END}"}
        if self._write("PATCH", self.log_path, change, before, after):
            self.entries.append(entry)

    def _write(
        self, method: str, path: str, body: dict[str, Any], before: str | None, after: str
    ) -> bool:
        """Try until it is done. False: something is wrong, which is reported."""
        url = "/documents" if method == "POST" else f"/documents/{path}"
        is_unknown = False
        deadline_s = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline_s:
            try:
                answer = self._request(method, url, body)
            except NoAnswerError:
                is_unknown = True
                stored = self._look(path)
                if stored == after:
                    self._report.note_acknowledged(is_unknown)
                    return True
                if stored != before:
                    self._report.note_problem("partial", f"{path}: {stored!r}, not {after!r}")
                    return False
                continue
            if answer is None:
                continue
            if answer.status_code in (200, 201):
                self._report.note_acknowledged(is_unknown)
                if self._chance.random() < _READ_BACK_SHARE and self._look(path) != after:
                    self._report.note_problem("stale", path)
                return True
            kind = "doubled" if answer.status_code == 409 else "refused"
            self._report.note_problem(kind, f"{method} {path}: {answer.text}")
            return False
        self._report.note_problem("refused", f"{method} {path} was never answered")
        return False

    def _look(self, path: str) -> str | None:
        deadline_s = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline_s:
            try:
                answer = self._request("GET", f"/documents/{path}?view=full", None)
            except NoAnswerError:
                continue
            if answer is None:
                continue
            if answer.status_code == 404:
                return None
            if answer.status_code == 200:
                return str(answer.json()["content"])
            self._report.note_problem("refused", f"GET {path}: {answer.text}")
        raise RuntimeError(f"{path} cannot be read")

    def _request(self, method: str, url: str, body: Any) -> httpx.Response | None:
        """None: try again. NoAnswerError: it may have happened."""
        client = self._chance.choice(self._clients)
        try:
            answer = client.request(method, url, json=body)
        except httpx.ConnectError:
            self._pause("no connection")
            return None
        except httpx.HTTPError:
            self._pause("none")
            raise NoAnswerError from None
        error = _error(answer) if answer.status_code >= 400 else {}
        if answer.status_code < 500 and (error or {}).get("code") not in TRY_AGAIN:
            return answer
        if error is None and self._is_proxy and answer.status_code in GATEWAY:
            self._pause(f"proxy {answer.status_code}")
            raise NoAnswerError
        if error is None or error["code"] not in TRY_AGAIN:
            return answer
        self._pause(error["code"])
        if error.get("details", {}).get("outcome") == "unknown":
            raise NoAnswerError
        return None

    def _pause(self, code: str) -> None:
        self._report.note_error(code)
        time.sleep(_PAUSE_SECONDS)

    def check(self, client: httpx.Client) -> None:
        """Compare what is there with what must be."""
        for path, text in self.created.items():
            answer = client.get(f"/documents/{path}?view=full")
            if answer.status_code != 200:
                self._report.note_problem("lost", f"{path}: {answer.text}")
            elif answer.json()["content"] != text or answer.json()["revision"] != 1:
                self._report.note_problem("partial", f"{path}: {answer.text}")
        answer = client.get(f"/documents/{self.log_path}?view=full")
        found = answer.json()["content"].split()[:-1] if answer.status_code == 200 else []
        for entry, count in (Counter(found) - Counter(self.entries)).items():
            self._report.note_problem(
                "doubled", f"{self.log_path}: {entry}, {count} times too many"
            )
        for entry in Counter(self.entries) - Counter(found):
            self._report.note_problem("lost", f"{self.log_path}: {entry}")
        if found == self.entries and answer.json()["revision"] != len(found) + 1:
            self._report.note_problem("doubled", f"{self.log_path}: {answer.json()['revision']}")


def _error(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        error: dict[str, Any] = answer.json()
    except ValueError:
        return None
    return error if "code" in error else None
