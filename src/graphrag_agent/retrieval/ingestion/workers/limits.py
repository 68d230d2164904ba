"""What one file may cost."""

from __future__ import annotations

PARSE_SECONDS = 30.0
"""From its first byte to its answer."""
MAX_MEMORY_BYTES = 1_000_000_000
MAX_ANSWER_BYTES = 64_000_000
"""Text and terms, about ten thousand pages; what is larger would only move the trouble to the reader."""
