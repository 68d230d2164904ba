"""What a request may see: one value, two renderings.

`conditions` is what a store turns into its own filter; `allows` is the same rule as a predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from graphrag_agent.documents import Chunk, Document
from graphrag_agent.identity import PUBLIC, Principal

EVERYONE = "*"
"""Stored in `groups` of what the whole tenant may read; a filter can't ask for an empty list quickly."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A principal's view, narrowed by a request. None means no narrowing; an empty set matches nothing."""

    tenant: str
    groups: frozenset[str] = frozenset()
    collections: frozenset[str] | None = None
    document_ids: frozenset[str] | None = None
    source_types: frozenset[str] | None = None

    @classmethod
    def of(cls, principal: Principal = PUBLIC) -> Scope:
        """All that the principal may see."""
        return cls(tenant=principal.tenant, groups=_set(principal.groups))

    def narrowed(
        self,
        *,
        collections: Iterable[str] | None = None,
        document_ids: Iterable[str] | None = None,
        source_types: Iterable[str] | None = None,
    ) -> Scope:
        """The part of this scope that also lies in the given sets; None leaves a field as it is, a text is one name."""
        if collections is None and document_ids is None and source_types is None:
            return self
        return replace(
            self,
            collections=_both(self.collections, collections),
            document_ids=_both(self.document_ids, document_ids),
            source_types=_both(self.source_types, source_types),
        )

    @property
    def is_empty(self) -> bool:
        """Nothing can match, so no store need be asked."""
        return any(not values for values in self.conditions().values())

    def conditions(self) -> Mapping[str, frozenset[str]]:
        """Payload field -> values of which a stored chunk must have one; all fields must match."""
        fields = {
            "tenant": frozenset({self.tenant}),
            "groups": self.groups | {EVERYONE},
            "collection": self.collections,
            "document_id": self.document_ids,
            "source_type": self.source_types,
        }
        return {name: frozenset(filter(is_storable, values)) for name, values in fields.items() if values is not None}

    def allows(self, item: Chunk | Document) -> bool:
        """Whether the item lies in this scope."""
        stored = stored_access(item)
        return all(values.intersection(stored[name]) for name, values in self.conditions().items())


def stored_access(item: Chunk | Document) -> dict[str, tuple[str, ...]]:
    """The payload fields that scopes are matched against."""
    return {
        "tenant": (item.tenant,),
        "groups": item.groups or (EVERYONE,),
        "collection": (item.collection,),
        "document_id": (item.document_id if isinstance(item, Chunk) else item.id,),
        "source_type": (item.source_type,),
    }


def is_storable(text: str) -> bool:
    """Whether a store can hold the text; what it can't hold matches nothing (a model may write half a character)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _set(names: Iterable[str]) -> frozenset[str]:
    """A text is one name, not a name for each of its letters."""
    return frozenset({names} if isinstance(names, str) else names)


def _both(have: frozenset[str] | None, want: Iterable[str] | None) -> frozenset[str] | None:
    if want is None:
        return have
    return _set(want) if have is None else have & _set(want)
