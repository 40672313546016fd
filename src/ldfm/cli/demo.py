"""``ldfm demo``: what a model can do, on data of a small medical network."""

from pathlib import Path
from typing import Annotated

import typer

ROWS = 5000
STEPS = 400
EVIDENCE = {"smoke": "yes", "xray": "yes"}

app = typer.Typer()


@app.command(epilog="Example: ldfm demo -o demo")
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("demo"),
) -> None:
    """Fit a built-in network's data, answer a question and draw a forest."""
    run_demo(output)


def run_demo(folder: Path) -> None:
    """Fit, ask, draw; write the model and the picture into `folder`."""
    from rich.console import Console
    from rich.markup import escape

    from ldfm import LDFM
    from ldfm.files import written_whole
    from ldfm.networks import load

    console = Console(highlight=False, emoji=False, soft_wrap=True)
    folder.mkdir(parents=True, exist_ok=True)
    network = load("asia")
    data = network.sample(ROWS, seed=0)
    console.print(f"[bold]1.[/] {ROWS} rows drawn from the network 'asia': {', '.join(network.variables)}")

    model = LDFM(max_iter=STEPS, random_state=0).fit(data)
    last = model.history_.steps[-1]
    console.print(
        f"[bold]2.[/] fitted an LDFM-S on the normalised likelihood: {last.iteration} steps in {last.seconds:.1f} s "
        f"(the first run compiles)"
    )

    question = {name: [EVIDENCE.get(name)] for name in network.variables}
    answer = model.marginals(question)
    given = ", ".join(f"{name} = {value}" for name, value in EVIDENCE.items())
    console.print(f"[bold]3.[/] posteriors given {given} (exact, all completions summed):")
    for column in model.schema_.columns:
        if column.name not in EVIDENCE:
            shares = answer.probabilities[column.name][0]
            text = "  ".join(f"{value} {share:.3f}" for value, share in zip(column.values, shares, strict=True))
            console.print(f"     {column.name:8} {text}")

    picture, file = folder / "forest.png", folder / "asia.ldfm"
    model.save(file)
    with written_whole(picture) as temporary:
        model.plot_forest(model.most_probable(question)).figure.savefig(temporary, format="png", dpi=150)
    console.print(f"[bold]4.[/] the dependency forest of the most probable such patient: {escape(str(picture))}")
    console.print(f"   the model: {escape(str(file))}")
    console.print(
        f"\nNext: [bold]ldfm query {escape(str(file))} --evidence smoke=yes,dysp=yes[/], [bold]ldfm info {escape(str(file))}[/], "
        f"[bold]ldfm fit YOUR.csv -o MODEL[/], or in Python: [bold]from ldfm import LDFM; LDFM().fit(frame)[/]"
    )
