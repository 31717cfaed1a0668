"""The server starts on a port of its own, says that it is ready, and stops when asked."""
import signal
import unittest

from server import Server


class Health(unittest.TestCase):
    def test_it_lives_is_ready_and_stops_with_status_0(self):
        for stop_signal in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(stop_signal.name), Server() as server:
                self.assertEqual(server.get("/health").status, 200)
                self.assertEqual(server.get("/ready").status, 200)
                self.assertEqual(server.stop(stop_signal), 0)


if __name__ == "__main__":
    unittest.main()
