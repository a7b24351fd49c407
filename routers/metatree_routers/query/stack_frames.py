"""Frames of stack traces, as the runtimes of many languages write them: which file each names, the innermost first.

Most write a path and a line in one of a few shapes: `app.js:12:5`, `app.php(12)`, `app.php on line 12`,
`App.cs:line 12`. Two say more: Python has the innermost frame last, and Java gives a bare file name behind the names of
the package and the class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

CODE_SUFFIXES = (
    "pyi? pyx pxd jsx? mjs cjs tsx? mts cts vue svelte java kts? scala groovy cljs? cljc go rs zig"
    " c cc cpp cxx h hh hpp hxx inl m mm cs fs vb rb rake php swift dart exs? erl hrl hs ml mli nim"
    " lua pl pm jl sh bash zsh ps1 sql scss sass less proto graphql"
).replace(" ", "|")
"""Suffixes of source code, as alternatives of a regular expression."""

_PYTHON = re.compile(r'File "([^"\n]+\.py)", line \d+|^[ \t]*(\S+\.py):\d+: ', re.MULTILINE)
_JAVA = re.compile(
    r"\bat (?:[\w.-]*(?:@[\w.-]*)?/)*((?:\w+\.)*)[\w$]+\.[\w$<>-]+\((\w+\.(?:java|kt|scala|groovy)):\d+\)"
)
_OTHER = re.compile(
    rf"(?<![\w@$.~+/\\-])((?:[A-Za-z]:)?[\w@$.~+/\\-]*[\w-]\.(?!py)(?:{CODE_SUFFIXES}))"
    r"(?:(?:\?[\w=&.%-]{1,200})?:(?:line )?\d|\(\d+[,)]|\"?,? (?:on )?line \d)"
)
_CAUSE = "\nCaused by: "
"""Java tells what an exception was thrown for behind it: the last of these is where it began."""
_IS_PYTHON = re.compile(r'^\W*File "[^"]+", line \d+|^\S+\.py:\d+: ')
_IS_OTHER = re.compile(
    r"""
    \s* (?:
        at [ ] (?: (?: async | new | [\w.$]+\.[gs]et | [gs]et ) [ ] )? [\w.$<>\[\]@/:~*-]+ (?: [ ] \[as [ ] \w+\] )?
            [ ]? \( [^()]* (?: :\d+ | index [ ] \d+ | <anonymous> | native | Native [ ] Method | Unknown [ ] Source )
            \) .*  # V8, Java
      | at [ ] (?: [\w`<>\[\]]+ \.{1,2} )+ [\w`<>\[\]]+ \( [^()]* \) (?: [ ] in [ ] .+ )?  # C#
      | at [ ] (?! \d+:\d+ ) (?: [a-z-]+:// [^\s()]+ | (?: [A-Za-z]: )? [\w./\\@$~-]+ )
            : \d+ (?: : \d+ )? \s*  # V8, Rust
      | [\w$./<>*\[\]-]* @ [a-z-]+:// \S+ : \d+ : \d+  # Firefox, Safari
      | \.\.\. [ ] \d+ [ ] (?: more | common [ ] frames ) .*  # Java
      | (?: \d+: [ ] )? (?: from [ ] )? \S+ : \d+ :in [ ] [`'] [^`']* '  # Ruby
      | \S+ \.go : \d+ (?: [ ] \+0x[0-9a-f]+ | [ ] \(0x[0-9a-f]+\) )? \s* | goroutine [ ] \d+ [ ] \[ .*  # Go
      | created [ ] by [ ] \S+ \. \S+ (?: [ ] in [ ] goroutine [ ] .* )?
      | \d+: \s++ (?: 0x[0-9a-f]+ [ ] - [ ] )? (?: < .* :: .* | [\w{}$]+ :: (?: \S+ | [^<]* < .* ) )  # Rust
      | \# \d+ \s++ (?: 0x[0-9a-f]+ [ ] in [ ] | \S+ \(\d+\): | \[internal [ ] function\]: | \{main\}
            | .* \) [ ] at [ ] \S+ : \d+ | \S+ [ ]+ \( (?: package | file | dart ) : ) .*  # gdb, PHP, Dart
      | ==\d+== \s++ (?: at | by ) [ ] 0x[0-9A-F]+: [ ] .*  # Valgrind
      | \( \w+ (?: [ ] [\d.]+ )? \) [ ] \S+ \.exs? : \d+ : .*  # Elixir
      | \S+ \.lua : \d+ : [ ] in [ ] .*  # Lua
    )
    """,
    re.VERBOSE,
)


def is_python_frame(line: str) -> bool:
    """Say whether a line of a text is a frame of a Python traceback, whose source follows on the next line."""
    return bool(_IS_PYTHON.match(line))


def is_frame(line: str) -> bool:
    """Say whether a line of a text is a frame of a stack trace in another language than Python, and nothing else.

    Example:
        >>> is_frame("    at Gson.fromJson(Gson.java:816)"), is_frame("at noon (or later) it fails: see below")
        (True, False)
    """
    return bool(_IS_OTHER.fullmatch(line))


def frames(text: str) -> Iterator[str]:
    """Yield the path that each frame in a text names, the innermost frames first.

    Example:
        >>> list(frames('File "a.py", line 1, in f\\nFile "b.py", line 2, in g'))
        ['b.py', 'a.py']
        >>> list(frames("at com.acme.Till.pay(Till.java:12)")), list(frames("at pay (/app/lib/till.js:12:5)"))
        (['com/acme/Till.java'], ['/app/lib/till.js'])
    """
    for match in reversed(list(_PYTHON.finditer(text))):
        yield match.group(1) or match.group(2)
    outer, caused, inner = text.rpartition(_CAUSE)
    yield from _others(inner)
    if caused:
        yield from _others(outer)


def _others(text: str) -> Iterator[str]:
    packaged = {match.start(2): match.group(1).replace(".", "/") for match in _JAVA.finditer(text)}
    for match in _OTHER.finditer(text):
        yield packaged.get(match.start(1), "") + match.group(1)
