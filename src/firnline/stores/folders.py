"""Removing folders in which nothing is left: every folder that firnline removes goes here."""

from __future__ import annotations

import os

from firnline.stores.keys import folder_key


class LocalFolders:
    """Removes folders of local files. Object stores have none: what looks like one goes with its last object."""

    def remove_empty(self, folder: str) -> bool:
        key = folder_key(folder)
        return key.scheme == "file" and _removed(key.path)

    def remove_hollow(self, folder: str) -> None:
        """Removes a folder in which nothing is left but folders, from the innermost out; any that holds a file stays,
        and so do those around it.
        """
        key = folder_key(folder)
        if key.scheme == "file":
            for inner, _, _ in os.walk(key.path, topdown=False):
                _removed(inner)


def _removed(path: str) -> bool:
    try:
        os.rmdir(path)  # fails where anything is in it, so that a file which arrives meanwhile is safe
    except OSError:
        return False  # something is in it, or it is gone, or not ours to remove: in each case it stays as it is
    return True
