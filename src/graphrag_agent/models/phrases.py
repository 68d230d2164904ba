"""The few sentences that the package says in its own words, in the reader's language.

The extractive model's, and the loop's where a model gives no answer.
"""

from __future__ import annotations

from typing import Literal, cast, get_args

from graphrag_agent.models.words import Language, detect_language

Phrase = Literal[
    "introduction",
    "not_found",
    "not_given",
    "failed",
    "unwritten",
    "unwritten_found",
    "unwritten_not_found",
    "declined",
    "declined_because",
]

_PHRASES: dict[Language, dict[Phrase, str]] = {
    "en": {
        "introduction": "I am the offline extractive model: I quote documents, I don't write. Ask me about them.",
        "not_found": "Nothing was found in the documents for: {query}",
        "not_given": "I was given nothing from the documents that I could quote for: {query}",
        "failed": "The search failed, so there is no answer for: {query} ({reason})",
        "unwritten": "No answer could be written: {reason}.",
        "unwritten_found": "No answer could be written: {reason}. These passages were found:",
        "unwritten_not_found": "No answer could be written: {reason}. Nothing was found in the documents.",
        "declined": "The model declined to answer this question.",
        "declined_because": "The model declined to answer: {said}",
    },
    "zh": {
        "introduction": "我是离线摘录模型：我只引用文档，不自己写作。请就文档内容提问。",
        "not_found": "文档中没有找到相关内容：{query}",
        "not_given": "没有可供引用的文档内容：{query}",
        "failed": "检索失败，无法回答：{query}（{reason}）",
        "unwritten": "未能写出回答（{reason}）。",
        "unwritten_found": "未能写出回答（{reason}）。找到了以下段落：",
        "unwritten_not_found": "未能写出回答（{reason}）。文档中没有找到相关内容。",
        "declined": "模型拒绝回答这个问题。",
        "declined_because": "模型拒绝回答：{said}",
    },
    "ru": {
        "introduction": "Я офлайновая модель: цитирую документы, сама ничего не сочиняю. Спросите о документах.",
        "not_found": "В документах ничего не найдено по запросу: {query}",
        "not_given": "У меня нет ничего из документов, что можно процитировать в ответ на: {query}",
        "failed": "Поиск не удался, поэтому ответа нет: {query} ({reason})",
        "unwritten": "Ответ написать не удалось ({reason}).",
        "unwritten_found": "Ответ написать не удалось ({reason}). Найдены такие отрывки:",
        "unwritten_not_found": "Ответ написать не удалось ({reason}). В документах ничего не найдено.",
        "declined": "Модель отказалась отвечать на этот вопрос.",
        "declined_because": "Модель отказалась отвечать: {said}",
    },
}


def reader_language(locale: str | None, question: str) -> Language:
    """That of the locale where these sentences are written in it, else English; without a locale the question's."""
    if locale is None:
        return detect_language(question)
    named = locale.partition("-")[0]
    return cast(Language, named) if named in get_args(Language) else "en"


def render_phrase(phrase: Phrase, *, language: Language, **values: str) -> str:
    """The phrase in the language, with the values filled in."""
    return _PHRASES[language][phrase].format(**values)
