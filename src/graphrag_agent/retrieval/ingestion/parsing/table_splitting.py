"""Where one table of a sheet ends and the next begins.

Blank rows stand between tables, and as often between the groups of one. What tells them apart is a row behind the blank
one that names columns anew. A table that is cut in two keeps all its rows; one that is not cut has rows under names of
another: so in doubt, where the first row of a group has no number by chance, nothing is cut. A header that comes again,
as on printed pages, begins no table, and is no row.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from itertools import pairwise
from typing import TypeVar

from graphrag_agent.retrieval.ingestion.parsing.table_header import NUMBER, Row, find_header, only_columns, used_columns

_LEAST_COLUMNS = 3
"""With two, a row of a form ("Color: red") looks like a header above the next ("Depth: 3")."""
_LEAST_CONFLICTS = 2
"""Columns of numbers in which the new header has words: one alone may be a row without its number."""
_LEAST_CAPTIONED = 2
"""Rows below a caption and a header where no column of numbers tells more: one alone may be the second of a group."""
_MEASURED = re.compile(r"\W*\d")
"""How no name of a column begins, or one in doubt: 12*, >100, 12 kg, and a minus that is no hyphen."""
_NOT_KNOWN_WORDS = """
- – — − ? . .. ... … na n/a n.a. nan null none unknown missing tbd tba tbc n.d. #n/a #div/0! #name? #null! #num! #ref!
#value! k.a. unbekannt entfällt keine нет н/д н.д. неизвестно 无 未知 暂无 待定 不详
"""
_NOT_KNOWN = frozenset(_NOT_KNOWN_WORDS.split()) | {"not available", "k. a.", "keine angabe", "нет данных"}
"""What stands in place of a number, in lower case."""
_LOOKED_AT = 200
"""Rows of a table that tell what is in its columns."""
_GROWTH = 1.25
"""How much a table must have grown to be looked at anew; else each of its groups would cost as much as all."""

Table = list[range]
"""The rows of a table, without headers that come again."""
_T = TypeVar("_T")


def rows_of(table: Table, rows: Sequence[_T]) -> list[_T]:
    """Those of the rows that are the table's."""
    return [row for part in table for row in rows[part.start : part.stop]]


def split_tables(rows: Sequence[Row], gaps: Set[int]) -> list[Table]:
    """The rows of each table. The rows are trimmed and none is blank; `gaps`: before which of them blank ones stood."""
    bounds = [0, *sorted(gap for gap in gaps if 0 < gap < len(rows)), len(rows)]
    tables: list[Table] = [[]]
    first, begin, old = 0, 0, _Block(())  # `begin`: of the rows that are in no table yet
    for before, part in pairwise(range(*ends) for ends in pairwise(bounds)):
        # a caption with a blank row below it belongs to what follows
        is_caption = len(before) == 1 and before.start > first and sum(map(bool, rows[before.start])) == 1
        end = before.start if is_caption else part.start
        ahead = first + _LOOKED_AT
        if min(end, ahead) - first > _GROWTH * old.looked_at:
            old = _Block(rows[first : min(end, ahead)])
        new = _Block(rows[end : min(part.stop, end + _LOOKED_AT)])
        if _has_header_again(old, new):
            tables[-1].append(range(begin, end))
            begin = end + new.header_at + 1
        elif _begins_another(old, new) and (old.header or not _Block(rows[first : min(part.stop, ahead)]).header):
            tables[-1].append(range(begin, end))
            tables.append([])
            first, begin, old = end, end, _Block(())
    tables[-1].append(range(begin, len(rows)))
    return tables if rows else []


def _has_header_again(old: _Block, new: _Block) -> bool:
    is_same = new.header == old.header and new.caption in ([], old.caption)
    return is_same and any(old.kinds.get(at) and new.kinds.get(at) for at in new.header)


def _begins_another(old: _Block, new: _Block) -> bool:
    """Whether the new rows, which a blank one parts from the table, have a header of their own."""
    names = list(new.header.values())
    if not any(new.kinds.values()) or len(set(names)) < len(names) or any(map(_is_value, names)):
        return False
    if len(names) >= _LEAST_COLUMNS and old.columns and not new.header.keys() & old.columns:
        return True  # below it, but to the right or left
    if not old.header or _is_row_like(new, old) or _is_row_like(new, new):
        return False
    conflicts = sum(old.kinds.get(at, False) for at in new.header)
    if any(old.header.get(at) == name for at, name in new.header.items()):
        return conflicts > 0
    if len(names) < _LEAST_COLUMNS:
        return False
    is_captioned = bool(new.caption) and new.row_count >= _LEAST_CAPTIONED
    # a column that has no cell in the new rows is none of another kind
    has_other_kinds = any(old.kinds.get(at) is not kind for at, kind in new.kinds.items())
    return conflicts >= _LEAST_CONFLICTS or (has_other_kinds and (conflicts > 0 or is_captioned))


def _is_value(name: str) -> bool:
    return bool(_MEASURED.match(name)) or name.casefold() in _NOT_KNOWN


def _is_row_like(new: _Block, table: _Block) -> bool:
    """Whether the header has what is a value in the table's same column; in the first one rows have names too."""
    columns = sorted(new.header)[1:]
    return any(new.header[at] in table.values.get(at, ()) for at in columns)


class _Block:
    """Rows that may be a table."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.columns = set(used := used_columns(rows))
        at = find_header(only_columns(rows, used))
        self.looked_at = len(rows)
        self.header_at = at or 0
        self.row_count = 0
        """Below the header."""
        self.caption = [cell for row in rows[: self.header_at] for cell in row if cell]
        self.header: dict[int, str] = {}
        """Column -> its name, of those that have one; empty where no row names them."""
        self.kinds: dict[int, bool] = {}
        """Column -> whether most of what it says is numbers; empty where no row names them."""
        self.values: defaultdict[int, set[str]] = defaultdict(set)
        if at is not None:
            self.header = {place: cell for place, cell in enumerate(rows[at]) if cell}
            data = [row for row in rows[at + 1 :] if row != rows[at]]
            self.row_count = len(data)
            said, numbers = Counter[int](), Counter[int]()
            for row in data:
                for place, cell in enumerate(row):
                    if cell:
                        said[place] += 1
                        numbers[place] += bool(NUMBER.fullmatch(cell))
                        self.values[place].add(cell)
            self.kinds = {place: 2 * numbers[place] > said[place] for place in used}
