"""A source: rows of a user's own database, and how each becomes a document.

`SourceDefinition.from_table` reads it from TOML or JSON and reports all problems at once. What can
only be said with the database at hand (does the column exist?) is checked by `pull/definition.py`.
How far a source is synchronised is no part of its definition.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast, get_args
from urllib.parse import parse_qsl, quote, urlsplit

from zibaldone.errors import InvalidArgument
from zibaldone.limits import (
    CRON_CHARS_MAX,
    NAMESPACE_CHARS_MAX,
    SOURCE_COLUMNS_MAX,
    SOURCE_DEFINITION_CHARS_MAX,
    SOURCE_DELETE_SHARE_DEFAULT,
    SOURCE_KEY_COLUMNS_MAX,
    SOURCE_NAME_CHARS_MAX,
    SOURCE_POLL_SECONDS_DEFAULT,
    SOURCE_POLL_SECONDS_MAX,
    SOURCE_POLL_SECONDS_MIN,
    SOURCE_STATEMENT_SECONDS_DEFAULT,
    SOURCE_STATEMENT_SECONDS_MAX,
)
from zibaldone.model.chunking import Chunking

PULLED = "pulled"
"""The kind of a source that a definition of ours describes."""

BodyFormat = Literal["auto", "text", "markdown", "html"]
TagStyle = Literal["auto", "angle", "comma", "json"]

ID_DEFAULT = "{name}:{key}"

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]+")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACE = re.compile(r"\{([^{}]*)\}")
_SECRET_PARAMETERS = frozenset({"password", "passwd", "pwd", "secret", "token", "sslpassword"})
_RESERVED = frozenset({"kb"})

_CREDENTIALS = (
    "A password must not be written here: put it into an environment variable and refer to it, "
    "as in mysql://reader:${POSTS_PASSWORD}@host/database"
)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a title or body: the value of a column, or a fixed text."""

    column: str = ""
    text: str = ""

    def as_value(self) -> str | dict[str, str]:
        return self.column or {"text": self.text}


