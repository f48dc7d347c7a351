// The handlers of README.md as JEP 444 writes a server: a thread for each connection, platform or virtual.
import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.util.concurrent.*;

public class Server {
    static final byte[] HUNDRED = ("x".repeat(99) + "\n").getBytes();

    static long fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    static void head(OutputStream out, String status, long length) throws IOException {
        String fields = "Content-Type: text/plain\r\nContent-Length: " + length;
        out.write(("HTTP/1.1 " + status + "\r\n" + fields + "\r\n\r\n").getBytes());
    }

    static void answer(String target, Path folder, OutputStream out) throws IOException {
        String[] words = target.split("/");
        String what = words.length > 2 ? words[1] : "";
        if (what.equals("file") || what.equals("block")) {
            Path file = folder.resolve(what).resolve(words[2]);
            if (Files.isRegularFile(file)) {
                head(out, "200 OK", Files.size(file));
                Files.copy(file, out);
            } else {
                head(out, "404 Not Found", 0);
            }
        } else {
            byte[] body = what.equals("fib") ? Long.toString(fib(Integer.parseInt(words[2]))).getBytes() : HUNDRED;
            head(out, "200 OK", body.length);
            out.write(body);
        }
        out.flush();
    }

    static void serve(Socket socket, Path folder) {
        try (socket) {
            var in = new BufferedReader(new InputStreamReader(socket.getInputStream()), 512);
            var out = new BufferedOutputStream(socket.getOutputStream(), 1024);
            for (String line; (line = in.readLine()) != null;) {
                String target = line.split(" ")[1];
                while ((line = in.readLine()) != null && !line.isEmpty()) {} // fields
                answer(target, folder, out);
            }
        } catch (IOException gone) {}
    }

    public static void main(String[] args) throws IOException {
        var threads = args[0].equals("virtual") ? Thread.ofVirtual() : Thread.ofPlatform();
        var listener = new ServerSocket(Integer.parseInt(args[1]), 1024, InetAddress.getLoopbackAddress());
        try (var executor = Executors.newThreadPerTaskExecutor(threads.factory())) {
            for (;;) {
                Socket socket = listener.accept();
                executor.execute(() -> serve(socket, Path.of(args[2])));
            }
        }
    }
}
