"""Which documents have tables, by the suffix of their file."""

from __future__ import annotations

from pathlib import PurePosixPath

SUFFIXES = frozenset({".csv", ".tsv", ".xlsx", ".parquet", ".json", ".jsonl"})
"""Each has a reader in `_table_reading`."""


def suffix_of(source: str) -> str:
    """In lower case, with its dot."""
    return PurePosixPath(source).suffix.lower()


def has_tables(source: str) -> bool:
    """Whether the file may have tables."""
    return suffix_of(source) in SUFFIXES
