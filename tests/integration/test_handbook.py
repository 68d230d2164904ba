"""Ten questions with known answers over a real handbook, read in place: found, quoted, and cited to the character."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from graphrag_agent import KnowledgeBase, RagAgent

HANDBOOK = Path(__file__).parents[3] / "shared" / "data" / "documents" / "handbook_18f"
FILE_COUNT = 69
EVERY = 6
"""Of the files that nobody asks about, those that get vectors."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HANDBOOK.is_dir(), reason="the handbook is not beside this checkout (../shared/data)"),
]


class Known(NamedTuple):
    question: str
    file: str
    fact: str
    """Stands in the answer, word for word."""


QUESTIONS = {
    "a limit": Known(
        "How many annual leave hours can I carry over to the next leave year?",
        "travel-and-leave__leave.md",
        "a maximum of 240 annual leave hours",
    ),
    "an exception": Known(
        "Do I have to tell PeopleOps when I relocate for 90 days?",
        "travel-and-leave__travel-and-leave-policies__moving.md",
        "If you are relocating for 120 days or less, you do not need to notify PeopleOps",
    ),
    "a duty after a right": Known(
        "How long do I have to work after my paid parental leave ends?",
        "travel-and-leave__paid-parental-leave.md",
        "at least 12 weeks after your final day on PPL",
    ),
    "a duration": Known(
        "How long after posting can I edit a Slack message?",
        "tools__slack__notifications-general-communication.md",
        "for 5 minutes after it is posted",
    ),
    "a code": Known(
        "What is GSA's employer code at The Work Number?",
        "general-information-and-resources__employee-resources-policies__employment-verification.md",
        "GSA's TWN Employer Code is 10536",
    ),
    "a name": Known(
        "Which Slack bot sets up a virtual coffee with a random coworker?",
        "tools__slack__integrations.md",
        "coffeemate",
    ),
    "a requirement": Known(
        "How long must I be at my GS level before I can apply for the next one?",
        "hiring-staying-or-changing-jobs__promotions.md",
        "one year in order to apply for a position at the next highest GS level",
    ),
    "a list": Known(
        "What must the medical documentation for the Voluntary Leave Transfer Program include?",
        "travel-and-leave__voluntary-leave-transfer-program.md",
        "Prognosis of the medical condition",
    ),
    "a remedy": Known(
        'What can I do about the error "SmartCard certificate is not trusted"?',
        "getting-started__piv.md",
        "cleaning the contact pad on the PIV with a pencil eraser",
    ),
    "a date in a table": Known(
        "By which date must the supervisor sign and submit the mid-year evaluation?",
        "performance-management__dates.md",
        "May 28, 2025",
    ),
}


@pytest.fixture(scope="module")
def by_words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """The whole handbook without vectors."""
    with KnowledgeBase.open(tmp_path_factory.mktemp("handbook") / "kb", embedder=None) as opened:
        report = opened.ingest(HANDBOOK)
        assert (report.documents, report.failed) == (FILE_COUNT, ())
        yield opened


@pytest.fixture(scope="module")
def with_vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """The files that are asked about among others: the vectors of the whole would take three minutes."""
    asked = {known.file for known in QUESTIONS.values()}
    others = sorted(path.name for path in HANDBOOK.glob("*.md") if path.name not in asked)[::EVERY]
    with KnowledgeBase.open(tmp_path_factory.mktemp("handbook") / "kb") as opened:
        report = opened.ingest([HANDBOOK / name for name in [*asked, *others]])
        assert (report.documents, report.failed, report.pending) == (len(asked) + len(others), (), 0)
        yield opened


def test_every_file_is_there_with_its_text_as_it_stands(by_words: KnowledgeBase) -> None:
    documents = by_words.documents()
    assert len(documents) == FILE_COUNT
    assert all(by_words.read(document.id) == _original(document.source) for document in documents)


@pytest.mark.parametrize("base", ["by_words", "with_vectors"])
@pytest.mark.parametrize("known", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_the_document_is_among_the_first_three_hits(known: Known, base: str, request: pytest.FixtureRequest) -> None:
    hits = request.getfixturevalue(base).search(known.question, top_k=3).hits
    assert known.file in [Path(hit.chunk.source).name for hit in hits]


@pytest.mark.parametrize("known", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_the_offline_answer_quotes_the_document_and_points_to_the_place(
    with_vectors: KnowledgeBase, known: Known
) -> None:
    answer = RagAgent(model="offline", knowledge=with_vectors).ask(known.question)
    assert known.fact in answer.text
    cited = next(citation for citation in answer.citations if known.fact in citation.text)
    assert Path(cited.source).name == known.file
    assert f"[{cited.id}]" in answer.text
    assert with_vectors.read(cited.document_id)[cited.start : cited.end] == cited.text
    assert _original(cited.source)[cited.start : cited.end] == cited.text


def _original(source: str) -> str:
    return (HANDBOOK / Path(source).name).read_bytes().decode("utf-8")
