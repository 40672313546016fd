"""Reading networks in the Bayesian Interchange Format (BIF)."""

import gzip
import math
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np

from ldfm.networks.blocks import Document, Entry, ProbabilityBlock, VariableBlock, read_document
from ldfm.networks.graph import describe_cycle, find_cycle
from ldfm.networks.network import Network
from ldfm.networks.tokens import fault
from ldfm.types import Codes, Floats

# Files hold rounded decimals: a row this close to 1 is renormalised, one further away is an error.
ROW_TOLERANCE = 1e-3
# A file of a few lines can ask for a table without end by way of `default`.
MAX_TABLE_NUMBERS = 1 << 26
MAX_PARENTS = 63
_GZIP_START = b"\x1f\x8b"


def read_bif(path: str | Path) -> Network:
    """Read a network from a BIF file, plain or compressed by gzip.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    network
        The network; see `parse_bif`.

    Raises
    ------
    ValueError
        If the file does not hold a complete network, naming the file and the line.
    """
    data = Path(path).read_bytes()
    if data.startswith(_GZIP_START):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path}: truncated or damaged gzip file: {error}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise fault(str(path), line, f"expected UTF-8 text, saw byte 0x{data[error.start]:02x}") from error
    return parse_bif(text, source=str(path))


def parse_bif(text: str, source: str = "<text>") -> Network:
    r"""Read a network from BIF text.

    Blocks and rows may come in any order. Variables keep the order of their `variable` blocks and parents that of
    their `probability` block. Value names with spaces may be quoted or not; other names with spaces, and names with any
    of ``{}()[];,|``, must be quoted, and ``\"`` and ``\\`` in quotes stand for ``"`` and ``\``. A `table` with
    parents counts through the child and then its parents, the last the fastest. Properties and comments are skipped.

    Parameters
    ----------
    text
        The whole text.
    source
        What to call the text in errors, such as the name of its file.

    Returns
    -------
    network
        The network, with every row of its tables renormalised.

    Raises
    ------
    ValueError
        If the text does not hold a complete network, naming the source and the line. Rows of probabilities must sum to
        1 within 0.001.
    """
    document = read_document(text, source)
    variables = _index_variables(document)
    blocks = _blocks_in_order(document, variables)
    parents = tuple(_parent_indices(document, block, variables) for block in blocks)
    _check_acyclic(document, blocks, parents)
    tables = []
    for block, of_child, declared in zip(blocks, parents, document.variables, strict=True):
        declared_parents = [document.variables[parent] for parent in of_child]
        tables.append(_build_table(source, block, declared_parents, len(declared.values)))
    values = tuple(declared.values for declared in document.variables)
    return Network(document.name, tuple(variables), values, parents, tuple(tables))


def _index_variables(document: Document) -> dict[str, int]:
    if not document.variables:
        raise fault(document.source, 1, "expected at least one variable, saw none; is the file truncated?")
    indices: dict[str, int] = {}
    for name, values, line in document.variables:
        if name in indices:
            first = document.variables[indices[name]].line
            raise fault(document.source, line, f"duplicate variable {name!r}, first declared on line {first}")
        if not values:
            raise fault(document.source, line, f"variable {name!r} has no values")
        if repeated := _repeated(values):
            raise fault(document.source, line, f"duplicate value {repeated[0]!r} of variable {name!r}")
        indices[name] = len(indices)
    return indices


def _blocks_in_order(document: Document, variables: dict[str, int]) -> list[ProbabilityBlock]:
    """Find the probability block of every variable."""
    found: dict[str, ProbabilityBlock] = {}
    for block in document.probabilities:
        if block.child not in variables:
            raise fault(document.source, block.line, f"probability of unknown variable {block.child!r}")
        if block.child in found:
            first = found[block.child].line
            message = f"duplicate probability of variable {block.child!r}, first given on line {first}"
            raise fault(document.source, block.line, message)
        found[block.child] = block
    for name, _, line in document.variables:
        if name not in found:
            raise fault(document.source, line, f"variable {name!r} has no probability block; is the file truncated?")
    return [found[name] for name in variables]


def _parent_indices(document: Document, block: ProbabilityBlock, variables: dict[str, int]) -> tuple[int, ...]:
    for name in block.parents:
        if name not in variables:
            raise fault(document.source, block.line, f"unknown parent {name!r} of variable {block.child!r}")
    if repeated := _repeated(block.parents):
        raise fault(document.source, block.line, f"duplicate parent {repeated[0]!r} of variable {block.child!r}")
    return tuple(variables[name] for name in block.parents)


