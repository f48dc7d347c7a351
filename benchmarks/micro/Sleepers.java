// How long do TASKS tasks take that each sleep for a second: JEP 444's own example.
//
//     java Sleepers.java virtual|pool TASKS
//
// virtual: a virtual thread for each; pool: 200 platform threads for all. Before the clock starts a thousand tasks that sleep for 10 ms
// have warmed what is compiled while it runs. Prints one line.
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class Sleepers {
    static ExecutorService executor(String way) {
        return way.equals("virtual") ? Executors.newVirtualThreadPerTaskExecutor() : Executors.newFixedThreadPool(200);
    }

    // Seconds until all have ended: close() waits for them.
    static double run(String way, int tasks, Duration sleep) {
        long start = System.nanoTime();
        try (var executor = executor(way)) {
            for (int i = 0; i < tasks; i++)
                executor.submit(() -> {
                    Thread.sleep(sleep);
                    return null;
                });
        }
        return (System.nanoTime() - start) / 1e9;
    }

    public static void main(String[] args) {
        int tasks = Integer.parseInt(args[1]);
        run(args[0], 1000, Duration.ofMillis(10));
        System.out.printf("tasks\tseconds%n%d\t%.3f%n", tasks, run(args[0], tasks, Duration.ofSeconds(1)));
    }
}
