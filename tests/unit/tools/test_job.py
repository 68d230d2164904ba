"""A piece of work that another thread ends."""

from __future__ import annotations

import threading

from graphrag_agent.tools._job import Job


def test_a_job_is_killed_while_it_runs_and_never_after() -> None:
    job, kills = Job(), list[str]()
    with job.killed_by(lambda: kills.append("first")):
        threading.Thread(target=job.stop).start()
        while not kills:
            pass
    job.stop()
    assert kills == ["first"]
    with job.killed_by(lambda: kills.append("second")):
        assert kills == ["first", "second"], "a run that begins after the stop ends at once"
