"""Looking at everything a run would need, and saying what to do about what is wrong. Nothing of a table changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from shlex import quote
from typing import Protocol

from firnline.errors import FirnlineError, StoreError
from firnline.foreign import Veil
from firnline.ops.looking.findings import Diagnosis, Finding, Severity, veiled, versions
from firnline.ops.table.context import TableContext
from firnline.plans.pages import counted
from firnline.policy.limits import limits_in_words
from firnline.policy.parse import Section
from firnline.ports.catalogs import TableName
from firnline.ports.probe import Probe, StoreVerdicts, Verdict
from firnline.ports.stores import List
from firnline.side_by_side import all_answers

_ELSE = "see whether it is up, and whether it can be reached from this machine"
_MEND = "mend it as it says, then ask again"
_NO_CATALOG = Finding(
    Severity.WARNING,
    "catalogs",
    "none is configured",
    "name one in PyIceberg's configuration: .pyiceberg.yaml or PYICEBERG_CATALOG__NAME__URI",
)
_NEEDED = ("list", "get", "put", "delete")


class CatalogFacts(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def properties(self) -> Mapping[str, str]: ...


class CacheFacts(Protocol):
    @property
    def place(self) -> str: ...
    @property
    def trouble(self) -> str: ...
    def answers(self) -> bool | None: ...


@dataclass(frozen=True, slots=True)
class Patient:
    """Everything there is to look at. What may fail is a call, so that one failure hides nothing else."""

    config_file: str | None
    engine: str
    config: Callable[[], Section]
    catalogs: Callable[[], Mapping[str, CatalogFacts]]
    tables: Callable[[str], Iterable[TableName]]
    cache: Callable[[], CacheFacts]
    store: Callable[[CatalogFacts], List]
    probe: Callable[[CatalogFacts], Probe]
    table: Callable[[], tuple[TableContext, Probe]] | None
    only: str | None = None
    """The one catalog to look at; None for all."""
    spark: Callable[[], str | None] = lambda: None
    """Returns the server of Spark Connect that answered, None where none is meant; raises where it does not answer."""


def diagnose(patient: Patient, veil: Veil) -> Diagnosis:
    """Returns what was found, in the order in which a run would meet it."""
    looks: dict[str, Callable[[], Iterable[Finding]]] = {
        "versions": versions,
        "configuration": lambda: _configuration(patient),
        "engine": lambda: [Finding(Severity.OK, "engine", patient.engine)],
        "spark": lambda: _spark(patient),
        "cache": lambda: _cache(patient.cache()),
        "catalogs": lambda: _catalogs(patient),
        "table": lambda: _table(patient),
    }
    found = [each for topic, look in looks.items() for each in _safely(topic, look)]
    blind = _NO_CATALOG in found and patient.table is None
    return Diagnosis(tuple(veiled(each, veil) for each in found), blind)


def _safely(topic: str, look: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yields what was found; whatever goes wrong with looking is a finding too, and ends only this look."""
    try:
        yield from look()
    except FirnlineError as problem:
        away = isinstance(problem, StoreError)
        yield Finding(Severity.PROBLEM, topic, problem.message, problem.hint or (_ELSE if away else _MEND))
    except Exception as strange:  # a library's own error must not hide what else there is to say
        said = str(strange).strip().partition("\n")[0]
        yield Finding(Severity.PROBLEM, topic, f"{type(strange).__name__}: {said}", _ELSE)


def _configuration(patient: Patient) -> Iterator[Finding]:
    config = patient.config()
    where = patient.config_file or "no firnline.yaml: every table has its own retention"
    yield Finding(Severity.OK, "configuration", where)
    for place, said in config.stores.items():
        yield Finding(Severity.OK, "limits", f"{place} {limits_in_words(said)}")


def _spark(patient: Patient) -> Iterator[Finding]:
    server = patient.spark()
    if server is not None:
        yield Finding(Severity.OK, "spark", f"{server} answers")


