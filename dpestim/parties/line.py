"""A TLS connection that one thread reads while another writes: OpenSSL takes one of them at a time."""

import selectors
import ssl
import time
from threading import Lock


class Line:
    """What `_Rounds` reads and writes: a socket of TLS that waits without holding the connection.

    Parameters
    ----------
    sock : ssl.SSLSocket
    deadline : float
        Seconds that a read, a write or a handshake may wait.
    """

    def __init__(self, sock, deadline):
        sock.setblocking(False)
        self._sock, self._deadline, self._lock = sock, deadline, Lock()

    def shake_hands(self):
        """Agree on keys with the other end, as TLS does first; OSError where it does not."""
        self._turn(self._sock.do_handshake)

    def recv(self, n):
        """Return up to n bytes, b"" at the end; TimeoutError where none came."""
        return self._turn(lambda: self._sock.recv(n))

    def sendall(self, data):
        """Send all, or raise OSError."""
        data = memoryview(data)
        while data:
            data = data[self._turn(lambda data=data: self._sock.send(data)):]

    def close(self):
        """End the connection."""
        with self._lock:
            self._sock.close()

    def _turn(self, act):
        until = time.monotonic() + self._deadline
        while True:
            try:
                with self._lock:
                    return act()
            except ssl.SSLWantReadError:
                event = selectors.EVENT_READ
            except ssl.SSLWantWriteError:
                event = selectors.EVENT_WRITE
            except ValueError as error:  # (it was closed by the other thread)
                raise ConnectionError(str(error)) from None
            try:
                with selectors.DefaultSelector() as selector:
                    selector.register(self._sock, event)
                    ready = selector.select(max(0.0, until - time.monotonic()))
            except ValueError as error:
                raise ConnectionError(str(error)) from None
            if not ready and time.monotonic() >= until:
                raise TimeoutError("nothing came in time")
