"""The folders in which a user's files lie, as the XDG Base Directory Specification names them."""

from __future__ import annotations

import os
from pathlib import Path


def base_folder(variable: str, below_home: str) -> Path:
    """Returns the folder that the variable names, else the usual one below the user's home.

    Raises RuntimeError for a user without a home. An empty or relative path counts as none, as the specification
    demands: it would lie in whatever folder a command happens to be started in.
    """
    said = os.environ.get(variable, "")
    return Path(said) if os.path.isabs(said) else Path.home() / below_home