def _cache(cache: CacheFacts) -> Iterator[Finding]:
    if cache.trouble:
        yield Finding(Severity.WARNING, "cache", f"{cache.place} is not used: {cache.trouble}", "plans open every unit")
        return
    answer = cache.answers()
    if answer is False:
        yield Finding(
            Severity.WARNING, "cache", f"{cache.place} does not answer", "plans open every unit until it does"
        )
    else:
        yield Finding(Severity.OK, "cache", cache.place if answer is None else f"{cache.place} answers")


def _catalogs(patient: Patient) -> Iterator[Finding]:
    catalogs = patient.catalogs()
    if not catalogs:
        yield _NO_CATALOG
    meant = [facts for facts in catalogs.values() if patient.only in (None, facts.name)]
    yield from chain.from_iterable(all_answers(meant, partial(_reached, patient)))


def _reached(patient: Patient, facts: CatalogFacts) -> list[Finding]:
    """Returns what is found of a catalog and of its store."""
    catalog = _safely(f"catalog {facts.name}", partial(_catalog, patient, facts))
    return [*catalog, *_safely(f"store of {facts.name}", partial(_warehouse, patient, facts))]


def _catalog(patient: Patient, facts: CatalogFacts) -> Iterator[Finding]:
    tables = sum(1 for _ in patient.tables(facts.name))
    where = facts.uri.partition("?")[0]  # options of an address may be secrets
    yield Finding(Severity.OK, f"catalog {facts.name}", f"{facts.kind}, {where}: {counted(tables, 'table')}")


def _warehouse(patient: Patient, facts: CatalogFacts) -> Iterator[Finding]:
    """Reads only: what is written to a place is tried on a table's own folder, if one is named."""
    topic, warehouse = f"store of {facts.name}", facts.properties.get("warehouse")
    if warehouse is None or "/" not in warehouse:
        yield Finding(
            Severity.OK, topic, "no warehouse is configured; `firnline doctor TABLE` looks at a table's store"
        )
        return
    is_empty = next(iter(patient.store(facts).list(warehouse)), None) is None
    yield Finding(Severity.OK, topic, f"{warehouse} can be listed" + (", and is empty" if is_empty else ""))
    for warning in patient.probe(facts).surroundings(warehouse).warnings():
        yield Finding(Severity.WARNING, topic, warning)


def _table(patient: Patient) -> Iterator[Finding]:
    if patient.table is None:
        return
    work, probe = patient.table()
    state = work.source.load()
    said = f"{state.format}, {counted(len(state.graph), 'snapshot')}, {state.location}"
    yield Finding(Severity.OK, state.table, said)
    if state.forbidden:
        yield Finding(Severity.WARNING, state.table, f"nothing may be removed: {state.forbidden}")
    yield from _capabilities(probe.probe(work.root(state), state.owned, replaces=True), state.table)


def _capabilities(found: StoreVerdicts, table: str) -> Iterator[Finding]:
    """Yields what is permitted where the table's runs are recorded and its files lie."""
    allow = f"`firnline iam expire --table {quote(table)}` shows what must be allowed"
    for name in _NEEDED:
        yield _permitted(name, found, Severity.PROBLEM, allow)
    yield _permitted(
        "put if absent refuses", found, Severity.PROBLEM, "without it no lease holds: keep records elsewhere"
    )
    yield _permitted(
        "put honours If-Match", found, Severity.WARNING, "publish no pointers of tables here: readers could go back"
    )
    if not found.if_match_delete:
        yield Finding(Severity.OK, "conditional delete", found.paths()["delete of one very object"])
    else:
        yield Finding(Severity.OK, "conditional delete", found.if_match_delete.evidence)
    yield _permitted("clock agrees", found, Severity.PROBLEM, "set this machine's clock: every age would be wrong")
    for warning in found.surroundings.warnings():
        yield Finding(Severity.WARNING, "deletes", warning)


def _permitted(name: str, found: StoreVerdicts, worst: Severity, hint: str) -> Finding:
    answer = found.findings()[name]
    level = {Verdict.YES: Severity.OK, Verdict.NO: worst, Verdict.UNKNOWN: Severity.WARNING}[answer.verdict]
    return Finding(level, name, answer.evidence, "" if level is Severity.OK else hint)
