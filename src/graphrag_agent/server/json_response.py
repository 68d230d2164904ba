"""JSON for clients, whatever the text in it."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse


class WholeJSONResponse(JSONResponse):
    """A client or a model may send half a character (a lone surrogate), which no encoding has: it becomes a "?"."""

    def render(self, content: Any) -> bytes:
        """The bytes."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")
