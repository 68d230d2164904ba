"""Which errors mean that there is no use in sending tools. The wordings are those that servers really send."""

import httpx2
import openai
import pytest

from graphrag_agent.models.openai_compatible import is_tools_rejection

REJECTIONS = [
    (400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
    (400, "codellama:latest does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (500, "tools param requires --jinja flag"),
    (404, "No endpoints found that support tool use. To learn more about provider routing, visit the docs"),
    (400, "No connected provider supports tool calling for this model."),
    (500, "Unsupported param: tools"),
    (400, "Unsupported parameter: 'tools' is not supported with this model."),
    (400, "tools is not supported in this model. For a list of supported models, refer to the documentation"),
    (400, "`tool calling` is not supported with this model"),
    (400, "<400> InternalError.Algo.InvalidParameter: The tool call is not supported."),
    (400, "Tool use with function calling is unsupported"),
    (400, "deepseek-reasoner does not support Function Calling"),
    (400, "This model doesn't support function calling"),
    (400, "Function calling is not enabled for models/gemma-3-27b-it"),
    (400, "Unrecognized request argument supplied: tools"),
    (422, "[{'type': 'extra_forbidden', 'loc': ('body', 'tools'), 'msg': 'Extra inputs are not permitted'}]"),
    (400, '[{"type":"extra_forbidden","loc":["body","tools"],"msg":"Extra inputs are not permitted","input":[]}]'),
    (400, "tool_choice is not supported by this model"),
]
OTHERS = [
    (400, "This model's maximum context length is 8192 tokens, your messages and tools have 9000"),
    (400, "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."),
    (400, "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."),
    (
        400,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    ),
    (400, "Invalid schema for function 'knowledge_search': None is not of type 'object'."),
    (400, "Unsupported value: 'temperature' does not support 0.2 with this model."),
    (400, "Unsupported parameter: 'max_tokens' is not supported with this model."),
    (400, "the prompt is empty"),
    (404, "The model `gpt-x` does not exist"),
    (401, "tools are not supported"),
    (429, "tools are not supported at this rate"),
    (500, "internal error"),
]


def status_error(status: int, message: str) -> openai.APIStatusError:
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions"))
    kinds = {400: openai.BadRequestError, 404: openai.NotFoundError, 422: openai.UnprocessableEntityError}
    return kinds.get(status, openai.APIStatusError)(message, response=response, body={"message": message})


@pytest.mark.parametrize(("status", "message"), REJECTIONS, ids=lambda value: str(value)[:40])
def test_a_refusal_of_tools_is_recognised(status, message):
    assert is_tools_rejection(status_error(status, message))


@pytest.mark.parametrize(("status", "message"), OTHERS, ids=lambda value: str(value)[:40])
def test_other_errors_are_not(status, message):
    assert not is_tools_rejection(status_error(status, message))


def test_errors_of_our_own_are_not():
    assert not is_tools_rejection(ValueError("tools are not supported"))
    assert not is_tools_rejection(TimeoutError())
