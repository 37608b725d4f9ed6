"""The URL of a store in Redis."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from veilcount_serving.errors import SettingsError, system_reason

from ..store_url import redact_url

FORM = (
    "give redis://host:port/0 (rediss:// with TLS) or redis-cluster://host:port,host:port,"
    " with user:password@ before the host where one is needed (percent-encode their / ? # @)"
)
PORT = 6379
MOST_SHARDS = 256
MOST_REPLICAS = 5
#: services whose documentation says that acknowledged writes are lost, by the end of a host's name
LOSING_SERVICES = {
    ".redis.cache.windows.net": "Azure Cache for Redis",
    ".redis.azure.net": "Azure Managed Redis",
}


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """Servers to connect to first, credentials and options."""

    hosts: tuple[tuple[str, int], ...]
    cluster: bool = False
    tls: bool = False
    ca: str | None = None  # file of a private CA, in addition to the system's
    database: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    durable: bool = True  # refuse a Redis that acknowledges before the disk has it
    managed: bool = False  # do not examine that: the operator vouches for a service
    shards: int | None = None  # None: the default of a new store
    replicas: int = 0  # of a master, that have a write before it is acknowledged

    @classmethod
    def parse(cls, url: str) -> RedisUrl:
        """Parse a URL; errors never repeat a password."""
        try:
            return _read(urlsplit(url))
        except ValueError as error:
            raise SettingsError("store", redact_url(url), str(error)) from None

    def __str__(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.hosts)


def _read(parts: SplitResult) -> RedisUrl:
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    cluster = parts.scheme == "redis-cluster"
    names = {"ca", "durability", "durable", "replicas"} | ({"shards", "tls"} if cluster else set())
    parameters = _parameters(parts.query, names)
    tls = parts.scheme == "rediss" or "tls" in parameters
    if parts.fragment or (cluster and parts.path not in {"", "/"}):
        raise ValueError(FORM)
    servers = tuple(_host(host) for host in hosts.split(","))
    managed = "durable" in parameters
    if managed:
        _refuse_losing_services(servers)
    return RedisUrl(
        hosts=servers,
        cluster=cluster,
        tls=tls,
        ca=_certificate_authority(parameters, tls=tls),
        database=_number(parts.path.removeprefix("/") or "0", 0, 1 << 16, FORM),
        username=unquote(username) or None,
        password=unquote(password) or None,
        durable="durability" not in parameters and not managed,
        managed=managed,
        shards=_parameter(parameters, "shards", MOST_SHARDS),
        replicas=_parameter(parameters, "replicas", MOST_REPLICAS) or 0,
    )


def _certificate_authority(parameters: Mapping[str, str], *, tls: bool) -> str | None:
    """Return the file of `ca`, if it can be read and has certificates."""
    if (file := parameters.get("ca")) is None:
        return None
    if not tls:
        raise ValueError("ca: write rediss://, or redis-cluster:// with tls=on, or leave it out")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
    except OSError as error:
        reason = "no certificate" if isinstance(error, ssl.SSLError) else system_reason(error)
        fix = "give a file of PEM certificates that this user can read"
        raise ValueError(f"ca: {reason}: {fix}") from None
    return file


def _parameters(query: str, names: set[str]) -> Mapping[str, str]:
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    if not parameters.keys() <= names:
        raise ValueError(f"the parameters are {', '.join(sorted(names))}")
    if parameters.get("durability", "relaxed") != "relaxed" or parameters.get("tls", "on") != "on":
        raise ValueError("write durability=relaxed and tls=on, or leave them out")
    if parameters.get("durable", "managed") != "managed" or {"durability", "durable"} <= set(
        parameters
    ):
        raise ValueError("write durable=managed, without durability, or leave it out")
    return parameters


def _refuse_losing_services(hosts: Iterable[tuple[str, int]]) -> None:
    for host, _ in hosts:
        for ending, service in LOSING_SERVICES.items():
            if host.endswith(ending):
                raise ValueError(
                    f"{service} syncs once a second and promotes replicas that lag behind:"
                    " acknowledged reports would be lost. Choose another (docs/operating.md)"
                )


def _host(host: str) -> tuple[str, int]:
    parts = urlsplit(f"//{host}")
    try:
        port = parts.port
    except ValueError:
        raise ValueError(FORM) from None
    if not parts.hostname:
        raise ValueError(FORM)
    return parts.hostname, PORT if port is None else port


def _parameter(parameters: Mapping[str, str], name: str, most: int) -> int | None:
    if name not in parameters:
        return None
    return _number(parameters[name], 1, most + 1, f"{name}: give 1 to {most}")


def _number(text: str, least: int, end: int, fix: str) -> int:
    if not text.isdecimal() or not least <= int(text) < end:
        raise ValueError(fix)
    return int(text)
