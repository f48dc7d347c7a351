"""The handlers of README.md with asyncio, whose streams know no HTTP: one thread, a task for each connection."""

import asyncio
import sys
from pathlib import Path

PORT, FOLDER = int(sys.argv[1]), Path(sys.argv[2])
HUNDRED = b"x" * 99 + b"\n"


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


async def find(what: str, name: str) -> tuple[str, bytes]:
    if what == "fib":
        return "200 OK", str(fib(int(name))).encode()
    if what in ("file", "block"):
        file = FOLDER / what / Path(name).name
        try:
            content = await asyncio.to_thread(file.read_bytes) if what == "file" else file.read_bytes()
        except OSError:
            return "404 Not Found", b""
        return "200 OK", content
    return "200 OK", HUNDRED


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            _, what, name, *_ = [*head.split()[1].decode().split("/"), ""]
            status, body = await find(what, name)
            fields = f"Content-Type: text/plain\r\nContent-Length: {len(body)}"
            writer.write(f"HTTP/1.1 {status}\r\n{fields}\r\n\r\n".encode() + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", PORT, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
