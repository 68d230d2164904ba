"""How well the check of cited sentences tells true from false: `python -m benchmarks.citation_check DATA [--json]`.

DATA is a folder of question sets as in ../shared/data/retrieval (`corpus.jsonl`, `queries.jsonl`). Claims are made from
them without a model: a sentence of the corpus as it stands and shortened, a question turned into a statement with its
answer; and each of them with one fact changed: a number, a negation, a name, the answer.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.json_lines import read_rows
from graphrag_agent.answer_check.judging import judge
from graphrag_agent.answer_check.names import find_names
from graphrag_agent.answer_check.passages import Passage
from graphrag_agent.citations import Evidence
from graphrag_agent.models.sentences import split_sentences

SETS = {"en": "xquad/en", "zh": "cmrc2018_zh_trial"}
MIN_CHARACTERS, MAX_CHARACTERS = {"en": 40, "zh": 14}, 260

_DROPPED = {
    "en": re.compile(r"\b(?:the|a|an|also|however|very|just) ", re.IGNORECASE),
    "zh": re.compile("的|了|也|还|便"),
}
_NEGATED = {
    "en": (re.compile(r"\b(is|are|was|were|has|have|had|can|could|will|would|may|must)\b(?! not)"), r"\1 not"),
    "zh": (re.compile("(是|会|能|可以|有)(?!不|没)"), r"不\1"),
}
_ASKED = {
    "en": re.compile(
        r"^(?:Who|What)(?= (?:was|is|were|are|won|led|had|has|founded|made|became|wrote|used|caused|can)\b)"
    ),
    "zh": re.compile("哪一年|哪年|多少|什么|谁|哪里|哪儿|何时|几"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A claim, its source, whether it is true, and how it was made."""

    source: str
    title: str
    claim: str
    is_true: bool
    kind: str


def make_cases(folder: Path, language: str) -> list[Case]:
    """The claims of one set, the same at every run."""
    draw = random.Random(0)
    rows = {row["doc_id"]: row for row in read_rows(folder / "corpus.jsonl")}
    cases = [case for row in rows.values() for case in _sentence_cases(row, language, draw)]
    questions = [row for row in read_rows(folder / "queries.jsonl") if _ASKED[language].search(row["question"])]
    answers = [row["answers"][0] for row in questions]
    for question in questions:
        source = rows[question["gold_doc_ids"][0]]
        right = question["answers"][0]
        alike = [it for it in answers if _shape(it) == _shape(right) and it not in source["text"]]
        told = [
            (right, True, "answer"),
            *((it, False, "another answer") for it in draw.sample(alike, min(1, len(alike)))),
        ]
        for answer, is_true, kind in told:
            stated = _ASKED[language].sub(answer, question["question"].rstrip("?？ "), count=1)
            claim = f"{stated}{'。' if language == 'zh' else '.'}"
            cases.append(Case(source["text"], source["title"].replace("_", " "), claim, is_true, kind))
    return cases


def measure(cases: list[Case]) -> dict[str, Any]:
    """Share of verdicts by kind, precision and recall of the doubts, milliseconds a claim."""
    verdicts: dict[str, Counter[str]] = {}
    seconds = 0.0
    for case in cases:
        evidence = Evidence("k3f2a", "c", "d", case.title, "s", None, "", 1.0, 0, len(case.source), case.source)
        began = time.perf_counter()
        support = judge(case.claim, [Passage(evidence)]).support
        seconds += time.perf_counter() - began
        verdicts.setdefault(f"{'true' if case.is_true else 'false'}: {case.kind}", Counter())[support] += 1
    false = sum((its for kind, its in verdicts.items() if kind.startswith("false")), Counter[str]())
    true = sum((its for kind, its in verdicts.items() if kind.startswith("true")), Counter[str]())
    doubted, doubted_true = false.total() - false["supported"], true.total() - true["supported"]
    return {
        "claims": len(cases),
        "kinds": {kind: dict(its) for kind, its in sorted(verdicts.items())},
        "precision": round(doubted / max(doubted + doubted_true, 1), 3),
        "recall": round(doubted / max(false.total(), 1), 3),
        "unsupported_precision": round(false["unsupported"] / max(false["unsupported"] + true["unsupported"], 1), 3),
        "unsupported_recall": round(false["unsupported"] / max(false.total(), 1), 3),
        "ms_a_claim": round(1000 * seconds / max(len(cases), 1), 2),
    }


def main(arguments: list[str] | None = None) -> int:
    """Prints one table a language, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", default="", help="print the claims of this kind that got the wrong verdict")
    options = parser.parse_args(arguments)
    report = {}
    for language, name in SETS.items():
        cases = make_cases(options.data / name, language)
        report[language] = measure(cases)
        if options.show:
            _show([case for case in cases if case.kind == options.show])
    print(json.dumps(report, ensure_ascii=False) if options.json else _table(report))
    return 0


def _sentence_cases(row: dict[str, Any], language: str, draw: random.Random) -> Iterator[Case]:
    source, title = str(row["text"]), str(row["title"]).replace("_", " ")
    names = sorted(set(find_names(source))) if language == "en" else []
    for sentence in split_sentences(source):
        if not MIN_CHARACTERS[language] <= len(sentence.text) <= MAX_CHARACTERS:
            continue
        short = _DROPPED[language].sub("", sentence.text)
        yield Case(source, title, sentence.text, True, "as it stands")
        if short != sentence.text:
            yield Case(source, title, short, True, "shortened")
        if (number := _another_number(short, draw)) is not None:
            yield Case(source, title, number, False, "number")
        form, negated = _NEGATED[language]
        if (turned := form.sub(negated, short, count=1)) != short:
            yield Case(source, title, turned, False, "negation")
        own = [name for name in find_names(sentence.text) if name in names]
        others = [name for name in ("Krasner", "Ostrava", "Bellweather", "Tamworth", "Okonjo") if name not in source]
        if language == "en" and own:
            yield Case(source, title, short.replace(draw.choice(own), draw.choice(others), 1), False, "name")


def _another_number(text: str, draw: random.Random) -> str | None:
    found = list(re.finditer(r"(?<![\w.,])\d+(?![\w.,]*\d)", text))
    if not found:
        return None
    match = draw.choice(found)
    return f"{text[: match.start()]}{int(match[0]) + draw.choice((1, 2, 7, 10))}{text[match.end() :]}"


def _shape(answer: str) -> tuple[bool, bool, int]:
    return any(map(str.isdigit, answer)), answer[:1].isupper(), min(len(answer.split()), 3)


def _show(cases: list[Case]) -> None:
    for case in cases:
        verdict = judge(
            case.claim, [Passage(Evidence("k", "c", "d", case.title, "s", None, "", 1.0, 0, 1, case.source))]
        )
        if (verdict.support == "supported") != case.is_true:
            print(verdict.support, verdict.reasons, case.claim, sep=" | ")


def _table(report: dict[str, dict[str, Any]]) -> str:
    lines = []
    for language, told in report.items():
        kinds = told.pop("kinds")
        lines.append(f"{language}: {', '.join(f'{name} {value}' for name, value in told.items())}")
        for kind, its in kinds.items():
            shares = ", ".join(f"{name} {its.get(name, 0)}" for name in ("supported", "weak", "unsupported"))
            lines.append(f"  {kind:24} {shares}")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
