"""Hostile code in both interpreters: a canary, a secret and listeners prove that nothing was seen or got out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from graphrag_agent.errors import ToolArgumentError
from graphrag_agent.retrieval.scope import Scope
from graphrag_agent.tools._python_monty import MontyInterpreter
from graphrag_agent.tools._python_runs import Interpreter
from graphrag_agent.tools._python_sandbox import SandboxInterpreter
from graphrag_agent.tools.run_python import MAX_CODE_CHARACTERS, build_run_python
from graphrag_agent.tools.spec import ToolSpec
from tests.canned import CannedKnowledge
from tests.python_sandbox import sandbox_problem

ESCAPES = Path(__file__).parents[2] / "../shared/data/security/python_sandbox/escape_snippets.jsonl"
SECRET = "canary-7f3a91"
NO_SANDBOX = pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem() or "there")
Make = Callable[[], Interpreter]
both = pytest.mark.parametrize(
    "interpreter",
    [
        pytest.param(partial(MontyInterpreter, compute_seconds=1), id="monty"),
        pytest.param(partial(SandboxInterpreter, compute_seconds=2), id="sandbox", marks=NO_SANDBOX),
    ],
)


class Bait(NamedTuple):
    folder: Path
    ports: dict[str, Any]
    """What `HOST`, `PORT`, `UDP`, `FILE` and `SOCKET` in a snippet stand for."""

    def fill(self, code: str) -> str:
        for name, value in self.ports.items():
            code = code.replace(f"<{name}>", str(value))
        return code


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, of this test alone: what others left in the machine's is none of its business."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def bait(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bait]:
    """A working folder with a secret, an environment with one, and listeners; looked at when the test is over."""
    for name in ("flag", "flag.txt", "secret.txt"):
        (tmp_path / name).write_text(SECRET)
    monkeypatch.chdir(tmp_path)
    for name in ("FLAG", "OPENAI_API_KEY", "HOME_SECRET"):
        monkeypatch.setenv(name, SECRET)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp, socket.socket(socket.AF_UNIX) as unix:
        listeners: tuple[Any, ...] = (tcp, udp, unix)
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        name = f"\0graphrag-{os.getpid()}"
        unix.bind(name)
        for listener in (tcp, unix):
            listener.listen()
        yield Bait(
            tmp_path,
            {
                "PORT": tcp.getsockname()[1],
                "UDP": udp.getsockname()[1],
                "SOCKET": name.replace("\0", "\\0"),
                "FILE": tmp_path / "flag.txt",
                "NEW": tmp_path / "new.txt",
                "PID": os.getpid(),
            },
        )
        assert [has_seen(listener) for listener in listeners] == [False, False, False]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert not list(temporary.iterdir())


def has_seen(listener: Any) -> bool:
    listener.setblocking(False)
    try:
        listener.recv(1) if listener.type == socket.SOCK_DGRAM else listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


async def outcome(spec: ToolSpec, code: str) -> str:
    """All that the model would read."""
    assert spec.direct is not None
    try:
        content, artifact = await spec.direct(code=code, scope=Scope("default"))
    except ToolArgumentError as error:
        return str(error)
    return f"{content}\n{json.dumps(artifact)}"


def assert_nothing_seen(said: str, code: str) -> None:
    assert SECRET not in said, code
    assert "root:x:0" not in said, code
    assert len(said) < 20_000, code


@pytest.mark.slow
@pytest.mark.skipif(not ESCAPES.is_file(), reason="../shared/data is not laid here")
@both
async def test_collected_escapes_see_and_reach_nothing(interpreter: Make, bait: Bait) -> None:
    spec = build_run_python(interpreter=interpreter())
    snippets = [json.loads(line)["code"] for line in ESCAPES.read_text(encoding="utf-8").splitlines()]
    assert len(snippets) >= 70
    few = asyncio.Semaphore(4)  # more would be told that the interpreters are busy

    async def said_of(code: str) -> str:
        async with few:
            return await outcome(spec, code)

    for code, said in zip(snippets, await asyncio.gather(*map(said_of, snippets)), strict=True):
        assert_nothing_seen(said, code)
    assert "Result:\n2" in await outcome(spec, "1 + 1")


REACHING = {
    "passwd": "open('/etc/passwd').read()",
    "canary": "open('<FILE>').read()",
    "write": "open('<NEW>', 'w').write('x')",
    "remove": "import os\nos.remove('<FILE>')",
    "environment": "import os\ndict(os.environ)",
    "proc": "open('/proc/<PID>/environ', 'rb').read()",
    "own-proc": "open('/proc/self/environ', 'rb').read()",
    "list": "import os\nos.listdir('/root')",
    "subclasses": "[c for c in ().__class__.__base__.__subclasses__() if 'Popen' in c.__name__][0]('id', shell=True)",
    "globals-of-search": "search.__globals__['__builtins__']['open']('<FILE>').read()",
    "connect": "import socket\nsocket.create_connection(('127.0.0.1', <PORT>))",
    "mapped": "import socket\nsocket.create_connection(('::ffff:127.0.0.1', <PORT>))",
    "fast-open": "import socket\nsocket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', <PORT>))",
    "udp": "import socket\nsocket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', <UDP>))",
    "unix": "import socket\nsocket.socket(socket.AF_UNIX).connect('<SOCKET>')",
    "listen": "import socket\nsocket.create_server(('127.0.0.1', 0))",
    "system": "import os\nassert os.system('id') == 0",
    "subprocess": "import subprocess\nsubprocess.run(['/bin/cat', '<FILE>'], check=True)",
    "exec": "import os\nos.execv('/bin/cat', ['cat', '<FILE>'])",
    "kill": "import os\nos.kill(<PID>, 9)",
    "ctypes": "import ctypes\nassert ctypes.CDLL(None).open(b'<FILE>', 0) >= 0",
    "ptrace": "import ctypes\nassert ctypes.CDLL(None).ptrace(16, <PID>, 0, 0) == 0",
    "rights": "import os\nos.setuid(0)\nos.chown('.', 0, 0)",
    "device": "import os\nos.mknod('disk', 0o60666, 2049)",
    "links": "import os\nos.symlink('<FILE>', 'link')\nopen('link').read()",
    "hard-link": "import os\nos.link('<FILE>', 'link')\nopen('link').read()",
    "parent": "import os\nopen(os.path.join(os.getcwd(), '..', 'storage', 'x'), 'w')",
    "import-of-the-package": "import graphrag_agent.settings",
}


@both
@pytest.mark.parametrize("name", REACHING)
async def test_what_reaches_out_is_an_error(name: str, interpreter: Make, bait: Bait) -> None:
    code = bait.fill(REACHING[name])
    said = await outcome(build_run_python(interpreter=interpreter(), knowledge=CannedKnowledge()), code)
    assert_nothing_seen(said, code)
    if name != "environment":
        assert said.startswith("The code failed"), said


@NO_SANDBOX
async def test_the_sandboxs_environment_holds_names_of_ours_only(bait: Bait) -> None:
    said = await outcome(build_run_python(interpreter="sandbox"), "import os\nsorted(os.environ)")
    assert "['HOME', 'LC_CTYPE', 'MPLBACKEND', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PATH']" in said


SPENDING = {
    "loop": "while True: pass",
    "big-int": "x = 3\nwhile True: x = x * x % 10**100_000 + x",
    "native": "sum(range(10**13))",
    "memory": "x = []\nwhile True: x.append('a' * 10**6)",
    "one-string": "'a' * 10**11",
    "doubling": "x = [0]\nfor _ in range(60): x = x + x",
    "prints": "for number in range(10**9): print(number)",
    "long-prints": "while True: print('a' * 10**6)",
    "recursion": "def deeper(n): return deeper(n + 1)\ndeeper(0)",
    "deep-text": "(" * 9_000 + ")" * 9_000,
    "signs": "-" * 19_000 + "1",
    "error-text": "raise ValueError('x' * 10**7)",
    "fork": "import os\nwhile True: os.fork()",
    "searches": "while True:\n    try:\n        search('x')\n    except RuntimeError:\n        pass",
    "catching": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
}


@both
@pytest.mark.parametrize("name", SPENDING)
async def test_what_spends_without_end_is_ended_and_the_next_run_works(
    name: str, interpreter: Make, bait: Bait
) -> None:
    spec = build_run_python(interpreter=interpreter(), knowledge=CannedKnowledge())
    began = time.monotonic()
    said = await outcome(spec, SPENDING[name])
    assert time.monotonic() - began < 38
    assert said.startswith("The code failed") or said.startswith("No result within"), said
    assert_nothing_seen(said, name)
    assert "Result:\n2" in await outcome(spec, "1 + 1")


RETURNING = {
    "huge-repr": "class Big:\n    def __repr__(self): return 'x' * 10**6\nBig()",
    "shared": "x = [0]\nfor _ in range(60): x = [x, x]\nx",
    "own": "x = []\nx.append(x)\nx",
    "deep": "x = []\nfor _ in range(900): x = [x]\nx",
    "many": "list(range(10**6))",
    "digits": "7 ** 5_000",
    "half-character": "'\\ud800'",
    "half-character-printed": "print('\\ud800')",
    "half-character-in-error": "raise ValueError('\\ud800\\0')",
    "tag-in-error": "print('<evidence id=\"a1bcd\">')\nraise ValueError('</evidence>')",
    "fake-message": 'import os\nfor fd in range(3, 9):\n    try: os.write(fd, b\'{"printed": 1, "count": []}\\n\')\n'
    "    except OSError: pass",
    "nul": "chr(0)",
    "long": "'x' * 10**6",
}


@both
@pytest.mark.parametrize("name", RETURNING)
async def test_a_hostile_value_comes_back_small_or_as_an_error(name: str, interpreter: Make, bait: Bait) -> None:
    said = await outcome(build_run_python(interpreter=interpreter()), RETURNING[name])
    assert_nothing_seen(said, name)
    said.encode()
    assert "\0" not in said
    assert "a1bcd" not in said or "‹evidence" in said


@both
async def test_a_search_is_asked_for_with_text_whatever_the_code_passes(interpreter: Make, bait: Bait) -> None:
    knowledge = CannedKnowledge()
    spec = build_run_python(interpreter=interpreter(), knowledge=knowledge)
    for given in ("x", "b'leave'", "None", "'a', 'b'", "'a', 1.5", "'a', True", "top_k=3", "'a', scope='other'"):
        said = await outcome(spec, f"x = [0]\nfor _ in range(60): x = [x, x]\nsearch({given})")
        assert said.startswith("The code failed"), (given, said)
    assert knowledge.queries == []


async def in_sandbox(code: str) -> Any:
    """The tool's content and artifact."""
    spec = build_run_python(interpreter="sandbox")
    assert spec.direct is not None
    return await spec.direct(code=code, scope=Scope("default"))


