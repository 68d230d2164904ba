"""Tools of a user's own: from the files of a folder, or from installed packages. Both are code that runs as we do."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import sys
import traceback
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from graphrag_agent.errors import SettingsError
from graphrag_agent.tools.registry import ToolRegistry
from graphrag_agent.tools.spec import ToolSpec, as_tool_spec

ENTRY_POINTS = "graphrag_agent.tools"
"""Group of entry points whose names are tools and whose objects are functions, LangChain tools or ToolSpecs."""

LIST_NAME = "tools"
"""In a file of several tools: the list of them."""


def load_tool_folder(folder: str | Path) -> list[ToolSpec]:
    """The tools of all `*.py` files in the folder, by file name; names that begin with `_` are left out.

    A file gives the function or tool that has the file's name, or all in its list `tools`. Raises SettingsError that
    names file and line for a file that doesn't, and for a folder or file that others may write or that leads elsewhere.
    """
    given = Path(folder).expanduser()
    if not given.is_dir():
        raise SettingsError(f"tool folder {str(given)!r} is no folder; make it, or name another one")
    root = given.resolve()
    _refuse_writable(root, "tool folder")
    files = sorted(path for path in root.glob("*.py") if not path.name.startswith("_"))
    return list(ToolRegistry(spec for file in files for spec in _load_file(file, root)).values())


def load_installed_tools(names: Iterable[str]) -> list[ToolSpec]:
    """The tools of these names that installed packages offer as entry points. What isn't named is not even imported."""
    wanted = set(names)
    found = sorted((point for point in entry_points(group=ENTRY_POINTS) if point.name in wanted), key=_origin)
    return [_load_entry_point(point) for point in found]


def installed_tool_names() -> list[str]:
    """Names of the tools that installed packages offer."""
    return sorted({point.name for point in entry_points(group=ENTRY_POINTS)})


def _load_file(file: Path, root: Path) -> list[ToolSpec]:
    if not file.resolve().is_relative_to(root):
        raise SettingsError(f"tool file {str(file)!r} is a link out of its folder; copy the file there instead")
    if not file.is_file():
        raise SettingsError(f"tool file {str(file)!r} is no file; remove it, or begin its name with '_'")
    _refuse_writable(file, "tool file")
    module = _run(file)
    given = getattr(module, LIST_NAME, None)
    if given is None:
        given = [getattr(module, file.stem)] if hasattr(module, file.stem) else None
    if not isinstance(given, list | tuple) or not given:
        raise SettingsError(
            f"{file}: it has no tool; define a function named {file.stem!r}, or a list {LIST_NAME!r} of tools"
        )
    return [_spec(item, str(file)) for item in given]


def _run(file: Path) -> ModuleType:
    """The file as a module under a name that no other file has."""
    name = f"graphrag_agent_tool_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    place = importlib.util.spec_from_file_location(name, file)
    if place is None or place.loader is None:
        raise SettingsError(f"{file}: it can't be loaded as a Python file")
    module = importlib.util.module_from_spec(place)
    sys.modules[name] = module  # annotations are looked up there
    try:
        place.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise SettingsError(
            f"{file}, line {_line(error, file)}: {type(error).__name__}: {error}; mend it, or begin its name with '_'"
        ) from error
    return module


def _line(error: BaseException, file: Path) -> int | str:
    """Of the file, where the error arose."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno or "?"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return lines[-1] or "?" if lines else "?"


def _load_entry_point(point: EntryPoint) -> ToolSpec:
    try:
        given = point.load()
    except (Exception, SystemExit) as error:
        raise SettingsError(
            f"{_origin(point)}: {type(error).__name__}: {error}; mend or remove the package, or take {point.name!r} "
            "out of the tools"
        ) from error
    spec = _spec(given, _origin(point))
    if spec.name != point.name:
        raise SettingsError(f"{_origin(point)}: its tool is named {spec.name!r}; give both the same name")
    return spec


def _origin(point: EntryPoint) -> str:
    package = f" of the package {point.dist.name!r}" if point.dist else ""
    return f"the entry point {point.value!r}{package}"


def _spec(given: Any, origin: str) -> ToolSpec:
    try:
        return replace(as_tool_spec(given), origin=origin)
    except (SettingsError, TypeError, ValueError, NameError) as error:  # no docstring, or a strange signature
        raise SettingsError(f"{origin}: {error}") from error


def _refuse_writable(path: Path, kind: str) -> None:
    """What everybody may write to, everybody may run as us."""
    if os.name == "posix" and path.stat().st_mode & stat.S_IWOTH:
        raise SettingsError(f"{kind} {str(path)!r} may be written by every user of this machine: chmod o-w it")
