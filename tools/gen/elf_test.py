"""Reads the C library that this very process runs on."""
import unittest

import elf


def loaded(name):
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split()[-1]
            if name in path.rsplit("/", 1)[-1]:
                return path
    return None


class Read(unittest.TestCase):
    def setUp(self):
        path = loaded("libc.so.6") or loaded("libc-2")
        if path is None:
            self.skipTest("no shared C library in this process")
        self.library = elf.read(path)

    def test_soname_and_versions(self):
        self.assertEqual(self.library.soname, "libc.so.6")
        malloc = [symbol for symbol in self.library.symbols if symbol.name == "malloc"]
        self.assertTrue(malloc and malloc[0].defined)
        self.assertTrue(malloc[0].version.startswith("GLIBC_"))

    def test_undefined_symbols_name_their_file(self):
        undefined = [symbol for symbol in self.library.symbols if not symbol.defined and symbol.version]
        self.assertTrue(undefined)
        self.assertTrue(all(symbol.file for symbol in undefined))

    def test_other_files_are_not_elf(self):
        self.assertFalse(elf.is_elf(__file__))


if __name__ == "__main__":
    unittest.main()
