"""Which language a text is in, from its script and its commonest words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

#: Commonest words of each language, without those that are content words of another.
FUNCTION_WORDS = {
    "en": "the of and to in is that for it with as was on by are this from at which be or have "
    "has not they their you your were an its can also but more will would so my me we our just",
    "de": "der die das und ist nicht mit den von zu ein eine einer eines dem auf für sich auch als "
    "wird wurde sind bei nach im dass werden ich oder durch über zum zur noch kann aber",
    "fr": "le la les des et est une un dans pour que qui sur au aux avec plus ne pas par ce cette "
    "du de sont été se son sa ses nous vous mais ou leur il elle",
    "es": "el la los las y en de que un una es por con para del se al como más su fue está son lo "
    "no pero sus le ha este esta entre cuando también",
    "it": "il la le gli di che e un una per con del della dei delle è sono non nel nella alla al "
    "da come più si anche ma questo questa ha stato lo dal",
    "pt": "o os as um uma de que e do da dos das em no na para com por não é mais como ao foi são "
    "sua seu mas ou também pela pelo está",
    "nl": "de het een en van is dat op te zijn voor met niet aan er om ook als bij door maar naar "
    "wordt werd deze hun kan heeft uit",
    "sv": "och att det en ett som på är för av med till den har inte om var kan från men så de vid "
    "också eller",
    "da": "og at det en et som på er for af med til den har ikke om var kan fra men de ved også "
    "eller blev",
    "pl": "i w na z do się jest nie to że o jak przez od dla są oraz po ale jego który która być "
    "za tym",
    "tr": "ve bir bu da de için ile olarak olan çok daha gibi en ne kadar sonra var ancak olduğu",
    "id": "yang dan di dari untuk dengan pada ini itu dalam adalah ke tidak akan oleh juga sebagai "
    "atau telah",
    "vi": "và của là có trong được cho một các những với không đã này để người từ khi",
    "fi": "ja on ei että se oli ovat mutta myös kuin hän joka sen kun tai ole",
    "cs": "a se v na je že s z do o to jako pro by k jsou ale také který nebo",
    "ro": "și în de la cu un o pe că nu este sunt din pentru mai care al ale au fost prin",
    "hu": "a az és hogy nem egy is de van volt meg csak mint ez már vagy",
    "ru": "и в не на что он с как это по но из у за от к то его для была был так также или",
    "uk": "і в не на що він з як це по але та у за від до його для була був так також або",
}  # fmt: skip
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_language)

_SCRIPT_LETTERS = {
    name: re.compile(f"[{span}]")
    for name, span in {
        "Latin": "a-zà-öø-ÿ\u0100-\u024f\u1e00-\u1eff",
        "Cyrillic": "\u0400-\u052f",
        "Greek": "\u0370-\u03ff",
        "Arabic": "\u0600-\u06ff\u0750-\u077f",
        "Hebrew": "\u0590-\u05ff",
        "Devanagari": "\u0900-\u097f",
        "Bengali": "\u0980-\u09ff",
        "Tamil": "\u0b80-\u0bff",
        "Thai": "\u0e00-\u0e7f",
        "ko": "\uac00-\ud7af\u1100-\u11ff",
        "ja": "\u3040-\u30ff",
        "zh": "\u4e00-\u9fff\u3400-\u4dbf",
    }.items()
}
_ASCII = re.compile(r"[\x00-\x7f“”‘’–—…]*")
_MIN_WORDS = 8
_MIN_SHARE = 0.12
_MIN_LEAD = 1.5


def language_of(text: str, words: Sequence[str]) -> str:
    """Name the language of a text, or "" where it cannot be told.

    Japanese, Chinese and Korean are told by script. In Latin and Cyrillic the language is the one
    to which most function words belong: at least 12 % of all words (running text has 30–50 %,
    other languages' share of the same words is below 10 %) and half as many again as of the next.
    For other scripts the script's own name stands for the language. Texts of fewer than 8 words
    in Latin or Cyrillic are not told apart.

    Parameters
    ----------
    text : str
    words : sequence of str
        Its words, lower-cased.

    Returns
    -------
    str
        Two-letter code, a script ("Arabic"), or "" (too short, or a language without a list).
    """
    script = _script(text)
    if script not in ("Latin", "Cyrillic"):
        return script
    counts = Counter(language for word in words for language in _LANGUAGES_OF.get(word, ()))
    if len(words) < _MIN_WORDS or not counts:
        return ""
    (best, hits), *rest = counts.most_common(2)
    if hits < _MIN_SHARE * len(words) or (rest and hits < _MIN_LEAD * rest[0][1]):
        return ""
    return best


def _script(text: str) -> str:
    if _ASCII.fullmatch(text):
        return "Latin"
    lowered = text.lower()
    counts = {name: len(letters.findall(lowered)) for name, letters in _SCRIPT_LETTERS.items()}
    # Japanese mixes kana with Chinese characters; Chinese has no kana.
    if counts["ja"] * 10 >= counts["zh"] > 0:
        counts["ja"] += counts["zh"]
    # A Chinese character stands for two or three letters.
    counts["zh"] *= 2
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""


_NAMES = {
    "en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian",
    "pt": "portuguese", "nl": "dutch", "sv": "swedish", "da": "danish", "pl": "polish",
    "tr": "turkish", "id": "indonesian", "vi": "vietnamese", "fi": "finnish", "cs": "czech",
    "ro": "romanian", "hu": "hungarian", "ru": "russian", "uk": "ukrainian", "ko": "korean",
    "ja": "japanese", "zh": "chinese",
}  # fmt: skip
_SAMPLE = 400  # texts looked at: shares to about 5 points
_WORD = re.compile(r"\w+")


def main_language(texts: Sequence[str]) -> tuple[str, float]:
    """Return the commonest language of some texts, and the share of texts in it.

    Up to 400 texts, evenly spaced, are looked at.

    Parameters
    ----------
    texts : sequence of str

    Returns
    -------
    language : str
        Lower-case English name ("german"), a script where several languages share it ("Arabic"),
        or "" where none could be told.
    share : float
        Of the texts looked at, in [0, 1].

    Examples
    --------
    >>> main_language(["Das ist ein Satz, der mit den anderen nicht viel zu tun hat."] * 3)
    ('german', 1.0)
    """
    looked_at = [text[:2_000] for text in texts[:: max(1, len(texts) // _SAMPLE)]]
    counts = Counter(language_of(text, _WORD.findall(text.lower())) for text in looked_at)
    counts.pop("", None)
    if not counts:
        return "", 0.0
    (code, n), *_ = counts.most_common(1)
    return _NAMES.get(code, code), n / len(looked_at)
