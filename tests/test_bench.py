import json

from typer.testing import CliRunner

from ldfm.bench.kernels import table_of
from ldfm.cli.main import app


def test_kernels_benchmark_stores_and_renders(tmp_path):
    done = CliRunner().invoke(
        app, ["bench", "kernels", "--sizes", "3,5", "--graphs", "8", "--rounds", "2", "-o", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    stored = json.loads((tmp_path / "kernels.json").read_text())
    assert stored["provenance"]["command"].startswith("ldfm bench kernels --sizes 3,5")
    for size in stored["sizes"]:
        assert size["largest_difference_from_numpy"]["ldfm"]["log_sum"] < 1e-12
        assert size["largest_difference_from_numpy"]["ldfm"]["marginals"] < 1e-12
    assert (tmp_path / "kernels.md").read_text() == table_of(stored)
    assert (tmp_path / "kernels.png").stat().st_size > 1000
