"""From files to vectors: how long until a folder is found by meaning, with each embedding model.

    python -m benchmarks.embedding [--quick]

The texts are the language reference that Python carries, in documents of about 2 KB. The floor is
the same import without a model: documents, passages and keywords only. Every command is run as a
user runs it, starting and loading the model included.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

from benchmarks.report import Finding, table
from zibaldone.embed.open import BUILT_IN

_DOCUMENT_CHARS = 2_000
_SHIFTS_CHARS = (0, 500, 1_000, 1_500)
"""The same text cut at other places, so that there is enough of it."""
_QUICK_DOCUMENTS = 60


@dataclass(frozen=True, slots=True)
class Imported:
    seconds: float
    passages: int

    @property
    def passages_per_second(self) -> float:
        return self.passages / self.seconds


def measure(*, quick: bool) -> list[Finding]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents = write_texts(folder / "texts", _QUICK_DOCUMENTS if quick else None)
        floor = run(folder, "none")
        findings = []
        for embedder in BUILT_IN:
            found = run(folder, embedder)
            findings.append(
                Finding(
                    f"{documents} documents, {found.passages} passages, {embedder}",
                    f"{found.passages_per_second:,.0f} passages/s",
                    f"{floor.passages_per_second:,.0f} without a model",
                    found.seconds / floor.seconds,
                )
            )
        return findings


def write_texts(folder: Path, documents_max: int | None) -> int:
    folder.mkdir()
    text = "\n\n".join(topics.values())
    starts = [at for shift in _SHIFTS_CHARS for at in range(shift, len(text), _DOCUMENT_CHARS)]
    starts = starts[:documents_max]
    for number, start in enumerate(starts):
        (folder / f"{number:04}.md").write_text(text[start : start + _DOCUMENT_CHARS], "utf-8")
    return len(starts)


def run(folder: Path, embedder: str) -> Imported:
    data = folder / f"data-{embedder}"
    config = folder / f"{embedder}.toml"
    config.write_text(f'embedder = "{embedder}"\n')
    program = [sys.executable, "-m", "zibaldone", "--config", str(config), "--data", str(data)]
    started_s = time.perf_counter()
    _run([*program, "import", str(folder / "texts")])
    if embedder != "none":
        _run([*program, "reindex"])
    seconds = time.perf_counter() - started_s
    status = json.loads(_run([*program, "index", "status", "--json"]))
    if embedder != "none" and status["missing"]:
        raise RuntimeError(f"{status['missing']} passages have no vector")
    return Imported(seconds, status["chunks"])


def _run(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    print(table(measure(quick="--quick" in sys.argv)))
