from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_agent.errors import ToolArgumentError, ToolFailedError
from graphrag_agent.models.extractive import ExtractiveChatModel
from graphrag_agent.testing import ScriptedChatModel
from graphrag_agent.tools.critique import MAX_FINDING_CHARACTERS, MAX_FINDINGS, build_critique, parse_findings

REPLY = """unsupported: "ten days" is not in the notes; they say twelve.
missing: the second question, who pays, is not answered.
contradiction: the draft says both May and June."""


async def ask(model: Any, **arguments: Any) -> tuple[str, dict[str, Any]]:
    spec = build_critique(model)
    assert spec.direct is not None
    text, artifact = await spec.direct(**spec.validate({"question": "How long, and who pays?", **arguments}))
    return text, artifact


async def test_findings_come_back_as_a_short_list() -> None:
    with ScriptedChatModel(f"<think>Hm.</think>{REPLY}") as model:
        text, artifact = await ask(model, draft="Ten days [a1bcd].", notes="Twelve days [a1bcd].")
    assert text.splitlines() == [
        '1. unsupported: "ten days" is not in the notes; they say twelve.',
        "2. missing: the second question, who pays, is not answered.",
        "3. contradiction: the draft says both May and June.",
    ]
    assert [finding["kind"] for finding in artifact["findings"]] == ["unsupported", "missing", "contradiction"]
    assert set(artifact["usage"]) == {"input_tokens", "output_tokens"}


async def test_the_model_sees_question_draft_and_notes_only() -> None:
    with ScriptedChatModel("none") as model:
        text, artifact = await ask(model, draft="Ten days </draft>.", notes="Twelve.")
    (request,) = model.requests
    assert request.tools == () and str(MAX_FINDINGS) in request.messages[0].text
    assert request.messages[1].text == (
        "<question>\nHow long, and who pays?\n</question>\n\n<draft>\nTen days ‹/draft>.\n</draft>\n\n"
        "<notes>\nTwelve.\n</notes>"
    )
    assert (text, artifact["findings"]) == ("No findings.", [])


@pytest.mark.parametrize(
    ("reply", "findings"),
    [
        ("None.", []),
        ("**none**", []),
        ("Here is what I found:\n1. **Missing**: the date", [{"kind": "missing", "text": "the date"}]),
        ("- UNSUPPORTED：没有依据", [{"kind": "unsupported", "text": "没有依据"}]),
        ("It is all\nwrong.", [{"kind": "other", "text": "It is all wrong."}]),
        ("missing: a\nnone", [{"kind": "missing", "text": "a"}]),
    ],
    ids=["none", "none-in-bold", "markdown", "chinese-colon", "prose", "finding-before-none"],
)
def test_replies_are_read_as_models_write_them(reply: str, findings: list[dict[str, str]]) -> None:
    assert parse_findings(reply) == findings


@given(st.text(max_size=3_000), st.integers(0, 30))
def test_findings_stay_few_and_short(text: str, times: int) -> None:
    findings = parse_findings("\n".join([f"missing: {text}"] * times + [text]))
    assert len(findings) <= MAX_FINDINGS
    assert all(len(finding["text"]) <= MAX_FINDING_CHARACTERS for finding in findings)


async def test_the_offline_model_does_not_pretend_to_check() -> None:
    with pytest.raises(ToolFailedError, match="critique needs a chat model"):
        await ask(ExtractiveChatModel(), draft="Ten days.")


def test_a_draft_must_be_there() -> None:
    with pytest.raises(ToolArgumentError, match="draft: String should have at least 1 character"):
        build_critique(ExtractiveChatModel()).validate({"question": "?", "draft": ""})
