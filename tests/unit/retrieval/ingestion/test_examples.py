from pathlib import Path

from graphrag_agent.retrieval.ingestion.chunking import split_document
from graphrag_agent.retrieval.ingestion.parsing import find_files, parse_file

EXAMPLES = Path(__file__).parents[4] / "examples"
TITLES = {
    "brook-s2-product-notes.md": "Brook S2 product notes",
    "customer-faq.html": "Customer FAQ",
    "equipment-policy.ru.md": "Положение об оборудовании",
    "information-security-policy.md": "Information security policy",
    "leave-policy.md": "Leave policy",
    "onboarding.txt": "Onboarding",
    "price-list.csv": "Price list",
    "remote-work-policy.zh.md": "远程办公政策",
    "service-and-warranty-terms.pdf": "Service and warranty terms",
    "travel-and-expenses-policy.md": "Travel and expenses policy",
    "weir-g4-product-notes.md": "Weir G4 product notes",
}


def test_every_example_parses_with_its_title_and_nothing_else_lies_there() -> None:
    assert {path.name: parse_file(path).title for path in EXAMPLES.iterdir()} == TITLES
    assert [path.name for path in find_files([EXAMPLES])] == sorted(TITLES)


def test_every_example_is_cut_into_passages_and_the_pdf_by_page() -> None:
    passages = {name: split_document(parse_file(EXAMPLES / name)) for name in TITLES}
    assert all(len(found) >= 3 for found in passages.values())
    pages = {name: sorted({p.page for p in found if p.page}) for name, found in passages.items()}
    assert {name: found for name, found in pages.items() if found} == {"service-and-warranty-terms.pdf": [1, 2]}


def test_facts_of_the_demo_stand_in_one_passage_with_their_heading() -> None:
    def heading_of(name: str, fact: str) -> str:
        return next(p.heading for p in split_document(parse_file(EXAMPLES / name)) if fact in p.text)

    assert heading_of("leave-policy.md", "16 weeks at full pay") == "Leave policy > Parental leave"
    assert heading_of("remote-work-policy.zh.md", "最多可以远程办公三天") == "远程办公政策 > 每周天数"
    assert heading_of("weir-g4-product-notes.md", "unless UDP port 123 is blocked").endswith(
        "E-1042: clock and certificate"
    )
    assert heading_of("onboarding.txt", "Probation lasts six months") == "PROBATION"