def _repeated(names: tuple[str, ...]) -> list[str]:
    return [name for name, following in pairwise(sorted(names)) if name == following]


def _check_acyclic(document: Document, blocks: list[ProbabilityBlock], parents: tuple[tuple[int, ...], ...]) -> None:
    if cycle := find_cycle(parents):
        message = describe_cycle([blocks[variable].child for variable in cycle])
        raise fault(document.source, blocks[cycle[0]].line, message)


def _build_table(source: str, block: ProbabilityBlock, parents: list[VariableBlock], count: int) -> Floats:
    """Fill the table of a child with `count` values."""
    shape = (*(len(parent.values) for parent in parents), count)
    if len(parents) > MAX_PARENTS or math.prod(shape) > MAX_TABLE_NUMBERS:
        message = f"the table of variable {block.child!r} is too large: {len(parents)} parents, "
        raise fault(source, block.line, message + f"{math.prod(shape)} numbers")
    if block.table is None:
        return _table_by_rows(source, block, parents, shape)
    if block.rows or block.default:
        raise fault(source, block.table.line, f"variable {block.child!r} has both a 'table' and rows or a 'default'")
    _check_probabilities(source, block.child, block.table, math.prod(shape))
    table = np.moveaxis(np.reshape(block.table.probabilities, (count, *shape[:-1])), 0, -1)
    sums = table.sum(axis=-1)
    wrong = np.argwhere(np.abs(sums - 1) > ROW_TOLERANCE)
    if len(wrong):
        raise _wrong_sum(source, block.child, _value_names(parents, wrong[0]), sums[tuple(wrong[0])], block.table.line)
    return np.asarray(table / sums[..., np.newaxis])


def _table_by_rows(
    source: str, block: ProbabilityBlock, parents: list[VariableBlock], shape: tuple[int, ...]
) -> Floats:
    table = np.zeros(shape)
    filled = np.zeros(shape[:-1], dtype=np.bool_)
    codes = [{value: code for code, value in enumerate(parent.values)} for parent in parents]
    for row in block.rows:
        for parent, value, known in zip(parents, row.given, codes, strict=True):
            if value not in known:
                message = f"parent {parent.name!r} of variable {block.child!r} has no value {value!r}"
                raise fault(source, row.line, message)
        index = tuple(known[value] for value, known in zip(row.given, codes, strict=True))
        if filled[index]:
            raise fault(source, row.line, f"duplicate row {_describe(block.child, row.given)}")
        table[index] = _normalised(source, block.child, row, shape[-1])
        filled[index] = True
    if block.default:
        table[~filled] = _normalised(source, block.child, block.default, shape[-1])
    elif not filled.all():
        given = _value_names(parents, np.argwhere(~filled)[0])
        raise fault(source, block.line, f"missing row {_describe(block.child, given)}")
    return table


def _value_names(parents: list[VariableBlock], codes: Codes) -> tuple[str, ...]:
    return tuple(parent.values[code] for parent, code in zip(parents, codes, strict=True))


def _normalised(source: str, child: str, row: Entry, count: int) -> Floats:
    _check_probabilities(source, child, row, count)
    probabilities = np.array(row.probabilities)
    total = probabilities.sum()
    if abs(total - 1) > ROW_TOLERANCE:
        raise _wrong_sum(source, child, row.given, total, row.line)
    return np.asarray(probabilities / total)


def _check_probabilities(source: str, child: str, entry: Entry, count: int) -> None:
    if len(entry.probabilities) != count:
        message = f"expected {count} probabilities {_describe(child, entry.given)}, saw {len(entry.probabilities)}"
        raise fault(source, entry.line, message)
    if min(entry.probabilities) < 0:
        message = f"negative probability {min(entry.probabilities)} {_describe(child, entry.given)}"
        raise fault(source, entry.line, message)


def _wrong_sum(source: str, child: str, given: tuple[str, ...], total: float, line: int) -> ValueError:
    return fault(source, line, f"probabilities {_describe(child, given)} sum to {total:.6g}, not 1")


def _describe(child: str, given: tuple[str, ...]) -> str:
    return f"of variable {child!r}" + (f" given ({', '.join(given)})" if given else "")