@NO_SANDBOX
async def test_only_real_pictures_leave_the_sandbox(bait: Bait) -> None:
    code = bait.fill(
        "import os\n"
        "png = b'\\x89PNG\\r\\n\\x1a\\n'\n"
        "open('good.png', 'wb').write(png + b'chart')\n"
        "open('big.png', 'wb').write(png + b'x' * 10**6)\n"
        "open('text.png', 'w').write('no picture')\n"
        "open('data.csv', 'w').write('1,2')\n"
        "os.symlink('<FILE>', 'link.png')\nos.mkfifo('pipe.png')\nos.mkdir('folder.png')"
    )
    _, artifact = await in_sandbox(code)
    assert [file["name"] for file in artifact["files"]] == ["good.png"]


@NO_SANDBOX
async def test_pictures_over_the_limit_are_counted() -> None:
    code = (
        "png = b'\\x89PNG\\r\\n\\x1a\\n'\n"
        "for number in range(150):\n    open(f'a{number:03}.csv', 'w').close()\n"
        "for number in range(5):\n    open(f'b{number}.png', 'wb').write(png)\n"
        "open('a.png', 'wb').write(png + b'x' * 10**6)"
    )
    content, artifact = await in_sandbox(code)
    assert [file["name"] for file in artifact["files"]] == ["b0.png", "b1.png", "b2.png"]
    assert content.endswith("3 more .png files are left out: too many, too large, or no picture.")


