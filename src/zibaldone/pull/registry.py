"""The sources that there are: added on the command line or defined in the settings.

Both kinds are kept in the store, so that every process sees them. `origin` in the stored definition
says where a source is defined, and only there it can be changed. A source and its schedule are
written in one transaction. Everything here is for the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from zibaldone.access.principal import NAMESPACE_DEFAULT
from zibaldone.errors import Ambiguous, ConfigurationError, Conflict, InvalidArgument, NotFound
from zibaldone.jobs.schedule import new_schedule
from zibaldone.model.instant import now_us
from zibaldone.model.source import PULLED, SourceDefinition, nearest
from zibaldone.pull.job import SYNC, schedule_name, sync_schedule
from zibaldone.store.port import Store
from zibaldone.store.upkeep import SourceRecord, Upkeep

Origin = Literal["settings", "command"]
SETTINGS: Origin = "settings"
COMMAND: Origin = "command"


def definition_of(record: SourceRecord) -> SourceDefinition:
    """The definition of a stored source. InvalidArgument: it cannot be used."""
    return SourceDefinition.from_stored(record.name, record.namespace, record.definition)


def origin_of(record: SourceRecord) -> Origin:
    return SETTINGS if record.definition.get("origin") == SETTINGS else COMMAND


async def all_records(store: Store) -> list[SourceRecord]:
    """Every source that rows are pulled from, of every namespace."""
    records = await store.upkeep(lambda upkeep: upkeep.sources.records(), write=False)
    return [record for record in records if record.kind == PULLED]


def find(records: Iterable[SourceRecord], name: str, namespace: str | None = None) -> SourceRecord:
    """The source of that name. NotFound, or Ambiguous if several namespaces have one."""
    known = list(records)
    named = [r for r in known if r.name == name and namespace in (None, r.namespace)]
    if len(named) > 1:
        namespaces = sorted(record.namespace for record in named)
        raise Ambiguous(
            f"Several namespaces have a source {name!r}: {', '.join(namespaces)}. Add one.",
            source=name,
            namespaces=namespaces,
        )
    if not named:
        hint = nearest(name, {record.name for record in known})
        meant = f" Did you mean {hint!r}?" if hint else " 'zibaldone sources' lists them."
        raise NotFound(f"There is no source {name!r}.{meant}", source=name)
    return named[0]


def add(upkeep: Upkeep, definition: SourceDefinition, origin: Origin, at_us: int) -> int:
    """Store a new source; its id. Conflict: the name is taken."""
    source_id = upkeep.sources.add(
        definition.namespace,
        definition.name,
        PULLED,
        _stored(definition, origin),
        at_us=at_us,
        enabled=definition.enabled,
    )
    _put_schedule(upkeep, source_id, definition)
    return source_id


def redefine(upkeep: Upkeep, source_id: int, definition: SourceDefinition, origin: Origin) -> bool:
    """Store another definition; whether documents have to be chunked again."""
    is_cut_anew = upkeep.sources.redefine(source_id, _stored(definition, origin))
    upkeep.sources.enable(source_id, definition.enabled)
    _put_schedule(upkeep, source_id, definition)
    return is_cut_anew


def enable(upkeep: Upkeep, record: SourceRecord, enabled: bool) -> None:
    """Have the source searched and synced, or neither."""
    stored = dict(record.definition)
    stored["pull"] = {**stored["pull"], "enabled": enabled}
    upkeep.sources.redefine(record.source_id, stored)
    upkeep.sources.enable(record.source_id, enabled)
    definition = SourceDefinition.from_stored(record.name, record.namespace, stored)
    _put_schedule(upkeep, record.source_id, definition)


def _stored(definition: SourceDefinition, origin: Origin) -> dict[str, Any]:
    return {**definition.stored(), "origin": origin}


def _put_schedule(upkeep: Upkeep, source_id: int, definition: SourceDefinition) -> None:
    schedule = sync_schedule(source_id, definition)
    if schedule is None:
        upkeep.schedules.remove(schedule_name(definition))
    else:
        upkeep.schedules.put(schedule)


def read_definitions(tables: Mapping[str, Any]) -> list[SourceDefinition]:
    """The setting `sources`. ConfigurationError names the problems of all of them."""
    definitions, problems = [], []
    for name, table in tables.items():
        values = dict(table)
        namespace = values.pop("namespace", NAMESPACE_DEFAULT)
        try:
            definition = SourceDefinition.from_table(name, values, str(namespace))
            require_schedule(definition)
        except InvalidArgument as error:
            found = error.details.get("problems") or [error.message]
            problems += [f"sources.{name}: {problem}" for problem in found]
        else:
            definitions.append(definition)
    if problems:
        raise ConfigurationError("\n".join(problems), problems=problems)
    return definitions


def require_schedule(definition: SourceDefinition) -> None:
    """InvalidArgument: its schedule is no cron expression."""
    if definition.schedule:
        new_schedule("check", definition.schedule, SYNC)


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What differed between the settings and the store. Names, with their namespaces."""

    added: tuple[str, ...] = ()
    redefined: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    """Those that are no longer in the settings; their documents are kept, but not found."""
    to_cut: tuple[str, ...] = ()
    """Redefined with another chunking, by which their documents are not cut yet."""


