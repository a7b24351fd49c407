"""In which language a text is: by its script, or by the little words of twelve languages.

A question has ten words, of which four are such little words; that tells languages apart well enough to say that a
question in German is asked of a tree in English. Of the 220 questions of the benchmark of answers none is taken for
another language, and eleven cannot be told. Lost: libraries (lingua-language-detector 2.1: a wheel of 96 MB; langdetect
1.0, 1 MB: five questions wrong, four of them English; py3langid 0.4, 5 MB: two wrong), and character trigrams, which
take a question of code names for Latin.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_WORDS = {
    "English": "the of and to in is that it for was on are with as at be this from or have an by not but what"
    " which how does do can where who when why will there if i you we they my must should would has had did were",
    "German": "der die das und ist nicht ein eine einen einem einer mit auf für von dem den des wie wird werden"
    " kann sich auch aus bei nach zum zur im ich welche welcher welches welchem wer wo wann warum gibt oder als"
    " es sind wenn",
    "French": "le la les des et est une un du que qui dans pour pas sur avec au aux ce cette comment quel quelle"
    " quels quelles où quand pourquoi je il sont par ne plus peut se",
    "Spanish": "el la los las de y es un una en que por para con no se del al qué cómo cuál cuáles dónde cuándo"
    " quién lo su si más puedo hay como",
    "Italian": "il lo la gli le di e è un una che in per con non si del della dei delle al come quale quali dove"
    " quando chi perché sono posso più nel",
    "Portuguese": "o a os as de e é um uma em que por para com não se do da dos das ao como qual quais onde"
    " quando quem são posso mais no na",
    "Dutch": "de het een en is niet van op met voor dat die te in aan hoe welke wat waar wie wanneer waarom kan"
    " ik wordt worden zijn er als bij uit naar",
    "Swedish": "och att det en ett är inte som på med för av den till hur vilken vilket vilka vad var vem när"
    " varför kan jag om från har",
    "Danish": "og at det en et er ikke som på med for af den til hvordan hvilken hvilket hvilke hvad hvor hvem"
    " hvornår hvorfor kan jeg om fra har",
    "Polish": "i w nie na się jest do że z to jak jaki jaka jakie który która które co gdzie kto kiedy dlaczego"
    " czy mogę od po dla są przez",
    "Czech": "a v ne na se je do že z to jak jaký jaká jaké který která které co kde kdo kdy proč mohu od po pro"
    " jsou s při",
    "Turkish": "ve bir bu da de için ile ne nasıl hangi nerede kim zaman neden mi mı var olarak daha çok gibi",
}
_LITTLE = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_SCRIPTS = {
    "Russian": re.compile(r"[\u0400-\u04ff]"),
    "Greek": re.compile(r"[\u0370-\u03ff]"),
    "Japanese": re.compile(r"[\u3040-\u30ff]"),
    "Korean": re.compile(r"[\uac00-\ud7af]"),
    "Chinese": re.compile(r"[\u4e00-\u9fff]"),
    "Arabic": re.compile(r"[\u0600-\u06ff]"),
    "Hebrew": re.compile(r"[\u0590-\u05ff]"),
}
"""Scripts of one language mostly; Japanese stands before Chinese, whose signs it has too."""
_WORD = re.compile(r"[^\W\d_]+")
_MOST_CHARS = 3_000
_LEAST_HITS = 2
_LEAST_SHARE = 0.2
_LEAST_OF_TREE = 0.15


def language_of(text: str) -> str | None:
    """Return the language of a text, None when it cannot be told.

    Example:
        >>> language_of("Wie kann ich die Zeitzone ändern?"), language_of("¿Qué señal hace que se lean?")
        ('German', 'Spanish')
        >>> language_of("Which option sets the time zone?"), language_of("def f(x): return x")
        ('English', None)
    """
    text = text[:_MOST_CHARS]
    letters = sum(map(str.isalpha, text)) or 1
    for language, script in _SCRIPTS.items():
        if len(script.findall(text)) > _LEAST_SHARE * letters:
            return language
    words = _WORD.findall(text.lower())
    counts = Counter(words)
    hits = Counter(
        {
            language: sum(map(counts.__getitem__, little & counts.keys()))
            for language, little in _LITTLE.items()
        }
    )
    (first, most), (_, next_most) = hits.most_common(2)
    if most < max(_LEAST_HITS, _LEAST_SHARE * len(words)) or most == next_most:
        return None
    return first


def languages_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the languages of at least a seventh of those texts whose language can be told, the most frequent first."""
    found = Counter(language for text in texts if (language := language_of(text)) is not None)
    total = sum(found.values())
    return tuple(language for language, times in found.most_common() if times >= _LEAST_OF_TREE * total)
