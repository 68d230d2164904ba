"""Words that turn a statement around, or take something out of it: one among many decides what a sentence says."""

from __future__ import annotations

_NEGATION_TEXT = """
no not never without cannot t nicht kein keine keiner keinen keinem keines nie ohne pas sans jamais sin nunca
не нет ни без لا ليس 不 没 沒 無 无 未 非 勿 禁
"""
NEGATION_WORDS = frozenset(_NEGATION_TEXT.split())
"""`t` is the end of "isn't" where words are cut at the apostrophe."""

_EXCEPTION_TEXT = "except unless ausser sauf salvo кроме غير 除"
EXCEPTION_WORDS = frozenset(_EXCEPTION_TEXT.split())