async def reconcile(store: Store, definitions: Iterable[SourceDefinition]) -> Reconciled:
    """Bring the sources of the settings into the store.

    ConfigurationError: a name is that of a source that was added on the command line.
    """
    wanted = {(one.namespace, one.name): one for one in definitions}
    at_us = now_us()
    records = await all_records(store)
    if not wanted and not any(origin_of(record) == SETTINGS for record in records):
        return Reconciled()  # without the lock that writing needs
    return await store.upkeep(lambda upkeep: _reconcile(upkeep, wanted, at_us))


def _reconcile(
    upkeep: Upkeep, wanted: Mapping[tuple[str, str], SourceDefinition], at_us: int
) -> Reconciled:
    known = {
        (record.namespace, record.name): record
        for record in upkeep.sources.records()
        if record.kind == PULLED
    }
    _require_own(wanted, known)
    added, redefined, disabled, to_cut = [], [], [], []
    for place, definition in wanted.items():
        record = known.get(place)
        if record is None:
            try:
                add(upkeep, definition, SETTINGS, at_us)
            except Conflict as error:
                raise ConfigurationError(f"sources.{definition.name}: {error.message}") from None
            added.append(_label(*place))
        elif _differs(record, definition):
            if redefine(upkeep, record.source_id, definition, SETTINGS):
                to_cut.append(_label(*place))
            redefined.append(_label(*place))
    for place, record in known.items():
        if origin_of(record) == SETTINGS and place not in wanted and record.enabled:
            enable(upkeep, record, False)
            disabled.append(_label(*place))
    return Reconciled(tuple(added), tuple(redefined), tuple(disabled), tuple(to_cut))


def _require_own(
    wanted: Mapping[tuple[str, str], SourceDefinition],
    known: Mapping[tuple[str, str], SourceRecord],
) -> None:
    taken = [
        name
        for (namespace, name) in wanted
        if (record := known.get((namespace, name))) is not None and origin_of(record) != SETTINGS
    ]
    if taken:
        raise ConfigurationError(
            "\n".join(
                f"sources.{name}: a source of this name was added with 'zibaldone sources add'. "
                f"Remove one of the two: 'zibaldone sources remove {name}', or [sources.{name}] in "
                "the settings."
                for name in taken
            ),
            sources=taken,
        )


def _differs(record: SourceRecord, definition: SourceDefinition) -> bool:
    stored = _stored(definition, SETTINGS)
    return dict(record.definition) != stored or record.enabled != definition.enabled


def _label(namespace: str, name: str) -> str:
    return name if namespace == NAMESPACE_DEFAULT else f"{name} ({namespace})"
