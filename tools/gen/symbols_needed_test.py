"""symbols_needed on libraries that are described here instead of built."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import symbols_needed


class Needed(unittest.TestCase):
    def run_with(self, offers, rows):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "needed.csv"
            path.write_text("soname,symbol,version,used_by\n" + "".join(f"{row}\n" for row in rows))
            out = io.StringIO()
            with mock.patch.object(symbols_needed, "emulated", lambda *_: offers), contextlib.redirect_stdout(out), \
                    mock.patch.object(sys, "argv", ["symbols_needed.py", folder, "--list", str(path)]):
                return symbols_needed.main(), out.getvalue()

    def test_everything_is_present(self):
        status, _ = self.run_with({"liba.so.1": {("f", "liba.so.1")}}, ["liba.so.1,f,liba.so.1,torch 2"])
        self.assertEqual(status, 0)

    def test_wrong_node_is_missing(self):
        status, text = self.run_with({"liba.so.1": {("f", "")}}, ["liba.so.1,f,liba.so.1,torch 2"])
        self.assertEqual(status, 1)
        self.assertIn("liba.so.1 does not export f@liba.so.1, needed by torch 2", text)

    def test_an_empty_list_does_not_pass(self):
        status, text = self.run_with({}, [])
        self.assertEqual(status, 1)
        self.assertIn("nothing was checked", text)


if __name__ == "__main__":
    unittest.main()
