"""Words and marks of a BIF text, each with its line."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

# Every character starts exactly one of these, and none of them nests a repeat, so a text is read in linear time.
# Comments open between words only: `Asy/Patch` and `http://a.org` are words. `open` is what nothing closes.
_TOKEN = re.compile(
    r"""
      (?P<skip>   \s+ | //[^\n]* | /\*(?s:.)*?\*/ )
    | (?P<quoted> "(?:[^"\\\n]|\\.)*" )
    | (?P<open>   " | /\* )
    | (?P<mark>   [{}()\[\];,|] )
    | (?P<word>   [^\s{}()\[\];,|]+ )
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r'\\(["\\])')
_SHOWN_CHARACTERS = 40


class Token(NamedTuple):
    """One word, quoted name or mark of a text; `end` follows the last."""

    kind: Literal["word", "quoted", "mark", "end"]
    text: str
    line: int

    def is_mark(self, marks: str) -> bool:
        """Whether this is one of the marks."""
        return self.kind == "mark" and self.text in marks

    def is_word(self, word: str) -> bool:
        """Whether this is the keyword."""
        return self.kind == "word" and self.text == word

    def is_name(self) -> bool:
        """Whether this can name a variable or a value, or be a number."""
        return self.kind in ("word", "quoted")

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the file"
        return repr(self.text if len(self.text) <= _SHOWN_CHARACTERS else self.text[:_SHOWN_CHARACTERS] + "...")


def fault(source: str, line: int, message: str) -> ValueError:
    """Say what is wrong on a line of a file; to be raised by the caller."""
    return ValueError(f"{source}, line {line}: {message}")


class TokenReader:
    """Takes the tokens of a text one after another."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self._tokens = _tokens(text, source)
        self.next = next(self._tokens)

    def take(self) -> Token:
        """Step over the next token."""
        taken = self.next
        if taken.kind != "end":
            self.next = next(self._tokens)
        return taken

    def take_mark(self, mark: str) -> Token:
        """Step over a mark that must come next."""
        if not self.next.is_mark(mark):
            raise self.unexpected(repr(mark))
        return self.take()

    def take_word(self, word: str) -> Token:
        """Step over a keyword that must come next."""
        if not self.next.is_word(word):
            raise self.unexpected(repr(word))
        return self.take()

    def take_name(self, what: str) -> Token:
        """Step over a word or a quoted name that must come next."""
        if not self.next.is_name():
            raise self.unexpected(what)
        return self.take()

    def take_list(self, end: str, separators: str = ",") -> list[Token]:
        """Step over words, quoted names and separators, and the end mark after them; returns all but the end."""
        taken = []
        while self.next.is_name() or self.next.is_mark(separators):
            taken.append(self.take())
        self.take_mark(end)
        return taken

    def skip_past(self, end: str) -> None:
        """Step over everything up to and with the end mark."""
        while not self.next.is_mark(end):
            if self.next.kind == "end":
                raise self.unexpected(repr(end))
            self.take()
        self.take()

    def unexpected(self, expected: str) -> ValueError:
        """Say that something else was expected than the next token."""
        return fault(self.source, self.next.line, f"expected {expected}, saw {self.next}")


def _tokens(text: str, source: str) -> Iterator[Token]:
    line = 1
    for found in _TOKEN.finditer(text):
        part = found.group()
        match found.lastgroup:
            case "mark":
                yield Token("mark", part, line)
            case "word":
                yield Token("word", part, line)
            case "quoted":
                yield Token("quoted", _ESCAPE.sub(r"\1", part[1:-1]), line)
            case "open":
                raise fault(source, line, f"{part} is never closed")
            case _:
                line += part.count("\n")
    yield Token("end", "", line)
