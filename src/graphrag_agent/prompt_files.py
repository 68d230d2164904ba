"""Prompts that stand in Markdown files beside the code that uses them."""

from __future__ import annotations

from importlib.resources import files
from string import Template


class PromptFiles:
    """The `.md` files of a package by name. Read when this is made: later it would block an event loop."""

    def __init__(self, package: str) -> None:
        self._templates = {
            file.name.removesuffix(".md"): Template(file.read_text(encoding="utf-8"))
            for file in files(package).iterdir()
            if file.name.endswith(".md")
        }

    def render(self, name: str, **values: str) -> str:
        """The prompt with its placeholders filled; a missing value or an unknown name raises KeyError."""
        return self._templates[name].substitute(values).strip()
