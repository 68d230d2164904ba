import importlib.util

import pytest

from graphrag_agent.errors import ModelUnavailableError
from graphrag_agent.models.extractive import ExtractiveChatModel
from graphrag_agent.models.factory import load_chat_model


@pytest.fixture(autouse=True)
def no_openai_variables(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_offline_needs_nothing():
    assert isinstance(load_chat_model("offline"), ExtractiveChatModel)


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_a_base_url_is_enough_for_an_openai_model(monkeypatch, variable):
    monkeypatch.setenv(variable, "http://127.0.0.1:9/v1")
    model = load_chat_model("openai:qwen3:8b", temperature=0)
    assert (model.model_name, model.openai_api_base) == ("qwen3:8b", "http://127.0.0.1:9/v1")
    assert model.openai_api_key.get_secret_value() == "none"
    assert (model.streaming, model.stream_usage, model.use_responses_api, model.temperature) == (True, True, False, 0)


def test_a_key_alone_means_openai_itself(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k1")
    model = load_chat_model("openai:gpt-5.4-pro")
    assert (model.openai_api_key.get_secret_value(), model.openai_api_base) == ("k1", None)
    assert load_chat_model("openai:m", api_key="k2").openai_api_key.get_secret_value() == "k2"


def test_neither_key_nor_url_names_the_remedy():
    with pytest.raises(ModelUnavailableError, match=r"'openai:m' needs OPENAI_API_KEY, or OPENAI_BASE_URL"):
        load_chat_model("openai:m")


@pytest.mark.parametrize("name", ["gpt-4", "", "openai:", ":m", "Offline"])
def test_an_unknown_name_lists_what_is_possible(name):
    with pytest.raises(ModelUnavailableError, match=f"unknown model '{name}'; possible: 'offline', 'openai:NAME'"):
        load_chat_model(name)


def test_other_providers_need_langchain(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailableError, match="pip install langchain langchain-mistralai"):
        load_chat_model("mistralai:m")


@pytest.mark.skipif(importlib.util.find_spec("langchain") is None, reason="langchain is not installed")
def test_what_langchain_says_about_a_provider_is_passed_on():
    with pytest.raises(ModelUnavailableError, match=r"'nobody:m': .*nobody"):
        load_chat_model("nobody:m")
