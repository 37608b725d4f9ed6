"""A front on real sockets and both event loops, with a server at a Unix socket that echoes."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import struct
import tempfile
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import uvloop

from veilcount_serving import front as front_module
from veilcount_serving import tunnel
from veilcount_serving.front import Front
from veilcount_serving.front_connection import PlainRequest
from veilcount_serving.front_turn import FrontTurn
from veilcount_serving.front_worker import socket_folder

from ...processes import wait_until
from .test_front import PAGE, START, post

PATIENCE = 30.0
RESET = struct.pack("ii", 1, 0)  # for SO_LINGER: closed, a connection is reset
CLOSED, LINES = 30, 50_000
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]
Act = Callable[[Front, Connect], Awaitable[None]]


class Echo:
    """An endpoint that answers each plain request with its body, and notes from where it came."""

    start = START
    asks_peers = True

    def __init__(self) -> None:
        self.peers: list[str | None] = []

    def is_own(self, data: bytes) -> bool:
        return data.startswith(b"POST")

    def take(self, request: PlainRequest) -> bool:
        self.peers.append(request.peer)
        request.answer(200, [], request.body)
        return True

    def incomplete(self, request: PlainRequest) -> None:
        request.answer(408, [], b"late")

    def end_overdue(self, request: PlainRequest, now: float) -> None:
        """Nothing waits."""


async def response(connect: Connect, raw: bytes) -> bytes:
    reader, writer = await connect()
    writer.write(raw)
    writer.write_eof()
    received = await reader.read()
    writer.close()
    return received


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write(b"END")
    writer.close()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Act], None]:
    """Run something on a loop of each kind, with a front."""

    async def running(act: Act) -> None:
        server = await asyncio.start_unix_server(echo, tmp_path / "echo")
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        front = Front(Echo(), listener, tmp_path / "echo")
        front.open(asyncio.get_running_loop())
        try:
            acted = act(front, lambda: asyncio.open_connection("127.0.0.1", port))
            await asyncio.wait_for(acted, 60)
        finally:
            await front.close()
            server.close()

    def run_on_loop(act: Act) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(running(act))

    return run_on_loop


def test_the_response_of_a_server_that_stops_reading_is_delivered(
    run: Callable[[Act], None], tmp_path: Path
) -> None:
    """It closes in the middle of a request, as Granian does where a head is too long."""

    async def refuse(listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listener)
            with connection:
                await loop.sock_recv(connection, 1)
                await loop.sock_sendall(connection, b"REFUSED")

    async def long_response(connect: Connect) -> bytes:
        reader, writer = await connect()
        writer.write(PAGE[:-2] + b"a: b\r\n" * LINES)
        received = await reader.read()
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()
        return received

    async def act(_: Front, connect: Connect) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            (tmp_path / "echo").unlink()
            listener.bind(str(tmp_path / "echo"))
            listener.listen()
            listener.setblocking(False)
            refusing = asyncio.create_task(refuse(listener))
            responses = [await long_response(connect) for _ in range(CLOSED)]
            refusing.cancel()
        assert responses == [b"REFUSED"] * CLOSED

    run(act)


def test_plain_requests_are_answered_and_all_else_is_passed_on_for_good(
    run: Callable[[Act], None],
) -> None:
    """A plain request behind one that was passed on is not the front's any more."""

    async def act(_: Front, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(post(b"one"))
        assert (await reader.readuntil(b"one")).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.write(PAGE + post(b"two"))
        assert await reader.readexactly(len(PAGE + post(b"two"))) == PAGE + post(b"two")
        writer.write(post(b"three"))
        writer.write_eof()
        assert await reader.read() == post(b"three") + b"END"
        writer.close()

    run(act)


def test_a_tunnel_reads_no_faster_than_its_other_end(run: Callable[[Act], None]) -> None:
    """Megabytes to a server that echoes them, and nobody reads: the sender has to wait."""

    async def act(_: Front, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(PAGE + bytes(32 << 20))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.drain(), 2)
        assert len(await reader.readexactly(len(PAGE) + (32 << 20))) > 32 << 20
        writer.close()

    run(act)


def test_one_connection_too_many_waits_until_another_has_ended(
    run: Callable[[Act], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_module, "MOST_CONNECTIONS", 2)

    async def act(front: Front, connect: Connect) -> None:
        streams = [await connect() for _ in range(2)]
        for reader, writer in streams:
            writer.write(post(b"one"))
            await reader.readuntil(b"one")
        await asyncio.sleep(2 * front_module.SWEEP_SECONDS)
        late_reader, late_writer = await connect()  # to the system's queue
        late_writer.write(post(b"late"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(late_reader.readuntil(b"late"), 1)
        streams[0][1].close()
        await asyncio.wait_for(late_reader.readuntil(b"late"), PATIENCE)
        for _, writer in (streams[1], (late_reader, late_writer)):
            writer.close()

    run(act)


def test_without_a_server_to_pass_on_to_a_connection_is_closed(
    run: Callable[[Act], None], tmp_path: Path
) -> None:
    async def act(_: Front, connect: Connect) -> None:
        (tmp_path / "echo").unlink()
        reader, writer = await connect()
        writer.write(PAGE)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()

    run(act)


def test_all_but_reports_goes_to_the_other_workers_that_live_in_turn(
    run: Callable[[Act], None], tmp_path: Path
) -> None:
    async def name(path: Path, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(path.name.encode())
        writer.close()

    async def act(front: Front, connect: Connect) -> None:
        paths = [tmp_path / word for word in ("one", "two", "gone")]
        front._others.extend(paths)
        servers = [await asyncio.start_unix_server(partial(name, it), it) for it in paths[:2]]
        pages = [await response(connect, PAGE) for _ in range(6)]
        own = await response(connect, b"POST /y HTTP/1.1\r\n\r\n")
        for server, path in zip(servers, paths, strict=False):
            server.close()
            path.unlink(missing_ok=True)

        assert {*pages} == {b"one", b"two"}
        assert own == b"POST /y HTTP/1.1\r\n\r\nEND"
        assert await response(connect, PAGE) == PAGE + b"END"

    run(act)


def test_the_private_server_learns_the_peer_of_a_connection(
    run: Callable[[Act], None], tmp_path: Path
) -> None:
    """By a name of no meaning, while the connection lasts; no file stays behind."""
    names = []

    async def name(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        names.append(writer.get_extra_info("peername"))
        writer.write(b"END")
        await reader.read()
        writer.close()

    async def act(front: Front, connect: Connect) -> None:
        (tmp_path / "echo").unlink()
        server = await asyncio.start_unix_server(name, tmp_path / "echo")
        streams = [await connect() for _ in range(3)]
        for reader, writer in streams:
            writer.write(PAGE)
            await reader.readexactly(3)
        own = ["{}:{}".format(*writer.get_extra_info("sockname")) for _, writer in streams]

        assert [*map(front.peer, names)] == own
        assert front.peer("") is None
        for reader, writer in streams:
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
        await asyncio.to_thread(wait_until, lambda: {*map(front.peer, names)} == {None})
        server.close()

    run(act)
    assert not any(map(os.path.exists, names))


def test_long_heads_and_those_of_one_request_or_one_sender_are_not_remembered(
    run: Callable[[Act], None],
) -> None:
    async def act(front: Front, connect: Connect) -> None:
        reader, writer = await connect()
        unique = (b"X-Forwarded-For: 192.0.2.1", b"x-veilcount-request-id: 1", b"A: " + b"b" * 1500)
        for line in (b"A: b", *unique):
            writer.write(post(b"one", line))
            assert (await reader.readuntil(b"one")).startswith(b"HTTP/1.1 200 OK\r\n")
        assert [head.fields.get("a") for head in front._heads.values()] == ["b"]
        writer.close()

    run(act)


def test_a_sender_that_is_gone_comes_from_nowhere(run: Callable[[Act], None]) -> None:
    """Not from a Unix socket, which a proxy on this machine may have."""

    async def act(front: Front, connect: Connect) -> None:
        await asyncio.to_thread(wait_until, lambda: front._server)
        with socket.socket() as sender:
            sender.connect(front._listener.getsockname())
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            sender.sendall(post(b"one"))
        assert await response(connect, post(b"two"))  # what was reset before is read before it
        peers = cast("Echo", front._endpoint).peers
        assert peers
        assert "" not in peers

    run(act)


def test_a_disk_that_hangs_holds_up_what_needs_a_name_alone(
    run: Callable[[Act], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain requests go on meanwhile."""
    goes_on, connected = threading.Event(), tunnel._connected

    def hang(path: Path, name: Path | None = None) -> tuple[socket.socket, socket.socket]:
        assert goes_on.wait(PATIENCE)
        return connected(path, name)

    async def act(_: Front, connect: Connect) -> None:
        passed_on = asyncio.create_task(response(connect, PAGE))
        assert (await response(connect, post(b"one"))).endswith(b"one")
        goes_on.set()
        assert await passed_on == PAGE + b"END"

    monkeypatch.setattr(tunnel, "_connected", hang)
    run(act)


def test_without_a_file_for_it_a_connection_ends_and_nothing_of_it_stays(
    run: Callable[[Act], None],
) -> None:
    """One descriptor is left for the two that passing on takes."""

    async def act(front: Front, connect: Connect) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        reader, writer = await connect()
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, hard))
        try:
            writer.write(PAGE)
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        writer.transport.abort()
        await asyncio.to_thread(wait_until, lambda: not (front._tunnels or front._names))
        assert await response(connect, PAGE) == PAGE + b"END"

    run(act)


def test_fronts_listen_by_turns_and_one_that_has_ended_never_does(
    run: Callable[[Act], None], tmp_path: Path
) -> None:
    """Who connects in between waits at the socket that they share."""

    async def act(_: Front, __: Connect) -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as shared:
            fronts = [
                Front(Echo(), shared.dup(), tmp_path / "echo", FrontTurn(tmp_path)) for _ in "123"
            ]
            for each in fronts:
                each.open(loop)
                await asyncio.sleep(0.1)  # each waits before the next one does
            first, early, last = fronts
            streams = []
            for front in (first, last):
                reader, writer = await asyncio.open_connection(*shared.getsockname())
                writer.write(post(b"one"))
                await asyncio.wait_for(reader.readuntil(b"one"), PATIENCE)
                streams.append(writer)
                assert [len(each.connections) for each in fronts] == [
                    int(each is front) for each in fronts
                ]
                await early.close()
                await front.close()
            for writer in streams:
                writer.close()

    run(act)


@pytest.mark.parametrize("depth", [1, 12])
def test_a_private_socket_has_a_path_that_a_socket_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    """Also where TMPDIR is deep."""
    deep = tmp_path / "/".join(["a folder"] * depth)
    deep.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with socket_folder() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/4194304")

        assert Path(folder).stat().st_mode & 0o077 == 0
    assert not Path(folder).exists()
