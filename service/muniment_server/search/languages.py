"""Chooses the stemmer for an item's words.

The language is guessed for each item, from script and stop words; the language of the agent, if stated, overrides the
guess. A wrong guess does little harm: grams match what a wrong stemmer misses.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from types import MappingProxyType

STEMMERS = MappingProxyType(
    {
        "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english",
        "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
        "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "nb": "norwegian",
        "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pt": "portuguese", "ro": "romanian",
        "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
    }
)  # fmt: skip
"""The text search configuration of Postgres 15 for each language. Other languages use `simple`, which does not stem."""
SIMPLE = "simple"

_SCRIPTS = {
    "TAMIL": "tamil", "DEVANAGARI": "hindi", "ARABIC": "arabic", "GREEK": "greek", "CYRILLIC": "russian",
    "ARMENIAN": "armenian", "HEBREW": SIMPLE, "LATIN": "english",
}  # fmt: skip
"""The language of most texts in each script. For Latin, stop words decide, and English is the default."""
_NOT_ARABIC = re.compile("[\u067e\u0686\u06af\u06cc\u06a9\u0679\u0688\u06d2]")
"""Letters of Persian and Urdu that Arabic does not have."""
_VIETNAMESE = re.compile("[ăđơưạ-ỹ]")
_STOP_WORDS = {
    "english": "the and of to is was in that it for you with on are this be have what i my we he she not his her as at",
    "german": "der die das und ist nicht ein eine zu den mit von im auf für ich wir sie er wie was dem des auch sich",
    "french": "le la les des et est une un dans que qui pour pas sur je il elle nous vous du au avec ce quel sont",
    "spanish": "el la los las y es una un que de en por con para no se su qué lo del como está fue cuál mi al son",
    "portuguese": "o a os as e é uma um que de em por com para não se do da no na qual como foi são eu ao mais meu",
    "italian": "il lo la gli e è una un che di in per con non si del della le sono come qual era mi al nel ha quale",
    "dutch": "de het een en van is niet dat in op te met voor zijn ik wij hij zij wat was aan er ook naar welke mijn",
    "swedish": "och att det som en ett är inte på för med av jag du han hon vi vad den var till från har om min",
    "danish": "og at det som en et er ikke på for med af jeg du han hun vi hvad den var til fra har om min hvor blev",
    "norwegian": "og å det som en et er ikke på for med av jeg du han hun vi hva den var til fra har om min hvor ble",
    "finnish": "ja on ei se että oli hän minä mutta kun myös ovat mikä joka ole tai olen sen niin kuin mitä missä",
    "hungarian": "a az és hogy nem is egy van volt meg de ez mi ki azt mint csak már lesz mit milyen hol az én",
    "romanian": "și de la în nu este o un pe cu că a fost care din mai sunt ce pentru sau al ale cine cum când eu",
    "turkish": "ve bir bu da de için ile ne mi çok daha olan olarak var değil ben sen o kadar gibi hangi nedir kaç idi",
    "catalan": "el la els les i és una un que de en per amb no es del com està va ser què són meu als pel quin",
    "indonesian": "yang dan di ke dari ini itu dengan untuk tidak adalah pada saya kamu dia akan ada apa juga oleh",
}
_LANGUAGES_OF = {
    word: [language for language, words in _STOP_WORDS.items() if word in words.split()]
    for word in " ".join(_STOP_WORDS.values()).split()
}
_SAMPLE_CHARS = 2000
"""How many code points of a text are examined."""


def stemmer(text: str) -> str:
    """The text search configuration for *text*: by script, and for Latin by stop words."""
    sample = text[:_SAMPLE_CHARS].lower()
    script = _script(sample)
    if script == "LATIN":
        return _latin(sample)
    if script == "ARABIC" and _NOT_ARABIC.search(sample):
        return SIMPLE
    return _SCRIPTS.get(script, SIMPLE)


def stop_words(text: str) -> frozenset[str]:
    """The stop words of the language of *text*."""
    return frozenset(_STOP_WORDS.get(stemmer(text), "").split())


def _script(text: str) -> str:
    """The script of most letters of *text*: the first word of their Unicode names."""
    if text.isascii():
        return "LATIN"
    scripts = Counter[str]()
    for character, count in Counter(text).items():
        if character.isalpha():
            scripts[unicodedata.name(character, "").partition(" ")[0]] += count
    return max(scripts, key=lambda script: (scripts[script], script), default="LATIN")


def _latin(text: str) -> str:
    if _VIETNAMESE.search(text):
        return SIMPLE
    spelled = re.findall(r"[^\W\d_]+", text)
    votes = Counter[str]()
    for word in spelled:
        for language in _LANGUAGES_OF.get(word, ()):
            votes[language] += 1
    best = max(votes, key=lambda language: (votes[language], language == "english", language), default="english")
    return best if votes[best] >= min(2, len(spelled) / 4) else "english"