@dataclass(frozen=True, slots=True)
class DocumentMap:
    """How a row becomes a document."""

    body: tuple[Part, ...] = ()
    title: tuple[Part, ...] = ()
    id: str = ID_DEFAULT
    """{name} is the source's name, {key} the key (its parts joined by commas), and {column} one
    column of the key."""
    body_format: BodyFormat = "auto"
    """auto: HTML if the text looks like it, otherwise Markdown."""
    metadata: Mapping[str, str] | None = None
    """Name in the metadata → column. None: every column that is not in the title or body."""
    tags: str = ""
    """The column with the tags."""
    tag_style: TagStyle = "auto"
    created: str = ""
    updated: str = ""

    def columns(self) -> tuple[str, ...]:
        """The columns it names, each once. Those of `metadata = None` are not among them."""
        named = [part.column for part in (*self.title, *self.body)]
        named += [*(self.metadata or {}).values(), self.tags, self.created, self.updated]
        return tuple(dict.fromkeys(filter(None, named)))

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": [part.as_value() for part in self.title],
            "body": [part.as_value() for part in self.body],
            "body_format": self.body_format,
            **({} if self.metadata is None else {"metadata": dict(self.metadata)}),
            "tags": self.tags,
            "tag_style": self.tag_style,
            "created": self.created,
            "updated": self.updated,
        }


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    name: str
    namespace: str
    url: str
    """Of the database, as SQLAlchemy reads it. `${NAME}` stands for an environment variable."""
    key: tuple[str, ...]
    """The columns that identify a row."""
    document: DocumentMap
    table: str = ""
    """A table or view, with its schema before it where it is not the default: `shop.posts`."""
    select: str = ""
    """The operator's own SELECT, in place of a table."""
    where: str = ""
    """A condition in SQL: only rows that meet it are pulled."""
    chunking: Chunking = field(default_factory=Chunking)
    refetch: tuple[str, ...] | None = None
    """Columns that may be read again from the source. None: those that are in the document."""
    watermark: str = ""
    """A column that changes whenever the row does: a time or a version."""
    schedule: str = ""
    """A cron expression, in UTC; empty: only when somebody asks."""
    live: bool = False
    """Follow changes soon after they happen."""
    poll_seconds: float | None = None
    """Between two looks at a source that is followed. None: the default where the database cannot
    notify, and no looks where it can."""
    enabled: bool = True
    delete_share_max: float = SOURCE_DELETE_SHARE_DEFAULT
    """A sync that would delete a larger share of the source's documents stops and asks."""
    seconds_max: float = SOURCE_STATEMENT_SECONDS_DEFAULT
    """How long one statement may take in the source."""

    @classmethod
    def from_table(cls, name: str, table: object, namespace: str = "default") -> SourceDefinition:
        """Read a definition. InvalidArgument names every problem; `problems` has them as a list."""
        problems: list[str] = []
        definition = _Reading(table, problems).source(name, namespace)
        if problems:
            raise InvalidArgument(
                f"The definition of the source {name!r} cannot be used: " + " ".join(problems),
                field="source",
                problems=problems,
            )
        return definition

    @classmethod
    def from_stored(cls, name: str, namespace: str, stored: Mapping[str, Any]) -> SourceDefinition:
        """Read what `stored` gave."""
        pull = stored.get("pull")
        if not isinstance(pull, dict):
            raise InvalidArgument(f"The source {name!r} has no definition.", field="source")
        return cls.from_table(name, {**pull, "chunking": stored.get("chunking", {})}, namespace)

    def as_dict(self) -> dict[str, Any]:
        """As `from_table` reads it; without the name and the namespace."""
        return {
            "url": self.url,
            **({"table": self.table} if self.table else {}),
            **({"select": self.select} if self.select else {}),
            "key": list(self.key),
            "where": self.where,
            "watermark": self.watermark,
            **({} if self.refetch is None else {"refetch": list(self.refetch)}),
            "schedule": self.schedule,
            "live": self.live,
            **({} if self.poll_seconds is None else {"poll_seconds": self.poll_seconds}),
            "enabled": self.enabled,
            "delete_share_max": self.delete_share_max,
            "seconds_max": self.seconds_max,
            "document": self.document.as_dict(),
            "chunking": self.chunking.as_dict(),
        }

    def stored(self) -> dict[str, Any]:
        """The definition as a store keeps it (`SourceUpkeep.add`, `redefine`)."""
        pull = self.as_dict()
        chunking = pull.pop("chunking")
        return {"chunking": chunking, "pull": pull}

    def with_chunking(self, chunking: Chunking) -> SourceDefinition:
        return replace(self, chunking=chunking)

    @property
    def references(self) -> tuple[str, ...]:
        """The environment variables that the URL needs."""
        return tuple(dict.fromkeys(_REFERENCE.findall(self.url)))

    def resolved_url(self, environment: Mapping[str, str]) -> str:
        """The URL with the values of its references. InvalidArgument names those that are missing.

        It holds the password: connect with it and forget it.
        """
        missing = [name for name in self.references if not environment.get(name)]
        if missing:
            listed = ", ".join(missing)
            raise InvalidArgument(
                f"The URL of the source {self.name!r} needs the environment variable {listed}, "
                "which is not set where its rows are read: in the server, if one is running, "
                "otherwise in this command. A server has to be restarted with it.",
                field="url",
                missing=missing,
            )
        if _REFERENCE.fullmatch(self.url):
            return environment[self.references[0]]
        return _REFERENCE.sub(lambda found: quote(environment[found[1]], safe=""), self.url)


