"""Progress for people, on standard error: one line that moves, or a line now and then."""

import sys
import time
from typing import TextIO

import numpy as np
from jaxtyping import Float


class Progress:
    """Episode, return of each region, agent steps a second, time left.

    Where the model is what costs, simulated days a second stand in place of the agents' steps.
    """

    def __init__(
        self,
        episodes: int,
        steps: int,
        done: int = 0,
        stream: TextIO | None = None,
        pause: float = 5.0,
        days: float | None = None,
    ) -> None:
        self.episodes = episodes
        self.steps = steps  # agent steps in an episode, over all seeds
        self.days = days  # simulated in an episode, over all seeds, of a model that costs
        self.pause = pause  # seconds between lines where the line does not move
        self.stream = sys.stderr if stream is None else stream
        self.moving = self.stream.isatty()
        self.begin = self.last = time.monotonic()
        self.first = done

    def show(self, done: int, returns: Float[np.ndarray, "seed agent"], seconds: float) -> None:
        """After ``done`` episodes, the last of which took so long."""
        now = time.monotonic()
        due = now - self.last >= self.pause or done == self.episodes or done == self.first + 1
        if not self.moving and not due:
            return
        self.last = now
        rate = f"{self.steps / seconds:,.0f} steps/s"
        if self.days is not None:
            rate = f"{self.days / seconds:,.1f} days/s"
        left = (now - self.begin) / (done - self.first) * (self.episodes - done)
        whole = returns[np.isfinite(returns).all(axis=1)]  # seeds that have not diverged
        mean = whole.mean(axis=0) if len(whole) else returns[0]
        regions = " ".join(f"{value:,.0f}" for value in mean[:6])
        more = " …" if returns.shape[1] > 6 else ""
        line = (
            f"episode {done}/{self.episodes}  return {regions}{more}  "
            f"{rate}  {_duration(left)} left"
        )
        if self.moving:
            end = "\n" if done == self.episodes else ""
            self.stream.write(f"\r\x1b[2K{line}{end}")
        else:
            self.stream.write(line + "\n")
        self.stream.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
