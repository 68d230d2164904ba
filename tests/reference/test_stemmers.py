"""PyStemmer, which snowballstemmer uses where it is installed, must give the stems of the pure-Python stemmers.

Else a knowledge base that was written with one would be searched with the terms of the other.
"""

from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_agent.retrieval.tokenizer import _STEMMERS

fast = pytest.importorskip("Stemmer", reason="PyStemmer is not installed")

LETTERS = {
    "english": "abcdefghijklmnopqrstuvwxyz",
    "russian": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "greek": "αβγδεζηθικλμνξοπρσςτυφχψωάέίόύ",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "armenian": "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփք",
    "hindi": "कखगघचछजझटठडढतथदधनपफबभमयरलवशसहािीुूेैोौ्ं",
    "tamil": "கஙசஞடணதநபமயரலவழளறனாிீுூெேைொோௌ்",
}


@pytest.mark.parametrize("language", [language for _, language in _STEMMERS])
def test_the_stems_are_those_of_the_pure_stemmers(language: str) -> None:
    module = import_module(f"snowballstemmer.{language}_stemmer")
    pure = getattr(module, f"{language.capitalize()}Stemmer")()
    quick = fast.Stemmer(language)

    @settings(max_examples=400, deadline=None)
    @given(st.text(alphabet=LETTERS[language], min_size=1, max_size=14))
    def compare(word: str) -> None:
        assert quick.stemWord(word) == pure.stemWord(word)

    compare()
