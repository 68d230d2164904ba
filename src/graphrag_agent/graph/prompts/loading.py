"""The prompts of the loop, one file each beside this module."""

from __future__ import annotations

from importlib.resources import files
from string import Template

# read with the module: a file read in the middle of a turn would block the event loop
_TEMPLATES = {
    file.name.removesuffix(".md"): Template(file.read_text(encoding="utf-8"))
    for file in files(__package__).iterdir()
    if file.name.endswith(".md")
}


def render_prompt(name: str, **values: str) -> str:
    """The prompt with its placeholders filled; a missing value raises KeyError."""
    return _TEMPLATES[name].substitute(values).strip()
