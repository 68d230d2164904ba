"""Tools from files and from packages: what is taken, and what a broken one is told."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from graphrag_agent.errors import SettingsError
from graphrag_agent.settings import load_settings
from graphrag_agent.tool_assembly import registry_from
from graphrag_agent.tools.user_tools import installed_tool_names, load_installed_tools, load_tool_folder
from tests.shelf import Shelf

WEATHER = '''
from __future__ import annotations

from typing import Annotated

from pydantic import Field

Celsius = float


def weather(city: Annotated[str, Field(description="Where")], days: int = 1) -> Celsius:
    """The temperature."""
    return 20.5
'''
SEVERAL = '''
from langchain_core.tools import tool

from graphrag_agent import ToolSpec


@tool
def first() -> str:
    """One."""
    return "1"


def second() -> str:
    """Two."""
    return "2"


def unlisted() -> str:
    """Three."""
    return "3"


tools = [ToolSpec(first, family="numbers", side_effect_free=True), second]
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tools"
    made.mkdir(mode=0o755)
    return made


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def refusal(folder: Path) -> str:
    with pytest.raises(SettingsError) as error:
        load_tool_folder(folder)
    return str(error.value)


def test_a_file_gives_the_function_that_has_its_name(folder: Path) -> None:
    file = write(folder, "weather.py", WEATHER)
    [spec] = load_tool_folder(folder)
    assert (spec.name, spec.origin) == ("weather", str(file))
    assert spec.validate({"city": "Ghent"}) == {"city": "Ghent", "days": 1}
    assert spec.tool.invoke({"city": "Ghent"}) == 20.5


def test_a_file_with_a_list_gives_those_alone(folder: Path) -> None:
    write(folder, "several.py", SEVERAL)
    specs = {spec.name: spec for spec in load_tool_folder(folder)}
    assert list(specs) == ["first", "second"]
    assert (specs["first"].family, specs["first"].side_effect_free, specs["second"].family) == (
        "numbers",
        True,
        "other",
    )


def test_files_are_read_by_name_and_those_with_an_underscore_are_left_out(folder: Path) -> None:
    for name in ("b", "a", "_part"):
        write(folder, f"{name}.py", f'def {name}() -> str:\n    """It."""\n    return "{name}"\n')
    write(folder, "notes.txt", "no tool")
    assert [spec.name for spec in load_tool_folder(folder)] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import os\n\nraise RuntimeError('no key')\n", "weather.py, line 3: RuntimeError: no key; mend it, or begin"),
        ("import nosuchmodule\n", "weather.py, line 1: ModuleNotFoundError: No module named 'nosuchmodule'; mend it"),
        ("def weather(:\n", "weather.py, line 1: SyntaxError: "),
        ("import sys\nsys.exit(3)\n", "weather.py, line 2: SystemExit: 3; mend it"),
        ("import json\njson.loads('{')\n", "weather.py, line 2: JSONDecodeError: "),
        ("def other(): ...\n", "weather.py: it has no tool; define a function named 'weather', or a list 'tools'"),
        ("tools = []\n", "weather.py: it has no tool; "),
        ("tools = [3]\n", "weather.py: tool 3 is neither a function, nor a LangChain tool, nor a ToolSpec"),
        ("def weather(): ...\n", "weather.py: the function weather can't be a tool: Function must have a docstring"),
    ],
)
def test_a_broken_file_is_told_with_line_and_remedy(folder: Path, text: str, told: str) -> None:
    file = write(folder, "weather.py", text)
    assert str(file.parent / told) in refusal(folder)


def test_two_files_may_not_have_one_tool(folder: Path) -> None:
    write(folder, "a.py", "def twin() -> str:\n    'It.'\n    return ''\ntools = [twin]\n")
    write(folder, "b.py", "def twin() -> str:\n    'It.'\n    return ''\ntools = [twin]\n")
    assert refusal(folder) == (
        f"two tools are named 'twin': {folder / 'a.py'} and {folder / 'b.py'}; rename one of them"
    )


def test_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "weather.py").symlink_to(write(tmp_path, "weather.py", WEATHER))
    assert "is a link out of its folder; copy the file there instead" in refusal(folder)


@pytest.mark.parametrize("name", ["broken_link.py", "folder.py"])
def test_what_is_no_file_is_told(folder: Path, name: str) -> None:
    (folder / "folder.py").mkdir() if name == "folder.py" else (folder / name).symlink_to(folder / "gone.py")
    assert f"tool file {str(folder / name)!r} is no file; remove it" in refusal(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_what_everybody_may_write_is_refused(folder: Path) -> None:
    file = write(folder, "weather.py", WEATHER)
    file.chmod(0o666)
    assert f"tool file {str(file)!r} may be written by every user of this machine: chmod o-w it" in refusal(folder)
    file.chmod(0o644)
    folder.chmod(0o777)
    assert f"tool folder {str(folder)!r} may be written by every user" in refusal(folder)


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    assert "is no folder; make it, or name another one" in refusal(tmp_path / "nowhere")


def test_settings_name_the_folder_and_its_tools_stand_beside_the_built_in_ones(folder: Path) -> None:
    write(folder, "weather.py", WEATHER)
    registry = registry_from(load_settings(tools="knowledge_search", tool_folder=str(folder)), Shelf())
    assert list(registry) == ["knowledge_search", "weather"]
    write(folder, "knowledge_search.py", 'def knowledge_search() -> str:\n    """Mine."""\n    return ""\n')
    told = rf"'knowledge_search': the built-in tool and {re.escape(str(folder / 'knowledge_search.py'))}"
    with pytest.raises(SettingsError, match=told):
        registry_from(load_settings(tools="knowledge_search", tool_folder=str(folder)), Shelf())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that offers three tools."""
    info = tmp_path / "weather_tools-1.0.dist-info"
    info.mkdir()
    write(info, "METADATA", "Metadata-Version: 2.1\nName: weather-tools\nVersion: 1.0\n")
    objects = {"weather": "weather", "broken": "nothing", "misnamed": "weather"}
    points = "\n".join(f"{name} = tools_of_a_package:{found}" for name, found in objects.items())
    write(info, "entry_points.txt", f"[graphrag_agent.tools]\n{points}\n")
    write(tmp_path, "tools_of_a_package.py", WEATHER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tools_of_a_package", raising=False)
    return tmp_path


def test_a_packages_tool_is_taken_when_it_is_named_and_not_imported_before(package: Path) -> None:
    assert set(installed_tool_names()) >= {"weather", "broken", "misnamed"}
    assert load_installed_tools(["knowledge_search"]) == []
    assert "tools_of_a_package" not in sys.modules
    registry = registry_from(load_settings(tools="knowledge_search,weather"), Shelf())
    assert list(registry) == ["knowledge_search", "weather"]
    assert registry["weather"].origin == ("the entry point 'tools_of_a_package:weather' of the package 'weather-tools'")


def test_a_package_can_not_take_the_place_of_a_built_in_tool(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        package / "weather_tools-1.0.dist-info",
        "entry_points.txt",
        "[graphrag_agent.tools]\nread_document = os:abort\n",
    )
    assert registry_from(load_settings(tools="read_document"), Shelf())["read_document"].origin == "the built-in tool"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("broken", "AttributeError: .*; mend or remove the package, or take 'broken' out of the tools"),
        ("misnamed", "its tool is named 'weather'; give both the same name"),
    ],
)
def test_a_packages_broken_tool_is_told_with_the_package(package: Path, name: str, told: str) -> None:
    with pytest.raises(SettingsError, match=f"of the package 'weather-tools': {told}"):
        load_installed_tools([name])


def test_a_package_that_ends_the_process_ends_its_own_import_only(package: Path) -> None:
    write(package, "tools_of_a_package.py", "raise SystemExit('no licence')")
    with pytest.raises(SettingsError, match="SystemExit: no licence; mend or remove the package"):
        load_installed_tools(["weather"])