class _Reading:
    """Reads one table of a definition and notes what is wrong with it."""

    def __init__(self, table: object, problems: list[str], path: str = "") -> None:
        self._problems = problems
        self._path = path
        self._values: dict[str, Any] = {}
        if isinstance(table, Mapping):
            self._values = dict(table)
        else:
            self._problem(f"{path.rstrip('.') or 'The definition'} must be a table.")

    def source(self, name: str, namespace: str) -> SourceDefinition:
        self._check_names(name, namespace)
        table, select = self._text("table"), self._text("select")
        if bool(table) == bool(select):
            self._problem("Give either table or select, and only one of them.")
        if select and self._text("watermark"):
            self._problem("watermark needs a table; with select every row is compared whole.")
        url = self._text("url")
        self._check_url(url)
        key = self._names("key") or ()
        if not key:
            self._problem("key is missing: name the column or columns that identify a row.")
        if len(key) > SOURCE_KEY_COLUMNS_MAX:
            self._problem(f"key has more than {SOURCE_KEY_COLUMNS_MAX} columns.")
        document = _Reading(self._values.get("document", {}), self._problems, "document.")
        read = SourceDefinition(
            name=name,
            namespace=namespace,
            url=url,
            table=table,
            select=select.rstrip("; \n\t"),
            key=key,
            where=self._text("where"),
            document=document.document(key),
            chunking=self._chunking(),
            refetch=self._names("refetch"),
            watermark=self._text("watermark"),
            schedule=self._text("schedule", CRON_CHARS_MAX),
            live=self._flag("live", False),
            poll_seconds=self._poll_seconds(),
            enabled=self._flag("enabled", True),
            delete_share_max=self._number(
                "delete_share_max", SOURCE_DELETE_SHARE_DEFAULT, 0.0, 1.0
            ),
            seconds_max=self._number(
                "seconds_max",
                SOURCE_STATEMENT_SECONDS_DEFAULT,
                0.1,
                SOURCE_STATEMENT_SECONDS_MAX,
            ),
        )
        self._refuse_unknown({item.name for item in fields(SourceDefinition)} - {"name"})
        return read

    def _poll_seconds(self) -> float | None:
        if "poll_seconds" not in self._values:
            return None
        return self._number(
            "poll_seconds",
            SOURCE_POLL_SECONDS_DEFAULT,
            SOURCE_POLL_SECONDS_MIN,
            SOURCE_POLL_SECONDS_MAX,
        )

    def document(self, key: Sequence[str]) -> DocumentMap:
        body = self._parts("body")
        if not any(part.column for part in body):
            self._problem(f"{self._path}body is missing: name the column or columns of the text.")
        template = self._text("id") or ID_DEFAULT
        self._check_template(template, key)
        read = DocumentMap(
            id=template,
            title=self._parts("title"),
            body=body,
            body_format=cast("BodyFormat", self._choice("body_format", get_args(BodyFormat))),
            metadata=self._metadata(),
            tags=self._text("tags"),
            tag_style=cast("TagStyle", self._choice("tag_style", get_args(TagStyle))),
            created=self._text("created"),
            updated=self._text("updated"),
        )
        self._refuse_unknown({item.name for item in fields(DocumentMap)})
        return read

    def _check_names(self, name: str, namespace: str) -> None:
        if not _NAME.fullmatch(name) or len(name) > SOURCE_NAME_CHARS_MAX:
            self._problem(
                f"The name {name[:SOURCE_NAME_CHARS_MAX]!r} must be made of letters, digits, '-', "
                f"'_' and '.', at most {SOURCE_NAME_CHARS_MAX}."
            )
        if name in _RESERVED:
            self._problem(f"The name {name!r} is that of the built-in source.")
        if not _NAMESPACE.fullmatch(namespace) or len(namespace) > NAMESPACE_CHARS_MAX:
            self._problem("The namespace must be made of letters, digits, '-', '_' and '.'.")

    def _check_url(self, url: str) -> None:
        if not url:
            self._problem("url is missing.")
            return
        # A reference is replaced by itself without the signs that a URL gives a meaning.
        plain = _REFERENCE.sub("REFERENCE", url)
        if "${" in plain:
            self._problem("url has a ${ that is no reference to an environment variable: ${NAME}.")
        if plain == "REFERENCE":
            return
        try:
            parts = urlsplit(plain)
            password = parts.password
        except ValueError:
            self._problem("url cannot be read.")
            return
        if not parts.scheme or ":" not in plain:
            self._problem("url must begin with the kind of database, such as postgresql://.")
        parameters = parse_qsl(parts.query, keep_blank_values=True)
        secrets = [value for name, value in parameters if name.lower() in _SECRET_PARAMETERS]
        if any(value not in (None, "", "REFERENCE") for value in (password, *secrets)):
            self._problem(f"{_CREDENTIALS}.")

    def _check_template(self, template: str, key: Sequence[str]) -> None:
        named = set(_PLACE.findall(template))
        field_name = f"{self._path}id"
        if unknown := sorted(named - {"name", "key", *key}):
            self._problem(
                f"{field_name} uses {{{unknown[0]}}}; it may use {{name}}, {{key}} and the columns "
                "of the key."
            )
        if "key" not in named and not set(key) <= named:
            self._problem(f"{field_name} must use {{key}}, or every column of the key.")
        if re.search(r"[{}]", _PLACE.sub("", template)):
            self._problem(f"{field_name} has a brace without its partner.")

    def _chunking(self) -> Chunking:
        try:
            return Chunking.from_dict(self._values.get("chunking", {}))
        except InvalidArgument as error:
            self._problem(f"chunking: {error.message}")
            return Chunking()

    def _metadata(self) -> Mapping[str, str] | None:
        given = self._values.get("metadata")
        if given is None or given == "*":
            return None
        if isinstance(given, list) and all(isinstance(name, str) and name for name in given):
            return {name: name for name in given}
        if isinstance(given, Mapping) and all(
            isinstance(name, str) and name and isinstance(column, str) and column
            for name, column in given.items()
        ):
            return dict(given)
        self._problem(
            f"{self._path}metadata must be a list of columns, or a table of names and columns."
        )
        return None

    def _parts(self, name: str) -> tuple[Part, ...]:
        given = self._values.get(name, ())
        if isinstance(given, str):
            given = [given] if given else []
        parts: list[Part] = []
        if isinstance(given, list | tuple) and len(given) <= SOURCE_COLUMNS_MAX:
            for item in given:
                if isinstance(item, str) and item:
                    parts.append(Part(column=item))
                elif (
                    isinstance(item, Mapping)
                    and set(item) == {"text"}
                    and isinstance(item["text"], str)
                ):
                    parts.append(Part(text=item["text"]))
                else:
                    break
            else:
                return tuple(parts)
        self._problem(
            f"{self._path}{name} must be a list of columns and of fixed texts, each written as "
            "{ text = … }."
        )
        return ()

    def _names(self, name: str) -> tuple[str, ...] | None:
        given = self._values.get(name)
        if given is None:
            return None
        if isinstance(given, str):
            given = [given]
        is_list = isinstance(given, list | tuple) and all(
            isinstance(item, str) and item for item in given
        )
        if not is_list or len(set(given)) != len(given) or len(given) > SOURCE_COLUMNS_MAX:
            self._problem(f"{self._path}{name} must be a list of different columns.")
            return None
        return tuple(given)

    def _text(self, name: str, chars_max: int = SOURCE_DEFINITION_CHARS_MAX) -> str:
        given = self._values.get(name)
        if given is None:
            return ""
        if not isinstance(given, str) or "\0" in given:
            self._problem(f"{self._path}{name} must be text.")
            return ""
        if len(given) > chars_max:
            self._problem(f"{self._path}{name} has more than {chars_max} characters.")
            return ""
        return given.strip()

    def _choice(self, name: str, choices: Sequence[str]) -> str:
        given = self._values.get(name, choices[0])
        if given not in choices:
            self._problem(f"{self._path}{name} must be one of {', '.join(choices)}.")
            return choices[0]
        return str(given)

    def _flag(self, name: str, default: bool) -> bool:
        given = self._values.get(name, default)
        if not isinstance(given, bool):
            self._problem(f"{self._path}{name} must be true or false.")
            return default
        return given

    def _number(self, name: str, default: float, least: float, most: float) -> float:
        given = self._values.get(name, default)
        if isinstance(given, bool) or not isinstance(given, int | float):
            self._problem(f"{self._path}{name} must be a number.")
            return default
        if not least <= given <= most:
            self._problem(f"{self._path}{name} must be from {least:g} to {most:g}.")
            return default
        return float(given)

    def _refuse_unknown(self, known: set[str]) -> None:
        for name in sorted(map(str, self._values.keys() - known)):
            hint = nearest(name, known)
            suggestion = f" Did you mean {hint!r}?" if hint else ""
            self._problem(f"{self._path}{name} is unknown.{suggestion}")

    def _problem(self, text: str) -> None:
        self._problems.append(text)


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that is most like it, if one is alike."""
    folded: dict[str, str] = {candidate.casefold(): candidate for candidate in sorted(known)}
    matches = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None
