"""The chat of pagoda run, in a terminal of its own."""
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest

from server import environment_of_binary

CONTROL_C, CONTROL_D = b"\x03", b"\x04"
WAIT_SECONDS = 120


class Terminal:
    """A program in a pseudo terminal: what it shows, and keys to press."""

    def __init__(self, *command, environment):
        self.leader, follower = pty.openpty()
        self.shown = b""
        self.process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
                                        env=environment, preexec_fn=self.take_terminal)
        os.close(follower)

    @staticmethod
    def take_terminal():
        """Ctrl-C is for the session that the terminal controls."""
        import fcntl
        import termios
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def press(self, keys):
        os.write(self.leader, keys)

    def wait_for(self, pattern, begin=0):
        """The place after the pattern, once it is shown after `begin`."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            found = re.compile(pattern).search(self.shown, begin)
            if found:
                return found.end()
            if not self.read(deadline - time.monotonic()):
                raise AssertionError(f"{pattern!r} was not shown, but {self.shown[begin:]!r}")

    def read(self, seconds):
        if seconds <= 0 or not select.select([self.leader], [], [], seconds)[0]:
            return False
        try:
            chunk = os.read(self.leader, 65536)
        except OSError:  # the other end is closed
            return False
        self.shown += chunk
        return bool(chunk)

    def wait(self):
        """The exit status. What is still shown is read, so that nobody waits for a reader."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.read(deadline - time.monotonic()):
            pass
        return self.process.wait(WAIT_SECONDS)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self.leader)


class Chat(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def start(self, *flags):
        environment = environment_of_binary({"HOME": self.home, "TERM": "xterm"})
        environment.pop("XDG_CACHE_HOME", None)
        terminal = Terminal(os.environ["PAGODA_BIN"], "run", os.environ["PAGODA_MODEL"], *flags, environment=environment)
        self.addCleanup(terminal.close)
        return terminal, terminal.wait_for(rb"Ctrl-D to leave[\s\S]*> ")

    def test_it_answers_keeps_history_and_leaves_with_control_d(self):
        terminal, at = self.start("--temperature", "0", "--max-tokens", "8")
        terminal.press(b"Hello there\r")
        at = terminal.wait_for(rb"\S[\s\S]*\n[\s\S]*> ", terminal.wait_for(rb"Hello there\r\n", at))
        terminal.press(CONTROL_D)
        self.assertEqual(terminal.wait(), 0)
        with open(f"{self.home}/.cache/pagoda/history", encoding="utf-8") as history:
            self.assertIn("Hello", history.read())

    def test_control_d_typed_while_an_answer_is_written_leaves_after_it(self):
        terminal, at = self.start("--ignore-eos", "--seed", "1", "--max-tokens", "64")
        terminal.press(b"Tell me a long story\r")
        terminal.wait_for(rb"story\r\n[\s\S]*\w{2}", at)
        terminal.press(CONTROL_D)
        self.assertEqual(terminal.wait(), 0)
        self.assertIn(b"cut at its most tokens", terminal.shown)

    def test_control_c_stops_an_answer_and_twice_at_the_prompt_leaves(self):
        terminal, at = self.start("--ignore-eos", "--seed", "1")
        terminal.press(b"Tell me a long story\r")
        at = terminal.wait_for(rb"story\r\n[\s\S]*\w{2}", at)
        terminal.press(CONTROL_C)
        at = terminal.wait_for(rb"\[stopped\][\s\S]*> ", at)
        terminal.press(CONTROL_C)
        at = terminal.wait_for(rb"again or Ctrl-D leaves", at)
        terminal.press(CONTROL_C)
        self.assertEqual(terminal.wait(), 0)

    def test_an_answer_that_the_context_has_no_room_for_is_refused_with_what_is_left(self):
        terminal, at = self.start("--max-model-len", "64", "--max-tokens", "60")
        terminal.press(b"Hello\r")
        at = terminal.wait_for(rb"max_tokens is 60, together more than the context of 64 tokens; [1-9]\d* are left", at)
        terminal.press(b"/exit\r")
        self.assertEqual(terminal.wait(), 0)

    def test_commands_with_a_slash(self):
        terminal, at = self.start()
        for typed, shown in ((b"/help", rb"/clear +forget"), (b"/set temprature 1", rb"did you mean temperature\?"),
                             (b"/set temperature 200", rb"from 0 to 100"), (b"/nonsense", rb"unknown command"),
                             (b"/set temperature 0", rb"> ")):
            terminal.press(typed + b"\r")
            at = terminal.wait_for(shown, at)
        terminal.press(b"/exit\r")
        self.assertEqual(terminal.wait(), 0)


if __name__ == "__main__":
    unittest.main()
