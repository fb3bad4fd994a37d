"""Connections that can be cut: a port of this machine that passes on to another, while it may."""

import asyncio
import threading
from contextlib import suppress


class Wires:
    """Every wire of a federation, in a thread of its own."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._cut = set()
        self._open, self._servers = {}, []

    def lay(self, name, target):
        """A wire to ``ADDRESS:PORT``; the address to connect to instead."""
        machine, _, port = target.rpartition(":")
        self._open[name] = set()

        async def begin():
            server = await asyncio.start_server(
                lambda r, w: self._pass(name, machine, int(port), r, w), "127.0.0.1", 0
            )
            self._servers.append(server)
            return server.sockets[0].getsockname()[1]

        own = asyncio.run_coroutine_threadsafe(begin(), self._loop).result()
        return f"127.0.0.1:{own}"

    @property
    def names(self):
        return list(self._open)

    def cut(self, name):
        """Nothing passes any more, and what is connected is dropped."""
        self._cut.add(name)

        def drop():
            for writer in list(self._open[name]):
                with suppress(OSError, RuntimeError):
                    writer.transport.abort()

        self._loop.call_soon_threadsafe(drop)

    def mend(self, name):
        self._cut.discard(name)

    def close(self):
        async def end():
            for server in self._servers:
                server.close()
            for writer in [one for many in self._open.values() for one in many]:
                writer.transport.abort()
            own = asyncio.current_task()
            others = [task for task in asyncio.all_tasks() if task is not own]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _pass(self, name, machine, port, reader, writer):
        if name in self._cut:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(machine, port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._open[name] |= both
        with suppress(asyncio.CancelledError):  # at the end, of which asyncio would tell
            await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        self._open[name] -= both
        for one in both:
            one.transport.abort()

    @staticmethod
    async def _copy(reader, writer):
        with suppress(OSError, RuntimeError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
            writer.write_eof()
