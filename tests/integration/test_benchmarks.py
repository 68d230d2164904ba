"""Each benchmark runs, on tiny counts, and says what it is asked for; the numbers themselves are for quiet machines."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain.agents", reason="the comparison needs langchain")
pytest.importorskip("langgraph.checkpoint.sqlite.aio", reason="the comparison needs the SQLite checkpointer")

from benchmarks import citation_check, retrieval
from benchmarks.agent_loop import report
from benchmarks.agent_loop.scenarios import SCENARIOS
from benchmarks.agent_loop.script import ROUNDS, Reply, answer, found, reply_to
from benchmarks.growth import report as growth
from benchmarks.growth.turns import PAYLOAD, passages
from benchmarks.http_load import report as load_report

CONTENDERS = ["graphrag_agent", "create_agent", "state_graph", "httpx"]
TINY = ["--json", "--repeat", "1", "--turns", "1", "--at-most", "2", "--gap-ms", "0.2"]


def run_agent_loop(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert report.main([*TINY, *options]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("scenario", ["new_thread", "burst", "thread20"])
def test_costs_are_told_for_all_four(scenario: str, capsys: pytest.CaptureFixture[str]):
    rows = run_agent_loop(capsys, "--scenario", scenario)["scenarios"][scenario]
    assert list(rows) == CONTENDERS
    assert all(0 < row["cpu_ms_best"] <= row["cpu_ms"] < 10_000 for row in rows.values())
    assert all(row["cpu_ms_per_round"] == pytest.approx(row["cpu_ms"] / 4, abs=0.01) for row in rows.values())
    assert rows["create_agent"]["ratio"] == 1.0
    assert rows["httpx"]["cpu_ms"] < rows["state_graph"]["cpu_ms"]


def test_a_streamed_turn_tells_when_its_first_token_came(capsys: pytest.CaptureFixture[str]):
    report_ = run_agent_loop(capsys, "--scenario", "streamed")
    rows = report_["scenarios"]["streamed"]
    assert list(rows) == CONTENDERS
    assert all(0 < row["first_token_ms"] < row["wall_ms"] for row in rows.values())
    assert set(report_["targets"]) == {"CPU of a streamed turn, to create_agent", "first answer token, to create_agent"}


def test_a_long_thread_is_compared_with_its_first_turn(capsys: pytest.CaptureFixture[str]):
    rows = run_agent_loop(capsys, "--scenario", "sqlite200", "--durability", "exit")["scenarios"]["sqlite200"]
    assert list(rows) == CONTENDERS
    assert all(row["growth"] == pytest.approx(row["cpu_ms"] / row["cpu_ms_turn_1"], abs=0.01) for row in rows.values())


@pytest.mark.slow
def test_a_slow_tool_and_a_slow_message_take_their_time(capsys: pytest.CaptureFixture[str]):
    report_ = run_agent_loop(capsys, "--scenario", "eager")
    rows = report_["scenarios"]["eager"]
    assert all(row["wall_ms"] >= 500 and row["wall_ms_alone"] >= 500 for row in rows.values())
    assert all(rows[name]["wall_ms"] >= 800 for name in ("create_agent", "state_graph", "httpx"))
    beside = report_["targets"]["eager turn, to the bare loop's less its tool"]
    assert beside["value"] == pytest.approx(
        rows["graphrag_agent"]["wall_ms"] / (rows["httpx"]["wall_ms"] - 300), abs=0.001
    )


def test_repeated_searches_run_less_often_here_and_each_time_elsewhere(capsys: pytest.CaptureFixture[str]):
    rows = run_agent_loop(capsys, "--scenario", "repeated")["scenarios"]["repeated"]
    assert 1 <= rows["graphrag_agent"]["searches_run"] <= 3
    assert [rows[name]["searches_run"] for name in CONTENDERS[1:]] == [6, 6, 6]


def test_a_runaway_model_ends_with_an_answer_here_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("benchmarks.agent_loop.scenarios.PATIENCE_SECONDS", 1.0)
    report_ = run_agent_loop(capsys, "--scenario", "runaway")
    results = {name: row["result"] for name, row in report_["scenarios"]["runaway"].items()}
    assert results["graphrag_agent"] == "answer"
    assert {results[name] for name in CONTENDERS[1:]} == {"cut off after 1 s"}
    assert report_["targets"] == {
        "what a runaway model ends with": {"value": "answer", "limit": "answer", "met": True},
    }


def test_turns_at_once_are_counted_by_the_second(capsys: pytest.CaptureFixture[str]):
    rows = run_agent_loop(capsys, "--scenario", "hundred")["scenarios"]["hundred"]
    assert all(0 < row["turns_per_second"] < 10_000 for row in rows.values())


def test_the_table_has_every_scenario_contender_and_target():
    row = {"cpu_ms": 1.0, "ratio": 1.0}
    text = "\n".join(
        report.render({"scenarios": {"new_thread": dict.fromkeys(CONTENDERS, row)}, "targets": {}}),
    )
    assert all(word in text for word in ["new_thread: Three rounds", "cpu_ms", *CONTENDERS])
    assert {target.scenario for target in report.TARGETS} < set(SCENARIOS)


def test_the_script_reads_the_round_from_the_request():
    asked = {"role": "assistant", "tool_calls": [{}]}
    result = {"role": "tool"}
    messages = [{"role": "user"}, asked, result, {"role": "assistant"}, {"role": "user"}, asked, result, result]
    calls = reply_to("three_rounds", messages, has_tools=True).calls
    assert [call["query"] for call in calls] == list(ROUNDS[1])
    assert reply_to("runaway", messages, has_tools=False) == Reply(text=answer())
    assert found("North office: notice period?") == found(ROUNDS[0][0])
    assert len(answer().split()) == 200


def test_retrieval_is_measured_on_a_folder_of_queries(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    texts = {"d1": "The notice period is three months.", "d2": "Hotels abroad cost at most 150 euros a night."}
    rows = [{"doc_id": id_, "title": f"Rules {id_}", "text": text} for id_, text in texts.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    query = {"id": "q1", "question": "How long is the notice period?", "gold_doc_ids": ["d1"]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(query))
    assert retrieval.main(["--data", str(tmp_path), "--embedder", "none", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert (measured["documents"], measured["queries"], list(measured["legs"])) == (2, 1, ["bm25"])
    assert measured["legs"]["bm25"]["ndcg@10"] == 1.0


def test_tables_among_prose_are_measured_by_their_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tables, prose = tmp_path / "tables", tmp_path / "prose"
    (tables / "csv" / "1").mkdir(parents=True)
    prose.mkdir()
    (tables / "csv" / "1" / "7.csv").write_text('"Lake","Depth"\n"Lake \\"Blue\\"","12 m"\n')
    (tables / "csv" / "1" / "8.csv").write_text('"Peak","Height"\n"Red","900 m"\n')
    question = {"question": "how deep is the lake called blue?", "table": "csv/1/7.csv"}
    (tables / "questions.jsonl").write_text(json.dumps(question))
    (prose / "corpus.jsonl").write_text(json.dumps({"doc_id": "d", "title": "", "text": "How deep is the sea?"}))
    assert retrieval.main(["--data", str(tables), "--pool", str(prose), "--embedder", "none", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert (measured["documents"], measured["legs"]["bm25"]["mrr"]) == (3, 1.0)


def test_the_check_of_citations_is_measured_on_both_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    sets = {
        "xquad/en": (
            "The Panthers gave up 308 points in 2015 and were led by Kawann Short in the end.",
            "Who led them?",
        ),
        "cmrc2018_zh_trial": ("该乐队于2005年在北京成立，成员有三名，是张伟和他的朋友。", "乐队在哪里成立？"),
    }
    for name, (text, question) in sets.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "corpus.jsonl").write_text(json.dumps({"doc_id": "d", "title": "t", "text": text}))
        asked = {"question": question, "answers": ["北京" if "zh" in name else "Short"], "gold_doc_ids": ["d"]}
        (tmp_path / name / "queries.jsonl").write_text(json.dumps(asked))
    assert citation_check.main([str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["en", "zh"]
    assert told["en"]["kinds"]["true: as it stands"] == {"supported": 1}
    assert told["en"]["kinds"]["false: number"] == {"unsupported": 1}
    assert told["zh"]["claims"] == 4
    assert citation_check.main([str(tmp_path), "--show", "answer"]) == 0
    assert "false: number" in capsys.readouterr().out


@pytest.mark.slow
def test_growth_tells_what_each_contender_leaves_on_disk(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(growth, "FSYNC_TURNS", (1, 3))
    ours, theirs = growth.Case("sqlite", "graphrag_agent", "sync"), growth.Case("sqlite", "create_agent", "async")
    report_ = growth.measure([ours, theirs], 12)
    small, large = report_["rows"]
    assert (small["contender"], small["payload"], large["payload"]) == ("graphrag_agent", False, True)
    assert 10 * small["mb_a_turn"] < large["mb_a_turn"]
    if small["fsyncs_a_turn"] is not None:  # where strace is
        assert small["fsyncs_a_turn"] < large["fsyncs_a_turn"]
    assert report_["targets"]["tool results in the database"] == {"value": False, "limit": False, "met": True}
    assert "MISSED" in "\n".join(growth.render({**report_, "targets": {"a": {"value": 1, "limit": 0, "met": False}}}))


def test_a_payload_is_found_where_it_is(tmp_path: Path):
    assert all(PAYLOAD in text and len(text) == 600 for text in passages("a question"))
    row = {"store": "sqlite", "contender": "graphrag_agent", "payload": True, "mb_a_turn": 0.5}
    assert {name: target["met"] for name, target in growth.judge([row])} == {
        "megabytes a turn": False,
        "tool results in the database": False,
    }


@pytest.mark.slow
def test_a_load_of_two_users_is_answered_and_watched():
    pytest.importorskip("uvicorn", reason="the load goes to the HTTP app")
    report_ = load_report.measure(streams=2, seconds=1)
    assert (report_["errors"], report_["first_errors"], report_["turns"], report_["streams"]) == (0, [], 2, 2)
    assert 0 < report_["first_text_s"]["p50"] < report_["turn_s"]["p50"]
    assert all(megabytes > 50 for megabytes in report_["server_mb"])
    assert "MISSED" in "\n".join(load_report.render({**report_, "errors": 1, "first_errors": ["status 500"]}))
