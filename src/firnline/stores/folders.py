"""Removing folders in which nothing is left. Only purge code is given these."""

from __future__ import annotations

import os

from firnline.stores.keys import folder_key


class LocalFolders:
    """Removes folders of local files. Object stores have none: what looks like one goes with its last object."""

    def remove_empty(self, folder: str) -> bool:
        key = folder_key(folder)
        if key.scheme != "file":
            return False
        try:
            os.rmdir(key.path)
        except OSError:
            return False  # something is in it, or it is gone, or not ours to remove: in each case it stays as it is
        return True
