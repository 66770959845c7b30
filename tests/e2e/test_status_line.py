"""The line at the foot of the terminal while a command runs."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

import pytest
from conftest import MAYA


def seen_on_a_terminal(tmp_path, *options):
    terminal, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    command = [str(MAYA), "run", *options, "--no-predict", "--out", str(tmp_path / "run"), "--", "sleep", "3.5"]
    running = subprocess.Popen(command, stdin=program, stdout=program, stderr=program)
    os.close(program)
    text = b""
    try:
        while part := os.read(terminal, 4096):
            text += part
    except OSError:  # the last process has closed it
        pass
    running.wait()
    os.close(terminal)
    return text.decode()


def test_a_terminal_shows_the_progress(tmp_path):
    text = seen_on_a_terminal(tmp_path)
    assert "\033[2Kmaya 0:0" in text
    assert text.count("\033[r") == 1, "the terminal is left as it was"


@pytest.mark.parametrize("options", [("--quiet",), ("--quiet", "--clock", "virtual")])
def test_quiet_shows_none(tmp_path, options):
    assert "maya 0:0" not in seen_on_a_terminal(tmp_path, *options)


def test_a_pipe_shows_none(tmp_path):
    command = [str(MAYA), "run", "--no-predict", "--out", str(tmp_path / "run"), "--", "sleep", "3.5"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "maya 0:0" not in done.stdout + done.stderr and "\033" not in done.stderr
