"""Which release this is, and whether its files are its own.

Another project, of phylogenetics, is called `metatree` on the package index and has an import package of that name.
Installed into the same folder, each overwrites files of the other, and uninstalling one takes files of both.
"""

from __future__ import annotations

from pathlib import Path

RELEASE = "0.2.0"

_THEIRS = ("mismatch_table.py", "tree_decorate.py")
"""Modules of the other project, by names that no module here has."""


def warn_of_other_project(package: Path) -> None:
    """Warn in one line where files of the other project lie in an import package called `metatree`.

    Two looks at the disk: a look at what is installed would take longer than the rest of the import.

    Args:
        package: the folder of the import package.
    """
    if not any((package / name).exists() for name in _THEIRS):
        return
    import warnings

    warnings.warn_explicit(
        f"files of another project, 'metatree' (phylogenetics), lie in {str(package)!r}: run `pip uninstall metatree`,"
        " then `pip install --force-reinstall --no-deps metatree-memory`",
        RuntimeWarning,
        # No file has this name, so that Python adds no line of source.
        "<metatree>",
        0,
    )
