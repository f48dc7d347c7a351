// The handlers of README.md with node:http: one thread for JavaScript, and four that read files.
const http = require("node:http");
const fs = require("node:fs");
const path = require("node:path");
const { pipeline } = require("node:stream");

const [port, folder] = process.argv.slice(2);
const hundred = "x".repeat(99) + "\n";

function fib(n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

function reply(res, status, body) {
  res.writeHead(status, {
    "Content-Type": "text/plain",
    "Content-Length": Buffer.byteLength(body),
  });
  res.end(body);
}

const server = http.createServer((req, res) => {
  const [, what = "", name = ""] = req.url.split("/"); // OPTIONS * has none
  const file = path.join(folder, what, path.basename(name));

  if (what === "fib") {
    reply(res, 200, String(fib(Number(name) || 0)));
  } else if (what === "file") {
    fs.stat(file, (err, stats) => {
      if (err) return reply(res, 404, "");
      res.writeHead(200, { "Content-Type": "text/plain", "Content-Length": stats.size });
      pipeline(fs.createReadStream(file), res, () => {});
    });
  } else if (what === "block") {
    try {
      reply(res, 200, fs.readFileSync(file));
    } catch {
      reply(res, 404, "");
    }
  } else {
    reply(res, 200, hundred);
  }
});

server.keepAliveTimeout = 60_000; // milliseconds; the default of many versions, 5 s, ends what others keep
server.listen({ port: Number(port), host: "127.0.0.1", backlog: 1024 });
