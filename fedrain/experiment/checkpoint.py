"""Checkpoints: a run that was killed resumes from the last one as if nothing had happened.

The memory only ever grows, so each checkpoint writes the rows that are new since the last one to a
file of their own, and the rest, which is small, to a new state file. A checkpoint counts once its
state file is there; older state files are then removed. What is written grows with the work done,
not with its square. Where some seeds are behind others, rows that they may still fill are written
again: files overlap then, and the later one tells.
"""

import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.agents.step import Training
from fedrain.climate.columns import is_integer
from fedrain.errors import InputError
from fedrain.io import flatten, is_trace, unflatten, write_arrays
from fedrain.reading import ARRAYS, read_arrays, read_note

FORMAT = 2  # changes when older checkpoints can no longer be read


class Checkpoints:
    """The checkpoints in one folder of a run."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder = folder
        self.identity = identity  # of what they belong to, however many episodes it has
        self.saved_rows = 0  # of every seed

    def save(
        self,
        episode: int,
        rows_filled: tuple[int, int],
        trainings: list[Training],
        history: dict[str, np.ndarray],
    ) -> None:
        """Everything after ``episode`` episodes: one training for each seed.

        ``rows_filled`` are those of the seed with the fewest, and of the one with the most.
        """
        fewest, most = rows_filled
        note = {
            "format": FORMAT,
            "identity": self.identity,
            "episode": episode,
            "rows": most,
            "of_all": fewest,
        }
        if most > self.saved_rows:
            new = [np.asarray(t.rows[:, self.saved_rows : most]) for t in trainings]
            write_arrays(self._rows_path(self.saved_rows), flatten(new), note)
        state = flatten([_without_rows(training) for training in trainings])
        arrays = {f"training/{name}": array for name, array in state.items()}
        arrays |= {f"history/{name}": array for name, array in history.items()}
        write_arrays(self.folder / f"state-{episode:06d}.safetensors", arrays, note)
        self.saved_rows = fewest
        killed = [path for path in self.folder.iterdir() if is_trace(path)]
        for old in self._states()[:-1] + killed:
            old.unlink(missing_ok=True)

    def load(
        self, like: list[Training]
    ) -> tuple[int, list[Training], dict[str, np.ndarray]] | None:
        """Episode, trainings and history of the newest checkpoint, or None."""
        states = self._states()
        if not states:
            return None
        most = max(ARRAYS, 2 * _size(like))
        arrays, note = read_arrays(states[-1], most)
        self._check(states[-1], note)
        kept = [_without_rows(training) for training in like]
        loaded = unflatten(kept, _under("training/", arrays), str(states[-1]))
        rows, filled = [training.rows for training in like], 0
        for first in [first for first in self._firsts() if first < note["rows"]]:
            if first > filled:
                break
            path = self._rows_path(first)
            found = read_arrays(path, most)[0]
            pieces = [found.get(str(i), np.zeros(0)) for i in range(len(rows))]
            if len(found) != len(rows) or not all(
                p.dtype == r.dtype
                and p.ndim == r.ndim
                and p.shape[::2] == r.shape[::2]
                and p.shape[1] > 0
                and min(note["rows"], first + p.shape[1]) <= r.shape[1]
                for p, r in zip(pieces, rows, strict=True)
            ):
                raise InputError(f"{path}: does not fit this configuration")
            pieces = [piece[:, : note["rows"] - first] for piece in pieces]
            rows = [_put(r, jnp.asarray(p), first) for r, p in zip(rows, pieces, strict=True)]
            filled = max(filled, first + pieces[0].shape[1])
        if filled < note["rows"]:
            raise InputError(f"{self._rows_path(filled)}: the file is missing, or one before it")
        self.saved_rows = note.get("of_all", filled)
        trainings = [
            Training(jax.tree.map(jnp.asarray, one["agents"]), r, jnp.asarray(one["diverged_at"]))
            for one, r in zip(loaded, rows, strict=True)
        ]
        return note["episode"], trainings, _under("history/", arrays)

    def check(self) -> None:
        """Refuse a checkpoint of something else; nothing but the newest one's note is read."""
        if states := self._states():
            self._check(states[-1], read_note(states[-1]))

    def _check(self, path: Path, note: dict[str, Any]) -> None:
        if note.get("format") != FORMAT:
            raise InputError(
                f"{path}: the checkpoint was written by another version of FedRAIN and cannot be "
                "resumed: train into another folder"
            )
        if note.get("identity") != self.identity:
            raise InputError(f"{path}: the checkpoint belongs to another configuration")
        counts = [note.get("episode"), note.get("rows"), note.get("of_all", 0)]
        if not all(is_integer(one) and one >= 0 for one in counts):
            raise InputError(
                f"{path}: the file is damaged: it does not record how far the run had got"
            )

    @property
    def episode(self) -> int:
        """Episodes that the newest one has, by its name; none if there is no checkpoint."""
        states = self._states()  # once: the run may end, and remove them, in between
        return _number(states[-1]) if states else 0

    def remove(self) -> None:
        """All of them, when the run is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _states(self) -> list[Path]:
        return self._numbered("state")

    def _firsts(self) -> list[int]:
        """The first row in each of the files of rows."""
        return sorted(map(_number, self._numbered("rows")))

    def _numbered(self, kind: str) -> list[Path]:
        """Files of a kind; those with other names are not ours."""
        form = re.compile(rf"{kind}-\d{{6,18}}\.safetensors")
        paths = self.folder.glob(f"{kind}-*.safetensors")
        return sorted((path for path in paths if form.fullmatch(path.name)), key=_number)

    def _rows_path(self, first: int) -> Path:
        return self.folder / f"rows-{first:09d}.safetensors"


def _number(path: Path) -> int:
    return int(path.stem.split("-")[1])


def _size(trainings: list[Training]) -> int:
    """Bytes of all that is in memory of them."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(trainings) if hasattr(leaf, "nbytes"))


def _without_rows(training: Training) -> dict[str, Any]:
    return {"agents": training.agents, "diverged_at": training.diverged_at}


def _under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


@partial(jax.jit, donate_argnums=0)
def _put(rows: jax.Array, piece: jax.Array, first: int | jax.Array) -> jax.Array:
    return jax.lax.dynamic_update_slice_in_dim(rows, piece, first, axis=1)
