"""Our splitter against LangChain's, whose pieces it must give."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.retrieval.ingestion.chunking import _MAX_UNITS, _SEPARATORS
from graphrag_agent.retrieval.ingestion.splitting import split_recursively
from graphrag_agent.token_estimate import count_token_units

splitters = pytest.importorskip("langchain_text_splitters")

PARTS = [
    "word ",
    "Ends here. ",
    "结束。",
    "，",
    "; ",
    " | ",
    "\n",
    "\r\n",
    "\n\n",
    "\n- item ",
    "\n1. ",
    "x" * 90,
    "中" * 40,
]


def theirs(text: str, separators: list[str], limit: int) -> list[str]:
    return splitters.RecursiveCharacterTextSplitter(
        separators=separators,
        is_separator_regex=True,
        keep_separator="end",
        chunk_size=limit,
        chunk_overlap=0,
        length_function=count_token_units,
        strip_whitespace=False,
    ).split_text(text)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(PARTS), max_size=120).map("".join),
    st.sampled_from(sorted(_SEPARATORS)),
    st.sampled_from([700, 2100, _MAX_UNITS]),
)
def test_the_pieces_are_langchains(text: str, kind: str, limit: int) -> None:
    ours = list(split_recursively(text, _SEPARATORS[kind], count_token_units, limit))  # type: ignore[index]
    assert ours == theirs(text, _SEPARATORS[kind], limit)  # type: ignore[index]
    assert "".join(ours) == text
