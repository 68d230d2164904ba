"""The few sentences that the extractive model says in its own words, in the question's language."""

from __future__ import annotations

from typing import Literal

from graphrag_agent.models.words import Language

Phrase = Literal["introduction", "not_found", "not_given", "failed"]

_PHRASES: dict[Language, dict[Phrase, str]] = {
    "en": {
        "introduction": "I am the offline extractive model: I quote documents, I don't write. Ask me about them.",
        "not_found": "Nothing was found in the documents for: {query}",
        "not_given": "I was given nothing from the documents that I could quote for: {query}",
        "failed": "The search failed, so there is no answer for: {query} ({reason})",
    },
    "zh": {
        "introduction": "我是离线摘录模型：我只引用文档，不自己写作。请就文档内容提问。",
        "not_found": "文档中没有找到相关内容：{query}",
        "not_given": "没有可供引用的文档内容：{query}",
        "failed": "检索失败，无法回答：{query}（{reason}）",
    },
    "ru": {
        "introduction": "Я офлайновая модель: цитирую документы, сама ничего не сочиняю. Спросите о документах.",
        "not_found": "В документах ничего не найдено по запросу: {query}",
        "not_given": "У меня нет ничего из документов, что можно процитировать в ответ на: {query}",
        "failed": "Поиск не удался, поэтому ответа нет: {query} ({reason})",
    },
}


def render_phrase(phrase: Phrase, *, language: Language, **values: str) -> str:
    """The phrase in the language, with the values filled in."""
    return _PHRASES[language][phrase].format(**values)
