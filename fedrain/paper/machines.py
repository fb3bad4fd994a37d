"""Train what is missing of the matrix on more than one machine: a Ray cluster, or Slurm.

The process that was started hands out cells and writes what comes back, so that results and
progress are in one place. Where the folder of unfinished cells is shared by the machines, a cell
whose machine is lost resumes from its checkpoint on another; where it is not, it begins again.
"""

import shlex
import sys
import tempfile

from fedrain.cluster import Say, connected
from fedrain.errors import FailureError, InputError
from fedrain.io import write_bytes
from fedrain.paper.matrix import Cell, cells
from fedrain.paper.results import REFERENCES
from fedrain.paper.runner import Store, make_reference, train_cell


def run_on_cluster(
    store: Store, matrix: list[Cell], address: str | None, say: Say, at_once: int | None = None
) -> None:
    """Train what is missing, and the optimal control that it is measured by, on a Ray cluster.

    Args:
        store: Where results go. Its folder of unfinished cells has this path on every machine.
        matrix: The cells, in the order of training.
        address: ``machine:port``, ``auto``, or None: a cluster of this machine alone.
        say: Called with a line of progress.
        at_once: How many cells at once; as many as the cluster has cores, if it is left out.

    Raises:
        FailureError: At the end, if a cell failed.
    """
    names = [name for name in REFERENCES if not (store.results / f"{name}.nc").exists()]
    names += [cell.name for cell in matrix if store.read(cell) is None]
    if not names:
        return
    of_matrix = {cell.name: cell for cell in matrix}
    work = str(store.work.absolute())
    pieces = {name: (name, work, store.seeds, store.episodes) for name in names}

    def keep(name: str, content: bytes) -> None:
        write_bytes(store.results / f"{name}.nc", content)
        if name in of_matrix:
            store.read(of_matrix[name])  # refused, if it is not what was asked for

    with connected(address, say) as cluster:
        failed = cluster.run(make_file, pieces, keep, say, at_once)
    if failed:
        raise FailureError(f"{len(failed)} of {len(names)} cells failed: {', '.join(failed)}")


def make_file(name: str, work: str, seeds: int, episodes: int) -> bytes:
    """What a worker does: a cell, or optimal control, as the bytes of its file.

    Args:
        name: Of a cell or of a reference.
        work: Folder of unfinished cells.
        seeds: Seeds of each cell.
        episodes: Episodes of each seed.

    Returns:
        A NetCDF file.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder, work, seeds, episodes)
        path = store.results / f"{name}.nc"
        if name in REFERENCES:
            make_reference(name, path)
        else:
            (cell,) = cells(name)
            if not train_cell(store, cell, lambda _: None, progress=False):
                raise FailureError("another process is at work on it")
        return path.read_bytes()


def slurm_script(store: Store, matrix: list[Cell], cores: int, hours: float) -> str:
    """A job array for Slurm: one index for each missing cell.

    Args:
        store: Where results and unfinished cells are; the nodes share both.
        matrix: The cells; those that are done are left out.
        cores: For each.
        hours: The longest that one may take; it resumes from its checkpoint when it is submitted
            again.

    Returns:
        A shell script for ``sbatch``.
    """
    names = [cell.name for cell in matrix if store.read(cell) is None]
    if not names:
        raise InputError("no cell is missing")
    if cores < 1 or not 0 < hours < 10_000:
        raise InputError("a cell needs a core or more, and some hours")
    minutes = max(1, round(hours * 60))
    results, work = (shlex.quote(str(path.absolute())) for path in (store.results, store.work))
    return "\n".join(
        [
            "#!/bin/sh",
            "#SBATCH --job-name=fedrain",
            f"#SBATCH --array=0-{len(names) - 1}",
            f"#SBATCH --cpus-per-task={cores}",
            f"#SBATCH --time={minutes}",
            "#SBATCH --requeue",
            "#SBATCH --output=fedrain-%A-%a.log",
            "",
            "set -eu",
            'case "$SLURM_ARRAY_TASK_ID" in',
            *(f"{i}) cell={shlex.quote(name)} ;;" for i, name in enumerate(names)),
            '*) echo "there is no cell $SLURM_ARRAY_TASK_ID" >&2; exit 2 ;;',
            "esac",
            f"exec {shlex.quote(sys.executable)} -m fedrain benchmark run --jobs 1 "
            f'--only "$cell" --results {results} --work {work}',
            "",
        ]
    )