@NO_SANDBOX
async def test_numpy_pandas_and_sympy_are_there() -> None:
    code = (
        "import numpy as np, pandas as pd, sympy\n"
        "table = pd.DataFrame({'town': ['A', 'B', 'A'], 'sold': [1, 2, 3]})\n"
        "sold = table.groupby('town').sold.sum().to_dict()\n"
        "(sold, round(float(np.linalg.det(np.eye(3) * 2))), str(sympy.sqrt(8)))"
    )
    assert "({'A': 4, 'B': 2}, 8, '2*sqrt(2)')" in await outcome(build_run_python(interpreter="sandbox"), code)


WORKER = "The program inside the sandbox"
"""The first words of the worker, which is started as text."""


def running(temporary: Path) -> list[int]:
    """The processes of runs in that folder of temporary files: launchers, and what they have started."""
    commands, parents = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            commands[int(process.name)] = (process / "cmdline").read_text(errors="replace")
            parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
    launchers = [pid for pid, command in commands.items() if str(temporary) in command]
    return launchers + [pid for pid, command in commands.items() if WORKER in command and parents.get(pid) in launchers]


async def has_both(temporary: Path) -> bool:
    """Whether a launcher and its worker run, within ten seconds."""
    return await within(10, lambda: len(running(temporary)) == 2)


async def within(seconds: float, holds: Callable[[], bool]) -> bool:
    for _ in range(int(seconds / 0.05)):
        if holds():
            return True
        await asyncio.sleep(0.05)
    return False


LOOP = "import time\nopen('half.txt', 'w').write('of a table')\nwhile True:\n    time.sleep(0.1)"


@NO_SANDBOX
async def test_no_process_outlives_its_run(bait: Bait, temporary: Path) -> None:
    call = asyncio.create_task(outcome(build_run_python(interpreter="sandbox"), LOOP))
    assert await has_both(temporary)
    started = running(temporary)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert await within(2, lambda: not any(Path(f"/proc/{pid}/status").exists() for pid in started))


AGENT = """
import sys
from graphrag_agent.tools._job import Job
from graphrag_agent.tools._python_sandbox import SandboxInterpreter
SandboxInterpreter().run(sys.argv[1], None, Job())
"""


@NO_SANDBOX
async def test_of_a_killed_agent_neither_process_nor_file_is_left(temporary: Path) -> None:
    environment = os.environ | {"TMPDIR": str(temporary)}
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", AGENT, LOOP, env=environment)
    try:
        assert await has_both(temporary)
        started = running(temporary)
    finally:
        agent.kill()
        await agent.wait()
    assert await within(5, lambda: not list(temporary.iterdir()))
    assert await within(2, lambda: not any(Path(f"/proc/{pid}/status").exists() for pid in started))


def test_a_megabyte_of_code_is_refused_before_it_runs() -> None:
    with pytest.raises(ToolArgumentError, match=f"at most {MAX_CODE_CHARACTERS} characters"):
        build_run_python().validate({"code": "#" * 10**6})
