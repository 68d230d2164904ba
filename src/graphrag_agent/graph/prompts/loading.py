"""The prompts of the loop, one file each beside this module."""

from __future__ import annotations

from graphrag_agent.prompt_files import PromptFiles

render_prompt = PromptFiles(__package__).render
