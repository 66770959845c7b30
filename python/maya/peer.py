"""Who is at the other end of a connection within this machine.

A server on the loopback interface can be reached by every user of the machine. The kernel lists the owner of each
socket in /proc/net/tcp, so the server can answer to its own user only, without a password.
"""

from __future__ import annotations

import ipaddress
import os
import sys

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ATTEMPTS = 3  # the kernel may skip a line of the table while other connections come and go

Address = tuple[str, int]


def _parsed(text: str) -> Address:
    """0100007F:20E5 → ("127.0.0.1", 8421). The kernel writes words of 32 bits in the byte order of the machine."""
    host, _, port = text.partition(":")
    raw = bytes.fromhex(host)
    if sys.byteorder == "little":
        raw = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    return _plain(str(ipaddress.ip_address(raw))), int(port, 16)


def _plain(host: str) -> str:
    """An IPv4 address that an IPv6 socket uses, as IPv4."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def owners() -> dict[tuple[Address, Address], int]:
    """The user of each TCP socket, by its own address and the other one's."""
    found = {}
    for path in _TABLES:
        try:
            with open(path) as table:
                lines = table.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            try:
                found[_parsed(words[1]), _parsed(words[2])] = int(words[7])
            except (ValueError, IndexError):
                continue
    return found


def is_own_user(client: Address, server: Address) -> bool:
    """Whether the client is a process of this user or of root, who can read the files anyway. True where the kernel
    does not tell (no /proc)."""
    client, server = (_plain(client[0]), client[1]), (_plain(server[0]), server[1])
    for _ in range(_ATTEMPTS):
        known = owners()
        if (server, client) not in known:
            return True  # not even this end is listed
        if (client, server) in known:
            return known[client, server] in (os.getuid(), 0)
    return False
