"""What a plan judged, what ran and what expired, as DataFrames for joins of a user's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Unpack
from weakref import finalize

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from firnline.app.catalogs import Table
from firnline.app.naming import texts_meant
from firnline.app.places import Places
from firnline.app.requests import RunOptions, request_of
from firnline.app.runs import Runs
from firnline.ops.runs.measured import Measured
from firnline.ops.runs.plan import Planned, roots
from firnline.ports.engines import Survey, Territory
from firnline.spark.session import session
from firnline.spark.survey import SparkSurvey
from firnline.sql.judged import FILES_DDL, named_files
from firnline.sql.reading import source_frame, source_options
from firnline.sql.source import own_name, register


@dataclass(frozen=True)
class DataFrames:
    """DataFrames in the session that the lake was opened with, else in one of its own. A session's settings stay as
    they are. Rows stay on the cluster until the user brings them here.
    """

    places: Places
    config: str | None = None
    _source: str = field(default_factory=own_name, init=False, repr=False)

    def files(self, table: Table, *, drop: Iterable[str] = (), **asked: Unpack[RunOptions]) -> DataFrame:
        """Returns every file of the table with the verdict of the plan that `Lake.plan` would make: `path`, `kind`,
        `size` (null where no metadata tells it), `verdict` and `reason`. Raises what the plan would.

        Spark holds the rows for as long as this very DataFrame lives. Should they be lost with an executor, the
        metadata is walked again: what cannot be read by then fails the job, and no row is missing in silence.
        """
        spark = self._session()
        places = replace(self.places, engines=replace(self.places.engines, named="spark", session=spark))
        view = Runs(places).plan(table, replace(request_of(**asked), drop=texts_meant("drop", drop)), False, None)
        survey = view.planned.survey or _all_kept(places, table, view.planned)
        return _named(survey)

    def runs(self, table: Table | None = None) -> DataFrame:
        """Returns the recorded runs of a table, or of every table of every catalog; the columns are those in SQL. A
        table that cannot be read fails the job: a lake of which some is left out is no answer to a join.
        """
        return self._relation("runs", table)

    def ledger(self, table: Table) -> DataFrame:
        """Returns the expired snapshots of a table: why each went, in which run, how that ended; columns as in SQL."""
        return self._relation("ledger", table)

    def _relation(self, what: str, table: Table | None) -> DataFrame:
        spark = self._session()
        register(spark, self.config, self._source)
        state = None if table is None else self.places.source(table).load()
        return source_frame(spark, self._source, source_options(spark, what, state, self.config, {"whole": "true"}))

    def _session(self) -> SparkSession:
        return session(self.places.engines.session)


def _all_kept(places: Places, table: Table, planned: Planned) -> Survey:
    """Returns the survey of a table of which nothing expires: its plan walked nothing, and yet it has files."""
    table_format, state = places.source(table).format, planned.state
    return places.engines.spark(state.table).survey(
        roots(table_format, state, frozenset()), table_format.expand, Territory(None)
    )


def _named(survey: Survey) -> DataFrame:
    """Returns the files of a survey on Spark. The survey is closed once nothing holds the DataFrame any more."""
    walked = survey.survey if isinstance(survey, Measured) else survey
    assert isinstance(walked, SparkSurvey)
    rows = walked.held.files.filter(F.col("walk") == walked.walk)
    found = rows.mapInArrow(named_files, FILES_DDL)
    finalize(found, survey.close).atexit = False
    return found
