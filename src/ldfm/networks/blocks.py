"""Blocks of a BIF text as they are written, before names are looked up."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ldfm.networks.tokens import Token, TokenReader, fault

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COUNT = re.compile(r"[0-9]{1,9}")


class VariableBlock(NamedTuple):
    """A variable and the names of its values."""

    name: str
    values: tuple[str, ...]
    line: int


class Entry(NamedTuple):
    """Probabilities given the named values of the parents; `given` is empty for `table` and `default`."""

    given: tuple[str, ...]
    probabilities: tuple[float, ...]
    line: int


class ProbabilityBlock(NamedTuple):
    """A variable, its parents, and its probabilities as a whole (`table`) or by rows with a fallback (`default`)."""

    child: str
    parents: tuple[str, ...]
    rows: tuple[Entry, ...]
    table: Entry | None
    default: Entry | None
    line: int


class Document(NamedTuple):
    """All blocks of a text, in their order."""

    source: str
    name: str
    variables: tuple[VariableBlock, ...]
    probabilities: tuple[ProbabilityBlock, ...]


def read_document(text: str, source: str) -> Document:
    """Read the blocks of a BIF text.

    O(characters); blocks do not nest, so neither do the calls.

    Parameters
    ----------
    text
        The whole text.
    source
        What to call the text in errors.

    Returns
    -------
    document
        The blocks. A text without a `network` block is called "unknown", as bnlearn writes it.

    Raises
    ------
    ValueError
        If the text is not BIF or ends too early.
    """
    reader = TokenReader(text, source)
    name = None
    variables = []
    probabilities = []
    while reader.next.kind != "end":
        if reader.next.is_word("variable"):
            variables.append(_read_variable(reader))
        elif reader.next.is_word("probability"):
            probabilities.append(_read_probability(reader))
        elif reader.next.is_word("network") and name is None:
            name = _read_network(reader)
        else:
            raise reader.unexpected("one 'network' block and 'variable' or 'probability' blocks")
    return Document(source, "unknown" if name is None else name, tuple(variables), tuple(probabilities))


def _read_network(reader: TokenReader) -> str:
    reader.take_word("network")
    name = " ".join(token.text for token in reader.take_list("{", separators=""))
    list(_statements(reader))  # nothing but properties, which are skipped
    return name


def _read_variable(reader: TokenReader) -> VariableBlock:
    line = reader.take_word("variable").line
    name = reader.take_name("the name of a variable").text
    reader.take_mark("{")
    values = None
    for keyword in _statements(reader, "type"):
        if values is not None:
            raise fault(reader.source, keyword.line, f"second type of variable {name!r}")
        values = _read_type(reader, name)
    if values is None:
        raise fault(reader.source, line, f"variable {name!r} has no type")
    return VariableBlock(name, values, line)


def _read_type(reader: TokenReader, name: str) -> tuple[str, ...]:
    reader.take_word("discrete")
    reader.take_mark("[")
    count = reader.take()
    if count.kind != "word" or not _COUNT.fullmatch(count.text):
        raise fault(reader.source, count.line, f"expected the number of values of variable {name!r}, saw {count}")
    reader.take_mark("]")
    reader.take_mark("{")
    values = _split_names(reader.take_list("}"), int(count.text))
    if len(values) != int(count.text):
        message = f"variable {name!r} declares {int(count.text)} values, saw {len(values)}: {', '.join(values)}"
        raise fault(reader.source, count.line, message)
    reader.take_mark(";")
    return values


def _read_probability(reader: TokenReader) -> ProbabilityBlock:
    line = reader.take_word("probability").line
    child, parents = _read_family(reader)
    rows: list[Entry] = []
    whole: dict[str, Entry] = {}
    for first in _statements(reader, "(", "table", "default"):
        if first.text == "(":
            rows.append(_read_row(reader, child, len(parents), first.line))
        elif first.text in whole:
            raise fault(reader.source, first.line, f"second {first.text!r} of variable {child!r}")
        else:
            whole[first.text] = Entry((), _read_numbers(reader), first.line)
    return ProbabilityBlock(child, parents, tuple(rows), whole.get("table"), whole.get("default"), line)


def _read_family(reader: TokenReader) -> tuple[str, tuple[str, ...]]:
    reader.take_mark("(")
    child = reader.take_name("the name of a variable").text
    # The format lets separators be left out: the first name is the child, all others are its parents.
    if reader.next.is_mark("|"):
        reader.take()
    parents = tuple(token.text for token in reader.take_list(")") if token.is_name())
    reader.take_mark("{")
    return child, parents


def _read_row(reader: TokenReader, child: str, count: int, line: int) -> Entry:
    given = _split_names(reader.take_list(")"), count)
    if len(given) != count:
        message = f"a row of variable {child!r} needs values for {count} parents, saw {len(given)}: {', '.join(given)}"
        raise fault(reader.source, line, message)
    return Entry(given, _read_numbers(reader), line)


def _read_numbers(reader: TokenReader) -> tuple[float, ...]:
    numbers = []
    for token in reader.take_list(";"):
        if token.is_mark(","):
            continue
        # Not float() alone, which takes `nan` and `0_5` too.
        if token.kind != "word" or not _NUMBER.fullmatch(token.text):
            raise fault(reader.source, token.line, f"expected a number, saw {token}")
        numbers.append(float(token.text))
    return tuple(numbers)


def _statements(reader: TokenReader, *firsts: str) -> Iterator[Token]:
    """Step over the first token of each statement up to the end of a block, skipping properties.

    The caller reads the rest of a statement before it asks for the next.
    """
    while not reader.next.is_mark("}"):
        if reader.next.is_word("property"):
            reader.skip_past(";")
        elif reader.next.kind != "quoted" and reader.next.text in firsts:
            yield reader.take()
        else:
            raise reader.unexpected(" or ".join(map(repr, (*firsts, "property", "}"))))
    reader.take_mark("}")


def _split_names(tokens: list[Token], count: int) -> tuple[str, ...]:
    """Names in a list that should hold `count`.

    Commas separate names, which may hold spaces (`not seen, seen`). A list without commas is one such name if one is
    due, and otherwise a name for every word, since the format lets commas be left out (`"true" "false"`).
    """
    if count != 1 and not any(token.is_mark(",") for token in tokens):
        return tuple(token.text for token in tokens)
    groups: list[list[str]] = [[]]
    for token in tokens:
        if token.is_mark(","):
            groups.append([])
        else:
            groups[-1].append(token.text)
    return tuple(" ".join(group) for group in groups if group)
