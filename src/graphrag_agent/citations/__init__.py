"""Citations of an answer: the marks in its text, the places they stand for, and how a reader sees them."""

from graphrag_agent.citations.parsing import Marker, MarkerStream, parse_markers
from graphrag_agent.citations.resolving import CitedText, resolve_citations
from graphrag_agent.citations.values import Citation, Evidence, Quote, Support
from graphrag_agent.citations.writing import CitedTextWriter, PlacedMarker

__all__ = [
    "Citation",
    "CitedText",
    "CitedTextWriter",
    "Evidence",
    "Marker",
    "MarkerStream",
    "PlacedMarker",
    "Quote",
    "Support",
    "parse_markers",
    "resolve_citations",
]
