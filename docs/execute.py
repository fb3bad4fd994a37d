"""Execute the notebooks of docs/learn again, and store what they show: `make notebooks`.

    python docs/execute.py                 # all of them
    python docs/execute.py train gcm       # some

What they write goes to a temporary folder. Messages on standard error, times and counts are left
out, so that a notebook changes only where its results do. Needs the extra ``docs``.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "learn"
LONGEST = 3600  # seconds for a cell, on a machine that does other work too
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(path: Path) -> None:
    """Run all cells of a notebook and write it with their outputs."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=LONGEST,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    for cell in notebook.cells:
        # What is kept is the alternative text of figures.
        cell.metadata = {k: v for k, v in cell.metadata.items() if k == "mystnb"}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [shown for shown in map(tidied, cell.outputs) if shown is not None]
    notebook.metadata = METADATA
    nbformat.write(notebook, path)


def tidied(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """An output without its count; a figure without its text; nothing of standard error."""
    if output.get("name") == "stderr":
        return None
    if output.output_type in ("execute_result", "display_data"):
        data = {k: v for k, v in output.data.items() if k != "text/plain" or len(output.data) == 1}
        return nbformat.v4.new_output("display_data", data)
    return output


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        execute(FOLDER / f"{name}.ipynb")
        print(name)
