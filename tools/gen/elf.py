"""The dynamic symbols of a 64-bit little-endian ELF file: what it needs, what it offers, under which version."""
import dataclasses
import mmap
import struct

SHT_DYNSYM, SHT_DYNAMIC, SHT_VERDEF, SHT_VERNEED, SHT_VERSYM = 11, 6, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
DT_NEEDED, DT_SONAME = 1, 14
STB_LOCAL, STB_WEAK = 0, 2


@dataclasses.dataclass
class Symbol:
    name: str
    version: str  # empty when unversioned
    file: str  # for an undefined symbol: the SONAME its version belongs to
    defined: bool
    weak: bool


@dataclasses.dataclass
class Dynamic:
    soname: str
    needed: list
    symbols: list


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(5) == b"\x7fELF\x02"


def read(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _read(data)


def _text(data, offset):
    return data[offset : data.find(b"\0", offset)].decode(errors="replace")


def _read(data):
    section_offset, = struct.unpack_from("<Q", data, 0x28)
    entry_size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = []
    for index in range(count):
        _, kind, _, _, offset, size, link, info = struct.unpack_from(
            "<IIQQQQII", data, section_offset + index * entry_size
        )
        sections.append((kind, offset, size, link, info))

    def strings(link):
        return sections[link][1]

    needed, soname, versions, files, version_of = [], "", {}, {}, None
    for kind, offset, size, link, info in sections:
        if kind == SHT_DYNAMIC:
            for at in range(offset, offset + size, 16):
                tag, value = struct.unpack_from("<qQ", data, at)
                if tag == DT_NEEDED:
                    needed.append(_text(data, strings(link) + value))
                elif tag == DT_SONAME:
                    soname = _text(data, strings(link) + value)
        elif kind == SHT_VERDEF:
            at = offset
            for _ in range(info):
                _, _, index, _, _, aux, following = struct.unpack_from("<HHHHIII", data, at)
                name, _ = struct.unpack_from("<II", data, at + aux)
                versions[index] = _text(data, strings(link) + name)
                at += following
        elif kind == SHT_VERNEED:
            at = offset
            for _ in range(info):
                _, aux_count, file_name, aux, following = struct.unpack_from("<HHIII", data, at)
                aux_at = at + aux
                for _ in range(aux_count):
                    _, _, index, name, next_aux = struct.unpack_from("<IHHII", data, aux_at)
                    versions[index] = _text(data, strings(link) + name)
                    files[index] = _text(data, strings(link) + file_name)
                    aux_at += next_aux
                at += following
        elif kind == SHT_VERSYM:
            version_of = offset

    symbols = []
    for kind, offset, size, link, _ in sections:
        if kind != SHT_DYNSYM:
            continue
        for index in range(1, size // 24):
            name, info, _, section, _, _ = struct.unpack_from("<IBBHQQ", data, offset + index * 24)
            binding = info >> 4
            if binding == STB_LOCAL or not name:
                continue
            version = 0 if version_of is None else struct.unpack_from("<H", data, version_of + index * 2)[0] & 0x7FFF
            symbols.append(Symbol(_text(data, strings(link) + name), versions.get(version, "") if version > 1 else "",
                                  files.get(version, ""), section != 0, binding == STB_WEAK))
    return Dynamic(soname, needed, symbols)
