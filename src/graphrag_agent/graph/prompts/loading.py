"""The prompts of the loop, one file each beside this module."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template


@cache
def _template(name: str) -> Template:
    return Template(files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8"))


def render_prompt(name: str, **values: str) -> str:
    """The prompt with its placeholders filled; a missing value raises KeyError."""
    return _template(name).substitute(values).strip()
