"""What the site shows besides the pages: the reference of all commands, made from them, stored results, formulas as MathML."""

import re
from html import unescape
from pathlib import Path

import typer
from latex2mathml.converter import convert
from mkdocs.structure.files import File, InclusionLevel

from ldfm.cli.main import app

_ROOT = Path(__file__).parents[1]
_STORED = "benchmarks/"


def on_files(files, config):
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    for stored in sorted(_ROOT.glob(f"{_STORED}*/*")):
        if stored.suffix in (".png", ".md", ".csv"):
            place = str(stored.relative_to(_ROOT))
            files.append(File.generated(config, place, abs_src_path=str(stored), inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown, page, **_):
    """Pages are also read as files of the repository, where results lie beside the folder of the pages."""
    return markdown.replace(f"](../{_STORED}", f"]({_STORED}")


def on_page_content(html, page, **_):
    """Browsers show MathML as it is: formulas need no script and no font from elsewhere."""
    return _FORMULA.sub(lambda found: _mathml(unescape(found[2]).strip(), found[1] == "div", page), html)


# as pymdownx.arithmatex leaves formulas, without the signs around them (mkdocs.yml)
_FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
_NAMED = "<mi>(?:log|det)</mi>"
_THIN = '<mspace width="0.17em"/>'
# log p, not logp; 3/4, not 3 / 4; and a prime that is high by itself is not raised and made small
_SPACING = (
    ('<mo movablelimits="true">det</mo>', "<mi>det</mi>"),
    (f"(</m(?:i|n|sub|row)>|(?:[)]|&#x0(?:0029|2202);)</mo>)(?={_NAMED})", rf"\1{_THIN}"),
    (f"({_NAMED})(?!<mo|{_THIN})", rf"\1{_THIN}"),
    ("<mo>&#x0002F;</mo>", '<mo lspace="0" rspace="0">/</mo>'),
    ("<msup>(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msup>", r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>'),
)


def _mathml(latex, displayed, page):
    mathml = convert(latex, display="block" if displayed else "inline")
    if "\\" in mathml:  # what is not known to the converter comes back as it was written
        raise ValueError(f"{page}: no MathML for {latex}")
    for found, better in _SPACING:
        mathml = re.sub(found, better, mathml)
    return f'<div class="formula">{mathml}</div>' if displayed else mathml


def commands_page():
    """Describe every command with its arguments, options and example."""
    parts = ["# Commands", "As `--help` of each says it. Their use is described in [Command line](../command-line.md)."]
    for words, command in _commands(typer.main.get_command(app), ("ldfm",)):
        usage = " ".join([*words, *(f"{p.name.upper()}" for p in command.params if p.param_type_name == "argument")])
        lines = [
            f"| {_names(parameter)} | {_cell(parameter.help)} | {_default(parameter)} |" for parameter in command.params
        ]
        parts += [
            f"## {' '.join(words)}",
            command.help,
            f"```console\n{usage} [OPTIONS]\n```",
            "\n".join(["| argument or option | | if not given |", "|---|---|---|", *lines]),
            f"```console\n{command.epilog.removeprefix('Example: ')}\n```",
        ]
    return "\n\n".join(parts) + "\n"


def _commands(group, words):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*words, name))
        else:
            yield (*words, name), command


def _names(parameter):
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{option}`" for option in parameter.opts)


def _default(parameter):
    if parameter.required:
        return "must be given"
    if parameter.default is None or parameter.default == "" or parameter.default is False:
        return ""
    return f"`{parameter.default}`"


def _cell(text):
    return " ".join(str(text).replace("|", "\\|").split())
