"""The few sentences that the extractive model says in its own words, in the question's language."""

from __future__ import annotations

from typing import Literal

from graphrag_agent.models.words import Language

Phrase = Literal["introduction", "not_found", "not_searched", "failed"]

_PHRASES: dict[Language, dict[Phrase, str]] = {
    "en": {
        "introduction": "I am the offline extractive model: I quote documents, I don't write. Ask me about them.",
        "not_found": "Nothing was found in the documents for: {query}",
        "not_searched": "No documents were searched, and I can only quote documents; no answer for: {query}",
        "failed": "The search failed, so there is no answer for: {query} ({reason})",
    },
    "zh": {
        "introduction": "我是离线摘录模型：我只引用文档，不自己写作。请就文档内容提问。",
        "not_found": "文档中没有找到相关内容：{query}",
        "not_searched": "没有检索任何文档，而我只能引用文档，无法回答：{query}",
        "failed": "检索失败，无法回答：{query}（{reason}）",
    },
    "ru": {
        "introduction": "Я офлайновая модель: цитирую документы, сама ничего не сочиняю. Спросите о документах.",
        "not_found": "В документах ничего не найдено по запросу: {query}",
        "not_searched": "Поиск по документам не выполнялся, а я умею только цитировать; нет ответа на: {query}",
        "failed": "Поиск не удался, поэтому ответа нет: {query} ({reason})",
    },
}


def render_phrase(phrase: Phrase, *, language: Language, **values: str) -> str:
    """The phrase in the language, with the values filled in."""
    return _PHRASES[language][phrase].format(**values)
