"""Whether a file changed since it was sent: by size and mtime, and by content only in doubt."""

from __future__ import annotations

from zibaldone.model.consult import SentFile
from zibaldone.pack.files import FileText, FoundFile, digest_of_file

GONE = SentFile(-1, 0)
"""Of a file that was sent and then deleted: it equals no file, so it is sent again if it comes
back, and it still belongs to the files that are sent."""


def is_gone(sent: SentFile) -> bool:
    return sent.size < 0


def sent_now(text: FileText, *, is_settled: bool) -> SentFile:
    """What to remember of a file that is sent."""
    return SentFile(text.size, text.mtime_ns, None if is_settled else text.digest)


def still_sent(file: FoundFile, sent: SentFile | None) -> SentFile | None:
    """What to remember of a file that the assistant has as it is; None if it must be sent.

    A file that was too young to be told apart by its mtime is read and compared; from then on,
    once it is old enough, its stat is enough.
    """
    if sent is None or sent.size != file.size or sent.mtime_ns != file.mtime_ns:
        return None
    if sent.digest is None:
        return sent
    if digest_of_file(file.path) != sent.digest:
        return None
    return SentFile(sent.size, sent.mtime_ns) if file.is_settled else sent
