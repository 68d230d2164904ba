"""Markdown files of real text for 20 tenants and 7 groups, the same at every run.

Sections are made of whole sentences of one collection, so that no two are alike; the words, their frequencies and
scripts are those of the collections. A file's path says who owns it, whatever the store says.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.json_lines import read_rows
from graphrag_agent.documents import Chunk
from graphrag_agent.retrieval.scope import Scope

TENANTS = tuple(f"t{number:02}" for number in range(20))
GROUPS = tuple(f"g{number}" for number in range(7))
SHELVES = ("all", *GROUPS)
"""A folder each below every tenant's: who of the tenant may read it."""
SECTIONS_PER_FILE = 12
"""As many as the handbook's files have on average."""
SECTION_UNITS = 450
"""Characters a section has at least; one of a script without spaces counts three. About 100 tokens."""

_COLLECTIONS = (
    "multihop/hotpotqa_train100",
    "multihop/distractors_2wiki",
    "retrieval/xquad/en",
    "retrieval/xquad/de",
    "retrieval/cmrc2018_zh_trial",
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\sa-z])|(?<=[。！？])")
_WIDE = re.compile("[\u3040-\u9fff]")
_SEED = 4


class Owner(NamedTuple):
    """Whose file it is."""

    tenant: str
    shelf: str

    @property
    def groups(self) -> tuple[str, ...]:
        return () if self.shelf == "all" else (self.shelf,)


class _Passage(NamedTuple):
    title: str
    sentences: list[str]


def load_questions(data: Path) -> list[str]:
    """Real questions about the collections, mixed."""
    found = [
        row["question"]
        for name in _COLLECTIONS
        for file in ("queries.jsonl", "questions.jsonl")
        if (path := data / name / file).exists()
        for row in read_rows(path)
    ]
    random.Random(_SEED).shuffle(found)
    return found


def write_files(data: Path, target: Path, sections: int) -> dict[Owner, Path]:
    """So many sections as files below `target`; owner -> its folder."""
    pools = load_pools(data)
    chance = random.Random(_SEED)
    folders: dict[Owner, Path] = {}
    for number in range(-(-sections // SECTIONS_PER_FILE)):
        owner = Owner(TENANTS[number % len(TENANTS)], SHELVES[number // len(TENANTS) % len(SHELVES)])
        folders[owner] = folder = target / owner.tenant / owner.shelf
        folder.mkdir(parents=True, exist_ok=True)
        count = min(SECTIONS_PER_FILE, sections - number * SECTIONS_PER_FILE)
        write_file(folder / f"{number:05}.md", pools[chance.randrange(len(pools))], count, chance)
    return dict(sorted(folders.items()))  # tenant after tenant, as an operator would bring them in


def write_file(path: Path, pool: Sequence[_Passage], sections: int, chance: random.Random) -> None:
    """One Markdown file with a heading a section."""
    parts = [f"# {chance.choice(pool).title} {path.stem}"]
    for number in range(1, sections + 1):
        first = chance.choice(pool)
        text = list(first.sentences)
        while _units(text) < SECTION_UNITS:
            text += chance.choice(pool).sentences
        chance.shuffle(text)
        kept = text[: next(at for at in range(1, len(text) + 1) if _units(text[:at]) >= SECTION_UNITS)]
        parts.append(f"## {number} {first.title}\n\n{' '.join(kept)}")
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def load_pools(data: Path) -> list[list[_Passage]]:
    """What files are written from: the passages of each collection that is there."""
    paths = [data / name / "corpus.jsonl" for name in _COLLECTIONS]
    return [[_passage(row) for row in read_rows(path)] for path in paths if path.exists()]


def owner_of(chunk: Chunk) -> Owner:
    """By the path of its file."""
    *_, tenant, shelf, _ = Path(chunk.source).parts
    return Owner(tenant, shelf)


def may_read(scope: Scope, owner: Owner) -> bool:
    """Worked out apart from the product's own rule."""
    return owner.tenant == scope.tenant and (owner.shelf == "all" or owner.shelf in scope.groups)


def _passage(row: dict[str, str]) -> _Passage:
    sentences = [sentence.strip() for sentence in _SENTENCE.split(row["text"]) if sentence.strip()]
    return _Passage(" ".join(str(row.get("title") or "Notes").replace("_", " ").split()), sentences or ["Empty."])


def _units(sentences: Sequence[str]) -> int:
    return sum(len(sentence) + 2 * len(_WIDE.findall(sentence)) for sentence in sentences)
