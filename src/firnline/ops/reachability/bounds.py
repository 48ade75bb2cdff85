"""Where a run may delete at this moment: by the table's state and the operator's word, both as they are now.

What a record says is no authority. Anyone who can write into a table's folder can write a run there that names any file
of the lake, and only the list of that run would say that it may go.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from firnline.journal.layout import FOLDER
from firnline.model.locations import is_dotted, parse_location, stem_of
from firnline.ports.engines import OUTSIDE, SPARED_REASONS
from firnline.ports.stores import AS_CALLED, RealNames

_MOST_FOLDERS = 100_000
_DOTTED = "its name has a segment . or .., which may lead anywhere"
_OF_ANOTHER = "it lies in a folder of another table"
_RECORDS = "lies among firnline's own records"
_BY_A_LINK = f"{SPARED_REASONS[OUTSIDE]}: a link leads out of them"


def place_of(location: str) -> str:
    """Returns what tells folders apart: by whatever links a local one is named."""
    name = parse_location(location)
    return str(name._replace(path=os.path.realpath(name.path)) if name.scheme == "file" else name).rstrip("/")


@dataclass(frozen=True)
class Bounds:
    """The folders from which files may go; None for anywhere, by the operator's word. `location` is the table's own,
    `root` has the records of its runs, `real` tells what is really where, `holes` are folders of other tables, as
    `real` has them: inside this one's, or anywhere; `is_anothers` tells of any other folder whether files in it belong
    to a table that no catalog lists.

    Made anew at every look: folders, links and the operator's word change.
    """

    folders: tuple[str, ...] | None
    location: str
    root: str
    real: RealNames
    holes: tuple[str, ...] = ()
    is_anothers: Callable[[str], bool] = lambda folder: False

    def forbids(self, key: str) -> str | None:
        """Returns why an object may not be deleted for this table now; None where it may.

        All but dots is a matter of the folder, and a list of a million files has few: each is looked at once.
        """
        folder, _, last = key.rpartition("/")
        if last in (".", ".."):
            return _DOTTED
        if folder not in self._verdicts:
            if len(self._verdicts) >= _MOST_FOLDERS:
                self._verdicts.clear()
            self._verdicts[folder] = self._of_folder(f"{folder}/")
        return self._verdicts[folder]

    def _of_folder(self, folder: str) -> str | None:
        if is_dotted(folder):
            return _DOTTED
        name = stem_of(folder)
        really = self._really(folder)
        if self._is_record(name) or self._is_record(really):
            return _RECORDS
        if self.holes and (name.startswith(self.holes) or really.startswith(self.holes)):
            return _OF_ANOTHER
        if self.folders is not None and not name.startswith(self._stems):
            return SPARED_REASONS[OUTSIDE]
        if self.folders is not None and not really.startswith(self._real_stems):
            return _BY_A_LINK
        return _OF_ANOTHER if self.is_anothers(really) else None

    def _is_record(self, name: str) -> bool:
        if name.startswith(self._roots):
            return True
        home = next((each for each in self._homes if name.startswith(each)), "")
        return f"/{FOLDER}/" in name[len(home) - 1 if home else 0 :]

    def _really(self, folder: str) -> str:
        return self.real(stem_of(folder))

    @cached_property
    def _verdicts(self) -> dict[str, str | None]:
        return {}

    @cached_property
    def _stems(self) -> tuple[str, ...]:
        return tuple(map(stem_of, self.folders or ()))

    @cached_property
    def _real_stems(self) -> tuple[str, ...]:
        return tuple(self._really(each) for each in self.folders or ())

    @cached_property
    def _homes(self) -> tuple[str, str]:
        return stem_of(self.location), self._really(self.location)

    @cached_property
    def _roots(self) -> tuple[str, str]:
        return stem_of(self.root), self._really(self.root)


NOWHERE = Bounds((), "nowhere:", "nowhere:", AS_CALLED)
"""Before the first look nothing may go."""
