"""Two NATS servers, a hub and a leaf node with JetStream of its own, over a link that can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nats.js.api import ExternalStream, StreamConfig, StreamSource

from nats_server import NatsServer, nats_server
from tidings.bench.live.ports import free_port


class Link:
    """Passes bytes between the leaf node and the hub, unless it is cut."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                try:
                    far = None if self._is_cut else socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    far = None
                if far is None:
                    near.close()
                    continue
                self._open |= {near, far}
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    @staticmethod
    def _pass(a: socket.socket, b: socket.socket) -> None:
        with suppress(OSError):
            while data := a.recv(1 << 16):
                b.sendall(data)
        for each in (a, b):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self._is_cut = True
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        self._server.close()


class Hub:
    """A server to which leaf nodes may connect, and that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self.leaf_port, self.port = free_port(), free_port()
        config = folder / "hub.conf"
        config.write_text(
            f'server_name: hub\njetstream {{ store_dir: "{folder}/js", domain: hub }}\n'
            f"leafnodes {{ host: 127.0.0.1, port: {self.leaf_port} }}\n"
        )
        self._context = nats_server(folder, "-c", str(config), port=self.port)
        self.server = self._context.__enter__()

    def kill(self) -> None:
        self.server.process.kill()
        self._context.__exit__(None, None, None)

    def start(self) -> None:
        self._context = nats_server(self._folder, "-c", str(self._folder / "hub.conf"), port=self.port)
        self.server = self._context.__enter__()

    def close(self) -> None:
        self._context.__exit__(None, None, None)


@contextmanager
def leaf_node(folder: Path, link: Link) -> Iterator[NatsServer]:
    folder.mkdir()
    config = folder / "leaf.conf"
    config.write_text(
        f'server_name: leaf\njetstream {{ store_dir: "{folder}/js", domain: edge }}\n'
        f'leafnodes {{ reconnect: 1, remotes: [{{ url: "nats-leaf://127.0.0.1:{link.port}" }}] }}\n'
    )
    with nats_server(folder, "-c", str(config)) as server:
        yield server


def source_place(leaf: NatsServer, name: str, stream: str, subject: str) -> None:
    """A stream at the leaf node with the messages of one subject of a stream at the hub."""
    external = ExternalStream(api="$JS.hub.API")
    source = StreamSource(name=stream, filter_subject=subject, external=external)
    with leaf.connect() as connection:
        connection.run(connection.context.add_stream(StreamConfig(name=name, sources=[source])))
