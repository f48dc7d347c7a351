"""The handlers of README.md with http.server: a thread for each connection, of which one at a time runs Python."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORT, FOLDER = int(sys.argv[1]), Path(sys.argv[2])
HUNDRED = b"x" * 99 + b"\n"


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept
    wbufsize = -1  # head and body in one packet

    def do_GET(self) -> None:
        _, what, name, *_ = [*self.path.split("/"), ""]
        if what == "fib":
            self.reply(200, str(fib(int(name))).encode())
        elif what in ("file", "block"):
            try:
                self.reply(200, (FOLDER / what / Path(name).name).read_bytes())
            except OSError:
                self.reply(404, b"")
        else:
            self.reply(200, HUNDRED)

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024


Server(("127.0.0.1", PORT), Handler).serve_forever()
