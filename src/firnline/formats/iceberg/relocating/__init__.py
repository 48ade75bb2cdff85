"""The files of an Iceberg table that name other files, as another place has them.

Manifest lists and manifests are spliced: what must change does, and every other byte of their records stays. Position
deletes and the footers of deletion vectors name data files too: a reader that goes by these would show deleted rows
again if they named the files of the live table.
"""

from firnline.formats.iceberg.relocating.relocation import IcebergRelocation

__all__ = ["IcebergRelocation"]
