"""The questions of the proposal to remember expired snapshots, as it prints them.

Only slips of its typing are mended: blanks for underscores, a missing alias, one `f` for `e`, a GROUP BY before its
WHERE.
"""

from __future__ import annotations

from collections.abc import Mapping

PROPOSAL = {
    "file added": """
        SELECT s.committed_at
        FROM table.snapshots s JOIN table.entries e
        ON s.snapshot_id = e.snapshot_id
        WHERE e.data_file.file_path='/my/path.parquet'
    """,
    "by application": """
        SELECT s.summary['spark.app.id']
        FROM table.snapshots s JOIN table.entries e
        ON s.snapshot_id = e.snapshot_id
        WHERE e.data_file.file_path='/my/path.parquet'
    """,
    "partition added": """
        SELECT min(s.committed_at), e.data_file.partition
        FROM table.snapshots s JOIN table.entries e
        ON s.snapshot_id = e.snapshot_id
        WHERE e.data_file.partition.day = date('2024-07-15')
        GROUP BY e.data_file.partition
    """,
    "partition removed": """
        SELECT snapshot_id FROM table.snapshots
        WHERE summary['partitions.day=2024-07-15'] IS NOT NULL
        ORDER BY committed_at DESC LIMIT 1
    """,
    "commits": """
        SELECT count(*)
        FROM table.snapshots
        WHERE committed_at BETWEEN date('2024-07-01') and date('2024-07-31')
    """,
    "files": """
        SELECT sum(summary['added-data-files'])
        FROM table.snapshots
        WHERE committed_at BETWEEN date('2024-07-01') and date('2024-07-31')
    """,
    "records removed": """
        SELECT sum(summary['deleted-records'])
        FROM table.snapshots
        WHERE committed_at BETWEEN date('2024-07-01') and date('2024-07-31')
    """,
    "bytes": """
        SELECT sum(summary['added-files-size'])
        FROM table.snapshots
        WHERE committed_at BETWEEN date('2024-07-01') and date('2024-07-31')
    """,
}


def questions(said: Mapping[str, str]) -> dict[str, str]:
    """Returns the questions about a table: `said` has its names, paths and days by those that the proposal has."""
    return {name: _filled(text, said) for name, text in PROPOSAL.items()}


def _filled(text: str, said: Mapping[str, str]) -> str:
    for name, value in said.items():
        text = text.replace(name, value)
    return text
